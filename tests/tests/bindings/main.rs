//! One list of scenarios, run through JSON-RPC, HTTP+JSON and gRPC on each store, in PostgreSQL with three
//! instances of which any gets each request: what comes out has to be right, and the same nine times.
//!
//! What v0.3 can say is run through its three bindings too. What comes out is told in v1.0 again, and has to mean the same.
//!
//! Ids and times are replaced by the order of their appearance. Each run has a server, or instances, of its own.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod artifacts;
mod life;
mod lists;
mod refusals;
mod streams;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use longhaul_tests::normal::Normal;
use longhaul_tests::task::{id_of, state_of};
use longhaul_tests::{
    Binding, Call, CallError, Client, Event, Fleet, Instances, Launch, Operation, Refusal, Server, Speech, Store, until,
};
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

/// Makes a test of each scenario of v1.0 alone.
macro_rules! scenarios {
    ($($(#[$doc:meta])* async fn $name:ident($session:ident) $body:block)+) => {$(
        $(#[$doc])*
        #[tokio::test]
        async fn $name() {
            crate::compare(|$session: &mut crate::Session| Box::pin(async move { $body })).await;
        }
    )+};
}
use scenarios;

/// Makes a test of each scenario, which v0.3 has to pass as well, unless it is among [`BEYOND_V0_3`].
macro_rules! scenarios_of_both {
    ($($(#[$doc:meta])* async fn $name:ident($session:ident) $body:block)+) => {$(
        $(#[$doc])*
        #[tokio::test]
        async fn $name() {
            let scenario: crate::Scenario = |$session| Box::pin(async move { $body });
            crate::compare_both(stringify!($name), scenario).await;
        }
    )+};
}
use scenarios_of_both;

/// The scenarios of which v0.3 cannot pass what it has no words for, and why. They have to fail.
const BEYOND_V0_3: &[(&str, &str)] = &[
    ("tenants_do_not_see_each_other", "v0.3 has no tenants"),
    ("history_length_cuts_to_the_newest", "to v0.3, 0 is no limit"),
    (
        "first_item_of_a_stream_is_the_task_at_its_number",
        "a stream of v0.3 ends with a question, also when it is told again and was answered since",
    ),
];

type Scenario = fn(&mut Session) -> Steps<'_>;

type Steps<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Who answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Memory,
    Sqlite,
    ThreeInstances,
}

impl Place {
    /// Starts what runs there until it is dropped.
    async fn start(self) -> (Box<dyn Any>, Instances) {
        let store = match self {
            Self::Memory => Store::Memory,
            Self::Sqlite => Store::Sqlite,
            Self::ThreeInstances => {
                let fleet = Fleet::start(Launch::postgres("")).await;
                let instances = fleet.instances();
                return (Box::new(fleet), instances);
            }
        };
        let server = Server::start(store).await;
        let addr = server.addr();
        (Box::new(server), addr.into())
    }
}

/// One run of a scenario: a client of one binding, and what it was told so far.
struct Session {
    place: Place,
    instances: Instances,
    client: Client,
    normal: Normal,
    record: Vec<Value>,
}

impl Session {
    /// Another client of the same binding.
    fn other(&self) -> Client {
        Client::speaking(self.client.speech(), self.client.binding(), &self.instances)
    }

    /// Notes what has to be the same in each run.
    fn note(&mut self, value: &Value) {
        let value = self.normal.value(value);
        self.record.push(value);
    }

    /// Asks and notes the result.
    async fn ask(&mut self, operation: Operation, params: Value) -> Value {
        let result = self.client.ask(operation, params).await;
        self.note(&result);
        result
    }

    /// Sends, and notes the task, which has to be in this state.
    async fn send(&mut self, params: Value, state: &str) -> Value {
        let result = self.ask(Operation::SendMessage, params).await;
        assert_eq!(state_of(&result), state, "{result}");
        result["task"].clone()
    }

    /// Asks and notes the result or the refusal, whichever it is.
    async fn outcome(&mut self, call: &Call) -> Result<Value, Refusal> {
        let outcome = self.client.call(call).await.map_err(CallError::refusal);
        match &outcome {
            Ok(result) => self.note(result),
            Err(refusal) => self.note(&refusal.comparable()),
        }
        outcome
    }

    /// Asks, is refused with this reason, and notes the refusal.
    async fn refused(&mut self, operation: Operation, params: Value, reason: &str) -> Refusal {
        self.refused_call(&Call::new(operation, params), reason).await
    }

    /// The same for a whole call; streams are refused before their first item.
    async fn refused_call(&mut self, call: &Call, reason: &str) -> Refusal {
        use Operation::{SendStreamingMessage, SubscribeToTask};
        let refusal = match call.operation {
            SendStreamingMessage | SubscribeToTask => match self.client.open(call).await {
                Ok(_) => panic!("{call:?} was not refused"),
                Err(error) => error.refusal(),
            },
            _ => self.client.refused(call, reason).await,
        };
        refusal.assert(self.client.binding(), reason);
        self.note(&refusal.comparable());
        refusal
    }

    /// Follows a stream to its end, and notes each item.
    async fn collect(&mut self, call: &Call) -> Vec<Event> {
        let events = self.client.follow(call).await.rest().await;
        self.note_events(&events);
        events
    }

    /// Notes each item.
    fn note_events(&mut self, events: &[Event]) {
        for event in events {
            self.note(&json!({"id": event.sequence, "data": event.data}));
        }
    }

    /// Waits, without a note, until the task is in this state, and returns it.
    async fn wait_for(&mut self, task: &Value, state: &str) -> Value {
        let id = id_of(task);
        let client = &mut self.client;
        let limit = Duration::from_secs(30);
        until(limit, &format!("the task is {state}"), async || {
            let task = client.ask(Operation::GetTask, json!({"id": id})).await;
            (state_of(&task) == state).then_some(task)
        })
        .await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let client = &self.client;
            eprintln!("--- this was {:?} {:?} on {:?}", client.speech(), client.binding(), self.place);
        }
    }
}

/// Runs the scenario on each store through each binding, and compares.
async fn compare(scenario: Scenario) {
    let records = LocalSet::new().run_until(run_all(scenario)).await;
    assert_same(&records);
}

/// The same, and through the bindings of v0.3.
async fn compare_both(name: &str, scenario: Scenario) {
    let (records, old) = LocalSet::new().run_until(async { (run_all(scenario).await, run_old(scenario).await) }).await;
    assert_same(&records);
    let (first_name, first) = &records[0];
    let meaning = |record: &[Value]| record.iter().map(meaning).collect::<Vec<_>>();
    let first = (first_name.clone(), meaning(first));
    let beyond = BEYOND_V0_3.iter().find(|(known, _)| *known == name);
    for (binding, outcome) in old {
        let outcome = outcome.map(|record| (format!("v0.3 {binding:?}"), meaning(&record)));
        let is_same = outcome.as_ref().is_ok_and(|(_, record)| *record == first.1);
        match (beyond, outcome) {
            (None, Ok(second)) => assert_same(&[first.clone(), second]),
            (None, Err(error)) => panic!("v0.3 {binding:?}: {error}"),
            (Some((_, why)), _) => assert!(!is_same, "v0.3 {binding:?} passes, although {why}: take it off the list"),
        }
    }
}

fn assert_same(records: &[(String, Vec<Value>)]) {
    let (first_name, first) = &records[0];
    assert!(!first.is_empty(), "a scenario notes something");
    for (name, record) in &records[1..] {
        for (step, (left, right)) in first.iter().zip(record).enumerate() {
            assert_eq!(left, right, "step {step} of {first_name} and of {name}");
        }
        assert_eq!(first.len(), record.len(), "steps of {first_name}, of {name}");
    }
}

/// A note without what differs in v0.3 and means the same: how a refusal names members, and what the reasons add.
fn meaning(note: &Value) -> Value {
    match note.get("refused") {
        Some(reason) => json!({"refused": reason}),
        None => note.clone(),
    }
}

/// What each run noted, by its name.
async fn run_all(scenario: Scenario) -> Vec<(String, Vec<Value>)> {
    let mut runs = JoinSet::new();
    for place in [Place::Memory, Place::Sqlite, Place::ThreeInstances] {
        for binding in Binding::ALL {
            runs.spawn_local(async move {
                (format!("{binding:?} on {place:?}"), run(place, Speech::V1_0, binding, scenario).await)
            });
        }
    }
    let mut records = runs.join_all().await;
    records.sort_by(|one, other| one.0.cmp(&other.0));
    records
}

/// What the run of each binding of v0.3 noted, or that it failed.
async fn run_old(scenario: Scenario) -> Vec<(Binding, Result<Vec<Value>, tokio::task::JoinError>)> {
    let runs = Binding::ALL.map(|binding| {
        let run = run(Place::Memory, Speech::V0_3, binding, scenario);
        (binding, tokio::task::spawn_local(run))
    });
    let mut records = Vec::new();
    for (binding, run) in runs {
        records.push((binding, run.await));
    }
    records
}

async fn run(place: Place, speech: Speech, binding: Binding, scenario: Scenario) -> Vec<Value> {
    let (running, instances) = place.start().await;
    let mut session = Session {
        place,
        client: Client::speaking(speech, binding, &instances),
        instances,
        normal: Normal::default(),
        record: Vec::new(),
    };
    scenario(&mut session).await;
    drop(running);
    std::mem::take(&mut session.record)
}
