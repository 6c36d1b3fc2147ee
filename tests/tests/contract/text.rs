//! Reads what is written for people, as strictly as the contract says that it can be read (§11.2).

/// A line, or a block of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Item {
    /// `Label: value`.
    Field(String, String),
    /// `Label:`, lines, and an empty one.
    Block(String, Vec<String>),
}

/// The labels of what each command that touches a task has to say.
pub const TASK: &str = "Task";
/// The context's id.
pub const CONTEXT: &str = "Context";
/// The state.
pub const STATE: &str = "State";

/// All of a command's stdout.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Text(pub Vec<Item>);

impl Text {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// What line is neither a field nor of a block.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line has no end".to_owned());
        }
        let mut items = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let (label, value) = line.split_once(':').ok_or_else(|| format!("no field: {line:?}"))?;
            if !label.starts_with(char::is_alphabetic) {
                return Err(format!("no label: {line:?}"));
            }
            match value.strip_prefix(' ') {
                Some(value) if !value.is_empty() => items.push(Item::Field(label.to_owned(), value.to_owned())),
                None if value.is_empty() => {
                    let mut content = Vec::new();
                    loop {
                        match lines.next() {
                            Some("") => break,
                            Some(line) => content.push(line.trim_start().to_owned()),
                            None => return Err(format!("the block {label} has no end")),
                        }
                    }
                    items.push(Item::Block(label.to_owned(), content));
                }
                _ => return Err(format!("no value: {line:?}")),
            }
        }
        Ok(Self(items))
    }

    /// The values of all fields with this label.
    pub fn all<'a>(&'a self, wanted: &str) -> Vec<&'a str> {
        let value = |item: &'a Item| match item {
            Item::Field(label, value) if label == wanted => Some(value.as_str()),
            Item::Field(..) | Item::Block(..) => None,
        };
        self.0.iter().filter_map(value).collect()
    }

    /// The value of the last field with this label.
    pub fn field(&self, label: &str) -> &str {
        self.all(label).last().copied().unwrap_or_else(|| panic!("no {label}: {self:#?}"))
    }

    /// Task, context and state, as they were said last.
    pub fn standing(&self) -> (String, String, String) {
        (self.field(TASK).to_owned(), self.field(CONTEXT).to_owned(), self.field(STATE).to_owned())
    }

    /// The content of all blocks, whatever their labels.
    pub fn blocks(&self) -> Vec<String> {
        let content = |item: &Item| match item {
            Item::Block(_, lines) => Some(lines.join("\n")),
            Item::Field(..) => None,
        };
        self.0.iter().filter_map(content).collect()
    }

    /// All labels.
    pub fn labels(&self) -> Vec<&str> {
        self.0
            .iter()
            .map(|item| match item {
                Item::Field(label, _) | Item::Block(label, _) => label.as_str(),
            })
            .collect()
    }
}

#[test]
fn text_is_read_as_strictly_as_the_contract_says() {
    let text = Text::parse("Task: t\nText:\n  one\n  \n  two\n\nState: x\n").unwrap();
    assert_eq!((text.field("Task"), text.blocks()), ("t", vec!["one\n\ntwo".to_owned()]));
    for wrong in ["Task: t", "free words\n", "Text:\n  no end\n", "Task: \n", "\nTask: t\n", "  Task: t\n"] {
        assert!(Text::parse(wrong).is_err(), "{wrong:?}");
    }
}
