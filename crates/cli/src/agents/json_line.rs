//! The JSON lines that an agent of `--exec-jsonl` is sent and writes. `docs/exec.md` is their reference.

use std::time::Duration;

use longhaul_engine::{AgentError, ArtifactPiece, Outcome, Turn, TurnError, text_part};
use longhaul_protocol::rules::FieldRules as _;
use longhaul_protocol::wire::{self, Part};
use longhaul_protocol::{JsonObject, Message};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// How many messages of the history a turn comes with: the latest.
const HISTORY_MAX: usize = 100;
/// How long a task may wait for an authorization before it goes on by itself.
const RESUME_AFTER_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What we write.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum ToAgent<'a> {
    Turn {
        task_id: &'a str,
        context_id: &'a str,
        attempt: u32,
        epoch: u64,
        first: bool,
        resumed: bool,
        message: &'a wire::Message,
        history: Vec<Message>,
        accepted_output_modes: &'a [String],
        extensions: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<&'a JsonObject>,
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<Box<RawValue>>,
    },
    Message {
        message: &'a wire::Message,
    },
    Cancel,
}

impl ToAgent<'_> {
    fn to_line(&self) -> Result<Vec<u8>, AgentError> {
        let mut line = serde_json::to_vec(self).map_err(AgentError::new)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// The first line: what the turn is about.
pub async fn turn_line(turn: &Turn) -> Result<Vec<u8>, AgentError> {
    let request = turn.request();
    ToAgent::Turn {
        task_id: turn.task_id().as_str(),
        context_id: turn.context_id().as_str(),
        attempt: turn.attempt(),
        epoch: turn.epoch(),
        first: turn.is_first(),
        resumed: turn.is_resumed(),
        message: turn.message().as_wire(),
        history: turn.history(HISTORY_MAX).await.map_err(unread)?,
        accepted_output_modes: &request.accepted_output_modes,
        extensions: &request.extensions,
        metadata: request.metadata.as_ref(),
        checkpoint: last_checkpoint(turn).await?,
    }
    .to_line()
}

/// What the agent has stored, as it wrote it.
async fn last_checkpoint(turn: &Turn) -> Result<Option<Box<RawValue>>, AgentError> {
    let Some(data) = turn.last_checkpoint().await.map_err(unread)? else { return Ok(None) };
    let json = serde_json::from_slice(&data);
    // Another kind of agent may have served this task before.
    json.map(Some).map_err(|error| AgentError::new(format!("the task's checkpoint is no JSON: {error}")))
}

/// A store that can't read now may be able to at the next attempt.
fn unread(error: TurnError) -> AgentError {
    AgentError::transient(error).with_reason("the task could not be read")
}

/// A message that arrived during the turn.
pub fn message_line(message: &Message) -> Result<Vec<u8>, AgentError> {
    ToAgent::Message { message: message.as_wire() }.to_line()
}

/// The wish of a caller that the turn ends.
pub fn cancel_line() -> Result<Vec<u8>, AgentError> {
    ToAgent::Cancel.to_line()
}

/// What an agent says in one line.
#[derive(Debug, PartialEq)]
pub enum FromAgent {
    Progress {
        parts: Vec<Part>,
        metadata: Option<JsonObject>,
    },
    Artifact(ArtifactPiece),
    /// It stores this JSON for its next attempt or turn.
    Checkpoint(String),
    /// It wants to be told of messages that arrive.
    Inbox,
    /// It wants the turn to be tried again, for this reason.
    Retry(String),
    /// The turn's last word.
    End(Outcome),
}

/// Every member that a line may have; which of them fit depends on its type.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Members {
    r#type: String,
    text: Option<String>,
    parts: Option<Vec<Part>>,
    artifact_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    append: Option<bool>,
    last_chunk: Option<bool>,
    metadata: Option<JsonObject>,
    resume_after_ms: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    data: Option<Box<RawValue>>,
}

/// `null` is a value like any other.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a line.
///
/// # Errors
///
/// Says in a few words what is wrong with it.
pub fn parse(line: &[u8]) -> Result<FromAgent, String> {
    let mut members: Members =
        serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))?;
    let kind = std::mem::take(&mut members.r#type);
    let parsed = match kind.as_str() {
        "progress" => FromAgent::Progress { parts: members.said(&kind)?, metadata: members.metadata.take() },
        "artifact" => FromAgent::Artifact(members.artifact(&kind)?),
        "checkpoint" => {
            let data = members.data.take().ok_or("a line of type \"checkpoint\" needs data")?;
            FromAgent::Checkpoint(data.get().to_owned())
        }
        "inbox" => FromAgent::Inbox,
        "retry" => FromAgent::Retry(members.text.take().unwrap_or_default()),
        "input_required" => FromAgent::End(Outcome::RequireInput(members.said(&kind)?)),
        "auth_required" => {
            let resume_after = members.resume_after()?;
            FromAgent::End(Outcome::RequireAuth { parts: members.said(&kind)?, resume_after })
        }
        "complete" => FromAgent::End(Outcome::Complete(members.parts()?)),
        "fail" => FromAgent::End(Outcome::Fail(members.parts()?)),
        "reject" => FromAgent::End(Outcome::Reject(members.parts()?)),
        "canceled" => FromAgent::End(Outcome::Canceled(members.parts()?)),
        _ => return Err(format!("there is no type {kind:?}; it is one of {TYPES}")),
    };
    match members.left() {
        Some(member) => Err(format!("a line of type {kind:?} has no member {member:?}")),
        None => Ok(parsed),
    }
}

const TYPES: &str = "progress, artifact, checkpoint, inbox, input_required, auth_required, complete, fail, reject, \
                     canceled, retry";

impl Members {
    /// The parts, or the text as the only one.
    fn parts(&mut self) -> Result<Option<Vec<Part>>, String> {
        let parts = match (self.text.take(), self.parts.take()) {
            (Some(_), Some(_)) => return Err("it has both text and parts".to_owned()),
            (Some(text), None) => return Ok(Some(vec![text_part(text)])),
            (None, None) => return Ok(None),
            (None, Some(parts)) => parts,
        };
        if parts.is_empty() {
            return Err("parts must have at least one item".to_owned());
        }
        for (place, part) in parts.iter().enumerate() {
            if let Some(violation) = part.violations().first() {
                let separator = if violation.field.is_empty() { "" } else { "." };
                return Err(format!("parts[{place}]{separator}{} {}", violation.field, violation.description));
            }
        }
        Ok(Some(parts))
    }

    fn said(&mut self, kind: &str) -> Result<Vec<Part>, String> {
        self.parts()?.ok_or_else(|| format!("a line of type {kind:?} needs text or parts"))
    }

    fn artifact(&mut self, kind: &str) -> Result<ArtifactPiece, String> {
        let artifact = wire::Artifact {
            artifact_id: self.artifact_id.take().ok_or("a line of type \"artifact\" needs artifactId")?,
            name: self.name.take().unwrap_or_default(),
            description: self.description.take().unwrap_or_default(),
            parts: self.said(kind)?,
            metadata: self.metadata.take(),
            ..wire::Artifact::default()
        };
        let (append, last_chunk) = (self.append.take().unwrap_or(false), self.last_chunk.take().unwrap_or(false));
        Ok(ArtifactPiece { artifact, append, last_chunk, metadata: None })
    }

    fn resume_after(&mut self) -> Result<Option<Duration>, String> {
        let Some(millis) = self.resume_after_ms.take() else { return Ok(None) };
        let delay = Duration::from_millis(millis);
        if delay > RESUME_AFTER_MAX {
            return Err(format!("resumeAfterMs must be at most {}, is {millis}", RESUME_AFTER_MAX.as_millis()));
        }
        Ok(Some(delay))
    }

    /// A member that nobody took, which is one that the line's type does not have.
    fn left(&self) -> Option<&'static str> {
        let all = [
            ("text", self.text.is_some()),
            ("parts", self.parts.is_some()),
            ("artifactId", self.artifact_id.is_some()),
            ("name", self.name.is_some()),
            ("description", self.description.is_some()),
            ("append", self.append.is_some()),
            ("lastChunk", self.last_chunk.is_some()),
            ("metadata", self.metadata.is_some()),
            ("resumeAfterMs", self.resume_after_ms.is_some()),
            ("data", self.data.is_some()),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_read() {
        let text = |text: &str| vec![text_part(text)];
        let artifact = ArtifactPiece {
            artifact: wire::Artifact {
                artifact_id: "a".to_owned(),
                parts: vec![Part::data(serde_json::Value::Null)],
                ..Default::default()
            },
            append: true,
            last_chunk: true,
            metadata: None,
        };
        let asks = Outcome::RequireAuth { parts: text("log in"), resume_after: Some(Duration::from_millis(1500)) };
        #[rustfmt::skip]
        let cases = [
            (r#"{"type":"progress","text":"half"}"#, FromAgent::Progress { parts: text("half"), metadata: None }),
            (r#"{"type":"artifact","artifactId":"a","parts":[{"data":null}],"append":true,"lastChunk":true}"#, FromAgent::Artifact(artifact)),
            (r#"{"type":"checkpoint","data":{"a": [1.50, null]}}"#, FromAgent::Checkpoint(r#"{"a": [1.50, null]}"#.to_owned())),
            (r#"{"type":"checkpoint","data":null}"#, FromAgent::Checkpoint("null".to_owned())),
            (r#"{"type":"inbox"}"#, FromAgent::Inbox),
            (r#"{"type":"retry","text":"busy"}"#, FromAgent::Retry("busy".to_owned())),
            (r#"{"type":"retry"}"#, FromAgent::Retry(String::new())),
            (r#"{"type":"input_required","text":"which?"}"#, FromAgent::End(Outcome::RequireInput(text("which?")))),
            (r#"{"type":"auth_required","text":"log in","resumeAfterMs":1500}"#, FromAgent::End(asks)),
            (r#"{"type":"complete"}"#, FromAgent::End(Outcome::Complete(None))),
            (r#"{"type":"fail","text":"no"}"#, FromAgent::End(Outcome::Fail(Some(text("no"))))),
            (r#"{"type":"reject","parts":[{"text":"no"}]}"#, FromAgent::End(Outcome::Reject(Some(text("no"))))),
            (r#"{"type":"canceled"}"#, FromAgent::End(Outcome::Canceled(None))),
        ];
        for (line, wanted) in cases {
            assert_eq!(parse(line.as_bytes()), Ok(wanted), "{line}");
        }
    }

    #[test]
    fn a_bad_line_is_explained() {
        #[rustfmt::skip]
        let cases = [
            ("hello", "expected value"),
            ("{}", "missing field `type`"),
            (r#"{"type":"finish"}"#, "no type \"finish\""),
            (r#"{"type":"complete","tetx":"x"}"#, "unknown field `tetx`"),
            (r#"{"type":"complete","append":true}"#, "no member \"append\""),
            (r#"{"type":"progress"}"#, "needs text or parts"),
            (r#"{"type":"checkpoint"}"#, "needs data"),
            (r#"{"type":"complete","data":1}"#, "no member \"data\""),
            (r#"{"type":"retry","parts":[{"text":"x"}]}"#, "no member \"parts\""),
            (r#"{"type":"input_required"}"#, "needs text or parts"),
            (r#"{"type":"artifact","text":"x"}"#, "needs artifactId"),
            (r#"{"type":"fail","text":"x","parts":[]}"#, "both text and parts"),
            (r#"{"type":"fail","parts":[]}"#, "at least one item"),
            (r#"{"type":"fail","parts":[{}]}"#, "parts[0] must have one of"),
            (r#"{"type":"fail","parts":[{"text":"x","url":"y"}]}"#, "only one of text, raw, url, data"),
            (r#"{"type":"auth_required","text":"x","resumeAfterMs":99999999999}"#, "at most 2592000000"),
        ];
        for (line, wanted) in cases {
            let error = parse(line.as_bytes()).expect_err(line);
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}
