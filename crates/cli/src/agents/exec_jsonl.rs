//! A command as an agent that speaks JSON lines both ways: it asks, reports progress, and makes several artifacts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Agent, AgentError, Outcome, Turn, TurnError, TurnWriter, text_part};
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::json_line::{FromAgent, cancel_line, message_line, parse, turn_line};
use super::lines::{Line, Lines};
use super::process::{CommandSpec, Group, Process, SharedSpec, outcome, tail, try_again, wait_for, watch};

/// How long a line of the agent may be, in bytes.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a process may take to exit after its last word.
pub const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How many lines wait for an agent that does not read.
const TO_AGENT_MAX: usize = 256;
/// How many messages are handed over at once: more than may wait for a task.
const MAIL_MAX: usize = 128;
/// How much of an explanation is shown, in characters.
const WHY_CHARS_MAX: usize = 300;

/// Runs a command for each turn, and speaks JSON lines with it.
#[derive(Debug)]
pub struct ExecJsonlAgent {
    spec: SharedSpec,
}

impl ExecJsonlAgent {
    /// An agent that runs this command.
    pub fn new(spec: CommandSpec) -> Self {
        Self { spec: Arc::new(spec) }
    }
}

/// What became of listening to the agent.
#[derive(Debug)]
enum Heard {
    /// It said its last word.
    End(Outcome),
    /// It wants to be tried again, for this reason.
    Retry(String),
    /// Its output ended without one.
    Nothing,
    /// It wrote what is no line of the protocol; says which, and why.
    Invalid(String),
}

/// The moments that the parts of a turn tell each other of.
#[derive(Debug, Default)]
struct Moments {
    /// The agent wants to be told of messages.
    wants_mail: CancellationToken,
    /// The turn was canceled, and the agent was told.
    canceled: CancellationToken,
    /// The agent will say no more.
    over: CancellationToken,
    /// The process has ended.
    ended: CancellationToken,
}

#[async_trait]
impl Agent for ExecJsonlAgent {
    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        let first = turn_line(turn).await?;
        let cancel = cancel_line()?;
        let (mut process, pipes) = Process::start(&self.spec, turn)?;
        let (group, writer, moments) = (process.group(), turn.writer(), Moments::default());
        let (to_agent, queue) = mpsc::channel(TO_AGENT_MAX);
        to_agent.try_send(first).map_err(|_| AgentError::new("a new queue takes a line"))?;

        let listening = async {
            let mut lines = Lines::new(pipes.stdout, LINE_BYTES_MAX);
            let heard = listen(&mut lines, &writer, &moments).await;
            moments.over.cancel();
            match &heard {
                Ok(Heard::End(_) | Heard::Retry(_) | Heard::Nothing) => lines.discard(&moments.ended).await,
                Ok(Heard::Invalid(_)) | Err(_) => group.signal(Signal::KILL),
            }
            heard
        };
        let feeding = async {
            tokio::select! {
                () = feed_lines(pipes.stdin, queue) => {}
                () = moments.over.cancelled() => {}
                () = moments.ended.cancelled() => {}
            }
        };
        let keeper = async {
            tokio::join!(
                tell_agent(turn, &to_agent, &cancel, &moments),
                stop_when_canceled(group, self.spec.kill_after(), &moments),
                end_who_lingers(group, &moments),
            );
        };
        let watching = async {
            let status = watch(&mut process, keeper, &moments.ended).await;
            (status, moments.canceled.is_cancelled())
        };
        let (heard, (), stderr, (status, canceled)) =
            tokio::join!(listening, feeding, tail(pipes.stderr, &moments.ended), watching);
        let status = status.map_err(|error| AgentError::new(format!("cannot wait for the command: {error}")))?;
        match heard? {
            Heard::End(outcome) => Ok(outcome),
            Heard::Retry(_) | Heard::Nothing | Heard::Invalid(_) if canceled => Ok(Outcome::Canceled(None)),
            Heard::Retry(reason) => Err(try_again(&reason)),
            Heard::Invalid(why) => Ok(Outcome::Fail(Some(vec![text_part(why)]))),
            Heard::Nothing => outcome(status, &stderr),
        }
    }
}

/// Carries out what the agent says until it says its last word.
async fn listen(
    lines: &mut Lines<impl AsyncRead + Unpin>,
    writer: &TurnWriter,
    moments: &Moments,
) -> Result<Heard, TurnError> {
    let mut number = 0_u64;
    while let Some(line) = lines.next(&moments.ended).await {
        number += 1;
        let parsed = match line {
            Line::Part(_) => Err(format!("it is longer than {LINE_BYTES_MAX} bytes")),
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
            Line::Whole(bytes) => parse(bytes),
        };
        let done = match parsed {
            Ok(FromAgent::Progress { parts, metadata }) => writer.progress(Some(parts), metadata).await,
            Ok(FromAgent::Artifact(piece)) => writer.artifact(piece).await,
            Ok(FromAgent::Checkpoint(data)) => match writer.checkpoint(data.into()).await {
                Err(TurnError::TooLarge { bytes, bytes_max }) => {
                    return Ok(invalid(number, &format!("data is {bytes} bytes long, {bytes_max} are allowed")));
                }
                done => done,
            },
            Ok(FromAgent::Inbox) => {
                moments.wants_mail.cancel();
                Ok(())
            }
            Ok(FromAgent::End(Outcome::Canceled(_))) if !moments.canceled.is_cancelled() => {
                return Ok(invalid(number, "nobody asked for the task to be canceled"));
            }
            Ok(FromAgent::End(outcome)) => return Ok(Heard::End(outcome)),
            Ok(FromAgent::Retry(reason)) => return Ok(Heard::Retry(reason)),
            Err(why) => return Ok(invalid(number, &why)),
        };
        match done {
            Ok(()) => {}
            Err(error @ (TurnError::Over | TurnError::Store(_))) => return Err(error),
            Err(TurnError::Artifact(why)) => return Ok(invalid(number, &why.to_string())),
            Err(error @ (TurnError::Invalid { .. } | TurnError::TooLarge { .. })) => {
                return Ok(invalid(number, &error.to_string()));
            }
        }
    }
    Ok(Heard::Nothing)
}

fn invalid(number: u64, why: &str) -> Heard {
    let why: String = why.chars().take(WHY_CHARS_MAX).collect();
    Heard::Invalid(format!("line {number} of the agent is not valid: {why}"))
}

/// Writes lines to an agent. One that does not read them is left alone.
async fn feed_lines(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
        let _ = stdin.flush().await;
    }
}

/// Tells the agent that it is canceled, and of messages if it asked for them: others keep them for the next turn.
async fn tell_agent(turn: &mut Turn, to_agent: &mpsc::Sender<Vec<u8>>, cancel: &[u8], moments: &Moments) {
    // Set when there is nobody to tell, or nothing to be read: a cancel is still watched for.
    let mut deaf = false;
    loop {
        let wants_mail = moments.wants_mail.is_cancelled() && !moments.over.is_cancelled() && !deaf;
        let mail = async {
            turn.mail().await;
            to_agent.reserve_many(MAIL_MAX).await
        };
        let room = tokio::select! {
            biased;
            () = turn.canceled(), if !moments.canceled.is_cancelled() => {
                moments.canceled.cancel();
                // No room means that the agent does not read, and then the signal has to do.
                let _ = to_agent.try_send(cancel.to_vec());
                continue;
            }
            () = moments.wants_mail.cancelled(), if !moments.wants_mail.is_cancelled() => continue,
            room = mail, if wants_mail => room,
            else => return wait_for(None).await,
        };
        // Its queue is gone when it has closed its stdin.
        let Ok(room) = room else {
            deaf = true;
            continue;
        };
        match turn.inbox().await {
            Ok(messages) => {
                let lines = messages.iter().filter_map(|message| message_line(message).ok());
                room.zip(lines).for_each(|(room, line)| room.send(line));
            }
            Err(error) => {
                tracing::warn!(
                    task_id = turn.task_id().as_str(),
                    error = &error as &dyn std::error::Error,
                    "cannot read the inbox"
                );
                deaf = true;
            }
        }
    }
}

/// Stops a canceled agent that does not stop by itself: SIGTERM, then SIGKILL.
async fn stop_when_canceled(group: Group, kill_after: Duration, moments: &Moments) {
    moments.canceled.cancelled().await;
    tokio::time::sleep(kill_after / 2).await;
    group.signal(Signal::TERM);
    tokio::time::sleep(kill_after / 2).await;
    group.signal(Signal::KILL);
    wait_for(None).await;
}

/// Ends a process that said its last word and does not exit.
async fn end_who_lingers(group: Group, moments: &Moments) {
    moments.over.cancelled().await;
    tokio::time::sleep(EXIT_GRACE).await;
    group.signal(Signal::KILL);
    wait_for(None).await;
}

#[cfg(test)]
mod tests;
