//! Callers that do what callers do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::check::Checker;
use super::ledger::Ledger;
use super::{CHUNKS, whole_texts};
use crate::task::{id_of, say, say_to, state_of};
use crate::{Binding, Call, CallError, Client, Instances, Operation};

/// How long a request is repeated that has no answer.
const REPEATED_MAX: Duration = Duration::from_secs(40);

/// How long a caller waits before it repeats a request.
const PAUSE: Duration = Duration::from_millis(50);

/// How many callers there are in [`under_load`], and how long each rests before each step.
const LOAD_CALLERS: u64 = 6;
const LOAD_PAUSE: Duration = Duration::from_millis(60);

/// Where their tasks are.
const LOAD_CONTEXT: &str = "load";

/// One caller.
#[derive(Debug)]
pub struct Caller {
    instances: Instances,
    client: Client,
    context: String,
    dice: StdRng,
    ledger: Ledger,
    mine: Vec<String>,
    patience: Option<Patience>,
}

/// What makes a caller go on.
#[derive(Clone, Debug)]
struct Patience {
    over: Arc<AtomicBool>,
    pause: Duration,
    stops: Stops,
}

/// Whether servers are told to end while there are callers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stops {
    /// They are not: a stream that is not cut ends with its task.
    Never,
    /// They are: a stream may end in order before its task does, and is resumed.
    InOrder,
}

/// How far a stream was read.
#[derive(Clone, Debug)]
struct Place {
    id: String,
    sequence: u64,
}

impl Caller {
    /// A caller who puts its tasks into `context` and writes into `ledger`.
    #[must_use]
    pub fn new(instances: impl Into<Instances>, number: u64, context: String, dice: StdRng, ledger: Ledger) -> Self {
        let instances = instances.into();
        let binding = Binding::ALL[usize::try_from(number % 3).unwrap()];
        let client = Client::new(binding, &instances);
        Self { instances, client, context, dice, ledger, mine: Vec::new(), patience: None }
    }

    /// Goes on until it is `over`, with a pause before each step: repeats what had no answer or was refused for now, in
    /// the way that runs nothing twice, and resumes streams where they were cut.
    #[must_use]
    pub fn patient(self, over: Arc<AtomicBool>, pause: Duration, stops: Stops) -> Self {
        Self { patience: Some(Patience { over, pause, stops }), ..self }
    }

    /// Works until the connection is cut; a patient one until its time is over.
    ///
    /// # Panics
    ///
    /// When it is told what must not be, or refused.
    pub async fn run(mut self) {
        loop {
            if let Some(patience) = &self.patience {
                tokio::time::sleep(patience.pause).await;
                if patience.over.load(Ordering::Relaxed) {
                    return;
                }
            }
            match self.step().await {
                Ok(()) => {}
                Err(CallError::Cut(_)) if self.patience.is_none() => return,
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// The request as it can be repeated.
    fn repeatable(&self, call: Call) -> Call {
        match self.patience {
            None => call,
            Some(_) => call.header("a2a-extensions", "urn:longhaul:ext:idempotent-send:v1"),
        }
    }

    /// Whether this is to be tried again, which it waits for.
    async fn tries_again(&self, error: &CallError, begun: Instant) -> bool {
        let passes = match error {
            CallError::Cut(_) => true,
            CallError::Refused(refusal) => refusal.reason == "UNAVAILABLE",
        };
        if self.patience.is_none() || !passes {
            return false;
        }
        assert!(begun.elapsed() < REPEATED_MAX, "no answer within {REPEATED_MAX:?}: {error:?}");
        self.ledger.count_repeated();
        tokio::time::sleep(PAUSE).await;
        true
    }

    async fn call(&mut self, operation: Operation, params: Value) -> Result<Value, CallError> {
        let call = self.repeatable(Call::new(operation, params));
        let begun = Instant::now();
        loop {
            match self.client.call(&call).await {
                Err(error) if self.tries_again(&error, begun).await => {}
                outcome => return outcome,
            }
        }
    }

    async fn step(&mut self) -> Result<(), CallError> {
        let chunks = CHUNKS[self.dice.random_range(0..CHUNKS.len())];
        match self.dice.random_range(0..40) {
            0..12 => self.send("echo", false).await.map(drop),
            12..18 => self.stream(&format!("chunks {chunks}")).await,
            18..20 => self.stream("burst 50").await,
            20..25 => self.leave_and_follow(&format!("chunks {chunks}")).await,
            25..31 => self.ask_and_answer().await,
            31 => self.send("fail", false).await.map(drop),
            32 => self.send("reject", false).await.map(drop),
            33..35 => self.cancel().await,
            35 => self.send("slow 1", true).await.map(drop),
            _ => self.read().await,
        }
    }

    fn params(&self, text: &str, leave: bool) -> Value {
        let mut params = say(text);
        params["message"]["contextId"] = self.context.as_str().into();
        if leave {
            params["configuration"] = json!({"returnImmediately": true});
        }
        params
    }

    /// Sends, and notes what is acknowledged.
    async fn send(&mut self, text: &str, leave: bool) -> Result<Value, CallError> {
        let params = self.params(text, leave);
        let answer = self.call(Operation::SendMessage, params.clone()).await?;
        let message = params["message"]["messageId"].as_str().unwrap();
        self.ledger.note(&self.context, Some((text, message)), &answer["task"]);
        self.mine.push(id_of(&answer));
        Ok(answer["task"].clone())
    }

    /// Sends and follows the stream to its end.
    async fn stream(&mut self, text: &str) -> Result<(), CallError> {
        let params = self.params(text, false);
        let send = self.repeatable(Call::new(Operation::SendStreamingMessage, params.clone()));
        let message = params["message"]["messageId"].as_str().unwrap();
        let place = self.follow(Some((&send, text, message)), None).await?;
        assert!(self.ledger.get(&place.id).ended.is_some(), "the stream of {place:?} ended before its task");
        Ok(())
    }

    /// Sends without waiting, and follows the task from outside.
    async fn leave_and_follow(&mut self, text: &str) -> Result<(), CallError> {
        let task = self.send(text, true).await?;
        self.follow(None, Some(Place { id: id_of(&task), sequence: 1 })).await?;
        Ok(())
    }

    /// Follows a stream to its end: that of `send` as long as there is no place, then the one that goes on there.
    async fn follow(
        &mut self,
        send: Option<(&Call, &str, &str)>,
        mut place: Option<Place>,
    ) -> Result<Place, CallError> {
        let mut begun = Instant::now();
        loop {
            let before = place.as_ref().map(|place| place.sequence);
            match self.follow_once(send, &mut place).await {
                Ok(()) => {
                    let place = place.as_ref().expect("a stream has items");
                    if !self.was_stopped(&place.id) {
                        return Ok(place.clone());
                    }
                    self.ledger.count_repeated();
                }
                Err(error) => {
                    if place.as_ref().map(|place| place.sequence) > before {
                        begun = Instant::now();
                    }
                    if !self.tries_again(&error, begun).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Whether a stream may have ended because its server was told to.
    fn was_stopped(&self, id: &str) -> bool {
        let stops = self.patience.as_ref().map(|patience| patience.stops);
        stops == Some(Stops::InOrder) && self.ledger.get(id).ended.is_none()
    }

    /// Reads a stream until it ends or is cut. HTTP+JSON: its events are the stored bytes.
    async fn follow_once(
        &mut self,
        send: Option<(&Call, &str, &str)>,
        place: &mut Option<Place>,
    ) -> Result<(), CallError> {
        let call = match (&place, send) {
            (Some(Place { id, sequence }), _) => {
                Call::new(Operation::SubscribeToTask, json!({"id": id})).after(*sequence)
            }
            (None, Some((call, ..))) => call.clone(),
            (None, None) => panic!("there is a task to follow"),
        };
        let mut stream = Client::new(Binding::HttpJson, &self.instances).open(&call).await?;
        // A stream that goes on begins with the task as it stood where the last one ended.
        let mut expected = place.as_ref().map(|place| place.sequence);
        while let Some(event) = stream.next().await? {
            let sequence = event.sequence.expect("an event has a number");
            if let Some(expected) = expected {
                assert_eq!(sequence, expected, "a stream has a gap or a double: {call:?} {event:?}");
            }
            expected = Some(sequence + 1);
            if let (None, Some((_, text, message))) = (&place, send) {
                self.ledger.note(&self.context, Some((text, message)), &event.data["task"]);
            }
            let id = match &place {
                Some(place) => place.id.clone(),
                None => id_of(&event.data),
            };
            self.ledger.note_event(&id, &event);
            *place = Some(Place { id, sequence });
        }
        Ok(())
    }

    /// Lets the agent ask, and answers half of its questions.
    async fn ask_and_answer(&mut self) -> Result<(), CallError> {
        let task = self.send("input", false).await?;
        assert_eq!(state_of(&task), "INPUT_REQUIRED", "{task}");
        if self.dice.random() {
            return Ok(());
        }
        let id = id_of(&task);
        self.ledger.will_answer(&id);
        let params = say_to(&id, "more");
        let answer = self.call(Operation::SendMessage, params.clone()).await?;
        assert_eq!(state_of(&answer), "COMPLETED", "{answer}");
        let message = params["message"]["messageId"].as_str().unwrap();
        self.ledger.note(&self.context, Some(("more", message)), &answer["task"]);
        Ok(())
    }

    /// Cancels a task that works, or has just ended.
    async fn cancel(&mut self) -> Result<(), CallError> {
        let text = ["chunks 200", "slow 1"][self.dice.random_range(0..2)];
        let task = self.send(text, true).await?;
        match self.call(Operation::CancelTask, json!({"id": task["id"]})).await {
            Ok(task) => self.ledger.note(&self.context, None, &task),
            Err(CallError::Refused(refusal)) if refusal.reason == "TASK_NOT_CANCELABLE" => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads one of its tasks.
    async fn read(&mut self) -> Result<(), CallError> {
        if self.mine.is_empty() {
            return Ok(());
        }
        let id = self.mine[self.dice.random_range(0..self.mine.len())].clone();
        let task = self.call(Operation::GetTask, json!({"id": id})).await?;
        self.ledger.note(&self.context, None, &task);
        Ok(())
    }
}

/// Lets patient callers work while `faults` happen, and checks that what they were told holds, that nothing is stuck and
/// that nothing was done twice. Answers how many requests had to be repeated.
///
/// # Panics
///
/// When a promise is broken, or there were hardly any tasks.
pub async fn under_load(
    instances: Instances,
    stops: Stops,
    dice: &mut StdRng,
    faults: impl AsyncFnOnce(&mut StdRng),
) -> u64 {
    let checker = Checker::new(&instances, whole_texts(&instances).await);
    let (ledger, over) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for number in 0..LOAD_CALLERS {
        let dice = StdRng::seed_from_u64(dice.random());
        let caller = Caller::new(&instances, number, LOAD_CONTEXT.to_owned(), dice, ledger.clone());
        callers.spawn(caller.patient(Arc::clone(&over), LOAD_PAUSE, stops).run());
    }
    faults(dice).await;
    over.store(true, Ordering::Relaxed);
    callers.join_all().await;
    let begun = Instant::now();
    checker.check_round(&ledger, LOAD_CONTEXT, dice).await;
    checker.check_none_doubled(&ledger, LOAD_CONTEXT).await;
    checker.check_all(&ledger).await;
    let (tasks, repeated) = (ledger.ids(None).len(), ledger.repeated());
    println!("{tasks} tasks, {repeated} requests were repeated, checked in {:?}", begun.elapsed());
    assert!(tasks > 20, "there was no load");
    repeated
}
