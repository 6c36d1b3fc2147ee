use std::fmt::Debug;

use bytes::Bytes;
use longhaul_lifecycle::{ArtifactUpdate, AttemptOutcome, Command, TaskHead, Writer, decide};
use longhaul_protocol::{ArtifactId, TaskId, TaskState, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::TestStore;
use super::commits::{NOW, everything};
use super::life::{
    agent_message, ask, at, commit_of, commit_of_pieces, complete, context_id, creation, message_id, object, piece,
    progress, reply, scope, task_id, user_message, worker,
};
use crate::{
    Claim, Commit, Dedup, Expect, HeldLease, HistoryLimit, ListQuery, MemoryStore, Rotation, Scope, SnapshotQuery,
    Store, StoreError,
};

mod push;

use self::push::{Hands, PushStep};

const CASES: usize = 32;
const STEPS_MAX: usize = 90;
const SHRINKS_MAX: usize = 200;
const TASKS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Create { task: usize, context: usize, remember: Option<u8> },
    Decide { task: usize, command: usize, by_agent: bool },
    Chunk { task: usize, artifact: usize, append: bool, last: bool, checkpoint: bool, more: usize },
    Stale { task: usize, epochs: u64, versions: u64 },
    Wait { millis: u8 },
    Renew { task: usize, epochs: u64, age: u8, millis: u8 },
    Expire,
    Purge { state: usize, age: u8 },
    Compact { age: u8 },
    Forgotten { age: u8 },
    List { context: Option<usize>, state: Option<usize>, age: Option<u8>, page_size: usize },
    Look { task: usize, sequence: u64, latest: usize },
    Push(PushStep),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let task = 0..TASKS;
    let step = prop_oneof![
        3 => (task.clone(), 0..2_usize, any::<Option<u8>>()).prop_map(|(task, context, remember)| Step::Create { task, context, remember: remember.map(|n| n % 4) }),
        8 => (task.clone(), 0..14_usize, any::<bool>()).prop_map(|(task, command, by_agent)| Step::Decide { task, command, by_agent }),
        4 => (task.clone(), Just(1)).prop_map(|(task, command)| Step::Decide { task, command, by_agent: false }),
        7 => (task.clone(), 0..2_usize, any::<[bool; 3]>(), 0..9_usize)
            .prop_map(|(task, artifact, [append, last, checkpoint], more)| Step::Chunk { task, artifact, append, last, checkpoint, more }),
        2 => (task.clone(), 0..2_u64, 0..3_u64).prop_map(|(task, epochs, versions)| Step::Stale { task, epochs, versions }),
        4 => any::<u8>().prop_map(|millis| Step::Wait { millis }),
        2 => (task.clone(), 0..5_u64, any::<u8>(), any::<u8>())
            .prop_map(|(task, epochs, age, millis)| Step::Renew { task, epochs: epochs / 4, age, millis }),
        1 => Just(Step::Expire),
        1 => (0..8_usize, any::<u8>()).prop_map(|(state, age)| Step::Purge { state, age }),
        2 => (0..50_u8).prop_map(|age| Step::Compact { age }),
        1 => any::<u8>().prop_map(|age| Step::Forgotten { age }),
        2 => (proptest::option::of(0..3_usize), proptest::option::of(0..8_usize), any::<Option<u8>>(), 1..4_usize)
            .prop_map(|(context, state, age, page_size)| Step::List { context, state, age, page_size }),
        2 => (task, 0..20_u64, 0..4_usize).prop_map(|(task, sequence, latest)| Step::Look { task, sequence, latest }),
        16 => push::steps().prop_map(Step::Push),
    ];
    vec(step, 1..=STEPS_MAX)
}

/// Whatever is asked in whatever order, the store answers as the memory store does.
pub async fn random_commands_get_the_answers_of_the_memory_store(open: &impl AsyncFn() -> TestStore) {
    let mut runner = TestRunner::deterministic();
    for _ in 0..CASES {
        let mut tree = steps().new_tree(&mut runner).expect("steps");
        let Err(mut difference) = Pair::run(open, &tree.current()).await else { continue };
        let mut smallest = tree.current();
        for _ in 0..SHRINKS_MAX {
            match Pair::run(open, &tree.current()).await {
                Err(found) => {
                    (difference, smallest) = (found, tree.current());
                    if !tree.simplify() {
                        break;
                    }
                }
                Ok(()) => {
                    if !tree.complicate() {
                        break;
                    }
                }
            }
        }
        panic!("{difference}\nafter {smallest:#?}");
    }
}

/// The store on trial and the memory store, which are asked the same.
struct Pair {
    test: TestStore,
    memory: MemoryStore,
    millis: i64,
    messages: usize,
    hands: Hands,
}

/// What the engine can tell apart in a refusal.
#[derive(Debug, PartialEq)]
enum Refusal {
    Conflict(TaskId),
    LeaseLost(TaskId, u64),
    NotFound(TaskId),
    Duplicate(TaskId, [u8; 32]),
    Other(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { task } => Self::Conflict(task),
            StoreError::LeaseLost { task, epoch } => Self::LeaseLost(task, epoch),
            StoreError::NotFound { task } => Self::NotFound(task),
            StoreError::Duplicate { task, digest } => Self::Duplicate(task, digest),
            other @ (StoreError::LogFull { .. } | StoreError::Unavailable { .. } | StoreError::Corrupt { .. }) => {
                Self::Other(format!("{other:?}"))
            }
        }
    }
}

fn same<T: Debug + PartialEq>(
    what: &str,
    store: Result<T, StoreError>,
    memory: Result<T, StoreError>,
) -> Result<(), String> {
    let (store, memory) = (store.map_err(Refusal::from), memory.map_err(Refusal::from));
    if store == memory {
        Ok(())
    } else {
        Err(format!("{what}: the store says\n{store:#?}\nand the memory store\n{memory:#?}"))
    }
}

impl Pair {
    async fn run(open: &impl AsyncFn() -> TestStore, steps: &[Step]) -> Result<(), String> {
        let mut pair =
            Self { test: open().await, memory: MemoryStore::new(), millis: 0, messages: 0, hands: Hands::default() };
        for step in steps {
            pair.step(step).await?;
            pair.compare_due().await?;
            pair.compare_deliveries().await?;
        }
        for task in 0..TASKS {
            pair.compare_task(task).await?;
        }
        pair.compact(super::life::far()).await?;
        for task in 0..TASKS {
            pair.compare_task(task).await?;
        }
        pair.compare_rest().await?;
        for scope in [of(0), of(1)] {
            pair.compare_list(ListQuery { history: HistoryLimit::All, artifacts: true, ..everything(&scope) }).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Create { task, context, remember } => self.create(task, context, remember).await,
            Step::Decide { task, command, by_agent } => self.decide(task, command, by_agent).await,
            Step::Chunk { task, artifact, append, last, checkpoint, more } => {
                self.chunk(task, artifact, append, last, checkpoint, more).await
            }
            Step::Stale { task, epochs, versions } => self.stale(task, epochs, versions).await,
            Step::Wait { millis } => {
                self.millis += i64::from(millis);
                Ok(())
            }
            Step::Renew { task, epochs, age, millis } => self.renew(task, epochs, age, millis).await,
            Step::Expire => {
                let now = at(self.millis);
                let expired = self.test.store().expire_leases(now).await;
                same("expire_leases", expired, self.memory.expire_leases(now).await)
            }
            Step::Purge { state, age } => {
                let (state, before) = (TaskState::ALL[state], self.ago(age));
                let purged = self.test.store().purge(state, before, TASKS).await;
                same("purge", purged, self.memory.purge(state, before, TASKS).await)
            }
            Step::Compact { age } => self.compact(self.ago(age)).await,
            Step::Forgotten { age } => {
                let (before, now) = (self.ago(age), at(self.millis));
                let stale = self.test.store().stale(&TaskState::ALL, before, now, TASKS).await;
                let known = self.memory.stale(&TaskState::ALL, before, now, TASKS).await;
                same("stale", stale.map(by_id), known.map(by_id))
            }
            Step::List { context, state, age, page_size } => {
                let context = context.map(|n| context_id(&format!("context-{n}")));
                let state = state.map(|n| TaskState::ALL[n]);
                let status_timestamp_after = age.map(|age| self.ago(age));
                for scope in [of(0), of(1)] {
                    let query = ListQuery {
                        context_id: context.clone(),
                        state,
                        status_timestamp_after,
                        page_size,
                        ..everything(&scope)
                    };
                    self.compare_list(query).await?;
                }
                Ok(())
            }
            Step::Look { task, sequence, latest } => {
                let query =
                    SnapshotQuery { at: Some(sequence), history: HistoryLimit::Latest(latest), artifacts: true };
                self.compare_snapshot(task, query).await
            }
            Step::Push(ref step) => self.push(step).await,
        }
    }

    fn ago(&self, age: u8) -> Timestamp {
        at(self.millis - i64::from(age))
    }

    /// A renewal by a worker whose epoch may be wrong and whose clock is behind.
    async fn renew(&mut self, task: usize, epochs: u64, age: u8, millis: u8) -> Result<(), String> {
        let epoch = self.head(task).await.map_or(1, |head| head.epoch) + epochs;
        let leases = [HeldLease { task_id: id(task), epoch }];
        let (now, until) = (self.ago(age / 4), at(self.millis + i64::from(millis)));
        let lost = self.test.store().renew(&leases, now, until).await;
        same("renew", lost, self.memory.renew(&leases, now, until).await)
    }

    async fn compact(&self, before: Timestamp) -> Result<(), String> {
        let compacted = self.test.store().compact(before, TASKS).await;
        same("compact", compacted, self.memory.compact(before, TASKS).await)
    }

    async fn commit(&mut self, what: &str, commit: Commit) -> Result<(), String> {
        let commit = self.hands.with(commit);
        let answer = self.test.store().commit(commit.clone()).await;
        same(what, answer, self.memory.commit(commit).await)
    }

    async fn head(&self, task: usize) -> Option<TaskHead> {
        self.memory.load(&of(task), &id(task)).await.expect("memory answers")
    }

    fn message(&mut self) -> String {
        self.messages += 1;
        format!("message-{}", self.messages)
    }

    async fn create(&mut self, task: usize, context: usize, remember: Option<u8>) -> Result<(), String> {
        let head = TaskHead::submitted(id(task), context_id(&format!("context-{context}")), at(self.millis));
        // Which of two refusals comes first is not promised, so that a known task is not made by a known message.
        let remember = if self.head(task).await.is_some() { None } else { remember };
        let dedup = remember.map(|n| Dedup {
            scope: of(task),
            message_id: message_id(&format!("known-{n}")),
            digest: [n; 32],
            expires_at: at(self.millis + 300),
        });
        let first = user_message(&self.message(), "begin");
        let commit = Commit { dedup, ..creation(&of(task), &head, Some(object("n", 1)), first) };
        self.commit("create", commit).await
    }

    async fn decide(&mut self, task: usize, command: usize, by_agent: bool) -> Result<(), String> {
        let Some(head) = self.head(task).await else { return Ok(()) };
        let command = command_of(command, &self.message(), self.millis);
        let (writer, expect) = if by_agent {
            let epoch = head.epoch;
            (Writer::Agent { epoch }, Expect::LeaseAndVersion { epoch, version: head.version })
        } else {
            (Writer::Engine, Expect::Version(head.version))
        };
        let now = at(self.millis);
        let Ok(transition) = decide(&head, command, writer, now) else { return Ok(()) };
        if transition.is_empty(&head) {
            return Ok(());
        }
        self.commit("decide", commit_of(expect, transition, now)).await
    }

    async fn chunk(
        &mut self,
        task: usize,
        artifact: usize,
        append: bool,
        last: bool,
        checkpoint: bool,
        more: usize,
    ) -> Result<(), String> {
        let Some(head) = self.head(task).await else { return Ok(()) };
        let name = format!("artifact-{artifact}");
        let artifact = ArtifactId::new(&name).expect("an id");
        let known = self.memory.artifact(&of(task), &head.id, &artifact, None).await.expect("memory answers").is_some();
        let update = ArtifactUpdate { last_chunk: last, ..piece(&name, &self.message(), append && known) };
        let more = (0..more).map(|_| piece(&name, &self.message(), true)).collect::<Vec<_>>();
        let updates = std::iter::once(update).chain(more);
        let checkpoint = checkpoint.then(|| Bytes::from(name));
        self.commit("chunk", Commit { checkpoint, ..commit_of_pieces(&head, updates, at(self.millis)) }).await
    }

    /// A commit by someone whose epoch or version may be wrong, or whose task may be unknown.
    async fn stale(&mut self, task: usize, epochs: u64, versions: u64) -> Result<(), String> {
        let unknown = TaskHead::submitted(id(task), context_id("context-0"), at(0));
        let head = self.head(task).await.unwrap_or(unknown);
        let commit = commit_of_pieces(&head, [piece("stale", "x", false)], at(self.millis));
        let (epoch, version) = (head.epoch + epochs, head.version + versions);
        let next = TaskHead { version: head.version + 1, ..head };
        let expect = if versions == 2 { Expect::Version(version) } else { Expect::LeaseAndVersion { epoch, version } };
        self.commit("stale", Commit { expect, head: Some(next), ..commit }).await
    }

    async fn compare_due(&self) -> Result<(), String> {
        let now = at(self.millis);
        same("next_due", self.test.store().next_due().await, self.memory.next_due().await)?;
        same("backlog", self.test.store().backlog().await, self.memory.backlog().await)?;
        // In which order scopes and contexts take their turns is not promised.
        let due = self.test.store().due(now, TASKS, Rotation::default()).await.map(|due| by_id(due.claims));
        same("due", due, self.memory.due(now, TASKS, Rotation::default()).await.map(|due| by_id(due.claims)))
    }

    async fn compare_list(&self, mut query: ListQuery) -> Result<(), String> {
        // A page holds a task at least, and one more look tells a walk that does not end.
        for _ in 0..=TASKS {
            let (store, memory) = (self.test.store().list(query.clone()).await, self.memory.list(query.clone()).await);
            let next = memory.as_ref().ok().and_then(|page| page.next.clone());
            same(&format!("{query:?}"), store, memory)?;
            if next.is_none() {
                return Ok(());
            }
            query.after = next;
        }
        Err("a walk through the memory store does not end".to_owned())
    }

    async fn compare_snapshot(&self, task: usize, query: SnapshotQuery) -> Result<(), String> {
        for scope in [of(task), of(task + 1)] {
            let store = self.test.store().snapshot(&scope, &id(task), query).await;
            same(&format!("{query:?}"), store, self.memory.snapshot(&scope, &id(task), query).await)?;
        }
        Ok(())
    }

    async fn compare_task(&self, task: usize) -> Result<(), String> {
        let (store, memory, id) = (self.test.store(), &self.memory, id(task));
        self.compare_snapshot(task, NOW).await?;
        same("load", store.load(&of(task), &id).await, memory.load(&of(task), &id).await)?;
        same("events_after", store.events_after(&id, 0, 1000).await, memory.events_after(&id, 0, 1000).await)?;
        let ordinals: Vec<u64> = (0..STEPS_MAX as u64).collect();
        same("messages", store.messages(&id, &ordinals).await, memory.messages(&id, &ordinals).await)?;
        let ids = [id.clone()];
        self.compare_configs(task).await?;
        same("checkpoint", store.checkpoint(&id).await, memory.checkpoint(&id).await)?;
        same("marks", store.marks(&ids).await, memory.marks(&ids).await)?;
        for message in (0..4).map(|n| message_id(&format!("known-{n}"))) {
            let now = at(self.millis);
            same(
                "accepted",
                store.accepted(&of(task), &message, now).await,
                memory.accepted(&of(task), &message, now).await,
            )?;
        }
        for artifact in ["artifact-0", "artifact-1"].map(|id| ArtifactId::new(id).expect("an id")) {
            let (versions, known) = (
                store.artifact_versions(&of(task), &id, &artifact, None, 100).await,
                memory.artifact_versions(&of(task), &id, &artifact, None, 100).await,
            );
            same("artifact_versions", versions, known)?;
            for version in [None, Some(1), Some(2)] {
                let (got, known) = (
                    store.artifact(&of(task), &id, &artifact, version).await,
                    memory.artifact(&of(task), &id, &artifact, version).await,
                );
                same("artifact", got, known)?;
            }
        }
        Ok(())
    }
}

/// The scope of a task: two tasks share one.
fn of(task: usize) -> Scope {
    scope(if task.is_multiple_of(2) { "even" } else { "odd" }, "owner")
}

fn id(task: usize) -> TaskId {
    task_id(&format!("task-{task}"))
}

fn by_id(mut claims: Vec<Claim>) -> Vec<Claim> {
    claims.sort_by(|one, other| one.head.id.cmp(&other.head.id));
    claims
}

fn command_of(number: usize, message: &str, now: i64) -> Command {
    let word = || Some(agent_message(message, "so"));
    match number {
        0 => Command::Start { lease_until: at(now + 100), worker: worker() },
        1 => Command::Start { lease_until: at(now + 1000), worker: worker() },
        2 => progress(message),
        3 => ask(message),
        4 => Command::RequireAuth {
            message: agent_message(message, "who?"),
            resume_after: Some(std::time::Duration::from_millis(50)),
        },
        5 => complete(),
        6 => Command::Fail { message: word() },
        7 => Command::Resume,
        8 => Command::Cancel,
        9 => Command::FinishCancel { message: word() },
        11 => Command::Retry { how: AttemptOutcome::TurnTooLong, at: at(now + 70) },
        12 => Command::HandBack,
        _ => reply(message),
    }
}
