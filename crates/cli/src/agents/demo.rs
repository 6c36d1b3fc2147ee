//! The agent of `longhaul demo-server`: what it does is chosen by the words of the message.

mod words;

use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Accept, Agent, AgentError, ArtifactPiece, Incoming, Outcome, Turn, TurnWriter, text_part};
use longhaul_protocol::wire::{self, Part};
use tokio_util::task::TaskTracker;

use words::{Words, words_of};

/// After which time `auth` goes on by itself.
const AUTH_RESUMES_AFTER: Duration = Duration::from_secs(2);
/// How long `late` waits after its turn's end.
const LATE_BY: Duration = Duration::from_millis(100);

/// Does what the message's words say: see `longhaul demo-server --help`.
#[derive(Debug, Default)]
pub struct DemoAgent {
    /// Writers that are late.
    late: TaskTracker,
}

impl DemoAgent {
    /// The agent.
    pub fn new() -> Self {
        Self::default()
    }
}

fn needs_auth() -> (Vec<Part>, Option<Duration>) {
    (vec![text_part("authorization is needed; it comes by itself in 2 s")], Some(AUTH_RESUMES_AFTER))
}

#[async_trait]
impl Agent for DemoAgent {
    async fn accept(&self, incoming: &Incoming<'_>) -> Result<Accept, AgentError> {
        let words = words_of(incoming.message.parts());
        if words.msg {
            return Ok(Accept::Message(vec![text_part("a direct answer")]));
        }
        if words.reject {
            return Ok(Accept::Reject { parts: vec![text_part("rejected, as asked")] });
        }
        if words.auth {
            let (parts, resume_after) = needs_auth();
            return Ok(Accept::RequireAuth { parts, resume_after });
        }
        Ok(Accept::Task)
    }

    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        let words = words_of(turn.message().parts());
        if words.fail && !words.late {
            return Err(failure(turn));
        }
        if words.reject {
            return Ok(Outcome::Reject(Some(vec![text_part("rejected, as asked")])));
        }
        // A new task was asked by `accept`, so its first turn is authorized.
        if words.auth && !turn.is_first() && !turn.is_resumed() {
            let (parts, resume_after) = needs_auth();
            return Ok(Outcome::RequireAuth { parts, resume_after });
        }
        if !work(&words, turn).await? {
            return Ok(Outcome::Canceled(None));
        }
        if words.fail {
            turn.progress(vec![text_part("about to fail")]).await?;
            return Err(failure(turn));
        }
        if words.late {
            self.late.spawn(write_late(turn.writer()));
        }
        if words.input {
            return Ok(Outcome::RequireInput(vec![text_part("what else?")]));
        }
        Ok(Outcome::Complete(None))
    }
}

/// What an exception says is for the log, and must reach no caller: so it repeats the message.
fn failure(turn: &Turn) -> AgentError {
    AgentError::new(format!("asked to fail: {}", turn.message().text()))
}

/// Sleeps and writes; `false` when it was canceled and heeds that.
async fn work(words: &Words, turn: &Turn) -> Result<bool, AgentError> {
    if let Some(time) = words.slow {
        let canceled = async {
            match words.stubborn {
                true => std::future::pending().await,
                false => turn.canceled().await,
            }
        };
        tokio::select! {
            biased;
            () = canceled => return Ok(false),
            () = tokio::time::sleep(time) => {}
        }
    }
    for number in 1..=words.burst {
        turn.progress(vec![text_part(format!("{number} of {}", words.burst))]).await?;
        if turn.is_canceled() && !words.stubborn {
            return Ok(false);
        }
    }
    for number in 1..=words.chunks {
        let artifact = artifact("chunks", vec![text_part(format!("chunk {number}\n"))]);
        let (append, last_chunk) = (number > 1, number == words.chunks);
        turn.artifact(ArtifactPiece { artifact, append, last_chunk, metadata: None }).await?;
        if turn.is_canceled() && !words.stubborn {
            return Ok(false);
        }
    }
    if words.echo {
        let artifact = artifact("echo", turn.message().parts().to_vec());
        turn.artifact(ArtifactPiece { artifact, ..ArtifactPiece::default() }).await?;
    }
    Ok(true)
}

fn artifact(id: &str, parts: Vec<Part>) -> wire::Artifact {
    wire::Artifact { artifact_id: id.to_owned(), parts, ..wire::Artifact::default() }
}

/// Writes although the turn is over; the engine refuses it.
async fn write_late(writer: TurnWriter) {
    tokio::time::sleep(LATE_BY).await;
    let written = writer.progress(Some(vec![text_part("too late")]), None).await;
    tracing::debug!(refused = written.is_err(), "wrote after the end");
}

#[cfg(test)]
mod tests;
