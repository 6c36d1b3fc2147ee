use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{
    Accept, Agent, AgentError, ArtifactPiece, Clock as _, Incoming, Outcome, Turn, TurnError, text_part,
};
use longhaul_protocol::wire;

use crate::store::{Shared, give_way};
use crate::{Dice, Promise, SimClock};

/// An agent whose turns follow from the seed, the message and the attempt, whoever runs them.
#[derive(Debug)]
pub(crate) struct SimAgent {
    pub seed: u64,
    pub clock: Arc<SimClock>,
    pub shared: Arc<Shared>,
    /// How long its turns may sleep at a time, at the most.
    pub sleep_millis: u64,
}

/// What it does when it is told that it is canceled.
#[derive(Clone, Copy, PartialEq)]
enum WhenCanceled {
    Stops,
    Completes,
    GoesOn,
}

#[derive(Clone, Copy)]
enum Step {
    Chunk,
    Progress,
    Sleep,
    Checkpoint,
    Inbox,
    Yield,
    HalfArtifact,
}

#[derive(Clone, Copy)]
enum End {
    Complete,
    RequireInput,
    RequireAuth,
    RequireAuthFor,
    Transient,
    Broken,
    Fail,
    Reject,
}

#[async_trait]
impl Agent for SimAgent {
    async fn accept(&self, incoming: &Incoming<'_>) -> Result<Accept, AgentError> {
        let mut dice = Dice::of(self.seed, &format!("accept {}", incoming.message.text()));
        if dice.happens(30) {
            // Longer than it may.
            self.clock.sleep(Duration::from_millis(dice.below(1500))).await;
        }
        let parts = vec![text_part("before anything is done")];
        Ok(match dice.below(100) {
            0..4 => Accept::Reject { parts },
            4..8 => Accept::RequireAuth { parts, resume_after: None },
            8..11 => Accept::RequireAuth { parts, resume_after: Some(Duration::from_millis(dice.below(4000))) },
            11..13 => Accept::Message(parts),
            _ => Accept::Task,
        })
    }

    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        let (task, message) = (turn.task_id().clone(), turn.message().id().clone());
        let run = self.shared.books(|books| books.begin_run(task, message));
        let mut dice = Dice::of(self.seed, &format!("run {} {}", turn.message().text(), turn.attempt()));
        let when_canceled =
            dice.pick(&[(5, WhenCanceled::Stops), (2, WhenCanceled::Completes), (3, WhenCanceled::GoesOn)]);
        let when_canceled = when_canceled.unwrap_or(WhenCanceled::Stops);
        if turn.attempt() > 1 {
            turn.last_checkpoint().await?;
        }
        let mut begun = [false; 2];
        for step in 0..dice.below(9) {
            if turn.is_canceled() && when_canceled != WhenCanceled::GoesOn {
                break;
            }
            self.step(turn, &mut dice, (run, step), &mut begun, when_canceled).await?;
        }
        if turn.is_canceled() && when_canceled == WhenCanceled::Stops {
            return Ok(Outcome::Canceled(Some(vec![text_part(end_of(run))])));
        }
        let resumed = turn.is_resumed();
        end(&mut dice, run, resumed)
    }
}

impl SimAgent {
    async fn step(
        &self,
        turn: &mut Turn,
        dice: &mut Dice,
        (run, number): (u64, u64),
        begun: &mut [bool; 2],
        when_canceled: WhenCanceled,
    ) -> Result<(), TurnError> {
        let steps = [
            (8, Step::Chunk),
            (3, Step::Progress),
            (6, Step::Sleep),
            (2, Step::Checkpoint),
            (2, Step::Inbox),
            (2, Step::Yield),
            (1, Step::HalfArtifact),
        ];
        let said = word(run, number);
        match dice.pick(&steps).unwrap_or(Step::Yield) {
            Step::Chunk => {
                let place = dice.place(2).unwrap_or(0);
                let (id, begun) = match place {
                    0 => ("a", &mut begun[0]),
                    _ => ("b", &mut begun[1]),
                };
                let append = std::mem::replace(begun, true) && dice.happens(900);
                let last_chunk = dice.happens(150);
                *begun &= !last_chunk;
                turn.artifact(piece(id, &said, append, last_chunk)).await?;
                self.shared.books(|books| books.said(run, said));
                Ok(())
            }
            Step::Progress => {
                turn.progress(vec![text_part(&said)]).await?;
                self.shared.books(|books| books.said(run, said));
                Ok(())
            }
            Step::Sleep => {
                let millis = match dice.below(10) {
                    0..5 => dice.below(50),
                    5..9 => dice.below(self.sleep_millis / 4 + 1),
                    _ => dice.below(self.sleep_millis + 1),
                };
                let sleep = self.clock.sleep(Duration::from_millis(millis));
                match when_canceled {
                    WhenCanceled::GoesOn => sleep.await,
                    WhenCanceled::Stops | WhenCanceled::Completes => tokio::select! {
                        biased;
                        () = turn.canceled() => {}
                        () = sleep => {}
                    },
                }
                Ok(())
            }
            Step::Checkpoint => turn.checkpoint(said).await,
            Step::Inbox => {
                let task = turn.task_id().clone();
                let read = turn.inbox().await?;
                self.shared.books(|books| {
                    books.read.extend(read.iter().map(|message| (task.clone(), message.id().clone())));
                });
                Ok(())
            }
            Step::Yield => {
                give_way().await;
                Ok(())
            }
            Step::HalfArtifact => match turn.artifact(piece("never begun", "x", true, false)).await {
                Err(TurnError::Artifact(_)) => Ok(()),
                Ok(()) => {
                    let what = format!("task {}: an artifact was appended to that was not begun", turn.task_id());
                    self.shared.trace.broken(Promise::OneOrder, what);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        }
    }
}

/// What a run says in one of its steps, like nothing else that any run says.
fn word(run: u64, number: u64) -> String {
    format!("run {run} says {number}")
}

/// What a run says with its outcome.
pub(crate) fn end_of(run: u64) -> String {
    format!("run {run} ends")
}

fn end(dice: &mut Dice, run: u64, resumed: bool) -> Result<Outcome, AgentError> {
    let ends = [
        (50, End::Complete),
        (18, End::RequireInput),
        (5, End::RequireAuth),
        (8, End::RequireAuthFor),
        (12, End::Transient),
        (3, End::Broken),
        (5, End::Fail),
        (2, End::Reject),
    ];
    let parts = vec![text_part(end_of(run))];
    match dice.pick(&ends).unwrap_or(End::Complete) {
        // Who was resumed has what it asked for.
        End::RequireAuth | End::RequireAuthFor if resumed => Ok(Outcome::Complete(Some(parts))),
        End::Complete => Ok(Outcome::Complete(dice.happens(500).then_some(parts))),
        End::RequireInput => Ok(Outcome::RequireInput(parts)),
        End::RequireAuth => Ok(Outcome::RequireAuth { parts, resume_after: None }),
        End::RequireAuthFor => {
            let resume_after = Some(Duration::from_millis(dice.below(5000)));
            Ok(Outcome::RequireAuth { parts, resume_after })
        }
        End::Transient => Err(AgentError::transient("not this time").with_reason("not this time")),
        End::Broken => Err(AgentError::new("broken")),
        End::Fail => Ok(Outcome::Fail(Some(parts))),
        End::Reject => Ok(Outcome::Reject(None)),
    }
}

fn piece(id: &str, text: &str, append: bool, last_chunk: bool) -> ArtifactPiece {
    let artifact =
        wire::Artifact { artifact_id: id.to_owned(), parts: vec![text_part(text)], ..wire::Artifact::default() };
    ArtifactPiece { artifact, append, last_chunk, metadata: None }
}
