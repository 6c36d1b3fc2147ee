//! Reads the tables of a TOML file key by key. What was not asked for when a table is finished is unknown.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::{Table, Value};

use super::{ConfigError, duration};

/// How alike an unknown key and the one that is named must be, from 0 to 1.
const ALIKE_MIN: f64 = 0.75;
const EXAMPLE_DURATION: &str = "write a whole number and its unit: \"500ms\", \"30s\", \"5m\", \"24h\" or \"7d\"";

/// A whole file.
#[derive(Debug)]
pub struct Document<'a> {
    /// Its name.
    pub file: &'a str,
    /// The paths of all keys that were asked for, without indices.
    pub asked: RefCell<Vec<String>>,
    /// All keys that there are, to name one that is near; empty while they are being collected.
    pub keys: &'a [String],
}

/// One table of it.
#[derive(Debug)]
pub struct Section<'a> {
    document: &'a Document<'a>,
    /// As it is shown: `card.skills[0]`.
    path: String,
    /// As it is documented: `card.skills`.
    key_path: String,
    table: Option<&'a Table>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The outermost table.
    pub fn root(document: &'a Document<'a>, table: &'a Table) -> Self {
        Self { document, path: String::new(), key_path: String::new(), table: Some(table), known: Vec::new() }
    }

    fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.document.asked.borrow_mut().push(join(&self.key_path, key));
        self.table.and_then(|table| table.get(key))
    }

    /// Where a key is, for what is read apart from the file: `longhaul.toml: store.kind`.
    pub fn place(&self, key: &str) -> String {
        format!("{}: {}", self.document.file, join(&self.path, key))
    }

    /// Something wrong with a key.
    pub fn error(&self, key: &str, message: impl Display, hint: impl Into<String>) -> ConfigError {
        ConfigError::new(self.document.file, format!("{} {message}", join(&self.path, key)), hint)
    }

    fn wrong(&self, key: &str, value: &Value, wanted: &str, hint: impl Into<String>) -> ConfigError {
        self.error(key, format_args!("is {value}, and must be {wanted}"), hint)
    }

    /// A text, if it is there.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(key, other, "a text", format!("write it in quotes: {key} = \"…\""))),
        }
    }

    /// A text that `check` agrees with; it says what is wanted otherwise.
    pub fn checked(
        &mut self,
        key: &'static str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<Option<String>, ConfigError> {
        let text = self.text(key)?;
        if let Some(text) = &text
            && let Err(wanted) = check(text)
        {
            return Err(self.error(
                key,
                format_args!("is {text:?}, and must be {wanted}"),
                format!("change {key} in the file"),
            ));
        }
        Ok(text)
    }

    /// A text that must be there and say something.
    pub fn required(&mut self, key: &'static str) -> Result<String, ConfigError> {
        match self.text(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.error(key, "is empty", format!("give it a text: {key} = \"…\""))),
            None => Err(self.error(key, "is missing", format!("add {key} = \"…\" to [{}]", self.key_path))),
        }
    }

    /// Puts a text where it belongs, if it is there.
    pub fn set_text(&mut self, key: &'static str, to: &mut String) -> Result<(), ConfigError> {
        set(to, self.text(key)?);
        Ok(())
    }

    /// Puts `true` or `false` where it belongs, if it is there.
    pub fn set_flag(&mut self, key: &'static str, to: &mut bool) -> Result<(), ConfigError> {
        match self.value(key) {
            None => {}
            Some(Value::Boolean(flag)) => *to = *flag,
            Some(other) => {
                return Err(self.wrong(key, other, "true or false", format!("write {key} = true, without quotes")));
            }
        }
        Ok(())
    }

    /// A whole number in a range, if it is there.
    pub fn number<N>(&mut self, key: &'static str, range: RangeInclusive<N>) -> Result<Option<N>, ConfigError>
    where
        N: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        let wanted = format!("a whole number between {} and {}", range.start(), range.end());
        match self.value(key) {
            None => Ok(None),
            Some(value @ Value::Integer(number)) => {
                match N::try_from(*number).ok().filter(|number| range.contains(number)) {
                    Some(number) => Ok(Some(number)),
                    None => Err(self.wrong(key, value, &wanted, "choose a number in that range")),
                }
            }
            Some(other) => {
                Err(self.wrong(key, other, &wanted, format!("write it without quotes: {key} = {}", range.start())))
            }
        }
    }

    /// Puts a whole number where it belongs, if it is there.
    pub fn set_number<N>(&mut self, key: &'static str, to: &mut N, range: RangeInclusive<N>) -> Result<(), ConfigError>
    where
        N: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        set(to, self.number(key, range)?);
        Ok(())
    }

    /// Puts a duration where it belongs, if it is there.
    pub fn set_duration(
        &mut self,
        key: &'static str,
        to: &mut Duration,
        range: RangeInclusive<Duration>,
    ) -> Result<(), ConfigError> {
        if let Some(value) = self.value(key) {
            *to = self.duration(key, value, "", &range)?;
        }
        Ok(())
    }

    /// Puts a duration where it belongs, or `None` for the word that stands for none, if it is there.
    pub fn set_duration_or(
        &mut self,
        none: &'static str,
        key: &'static str,
        to: &mut Option<Duration>,
        range: RangeInclusive<Duration>,
    ) -> Result<(), ConfigError> {
        match self.value(key) {
            None => {}
            Some(value) if value.as_str() == Some(none) => *to = None,
            Some(value) => *to = Some(self.duration(key, value, &format!("{none:?}, or "), &range)?),
        }
        Ok(())
    }

    fn duration(
        &self,
        key: &str,
        value: &Value,
        or: &str,
        range: &RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let (from, to) = (duration::format(*range.start()), duration::format(*range.end()));
        let wanted = format!("{or}a duration between {from} and {to}");
        match value.as_str().and_then(duration::parse) {
            Some(given) if range.contains(&given) => Ok(given),
            Some(_) => Err(self.wrong(key, value, &wanted, "choose a duration in that range")),
            None => Err(self.wrong(key, value, &wanted, EXAMPLE_DURATION)),
        }
    }

    /// Puts one of several choices where it belongs, if it is there.
    pub fn set_choice<T: Copy>(
        &mut self,
        key: &'static str,
        to: &mut T,
        choices: &[(&str, T)],
    ) -> Result<(), ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(()) };
        let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) else {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let near =
                nearest(&text, names.iter().copied()).unwrap_or_else(|| names.first().copied().unwrap_or_default());
            let message = format_args!("is {text:?}, and must be one of {}", names.join(", "));
            return Err(self.error(key, message, format!("write {key} = {near:?}")));
        };
        *to = *choice;
        Ok(())
    }

    /// A list of texts, if it is there.
    pub fn list(&mut self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let texts =
            value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        texts
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, "a list of texts", format!("write {key} = [\"…\", \"…\"]")))
    }

    /// Puts a list of texts where it belongs, if it is there.
    pub fn set_list(&mut self, key: &'static str, to: &mut Vec<String>) -> Result<(), ConfigError> {
        set(to, self.list(key)?);
        Ok(())
    }

    /// A table with names of the writer's choice and texts as values, if it is there.
    pub fn texts(&mut self, key: &'static str) -> Result<Option<BTreeMap<String, String>>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let texts = value.as_table().and_then(|table| {
            table.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        });
        let path = join(&self.key_path, key);
        // The values may be secrets, so they are not repeated.
        texts.map(Some).ok_or_else(|| {
            self.error(key, "must be a table of texts", format!("write [{path}], and below it NAME = \"…\""))
        })
    }

    /// Anything, as a table.
    pub fn free(&mut self, key: &'static str) -> Result<Option<&'a Table>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.wrong(key, other, "a table", format!("write {key} = {{ name = \"…\" }}"))),
        }
    }

    /// A table of its own, there or not.
    pub fn section(&mut self, key: &'static str) -> Result<Section<'a>, ConfigError> {
        let (path, key_path) = (join(&self.path, key), join(&self.key_path, key));
        let table = match self.value(key) {
            None => None,
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                return Err(self.wrong(
                    key,
                    other,
                    "a table",
                    format!("begin it with [{key_path}] on a line of its own"),
                ));
            }
        };
        Ok(Section { document: self.document, path, key_path, table, known: Vec::new() })
    }

    /// Whether a table of this name is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// A list of tables, there or not.
    pub fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let (path, key_path, document) = (join(&self.path, key), join(&self.key_path, key), self.document);
        let tables: Option<Vec<&Table>> =
            value.as_array().and_then(|items| items.iter().map(Value::as_table).collect());
        let tables = tables
            .ok_or_else(|| self.wrong(key, value, "a list of tables", format!("begin each with [[{key_path}]]")))?;
        let section = |(place, table)| Section {
            document,
            path: format!("{path}[{place}]"),
            key_path: key_path.clone(),
            table: Some(table),
            known: Vec::new(),
        };
        Ok(tables.into_iter().enumerate().map(section).collect())
    }

    /// Refuses what nobody asked for.
    pub fn finish(self) -> Result<(), ConfigError> {
        let Some(table) = self.table else { return Ok(()) };
        let Some(unknown) = table.keys().find(|key| !self.known.contains(&key.as_str())) else { return Ok(()) };
        let here = nearest(unknown, self.known.iter().copied()).map(|near| join(&self.key_path, near));
        let elsewhere = || {
            let last = |path: &'a String| path.rsplit('.').next().unwrap_or(path);
            let same = self.document.keys.iter().find(|path| last(path) == unknown);
            same.cloned().or_else(|| {
                nearest(unknown, self.document.keys.iter().map(last))
                    .and_then(|near| self.document.keys.iter().find(|path| last(path) == near).cloned())
            })
        };
        let hint = match here.or_else(elsewhere) {
            Some(near) => format!("did you mean {near}? docs/config.md lists all keys"),
            None => "docs/config.md lists all keys".to_owned(),
        };
        Err(ConfigError::new(self.document.file, format!("there is no key {}", join(&self.path, unknown)), hint))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

/// The name most like `text`, if one is like it at all.
pub fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = |name: &str| strsim::jaro_winkler(text, name);
    let best = names.map(|name| (likeness(name), name)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE_MIN).then_some(best.1)
}
