//! A command as an agent: text in, lines out.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_engine::{Agent, AgentError, ArtifactPiece, Outcome, Turn, TurnError, TurnWriter, text_part};
use longhaul_protocol::wire::{self, Part};
use rustix::process::Signal;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use super::lines::{Line, Lines};
use super::process::{CommandSpec, Process, SharedSpec, feed, outcome, stop_when_canceled, tail, watch};

/// How long one chunk may be, in bytes: a longer line becomes several.
pub const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Runs a command for each turn. The message's text is its stdin, each line of its stdout a chunk of the artifact
/// `output`, exit code 0 the end of the work, 75 a wish to be tried again, and any other a failure.
#[derive(Debug)]
pub struct ExecAgent {
    spec: SharedSpec,
}

impl ExecAgent {
    /// An agent that runs this command.
    pub fn new(spec: CommandSpec) -> Self {
        Self { spec: Arc::new(spec) }
    }
}

#[async_trait]
impl Agent for ExecAgent {
    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        let turn: &Turn = turn;
        let (mut process, pipes) = Process::start(&self.spec, turn)?;
        let (group, writer) = (process.group(), turn.writer());
        let text = text_of(turn.message().parts());
        let ended = CancellationToken::new();
        let feeding = async {
            tokio::select! {
                () = feed(pipes.stdin, text.as_bytes()) => {}
                () = ended.cancelled() => {}
            }
        };
        let writing = async {
            let written = write_chunks(pipes.stdout, &writer, &ended).await;
            if written.is_err() {
                group.signal(Signal::KILL);
            }
            written
        };
        let keeper = stop_when_canceled(turn, group, self.spec.kill_after());
        let watching = async {
            let status = watch(&mut process, keeper, &ended).await;
            // A cancel that comes while the last output is read finds work that is done.
            (status, turn.is_canceled())
        };
        let (written, (), stderr, (status, canceled)) =
            tokio::join!(writing, feeding, tail(pipes.stderr, &ended), watching);
        written?;
        let status = status.map_err(|error| AgentError::new(format!("cannot wait for the command: {error}")))?;
        if canceled {
            return Ok(Outcome::Canceled(None));
        }
        outcome(status, &stderr)
    }
}

/// What a command that knows only text is told: the text parts, each on a line of its own if there are several.
fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n")
}

/// Writes each line as a chunk, the first of them as the beginning of a version.
async fn write_chunks(
    stdout: impl AsyncRead + Unpin,
    writer: &TurnWriter,
    ended: &CancellationToken,
) -> Result<(), TurnError> {
    let mut lines = Lines::new(stdout, CHUNK_BYTES_MAX);
    let mut append = false;
    while let Some(Line::Whole(bytes) | Line::Part(bytes)) = lines.next(ended).await {
        let artifact = wire::Artifact {
            artifact_id: "output".to_owned(),
            parts: vec![text_part(String::from_utf8_lossy(bytes))],
            ..wire::Artifact::default()
        };
        writer.artifact(ArtifactPiece { artifact, append, ..ArtifactPiece::default() }).await?;
        append = true;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
