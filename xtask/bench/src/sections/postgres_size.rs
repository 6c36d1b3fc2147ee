//! What each step on the store in PostgreSQL costs with few and with many tasks in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use longhaul_engine::{IdSource as _, RandomIds};
use longhaul_lifecycle::{Command, TaskHead, Transition, WorkerId, Writer, decide};
use longhaul_pgtest::Database;
use longhaul_protocol::{Message, Role, TaskId, TaskState, Timestamp, json, wire};
use longhaul_store::{
    Commit, EventKind, Expect, HeldLease, HistoryLimit, ListCursor, ListQuery, NewEvent, NewMessage, NewTask, Rotation,
    Scope, SnapshotQuery, Store as _, created_event,
};
use longhaul_store_postgres::{PostgresConfig, PostgresStore};

use crate::emit::timestamp;
use crate::load::Window;
use crate::report::{Bound, Figure};
use crate::run::Run;
use crate::sections::postgres::cluster;
use crate::stats::Latencies;

/// Tasks of the small database.
const SMALL: u64 = 1000;
/// Target: the median of each step, of that with few tasks.
const RATIO_MAX: f64 = 1.5;
/// They take turns at least this often.
const ROUNDS_MIN: usize = 4;
/// The step that reads what nobody has read for long: of few tasks all is in the database's memory, of many it has to be fetched.
const COLD: &str = "get, for the first time";
/// Tasks on a page.
const PAGE: usize = 50;
/// Tasks that a worker looks for.
const DUE_MAX: usize = 64;
/// How long leases last, in milliseconds.
const LEASE_MS: i64 = 30_000;

/// A database with tasks in it, and how long each step took.
struct Filled {
    store: Arc<PostgresStore>,
    tasks: u64,
    ids: RandomIds,
    made: u64,
    steps: BTreeMap<&'static str, Latencies>,
    /// Where the next later page begins, as a share of all tasks.
    place: u64,
    _database: Database,
}

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let cluster = cluster(run)?;
    let mut small = Filled::open(Database::fresh_in(&cluster)?, SMALL).await?;
    let begun = Instant::now();
    let mut large = Filled::open(Database::fresh_in(&cluster)?, run.options.postgres_tasks).await?;
    figures.push(Figure::new(format!("{} tasks: filled in", large.tasks), begun.elapsed().as_secs_f64(), "s"));
    for _ in 0..run.options.rounds.max(ROUNDS_MIN) {
        small.drive(run).await?;
        large.drive(run).await?;
    }
    for (step, latencies) in &mut large.steps {
        let base = small.steps.get_mut(step).with_context(|| format!("{step} was not measured"))?.p50_ms();
        figures.push(Figure::new(format!("{} tasks: {step} p50", small.tasks), base, "ms"));
        let figure = Figure::new(format!("{} tasks: {step} p50", large.tasks), latencies.p50_ms(), "ms");
        let figure = figure.ratio(base, &format!("{SMALL} tasks"), Bound::AtMost, RATIO_MAX);
        figures.push(if *step == COLD { figure.aim() } else { figure });
    }
    small.store.close().await?;
    large.store.close().await?;
    Ok(())
}

fn after(now: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(now.unix_millis() + millis)
}

impl Filled {
    async fn open(database: Database, tasks: u64) -> Result<Self> {
        let config = PostgresConfig { url: database.url().to_owned(), ..PostgresConfig::default() };
        longhaul_store_postgres::fill(&config, tasks, timestamp()?)
            .await
            .with_context(|| format!("cannot fill a database with {tasks} tasks"))?;
        let store = Arc::new(PostgresStore::open(&config).await?);
        let (ids, steps) = (RandomIds::default(), BTreeMap::new());
        Ok(Self { store, tasks, ids, made: 0, steps, place: 0, _database: database })
    }

    /// Leads one task after the other through its life, and reads others meanwhile.
    async fn drive(&mut self, run: &Run) -> Result<()> {
        let window = Window::after_warm_up(run.options.window);
        while !window.is_over() {
            let head = self.send(window).await?;
            self.read(window).await?;
            self.work(window, head).await?;
            self.keep_house(window).await?;
        }
        Ok(())
    }

    async fn timed<T, E>(
        &mut self,
        window: Window,
        step: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T>
    where
        anyhow::Error: From<E>,
    {
        let begun = Instant::now();
        let done = work.await.map_err(anyhow::Error::from).with_context(|| format!("cannot {step}"))?;
        window.record(begun, self.steps.entry(step).or_default());
        Ok(done)
    }

    /// The commit with which a task is accepted.
    async fn send(&mut self, window: Window) -> Result<TaskHead> {
        let (scope, now) = (Scope::default(), timestamp()?);
        let context_id = self.ids.context_id(now);
        let head = TaskHead::submitted(self.ids.task_id(&scope.tenant, &context_id, now), context_id, now);
        let text = "A question, of about the length that a question has.".to_owned();
        let message = wire::Message {
            message_id: self.ids.message_id(now).as_str().to_owned(),
            role: Role::User.into(),
            parts: vec![longhaul_engine::text_part(text)],
            ..wire::Message::default()
        };
        let message = Message::new(message).map_err(|violations| anyhow::anyhow!("{violations:?}"))?;
        let commit = Commit {
            task_id: head.id.clone(),
            events: vec![created_event(&head, None)],
            expect: Expect::New(NewTask { scope, metadata: None }),
            messages: vec![NewMessage::new(message, 1)],
            checkpoint: None,
            dedup: None,
            pushes: Vec::new(),
            now,
            head: Some(head.clone()),
        };
        let store = Arc::clone(&self.store);
        self.timed(window, "send (its first commit)", store.commit(commit)).await?;
        self.made += 1;
        Ok(head)
    }

    /// Reads tasks of all ages.
    async fn read(&mut self, window: Window) -> Result<()> {
        let (scope, store) = (Scope::default(), Arc::clone(&self.store));
        let page = |after| ListQuery {
            scope: Scope::default(),
            context_id: None,
            state: None,
            status_timestamp_after: None,
            after,
            page_size: PAGE,
            history: HistoryLimit::Latest(0),
            artifacts: false,
        };
        let first = self.timed(window, "list, first page", store.list(page(None))).await?;
        if first.total != self.tasks + self.made {
            bail!("totalSize is {}, not {}", first.total, self.tasks + self.made);
        }
        // Finished tasks lie a second apart: anywhere among them, by steps that are no divisor of anything.
        self.place = (self.place + 611_953) % (self.tasks - 2 * PAGE as u64);
        let timestamp = after(timestamp()?, -1000 * i64::try_from(self.place)?);
        let after = ListCursor { timestamp, task_id: TaskId::new("~")? };
        let later = self.timed(window, "list, a later page", store.list(page(Some(after)))).await?;
        let task = later.tasks.get(PAGE / 2).context("a later page is short")?;
        let task_id = TaskId::new(task.id.clone())?;
        let query = |artifacts| SnapshotQuery { at: None, history: HistoryLimit::All, artifacts };
        self.timed(window, COLD, store.snapshot(&scope, &task_id, query(true))).await?;
        let got = self.timed(window, "get, again", store.snapshot(&scope, &task_id, query(true))).await?;
        let got = got.context("a task is gone")?;
        let whole = SnapshotQuery { at: Some(1), ..query(true) };
        self.timed(window, "subscribe: the task as it was", store.snapshot(&scope, &task_id, whole)).await?;
        let events = self.timed(window, "subscribe: the events behind", store.events_after(&task_id, 1, 256)).await?;
        if events.len() as u64 + 1 != got.sequence {
            bail!("{} events follow the first of {}", events.len(), got.sequence);
        }
        Ok(())
    }

    /// What workers do with a task that was sent, and its cancel.
    async fn work(&mut self, window: Window, head: TaskHead) -> Result<()> {
        let store = Arc::clone(&self.store);
        let due = self.timed(window, "due", store.due(timestamp()?, DUE_MAX, Rotation::default())).await?;
        let claim = due.claims.into_iter().find(|claim| claim.head.id == head.id).context("the task is not due")?;
        let (head, now) = (claim.head, timestamp()?);
        let start = Command::Start { lease_until: after(now, LEASE_MS), worker: WorkerId::new("bench/1") };
        let started = decide(&head, start, Writer::Engine, now)?;
        let head = self.commit(window, "claim", Expect::Unheld(head.version), started).await?;
        let leases = [HeldLease { task_id: head.id.clone(), epoch: head.epoch }];
        for step in ["renew, the first time", "renew, again"] {
            let until = after(now, LEASE_MS);
            let lost = self.timed(window, step, store.renew(&leases, now, until)).await?;
            if !lost.is_empty() {
                bail!("a lease was lost");
            }
        }
        self.timed(window, "ask how far tasks have come", store.marks(std::slice::from_ref(&head.id))).await?;
        let asked = decide(&head, Command::Cancel, Writer::Caller, now)?;
        let head = self.commit(window, "cancel", Expect::Version(head.version), asked).await?;
        let ended = decide(&head, Command::FinishCancel { message: None }, Writer::Engine, now)?;
        let expect = Expect::LeaseAndVersion { epoch: head.epoch, version: head.version };
        self.commit(window, "end", expect, ended).await.map(drop)
    }

    /// What an instance looks for by itself, and mostly does not find.
    async fn keep_house(&mut self, window: Window) -> Result<()> {
        let (store, now) = (Arc::clone(&self.store), timestamp()?);
        let long_ago = Timestamp::from_unix_millis(0);
        self.timed(window, "when is a task due", store.next_due()).await?;
        let open = [TaskState::InputRequired, TaskState::AuthRequired];
        self.timed(window, "look for stale tasks", store.stale(&open, now, now, DUE_MAX)).await?;
        self.timed(window, "look for what retention ends", store.purge(TaskState::Completed, long_ago, DUE_MAX))
            .await?;
        Ok(())
    }

    async fn commit(
        &mut self,
        window: Window,
        step: &'static str,
        expect: Expect,
        transition: Transition,
    ) -> Result<TaskHead> {
        let head = transition.head;
        let event = |update: &longhaul_lifecycle::StatusUpdate| NewEvent {
            kind: EventKind::Status { state: update.state, rests: update.rests },
            payload: json::to_json(&update.to_wire(&head.id, &head.context_id)),
        };
        let messages = transition.history.into_iter().map(|joins| NewMessage::new(joins.message, joins.updates));
        let commit = Commit {
            task_id: head.id.clone(),
            expect,
            events: transition.updates.iter().map(event).collect(),
            messages: messages.collect(),
            head: Some(head.clone()),
            checkpoint: None,
            dedup: None,
            pushes: Vec::new(),
            now: timestamp()?,
        };
        let store = Arc::clone(&self.store);
        let committed = self.timed(window, step, store.commit(commit)).await?;
        Ok(TaskHead { last_sequence: committed.last_sequence, ..head })
    }
}
