//! What has to hold after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::ledger::{Known, Ledger, rests};
use crate::task::{assert_numbered, fold, id_of, is_terminal, say_to, state_of, text_of};
use crate::{Binding, Call, Client, Event, Instances, Operation, until};

/// How long tasks may take to come to rest after a restart.
const REST_MAX: Duration = Duration::from_secs(45);

/// How often the engine tries a turn.
const ATTEMPTS_MAX: u32 = 3;

/// How many tasks are checked at once.
const CHECKERS: usize = 4;

/// Checks tasks against what is known of them.
#[derive(Clone, Debug)]
pub struct Checker {
    instances: Instances,
    whole_texts: Arc<BTreeMap<String, String>>,
}

impl Checker {
    /// Checks what these instances say. `whole_texts` has the text of each artifact that must be whole, by what was
    /// asked for.
    #[must_use]
    pub fn new(instances: impl Into<Instances>, whole_texts: BTreeMap<String, String>) -> Self {
        Self { instances: instances.into(), whole_texts: Arc::new(whole_texts) }
    }

    /// Everything that was told in this round holds, and nothing of it is stuck.
    ///
    /// # Panics
    ///
    /// When something does not.
    pub async fn check_round(&self, ledger: &Ledger, context: &str, dice: &mut StdRng) {
        let mut client = Client::new(Binding::HttpJson, &self.instances);
        all_rest(&mut client, context).await;
        let listed = walk(&mut client, json!({"contextId": context, "pageSize": 100})).await;
        let known = ledger.ids(Some(context));
        let lost: Vec<&String> = known.difference(&listed).collect();
        assert!(lost.is_empty(), "acknowledged tasks are not listed: {lost:?}");

        let mut checks = JoinSet::new();
        let ids: Vec<String> = known.into_iter().collect();
        for share in ids.chunks(ids.len().div_ceil(CHECKERS).max(1)) {
            let share: Vec<(String, bool)> = share.iter().map(|id| (id.clone(), dice.random())).collect();
            let (checker, ledger) = (self.clone(), ledger.clone());
            checks.spawn(async move {
                let mut client = Client::new(Binding::HttpJson, &checker.instances);
                for (id, answer) in share {
                    checker.check_task(&mut client, &ledger, &id, answer).await;
                }
            });
        }
        checks.join_all().await;
    }

    /// Every task of this context is known, and no message made two: for callers who repeat what had no
    /// answer until it has one.
    ///
    /// # Panics
    ///
    /// When a repeated send has made a second task.
    pub async fn check_none_doubled(&self, ledger: &Ledger, context: &str) {
        let mut client = Client::new(Binding::HttpJson, &self.instances);
        let listed = walk(&mut client, json!({"contextId": context, "pageSize": 100})).await;
        let known = ledger.ids(Some(context));
        let unknown: Vec<&String> = listed.difference(&known).collect();
        assert!(unknown.is_empty(), "tasks that nobody was told of: {unknown:?}");
    }

    /// At last: everything that was ever told still holds.
    ///
    /// # Panics
    ///
    /// When something does not.
    pub async fn check_all(&self, ledger: &Ledger) {
        let mut client = Client::new(Binding::Grpc, &self.instances);
        for id in ledger.ids(None) {
            let known = ledger.get(&id);
            let task = client.ask(Operation::GetTask, json!({"id": id})).await;
            check_state(&known, &task);
            check_history(&known, &task);
            if known.question.is_some() {
                let done = client.ask(Operation::SendMessage, say_to(&id, "more")).await;
                assert_eq!(state_of(&done), "COMPLETED", "{done}");
            }
        }
        let listed = walk(&mut client, json!({"pageSize": 100})).await;
        assert!(ledger.ids(None).is_subset(&listed));
    }

    async fn check_task(&self, client: &mut Client, ledger: &Ledger, id: &str, answer: bool) {
        let known = ledger.get(id);
        let mut task = client.ask(Operation::GetTask, json!({"id": id})).await;
        assert!(rests(&task), "{task}");
        check_state(&known, &task);
        check_history(&known, &task);
        if let Some(whole) = self.whole_texts.get(&known.text)
            && state_of(&task) == "COMPLETED"
        {
            assert_eq!(text_of(&task), *whole, "the artifact of {id} is not whole");
        }
        if state_of(&task) == "INPUT_REQUIRED" && answer {
            ledger.will_answer(id);
            let params = say_to(id, "more");
            let done = client.ask(Operation::SendMessage, params.clone()).await;
            assert_eq!(state_of(&done), "COMPLETED", "{done}");
            let message = params["message"]["messageId"].as_str().unwrap();
            ledger.note(&known.context, Some(("more", message)), &done["task"]);
            task = client.ask(Operation::GetTask, json!({"id": id})).await;
        }
        ledger.note(&known.context, None, &task);
        let log = log_of(client, &task, &known).await;
        check_log(&known, &task, &log);
        ledger.change(id, |known| known.kills = 0);
        log.iter().for_each(|event| ledger.note_event(id, event));
    }
}

/// Waits until no task of this context is at work or about to be.
async fn all_rest(client: &mut Client, context: &str) {
    for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"] {
        let params = json!({"contextId": context, "status": state, "pageSize": 1});
        let what = format!("no task of {context:?} is {state}");
        until(REST_MAX, &what, async || {
            let page = client.ask(Operation::ListTasks, params.clone()).await;
            (page["totalSize"] == 0).then_some(())
        })
        .await;
    }
}

/// All ids of a list; each page says how many there are, and each task comes once.
async fn walk(client: &mut Client, mut params: Value) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut total = None;
    loop {
        let page = client.ask(Operation::ListTasks, params.clone()).await;
        let told = page["totalSize"].as_u64().unwrap();
        assert_eq!(*total.get_or_insert(told), told, "the number of tasks at rest changed");
        for task in page["tasks"].as_array().unwrap() {
            assert!(ids.insert(id_of(task)), "listed twice: {task}");
        }
        if page["nextPageToken"] == "" {
            break;
        }
        params["pageToken"] = page["nextPageToken"].clone();
    }
    assert_eq!(Some(ids.len() as u64), total, "the total is not what a walk sees");
    ids
}

fn check_state(known: &Known, task: &Value) {
    if let Some(ended) = &known.ended {
        assert_eq!(task["status"], *ended, "a final status has changed: {known:?}");
    }
    if let Some(question) = &known.question {
        assert_eq!(task["status"], *question, "a question was lost: {known:?}");
    }
    let failing = known.text.starts_with("fail");
    if state_of(task) == "FAILED" && !failing {
        assert!(known.ended.is_some() || known.kills >= ATTEMPTS_MAX, "failed too early: {task} {known:?}");
        let reason = task["status"]["message"]["parts"][0]["text"].as_str();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "no reason: {task}");
    }
    assert!(!failing || state_of(task) == "FAILED", "{task}");
}

fn check_history(known: &Known, task: &Value) {
    let history = task["history"].as_array().cloned().unwrap_or_default();
    let ids: Vec<&str> = history.iter().filter_map(|it| it["messageId"].as_str()).collect();
    for message in &known.messages {
        let count = ids.iter().filter(|id| **id == message.as_str()).count();
        assert_eq!(count, 1, "message {message} is not in the history once: {task}");
    }
}

/// The log from its first event: to its end, or as far as it is known.
async fn log_of(client: &mut Client, task: &Value, known: &Known) -> Vec<Event> {
    let call = Call::new(Operation::SubscribeToTask, json!({"id": task["id"]})).after(1);
    let mut stream = client.follow(&call).await;
    if is_terminal(state_of(task)) {
        return stream.rest().await;
    }
    let newest = known.events.keys().last().copied().unwrap_or(1);
    let mut log = vec![stream.event().await];
    while log.last().is_some_and(|event| event.sequence < Some(newest)) {
        log.push(stream.event().await);
    }
    log
}

fn check_log(known: &Known, task: &Value, log: &[Event]) {
    assert_numbered(log, 1);
    if let Some(first) = &known.first {
        assert_eq!(log[0].data["task"], *first, "the first event has changed");
    }
    for (sequence, text) in &known.events {
        let index = usize::try_from(*sequence).unwrap() - 1;
        let event = log.get(index).unwrap_or_else(|| panic!("event {sequence} is lost: {task}"));
        assert_eq!(event.text, *text, "event {sequence} has changed: {task}");
    }
    let told = |is: fn(&str) -> bool| log.iter().filter(|event| is(state_of(&event.data))).count();
    assert!(told(is_terminal) <= 1, "a task has ended twice: {log:?}");
    // Its agent asks once, however often its turn was run.
    assert!(known.text != "input" || told(|state| state == "INPUT_REQUIRED") <= 1, "a turn has ended twice: {log:?}");
    if is_terminal(state_of(task)) {
        let folded = fold(log);
        assert_eq!(folded["status"], task["status"]);
        assert_eq!(folded.get("artifacts"), task.get("artifacts"), "{task}");
    }
}
