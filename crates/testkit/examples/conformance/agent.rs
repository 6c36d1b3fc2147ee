use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_engine::{Accept, Agent, AgentError, ArtifactPiece, Incoming, Outcome, Turn, text_part};
use longhaul_protocol::wire::{self, Part, PartContent};
use longhaul_testkit::piece;
use serde_json::json;

use crate::behaviour::{Behaviour, Content};

const DIRECT_ANSWER: &str = "Direct message response";
const REJECTED: &str = "rejected";

/// Does what a message's id or text stands for.
#[derive(Debug)]
pub struct ConformanceAgent;

#[async_trait]
impl Agent for ConformanceAgent {
    async fn accept(&self, incoming: &Incoming<'_>) -> Result<Accept, AgentError> {
        Ok(match Behaviour::of(incoming.message) {
            Behaviour::AnswerDirectly => Accept::Message(text(DIRECT_ANSWER)),
            Behaviour::Reject => Accept::Reject { parts: text(REJECTED) },
            _ => Accept::Task,
        })
    }

    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        match Behaviour::of(turn.message()) {
            Behaviour::Complete => Ok(Outcome::Complete(Some(text("Hello from TCK")))),
            Behaviour::CompleteSilently => Ok(Outcome::Complete(None)),
            Behaviour::RequireInputOnce if !turn.is_first() => Ok(Outcome::Complete(Some(text("Thank you")))),
            Behaviour::RequireInput | Behaviour::RequireInputOnce => Ok(Outcome::RequireInput(text("Please say more"))),
            // Only a new message can be answered without a task; here there is one.
            Behaviour::AnswerDirectly => Ok(Outcome::Complete(Some(text(DIRECT_ANSWER)))),
            Behaviour::Reject => Ok(Outcome::Reject(Some(text(REJECTED)))),
            Behaviour::Fail => Ok(Outcome::Fail(Some(text("The task failed, as it was asked to")))),
            Behaviour::WaitForCancel => {
                turn.canceled().await;
                Ok(Outcome::Canceled(None))
            }
            Behaviour::CompleteAfter(delay) => complete_after(turn, delay).await,
            Behaviour::Artifact(content) => with_artifact(turn, content).await,
            Behaviour::Chunks => {
                turn.artifact(piece("artifact-1", "chunk-1 ", false)).await?;
                turn.artifact(ArtifactPiece { last_chunk: true, ..piece("artifact-1", "chunk-2", true) }).await?;
                Ok(Outcome::Complete(None))
            }
        }
    }
}

fn text(text: &str) -> Vec<Part> {
    vec![text_part(text)]
}

async fn complete_after(turn: &Turn, delay: Duration) -> Result<Outcome, AgentError> {
    tokio::select! {
        () = tokio::time::sleep(delay) => Ok(Outcome::Complete(Some(text("Done")))),
        () = turn.canceled() => Ok(Outcome::Canceled(None)),
    }
}

async fn with_artifact(turn: &Turn, content: Content) -> Result<Outcome, AgentError> {
    let artifact = wire::Artifact {
        artifact_id: "artifact-1".to_owned(),
        parts: vec![part(content)],
        ..wire::Artifact::default()
    };
    turn.artifact(ArtifactPiece { artifact, last_chunk: true, ..ArtifactPiece::default() }).await?;
    Ok(Outcome::Complete(None))
}

fn part(content: Content) -> Part {
    let file = |content| Part {
        content: Some(content),
        filename: "output.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        ..Part::default()
    };
    match content {
        Content::Text(text) => text_part(text),
        Content::Bytes => file(PartContent::Raw(Bytes::from_static(b"longhaul\n"))),
        Content::Url => file(PartContent::Url("https://example.com/output.txt".to_owned())),
        Content::Data => {
            Part { content: Some(PartContent::Data(json!({"key": "value", "count": 42}))), ..Part::default() }
        }
    }
}
