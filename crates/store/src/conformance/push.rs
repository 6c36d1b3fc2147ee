use std::sync::Arc;

use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};

use super::TestStore;
use super::life::{Life, at, commit_of_pieces, context_id, creation, piece, scope, task_id, user_message};
use crate::{Commit, DueDelivery, Next, PushConfig, Scope, Settlement, Store};

/// More than a test makes.
const MANY: usize = 1000;

pub(super) fn config_id(id: &str) -> PushConfigId {
    PushConfigId::new(id).expect("a config id")
}

/// A config at a host.
pub(super) fn config(id: &str, host: &str) -> PushConfig {
    PushConfig {
        id: config_id(id),
        url: format!("https://{host}/hook?for={id}"),
        host: host.to_owned(),
        scheme: Some("Bearer".to_owned()),
        secrets: Some(Bytes::from(format!("sealed {id}"))),
        version: "1.0".to_owned(),
        created_at: at(7),
    }
}

/// A task that is made with configs: its log has one event.
pub(super) async fn pushed(store: &Arc<dyn Store>, id: &str, pushes: Vec<PushConfig>) -> Life {
    pushed_of(store, &Scope::default(), id, pushes).await
}

/// The same for somebody in particular.
pub(super) async fn pushed_of(store: &Arc<dyn Store>, scope: &Scope, id: &str, pushes: Vec<PushConfig>) -> Life {
    let head = longhaul_lifecycle::TaskHead::submitted(task_id(id), context_id("context"), at(0));
    let first = user_message("first", "begin");
    let commit = Commit { pushes, ..creation(scope, &head, None, first.clone()) };
    let committed = store.commit(commit).await.expect("a new task is made");
    let head = longhaul_lifecycle::TaskHead { last_sequence: committed.last_sequence, ..head };
    Life::adopt(store, scope, head, None, &first)
}

/// Whoever sends: claims for ten milliseconds.
pub(super) struct Sender<'a>(pub &'a dyn Store);

impl Sender<'_> {
    /// All that is due.
    pub async fn claim(&self, millis: i64) -> Vec<DueDelivery> {
        self.claim_some(millis, MANY, None, &[]).await
    }

    pub async fn claim_some(
        &self,
        millis: i64,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Vec<DueDelivery> {
        self.0.claim_deliveries(at(millis), at(millis + 10), limit, after, busy).await.expect("claims")
    }

    /// The one that is due.
    pub async fn only(&self, millis: i64) -> DueDelivery {
        let mut due = self.claim(millis).await;
        assert_eq!(due.len(), 1, "{due:?}");
        due.remove(0)
    }

    pub async fn nothing(&self, millis: i64) {
        assert_eq!(self.claim(millis).await, []);
    }

    /// Settles what nobody holds on to.
    pub async fn settle(&self, delivery: &DueDelivery, settlement: Settlement, millis: i64) -> Next {
        self.0.settle_delivery(delivery, settlement, None, at(millis)).await.expect("settled")
    }

    /// Settles and wants the next one.
    pub async fn settle_and_hold(&self, delivery: &DueDelivery, settlement: Settlement, millis: i64) -> Next {
        self.0.settle_delivery(delivery, settlement, Some(at(millis + 10)), at(millis)).await.expect("settled")
    }

    /// Claims and delivers one event after the other, until nothing is due. Answers the sequences.
    pub async fn drain(&self, millis: i64) -> Vec<u64> {
        let mut sequences = Vec::new();
        loop {
            let due = self.claim(millis).await;
            if due.is_empty() {
                return sequences;
            }
            for delivery in due {
                sequences.push(delivery.sequence);
                assert_eq!(self.settle(&delivery, Settlement::Delivered, millis).await, Next::Released);
            }
        }
    }
}

pub(super) fn retry(at: Timestamp) -> Settlement {
    Settlement::Retry { at, error: "it answered 500".to_owned(), counts: true }
}

pub(super) fn dead(error: &str) -> Settlement {
    Settlement::Dead { error: error.to_owned() }
}

async fn put(store: &dyn Store, life: &Life, config: PushConfig, millis: i64) {
    let put = store.put_push_config(&life.scope, &life.head.id, config, MANY, at(millis)).await;
    assert_eq!(put.expect("an answer"), Some(true));
}

pub(super) async fn configs(store: &dyn Store, life: &Life) -> Option<Vec<PushConfig>> {
    store.push_configs(&life.scope, &life.head.id, None, MANY).await.expect("an answer")
}

fn ids(configs: &[PushConfig]) -> Vec<&str> {
    configs.iter().map(|config| config.id.as_str()).collect()
}

/// A config that comes with the first message is given the task from its first event on.
pub async fn a_config_of_a_send_is_given_all_events(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let who = scope("tenant", "owner");
    let mut life = pushed_of(store, &who, "task", vec![config("config", "host")]).await;
    life.at(5).start().await;
    let first = sender.only(9).await;
    let wanted = DueDelivery {
        scope: who,
        task_id: task_id("task"),
        config: config("config", "host"),
        sequence: 1,
        last_sequence: 2,
        epoch: first.epoch,
        attempts: 0,
        first_attempt_at: None,
        host_failures: 0,
        is_dead: false,
    };
    assert_eq!(first, wanted);
    assert_eq!(sender.settle(&first, Settlement::Delivered, 9).await, Next::Released);
    assert_eq!(sender.drain(9).await, [2]);
    assert_eq!(configs(&**store, &life).await, Some(vec![config("config", "host")]));
}

/// A config that is made for a task is given what happens from then on, and one that comes with a message what that message
/// makes happen.
pub async fn a_config_that_is_made_later_is_given_what_comes_then(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = Life::begin(store, &Scope::default(), "task", "context", 0).await;
    life.start().await;
    put(&**store, &life, config("made", "host"), 1).await;
    sender.nothing(2).await;
    life.at(2).add(piece("a", "x", false)).await;
    assert_eq!(sender.drain(2).await, [3]);
    let pushes = vec![config("sent", "host")];
    let commit = Commit { pushes, ..commit_of_pieces(&life.head, [piece("a", "y", true)], at(3)) };
    life.commit(commit).await.expect("the lease is alive");
    let due = sender.claim(3).await;
    let due: Vec<_> = due.iter().map(|due| (due.config.id.as_str(), due.sequence)).collect();
    assert_eq!(due.len(), 2, "{due:?}");
    assert!(due.contains(&("made", 4)) && due.contains(&("sent", 4)), "{due:?}");
}

/// A config that is put again goes on where it was, as it is now, and at once.
pub async fn a_replaced_config_goes_on_where_it_was(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("config", "before")]).await;
    life.start().await;
    let first = sender.only(1).await;
    sender.settle(&first, Settlement::Delivered, 1).await;
    let failed = sender.only(1).await;
    sender.settle(&failed, retry(at(1000)), 1).await;
    put(&**store, &life, config("config", "after"), 2).await;
    let again = sender.only(2).await;
    assert_eq!((again.sequence, again.attempts, again.first_attempt_at), (2, 0, None));
    assert_eq!(again.config, config("config", "after"));
    assert_eq!(configs(&**store, &life).await, Some(vec![config("config", "after")]));
    put(&**store, &life, config("config", "last"), 3).await;
    assert_eq!(sender.settle(&again, Settlement::Gone, 3).await, Next::Lost, "it was for what was there before");
    let moved = sender.only(3).await;
    assert_eq!((moved.sequence, moved.config.host.as_str()), (2, "last"));
    sender.settle(&moved, Settlement::Delivered, 3).await;
    put(&**store, &life, config("config", "host"), 4).await;
    sender.nothing(5).await;
    // A message may come with a config that is known: that is the same.
    let pushes = vec![config("config", "of a message")];
    let commit = Commit { pushes, ..commit_of_pieces(&life.head, [piece("a", "x", false)], at(5)) };
    life.commit(commit).await.expect("the lease is alive");
    let replaced = sender.only(5).await;
    assert_eq!((replaced.sequence, replaced.config.host.as_str()), (3, "of a message"));
    assert_eq!(configs(&**store, &life).await.expect("the task").len(), 1);
}

/// A message that replaces a config while a delivery to it waits: the claim is over, and nothing is skipped.
pub async fn a_message_replaces_a_config_that_waits(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("config", "before")]).await;
    life.start().await;
    let under_way = sender.only(1).await;
    let pushes = vec![config("config", "after")];
    let commit = Commit { pushes, ..commit_of_pieces(&life.head, [piece("a", "x", false)], at(2)) };
    life.commit(commit).await.expect("the lease is alive");
    assert_eq!(sender.settle(&under_way, Settlement::Delivered, 3).await, Next::Lost);
    let again = sender.only(3).await;
    assert_eq!((again.sequence, again.last_sequence, again.config.host.as_str()), (1, 3, "after"));
    sender.settle(&again, Settlement::Delivered, 3).await;
    assert_eq!(sender.drain(3).await, [2, 3]);
}

/// A task has at most so many configs, of which each can still be replaced.
pub async fn configs_of_a_task_are_limited(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let life = Life::begin(store, &Scope::default(), "task", "context", 0).await;
    let other = Life::begin(store, &Scope::default(), "other", "context", 0).await;
    let put = async |life: &Life, id: &str, host: &str| {
        store.put_push_config(&life.scope, &life.head.id, config(id, host), 2, at(1)).await.expect("an answer")
    };
    assert_eq!(put(&life, "a", "host").await, Some(true));
    assert_eq!(put(&life, "b", "host").await, Some(true));
    assert_eq!(put(&life, "c", "host").await, Some(false));
    assert_eq!(put(&life, "b", "changed").await, Some(true));
    assert_eq!(put(&other, "c", "host").await, Some(true), "each task has its own");
    assert_eq!(configs(&**store, &life).await, Some(vec![config("a", "host"), config("b", "changed")]));
    assert!(store.remove_push_config(&life.scope, &life.head.id, &config_id("a")).await.expect("an answer"));
    assert_eq!(put(&life, "c", "host").await, Some(true));
}

/// Pages go by id, whatever order configs were made in.
pub async fn configs_are_read_in_pages_by_id(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let life = Life::begin(store, &Scope::default(), "task", "context", 0).await;
    let near = Life::begin(store, &Scope::default(), "task-", "context", 0).await;
    for id in ["b", "é", "B", "a", "10", " ", "aa"] {
        put(&**store, &life, config(id, "host"), 1).await;
        put(&**store, &near, config(&format!("{id}!"), "host"), 1).await;
    }
    let page = async |after: Option<&str>, limit| {
        let after = after.map(config_id);
        let page = store.push_configs(&life.scope, &life.head.id, after.as_ref(), limit).await;
        page.expect("an answer").expect("the task")
    };
    assert_eq!(ids(&page(None, 3).await), [" ", "10", "B"]);
    assert_eq!(ids(&page(Some("B"), 3).await), ["a", "aa", "b"]);
    assert_eq!(ids(&page(Some("b"), 3).await), ["é"]);
    assert_eq!(ids(&page(Some("c"), 3).await), ["é"], "behind one that is gone");
    assert_eq!(ids(&page(Some("é"), 3).await), [""; 0]);
    assert_eq!(ids(&page(None, 0).await), [""; 0]);
}

/// Nobody sees, changes or removes a config of a task that is not theirs, or learns that there is one.
pub async fn configs_are_their_scopes_alone(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, who) = (test.store(), scope("a", "b"));
    let life = pushed_of(store, &who, "task", vec![config("config", "host")]).await;
    let (id, task) = (config_id("config"), &life.head.id);
    for other in [scope("a", ""), scope("", "b"), scope("b", "a"), Scope::default()] {
        assert_eq!(store.push_configs(&other, task, None, MANY).await.expect("an answer"), None);
        assert_eq!(store.push_config(&other, task, &id).await.expect("an answer"), None);
        let put = store.put_push_config(&other, task, config("config", "theirs"), MANY, at(1)).await;
        assert_eq!(put.expect("an answer"), None);
        assert!(!store.remove_push_config(&other, task, &id).await.expect("an answer"));
    }
    assert_eq!(store.push_config(&who, task, &id).await.expect("an answer"), Some(config("config", "host")));
    let unknown = task_id("unknown");
    assert_eq!(store.push_configs(&who, &unknown, None, MANY).await.expect("an answer"), None);
    assert_eq!(store.push_config(&who, &unknown, &id).await.expect("an answer"), None);
    assert_eq!(store.push_config(&who, task, &config_id("other")).await.expect("an answer"), None);
    let put = store.put_push_config(&who, &unknown, config("config", "host"), MANY, at(1)).await;
    assert_eq!(put.expect("an answer"), None);
    assert!(!store.remove_push_config(&who, &unknown, &id).await.expect("an answer"));
}

/// What a config holds comes back as it was, in every way in which it is read.
pub async fn configs_are_kept_as_they_are(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let bytes: Vec<u8> = (0..=255).collect();
    let full = PushConfig {
        url: "https://höst.example:8443/a/b?c=d&e=%20'\"#f".to_owned(),
        scheme: Some("Custom-Scheme".to_owned()),
        secrets: Some(Bytes::from(bytes)),
        version: "0.3".to_owned(),
        ..config("full ☂ 'id'", "höst.example:8443")
    };
    let bare = PushConfig { scheme: None, secrets: None, ..config("bare", "host") };
    let empty = PushConfig { scheme: Some(String::new()), secrets: Some(Bytes::new()), ..config("empty", "host") };
    let life = pushed(store, "task", vec![full.clone(), empty.clone()]).await;
    put(&**store, &life, bare.clone(), 1).await;
    assert_eq!(configs(&**store, &life).await, Some(vec![bare, empty.clone(), full.clone()]));
    for known in [&full, &empty] {
        let read = store.push_config(&life.scope, &life.head.id, &known.id).await.expect("an answer");
        assert_eq!(read.as_ref(), Some(known));
    }
    let claimed = sender.claim(1).await;
    assert!(claimed.iter().any(|due| due.config == full) && claimed.iter().any(|due| due.config == empty));
}

/// A config that is removed is given nothing more, and is not missed; one that is made anew begins anew.
pub async fn a_removed_config_is_given_nothing(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("gone", "host"), config("stays", "host")]).await;
    life.start().await;
    let claimed = sender.claim(1).await;
    let gone = claimed.iter().find(|due| due.config.id == config_id("gone")).expect("it was due");
    sender.settle(gone, dead("no"), 1).await;
    for _ in 0..2 {
        assert!(store.remove_push_config(&life.scope, &life.head.id, &config_id("gone")).await.expect("an answer"));
    }
    assert_eq!(ids(&configs(&**store, &life).await.expect("the task")), ["stays"]);
    assert_eq!(store.dead_deliveries(None, MANY).await.expect("an answer"), []);
    assert_eq!(sender.settle(gone, Settlement::Delivered, 1).await, Next::Lost);
    life.at(2).add(piece("a", "x", false)).await;
    assert!(sender.claim(100).await.iter().all(|due| due.config.id == config_id("stays")));
    put(&**store, &life, config("gone", "host"), 101).await;
    life.at(102).add(piece("a", "y", true)).await;
    let anew = sender.only(102).await;
    assert_eq!((anew.config.id.as_str(), anew.sequence), ("gone", 4));
}

/// Secrets are found task by task, and changed only by who knows what they were.
pub async fn secrets_are_sealed_again(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let bare = |id: &str| PushConfig { secrets: None, ..config(id, "host") };
    let life =
        pushed_of(store, &scope("a", ""), "one", vec![config("a", "host"), bare("b"), config("c", "host")]).await;
    pushed_of(store, &scope("b", ""), "two", vec![bare("a"), config("b", "host")]).await;
    pushed(store, "three", vec![bare("a")]).await;
    let mut found = Vec::new();
    let mut after: Option<(TaskId, PushConfigId)> = None;
    loop {
        let page = store.sealed_configs(after.as_ref().map(|(task, id)| (task, id)), 2).await.expect("an answer");
        assert!(page.len() <= 2);
        let Some((task, id, _)) = page.last() else { break };
        after = Some((task.clone(), id.clone()));
        found.extend(page);
    }
    found.sort();
    let sealed = |task: &str, id: &str| (task_id(task), config_id(id), Bytes::from(format!("sealed {id}")));
    assert_eq!(found, [sealed("one", "a"), sealed("one", "c"), sealed("two", "b")]);
    let (task, id) = (&life.head.id, config_id("a"));
    let claimed = sender.claim(1).await;
    let reseal = async |before: &[u8], after: &'static [u8]| {
        store.reseal_config(task, &id, before, Bytes::from_static(after)).await.expect("an answer")
    };
    assert!(!reseal(b"something else", b"new").await);
    assert!(reseal(b"sealed a", b"new").await);
    assert!(!reseal(b"sealed a", b"newer").await);
    let read = store.push_config(&life.scope, task, &id).await.expect("an answer").expect("the config");
    assert_eq!(read, PushConfig { secrets: Some(Bytes::from_static(b"new")), ..config("a", "host") });
    let under_way = claimed.iter().find(|due| due.task_id == *task && due.config.id == id).expect("it was due");
    assert_eq!(sender.settle(under_way, Settlement::Delivered, 1).await, Next::Released, "it is the same config");
    let new = Bytes::from_static(b"new");
    assert!(!store.reseal_config(task, &config_id("b"), b"", new.clone()).await.expect("an answer"), "it has none");
    assert!(!store.reseal_config(task, &config_id("x"), b"", new.clone()).await.expect("an answer"));
    assert!(!store.reseal_config(&task_id("x"), &id, b"new", new).await.expect("an answer"));
}

/// The first value holds, until it is replaced.
pub async fn the_first_key_check_holds(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let check = async |value: &[u8]| store.push_key_check(value).await.expect("an answer");
    assert_eq!(check(b"one\0\xff").await, &b"one\0\xff"[..]);
    assert_eq!(check(b"two").await, &b"one\0\xff"[..]);
    store.set_push_key_check(b"three").await.expect("an answer");
    assert_eq!(check(b"two").await, &b"three"[..]);
}

/// The first value holds also where none was there to be replaced.
pub async fn a_key_check_is_set_at_once(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    test.store().set_push_key_check(b"set").await.expect("an answer");
    assert_eq!(test.store().push_key_check(b"other").await.expect("an answer"), &b"set"[..]);
}
