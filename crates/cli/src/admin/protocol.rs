//! What operators ask and are answered.

use std::io;
use std::time::Duration;

use longhaul_protocol::{TaskState, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The version of requests and answers. It grows with every change of their meaning.
pub const VERSION: u32 = 1;
/// How long a request may be.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// How long an answer may be.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many tasks an answer lists. What is longer is only counted.
pub const TASKS_MAX: usize = 50_000;
/// How many dead deliveries an answer lists.
pub const DEAD_MAX: usize = 10_000;
/// How long it may take to send or read a request, or to say hello.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// A request as it is sent.
#[derive(Debug, Deserialize, Serialize)]
pub struct Request {
    /// The version of the one who asks.
    pub version: u32,
    /// What is to be done.
    pub operation: Operation,
}

/// What is to be done.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Operation {
    /// Nothing: is somebody there?
    Hello,
    /// Lets a task go on that waits for an authorization.
    Resume {
        /// The task.
        task_id: String,
    },
    /// Gives stale tasks up.
    Reclaim {
        /// Only tasks whose status is older than this.
        older_than_ms: u64,
        /// Only tasks in these states; empty: in any that is not terminal.
        states: Vec<StateName>,
        /// Only says what would be done.
        dry_run: bool,
    },
    /// Removes tasks that have ended.
    Purge {
        /// Only tasks whose status is older than this.
        older_than_ms: u64,
        /// Only tasks in these states; empty: in any that is terminal.
        states: Vec<StateName>,
    },
    /// Lists deliveries that were given up.
    PushDead {
        /// Only those of this task.
        task_id: Option<String>,
    },
    /// Has deliveries sent again that were given up.
    PushRetry {
        /// Only those of this task.
        task_id: Option<String>,
        /// Only those of this config of it.
        config_id: Option<String>,
    },
    /// Counts what waits to be delivered.
    PushBacklog,
    /// Seals the secrets of push configs anew.
    PushRotateKey,
}

/// An answer as it is sent.
#[derive(Debug, Deserialize, Serialize)]
pub struct Response {
    /// The version of the one who answers.
    pub version: u32,
    /// The answer.
    pub answer: Answer,
}

/// What came of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Somebody is there.
    Hello {
        /// The process.
        pid: u32,
    },
    /// The task goes on.
    Resumed,
    /// These tasks were given up, or would be.
    Reclaimed {
        /// The tasks, those first that had no update for the longest time.
        tasks: Vec<ReclaimedTask>,
        /// How many more there were.
        left_out: u64,
    },
    /// So many tasks were removed.
    Purged {
        /// By state.
        states: Vec<PurgedState>,
    },
    /// These deliveries were given up.
    PushDead {
        /// By task, config and sequence.
        deliveries: Vec<DeadRow>,
        /// Whether there are more.
        more: bool,
    },
    /// So many deliveries are sent again.
    PushRetried {
        /// How many.
        retried: u64,
    },
    /// So much waits.
    PushBacklog {
        /// Configs that have an event to be delivered, now or later.
        configs: u64,
        /// Deliveries that were given up and are kept.
        dead: u64,
    },
    /// All secrets are sealed with the current key.
    PushRotated {
        /// How many were sealed anew.
        resealed: u64,
    },
    /// It was not done.
    Refused {
        /// Why not.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// A task that was given up, or would be.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimedTask {
    /// The task.
    pub task_id: String,
    /// Its context.
    pub context_id: String,
    /// The state that it was in.
    pub state: StateName,
    /// Since when.
    pub since: Timestamp,
    /// Why it was given up.
    pub why: String,
}

/// A delivery that was given up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadRow {
    /// Whose task it is.
    pub tenant: String,
    /// The task.
    pub task_id: String,
    /// The push config.
    pub config_id: String,
    /// The sequence of the event.
    pub sequence: u64,
    /// Where it goes.
    pub url: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub died_at: Timestamp,
    /// Why.
    pub why: String,
}

/// How many tasks were removed that had ended in a state.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct PurgedState {
    /// The state.
    pub state: StateName,
    /// How many.
    pub removed: u64,
}

/// A state by its name in the protocol.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct StateName(pub TaskState);

impl StateName {
    /// The name without what all of them begin with: `INPUT_REQUIRED`.
    pub fn short(self) -> &'static str {
        let name = self.0.wire_name();
        name.strip_prefix(PREFIX).unwrap_or(name)
    }

    /// Reads a name as people write it: `input_required`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.trim().to_ascii_uppercase();
        let found =
            TaskState::ALL.into_iter().map(Self).find(|state| state.short() == name || state.0.wire_name() == name);
        found.ok_or_else(|| {
            let all: Vec<_> =
                TaskState::ALL.into_iter().map(|state| Self(state).short().to_ascii_lowercase()).collect();
            format!("it is one of {}", all.join(", "))
        })
    }
}

const PREFIX: &str = "TASK_STATE_";

impl TryFrom<String> for StateName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        TaskState::from_wire_name(&name).map(Self).ok_or_else(|| format!("there is no state {name:?}"))
    }
}

impl From<StateName> for &'static str {
    fn from(state: StateName) -> Self {
        state.0.wire_name()
    }
}

/// Reads the version alone, which every version of a line has.
pub fn version_of(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice::<Versioned>(line).ok().map(|versioned| versioned.version)
}

/// Reads a line, without its newline.
///
/// # Errors
///
/// When it is too long, or does not end with a newline.
pub async fn read_line(pipe: impl AsyncRead + Unpin, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut pipe = pipe.take(bytes_max as u64);
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        if pipe.read_buf(&mut line).await? == 0 {
            let why = if line.len() >= bytes_max { "the line is too long" } else { "the line is cut" };
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    }
    line.pop();
    Ok(line)
}

/// Writes a value as a line.
pub async fn write_line(mut pipe: impl AsyncWrite + Unpin, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    pipe.write_all(&line).await?;
    pipe.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_requests_and_answers_is_kept() {
        let operation =
            Operation::Reclaim { older_than_ms: 5, states: vec![StateName(TaskState::AuthRequired)], dry_run: true };
        let request = serde_json::to_string(&Request { version: VERSION, operation }).expect("it can be written");
        let wanted = r#"{"version":1,"operation":{"type":"reclaim","olderThanMs":5,"states":["TASK_STATE_AUTH_REQUIRED"],"dryRun":true}}"#;
        assert_eq!(request, wanted);
        let answer = Answer::Purged { states: vec![PurgedState { state: StateName(TaskState::Failed), removed: 2 }] };
        let answer = serde_json::to_string(&Response { version: VERSION, answer }).expect("it can be written");
        assert_eq!(
            answer,
            r#"{"version":1,"answer":{"type":"purged","states":[{"state":"TASK_STATE_FAILED","removed":2}]}}"#
        );
        assert_eq!(version_of(br#"{"version":7,"whatever":[]}"#), Some(7));
    }

    #[test]
    fn states_are_read_as_people_write_them() {
        for text in ["input_required", "INPUT_REQUIRED", " TASK_STATE_INPUT_REQUIRED"] {
            assert_eq!(StateName::parse(text), Ok(StateName(TaskState::InputRequired)), "{text}");
        }
        assert!(StateName::parse("waiting").expect_err("there is none").contains("submitted, working, completed"));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_or_cut_is_refused() {
        assert_eq!(read_line(&b"abc\n"[..], 4).await.expect("it is read"), b"abc");
        for line in [&b"abcd\n"[..], b"abc", b""] {
            assert!(read_line(line, 4).await.is_err(), "{line:?}");
        }
    }
}
