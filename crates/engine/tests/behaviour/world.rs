//! What the tests stand on: a store, a clock that stands still, counted ids, a scripted agent, and an engine of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul_engine::{
    Clock, Config, Engine, EngineError, EngineParts, EventStream, HistoryLimit, Scope, SendReply, Store, StreamItem,
    SubscribeRequest, TasksQuery,
};
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{Owner, TaskId, TaskState, Timestamp, json, wire};
use longhaul_store::MemoryStore;
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};
use longhaul_testkit::{CountedIds, FaultStore, Gate, ManualClock, ScriptedAgent, SendBuilder};
use tokio::task::JoinHandle;

/// How long a canceled turn has in these tests; nobody else sleeps for this time.
pub const GRACE: Duration = Duration::from_secs(7);
/// How long the agent has to accept in these tests.
pub const ACCEPT: Duration = Duration::from_secs(5);
/// How long a turn waits before its third attempt: a second, of which jitter takes a quarter.
pub const BACKOFF: Duration = Duration::from_millis(750);
/// How long a lease lasts in tests that look at it, and how often it is renewed: nobody else sleeps for a third of this.
pub const LEASE: Duration = Duration::from_secs(31);
pub const BEAT: Duration = Duration::from_millis(10_333);
/// After which time a test that waits is said to hang.
pub const HANGS: Duration = Duration::from_secs(30);

/// Makes of each function two tests, one on each store.
macro_rules! on_each_store {
    ($($(#[$meta:meta])* async fn $name:ident($place:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            $(#[$meta])*
            async fn behaviour($place: &crate::world::Place) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_memory() {
                let place = crate::world::Place::memory();
                tokio::time::timeout(crate::world::HANGS, behaviour(&place)).await.expect("it hangs");
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                let place = crate::world::Place::sqlite();
                tokio::time::timeout(crate::world::HANGS, behaviour(&place)).await.expect("it hangs");
            }
        }
    )*};
}

/// A store with its clock and ids; engines come and go on it.
pub struct Place {
    pub store: Arc<FaultStore>,
    pub clock: Arc<ManualClock>,
    ids: Arc<CountedIds>,
    _folder: Option<Folder>,
}

impl Place {
    pub fn memory() -> Self {
        Self::on(Arc::new(MemoryStore::new()), None)
    }

    pub fn sqlite() -> Self {
        let folder = Folder::new();
        let config = SqliteConfig { directory: folder.0.clone(), ..SqliteConfig::default() };
        let now = Timestamp::from_unix_millis(ManualClock::START_MILLIS);
        Self::on(Arc::new(SqliteStore::open(&config, now).expect("a fresh folder opens")), Some(folder))
    }

    fn on(store: Arc<dyn Store>, folder: Option<Folder>) -> Self {
        let store = Arc::new(FaultStore::new(store));
        Self { store, clock: Arc::default(), ids: Arc::default(), _folder: folder }
    }

    /// An engine that has not been started.
    pub fn idle(&self, agent: &Arc<ScriptedAgent>, config: Config) -> Engine {
        self.engine_on(&self.store, &self.clock, agent, config)
    }

    fn engine_on(
        &self,
        store: &Arc<FaultStore>,
        clock: &Arc<ManualClock>,
        agent: &Arc<ScriptedAgent>,
        config: Config,
    ) -> Engine {
        Engine::new(EngineParts {
            store: Arc::clone(store) as Arc<dyn Store>,
            agent: Arc::clone(agent) as _,
            clock: Arc::clone(clock) as _,
            ids: Arc::clone(&self.ids) as _,
            config,
        })
    }

    /// A running engine with faults of its own in front of the store.
    pub async fn faulty(&self, agent: ScriptedAgent, config: Config) -> World {
        self.world_on(Arc::clone(&self.clock), agent, config).await
    }

    /// A running engine whose clock stands still, as in a process that is paused: it believes in its leases for ever.
    pub async fn paused(&self, agent: ScriptedAgent) -> World {
        let clock = ManualClock::new();
        clock.advance(until(clock.now(), self.clock.now()));
        self.world_on(Arc::new(clock), agent, leased()).await
    }

    async fn world_on(&self, clock: Arc<ManualClock>, agent: ScriptedAgent, config: Config) -> World {
        let store = Arc::new(FaultStore::new(Arc::clone(&self.store) as _));
        let agent = Arc::new(agent);
        let engine = self.engine_on(&store, &clock, &agent, config);
        engine.start().await.expect("an engine starts");
        World { engine, store, clock, agent }
    }

    pub async fn world(&self, agent: ScriptedAgent) -> World {
        self.world_with(agent, config()).await
    }

    pub async fn world_with(&self, agent: ScriptedAgent, config: Config) -> World {
        let agent = Arc::new(agent);
        let engine = self.idle(&agent, config);
        engine.start().await.expect("an engine starts");
        World { engine, store: Arc::clone(&self.store), clock: Arc::clone(&self.clock), agent }
    }

    /// An engine on a runtime of its own, which can be killed.
    pub async fn mortal(&self, agent: ScriptedAgent) -> Mortal {
        self.mortal_with(agent, config()).await
    }

    pub async fn mortal_with(&self, agent: ScriptedAgent, config: Config) -> Mortal {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let agent = Arc::new(agent);
        let engine = self.idle(&agent, config);
        let starting = engine.clone();
        runtime.spawn(async move { starting.start().await }).await.expect("it runs").expect("an engine starts");
        Mortal { runtime, engine, agent }
    }
}

/// An engine that can be killed as a process is: nothing of it runs on.
pub struct Mortal {
    pub runtime: tokio::runtime::Runtime,
    pub engine: Engine,
    pub agent: Arc<ScriptedAgent>,
}

impl Mortal {
    pub async fn send(&self, send: SendBuilder) -> wire::Task {
        let engine = self.engine.clone();
        let reply = self.runtime.spawn(async move { engine.send_message(send.build()).await });
        task_of(reply.await.expect("it runs").expect("the send is taken"))
    }

    /// When this returns, nothing of it runs any more.
    pub fn kill(self) {
        tokio::task::block_in_place(|| self.runtime.shutdown_timeout(HANGS));
    }
}

fn until(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.unix_millis() - from.unix_millis()).expect("time goes on"))
}

/// A configuration with leases that outlast every test, however its clock is moved.
pub fn config() -> Config {
    let lease_duration = Duration::from_secs(24 * 60 * 60);
    Config { cancel_grace: GRACE, accept_timeout: ACCEPT, lease_duration, ..Config::default() }
}

/// A configuration with leases of [`LEASE`].
pub fn leased() -> Config {
    Config { lease_duration: LEASE, ..config() }
}

/// A running engine and what it stands on.
#[derive(Clone)]
pub struct World {
    pub engine: Engine,
    pub store: Arc<FaultStore>,
    pub clock: Arc<ManualClock>,
    pub agent: Arc<ScriptedAgent>,
}

impl World {
    pub async fn try_send(&self, send: SendBuilder) -> Result<SendReply, EngineError> {
        self.engine.send_message(send.build()).await
    }

    pub async fn send(&self, send: SendBuilder) -> wire::Task {
        task_of(self.try_send(send).await.expect("the send is taken"))
    }

    /// Sends beside the test.
    pub fn sending(&self, send: SendBuilder) -> JoinHandle<Result<SendReply, EngineError>> {
        let world = self.clone();
        beside(async move { world.try_send(send).await })
    }

    pub async fn stream(&self, send: SendBuilder) -> EventStream {
        self.engine.send_streaming_message(send.build()).await.expect("the send is taken")
    }

    pub async fn try_subscribe(&self, task_id: &str, after: Option<u64>) -> Result<EventStream, EngineError> {
        let request = SubscribeRequest { scope: Scope::default(), task_id: task_id.to_owned(), after };
        self.engine.subscribe_to_task(request).await
    }

    pub async fn subscribe(&self, task_id: &str, after: Option<u64>) -> EventStream {
        self.try_subscribe(task_id, after).await.expect("the task can be followed")
    }

    pub async fn task(&self, task_id: &str) -> wire::Task {
        self.engine.get_task(&Scope::default(), task_id, HistoryLimit::All).await.expect("the task is there")
    }

    pub async fn cancel(&self, task_id: &str) -> Result<wire::Task, EngineError> {
        self.engine.cancel_task(&Scope::default(), task_id).await
    }

    pub fn canceling(&self, task_id: &str) -> JoinHandle<Result<wire::Task, EngineError>> {
        let (world, task_id) = (self.clone(), task_id.to_owned());
        beside(async move { world.cancel(&task_id).await })
    }

    /// Lets so many heartbeats pass, each when the one before is done.
    pub async fn beats(&self, count: usize) {
        for _ in 0..count {
            self.clock.pass(BEAT).await;
        }
        self.clock.slept_for(BEAT).await;
    }

    /// What decides about a task.
    pub async fn head(&self, task_id: &str) -> TaskHead {
        let task_id = TaskId::new(task_id).expect("an id");
        self.store.load(&Scope::default(), &task_id).await.expect("it can be read").expect("the task is there")
    }

    pub async fn checkpoint(&self, task_id: &str) -> Option<String> {
        let task_id = TaskId::new(task_id).expect("an id");
        let read = self.store.checkpoint(&task_id).await.expect("it can be read");
        read.map(|data| String::from_utf8_lossy(&data).into_owned())
    }

    /// How many tasks there are.
    pub async fn total(&self) -> u64 {
        let query = TasksQuery {
            scope: Scope::default(),
            context_id: None,
            state: None,
            status_timestamp_after: None,
            page_size: 1,
            page_token: String::new(),
            history: HistoryLimit::Latest(0),
            artifacts: false,
        };
        self.engine.list_tasks(query).await.expect("it can be read").total_size
    }

    /// How much time has passed.
    pub fn passed(&self) -> Duration {
        until(Timestamp::from_unix_millis(ManualClock::START_MILLIS), self.clock.now())
    }

    /// Waits for a future while the clock goes on, second by second.
    pub async fn ticking<T>(&self, future: impl Future<Output = T>) -> T {
        self.ticking_by(Duration::from_secs(1), future).await
    }

    /// Waits for a future while the clock goes on, whenever somebody sleeps for so long.
    pub async fn ticking_by<T>(&self, tick: Duration, future: impl Future<Output = T>) -> T {
        let ticks = async {
            loop {
                self.clock.pass(tick).await;
            }
        };
        tokio::select! {
            output = future => output,
            () = ticks => panic!("the clock stopped"),
        }
    }

    /// The whole log of a task that has ended: its stream from the first event on.
    pub async fn log(&self, task_id: &str) -> Vec<StreamItem> {
        collect(self.subscribe(task_id, Some(1)).await).await
    }

    /// Waits until the task is in a state, now or at any time before.
    pub async fn until(&self, task_id: &str, state: TaskState) {
        let mut stream = self.subscribe(task_id, Some(1)).await;
        loop {
            let items = stream.next().await.expect("the task gets there").expect("the log can be read");
            if items.iter().any(|item| state_of(item) == Some(state)) {
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's own task, which it waits for")]
pub fn beside<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// Waits until something holds, letting others run.
pub async fn spin(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// Opens its gate when it is dropped: so a test sees that an agent's work was dropped.
pub struct OpensWhenDropped(pub Gate);

impl Drop for OpensWhenDropped {
    fn drop(&mut self) {
        self.0.open();
    }
}

pub fn task_of(reply: SendReply) -> wire::Task {
    match reply {
        SendReply::Task(task) => task,
        SendReply::Message(message) => panic!("a message instead of a task: {message:?}"),
    }
}

pub async fn answer(sending: JoinHandle<Result<SendReply, EngineError>>) -> wire::Task {
    task_of(sending.await.expect("the send does not panic").expect("the send is taken"))
}

pub fn state(task: &wire::Task) -> TaskState {
    task.status.as_ref().and_then(|status| status.state.known()).expect("a task has a state")
}

/// What the status says.
pub fn said(task: &wire::Task) -> String {
    let message = task.status.as_ref().and_then(|status| status.message.as_ref());
    message.map(|message| text_of(&message.parts)).unwrap_or_default()
}

/// The texts of the history, oldest first.
pub fn history(task: &wire::Task) -> Vec<String> {
    task.history.iter().map(|message| text_of(&message.parts)).collect()
}

/// The artifacts as (id, text).
pub fn artifacts(task: &wire::Task) -> Vec<(String, String)> {
    task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), text_of(&artifact.parts))).collect()
}

pub fn text_of(parts: &[wire::Part]) -> String {
    parts.iter().filter_map(wire::Part::as_text).collect()
}

pub fn payload(item: &StreamItem) -> wire::StreamResponsePayload {
    let response: wire::StreamResponse = json::from_json(&item.payload).expect("an item is a stream response");
    response.payload.expect("an item holds something")
}

/// The task, if the item is one.
pub fn snapshot(item: &StreamItem) -> Option<wire::Task> {
    match payload(item) {
        wire::StreamResponsePayload::Task(task) => Some(task),
        _ => None,
    }
}

/// The state that an item tells.
pub fn state_of(item: &StreamItem) -> Option<TaskState> {
    let status = match payload(item) {
        wire::StreamResponsePayload::Task(task) => task.status,
        wire::StreamResponsePayload::StatusUpdate(update) => update.status,
        wire::StreamResponsePayload::ArtifactUpdate(_) | wire::StreamResponsePayload::Message(_) => None,
    };
    status.and_then(|status| status.state.known())
}

pub fn states(items: &[StreamItem]) -> Vec<TaskState> {
    items.iter().filter_map(state_of).collect()
}

pub fn sequences(items: &[StreamItem]) -> Vec<u64> {
    items.iter().filter_map(|item| item.sequence).collect()
}

/// Reads a stream to its end.
pub async fn collect(mut stream: EventStream) -> Vec<StreamItem> {
    let mut all = Vec::new();
    while let Some(items) = stream.next().await {
        all.extend(items.expect("the log can be read"));
    }
    all
}

/// The next item alone, for streams of which the test knows that one is there.
pub async fn first(stream: &mut EventStream) -> StreamItem {
    let items = stream.next().await.expect("the stream goes on").expect("the log can be read");
    assert_eq!(items.len(), 1);
    items[0].clone()
}

/// Reads until an item tells this state, and answers all up to it.
pub async fn read_until(stream: &mut EventStream, state: TaskState) -> Vec<StreamItem> {
    let mut all = Vec::new();
    loop {
        let items = stream.next().await.expect("the stream goes on").expect("the log can be read");
        let found = items.iter().any(|item| state_of(item) == Some(state));
        all.extend(items);
        if found {
            return all;
        }
    }
}

pub fn owner(name: &str) -> Scope {
    Scope { owner: Owner::new(name).expect("a name"), ..Scope::default() }
}

/// Numbers that look random and are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longhaul-engine-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
