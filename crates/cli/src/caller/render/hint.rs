//! The command that goes on where this one ended, to be copied.

use std::borrow::Cow;
use std::fmt::Write as _;

use longhaul_protocol::wire::Task;

use super::clean;
use crate::caller::options::Options;

/// What of this command line the next one needs too.
#[derive(Clone, Debug, Default)]
pub struct Continuation {
    /// The flags that say which agent it is, each with its value.
    flags: Vec<(&'static str, String)>,
    /// The ledger, where a flag said it.
    ledger: Option<String>,
    /// The delegation that the task is of, where it is of one.
    entry: Option<String>,
}

impl Continuation {
    /// One that needs these flags; what the environment and files say holds for the next command as well.
    pub fn new(flags: Vec<(&'static str, String)>) -> Self {
        Self { flags, ledger: None, entry: None }
    }

    /// The same with the ledger that a flag said.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Option<String>) -> Self {
        self.ledger = ledger;
        self
    }

    /// The same for the task of a delegation: it goes on by the ledger.
    #[must_use]
    pub fn of_delegation(mut self, entry: String) -> Self {
        self.entry = Some(entry);
        self
    }

    /// A command about the ledger.
    pub fn ledger(&self, words: &str) -> String {
        let ledger = self.ledger.as_ref().map(|path| format!(" --ledger {}", shell_word(path))).unwrap_or_default();
        format!("longhaul ledger {words}{ledger}{}", self.written())
    }

    /// The command that goes on with a task as it stands; none for a task that has ended, and none where the agent's id
    /// holds what has no business on a command line.
    pub fn resume(&self, task: &Task) -> Option<String> {
        let state = task.status.as_ref().and_then(|status| status.state.known());
        if let Some(entry) = &self.entry {
            return match state {
                Some(state) if state.is_terminal() => None,
                Some(state) if state.is_interrupted() => {
                    Some(format!("{} \"<reply>\"", self.ledger(&format!("answer {entry}"))))
                }
                Some(_) | None => Some(self.ledger("recover")),
            };
        }
        // Behind a dash it would be taken for a flag, quoted or not.
        if task.id.is_empty() || task.id.starts_with('-') || clean::line(&task.id) != task.id {
            return None;
        }
        let (id, flags) = (shell_word(&task.id), self.written());
        match state {
            Some(state) if state.is_terminal() => None,
            Some(state) if state.is_interrupted() => Some(format!("longhaul send --task-id {id}{flags} \"<reply>\"")),
            Some(_) | None => Some(format!("longhaul task get {id} --wait{flags}")),
        }
    }

    /// The command that logs in to the agent.
    pub fn login(&self, options: &Options) -> String {
        let client = if options.client_id.is_some() { "" } else { " --client-id ID" };
        format!("longhaul auth login{client}{}", self.written())
    }

    fn written(&self) -> String {
        self.flags.iter().fold(String::new(), |mut text, (flag, value)| {
            let _ = write!(text, " {flag} {}", shell_word(value));
            text
        })
    }
}

/// A text as one word of a POSIX shell. An id comes from an agent: `x; rm -rf ~` must stay an id.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::TaskState;
    use longhaul_protocol::wire::TaskStatus;

    use super::*;

    fn resume(id: &str, state: TaskState) -> Option<String> {
        let status = Some(TaskStatus { state: state.into(), ..TaskStatus::default() });
        let task = Task { id: id.to_owned(), status, ..Task::default() };
        Continuation::new(vec![("--agent-card", "http://a/?x=1&y".to_owned())]).resume(&task)
    }

    #[test]
    fn each_state_that_is_no_end_has_its_next_command() {
        for state in TaskState::ALL {
            let wanted = if state.is_terminal() {
                None
            } else if state.is_interrupted() {
                Some("longhaul send --task-id t-1 --agent-card 'http://a/?x=1&y' \"<reply>\"".to_owned())
            } else {
                Some("longhaul task get t-1 --wait --agent-card 'http://a/?x=1&y'".to_owned())
            };
            assert_eq!(resume("t-1", state), wanted, "{state}");
        }
    }

    #[test]
    fn an_id_can_not_become_a_command_when_it_is_copied() {
        let hint = resume("x'; rm -rf ~; '", TaskState::InputRequired).unwrap();
        assert!(hint.starts_with(r"longhaul send --task-id 'x'\''; rm -rf ~; '\''' --agent-card"), "{hint}");
        for id in ["", "--help", "a\nb", "a\u{1b}[2J", "a\u{202e}b"] {
            assert_eq!(resume(id, TaskState::InputRequired), None, "{id:?}");
        }
    }
}
