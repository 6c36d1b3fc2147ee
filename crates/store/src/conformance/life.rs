use std::sync::Arc;

use longhaul_lifecycle::{ArtifactUpdate, Command, StatusUpdate, TaskHead, Transition, WorkerId, Writer, decide};
use longhaul_protocol::{
    Artifact, ContextId, JsonObject, Message, MessageId, Owner, Role, TaskId, Tenant, Timestamp, json, wire,
};

use super::model::Model;
use crate::{
    Claim, Commit, Committed, EventKind, Expect, HeldLease, NewEvent, NewMessage, NewTask, Rotation, Scope, Store,
    StoreError, created_event,
};

/// A moment, in milliseconds after the beginning of all tests.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_700_000_000_000 + millis)
}

/// Later than anything that happens in a test, unless it says so.
pub(super) fn far() -> Timestamp {
    at(1_000_000_000_000)
}

/// A start whose lease outlasts the test.
pub(super) fn start() -> Command {
    Command::Start { lease_until: far(), worker: worker() }
}

/// Who runs the turns of a test.
pub(super) fn worker() -> WorkerId {
    WorkerId::new("host/1")
}

/// The tasks that are due, when nobody was served before.
pub(super) async fn due(store: &dyn Store, now: Timestamp, limit: usize) -> Vec<Claim> {
    store.due(now, limit, Rotation::default()).await.expect("due tasks").claims
}

pub(super) fn scope(tenant: &str, owner: &str) -> Scope {
    Scope { tenant: Tenant::new(tenant).expect("a tenant"), owner: Owner::new(owner).expect("an owner") }
}

pub(super) fn task_id(id: &str) -> TaskId {
    TaskId::new(id).expect("a task id")
}

pub(super) fn context_id(id: &str) -> ContextId {
    ContextId::new(id).expect("a context id")
}

pub(super) fn text(text: &str) -> wire::Part {
    wire::Part { content: Some(wire::PartContent::Text(text.to_owned())), ..wire::Part::default() }
}

pub(super) fn user_message(id: &str, words: &str) -> Message {
    message(id, Role::User, words)
}

pub(super) fn agent_message(id: &str, words: &str) -> Message {
    message(id, Role::Agent, words)
}

fn message(id: &str, role: Role, words: &str) -> Message {
    let wire = wire::Message {
        message_id: id.to_owned(),
        role: role.into(),
        parts: vec![text(words)],
        ..wire::Message::default()
    };
    Message::new(wire).expect("a message")
}

pub(super) fn message_id(id: &str) -> MessageId {
    MessageId::new(id).expect("a message id")
}

pub(super) fn object(name: &str, value: i64) -> JsonObject {
    let mut object = JsonObject::default();
    object.insert(name.to_owned(), serde_json::Value::from(value));
    object
}

/// A piece of an artifact with one text part.
pub(super) fn piece(artifact_id: &str, words: &str, append: bool) -> ArtifactUpdate {
    let artifact =
        wire::Artifact { artifact_id: artifact_id.to_owned(), parts: vec![text(words)], ..wire::Artifact::default() };
    ArtifactUpdate {
        artifact: Artifact::new(artifact).expect("an artifact"),
        append,
        last_chunk: false,
        metadata: None,
    }
}

pub(super) fn artifact_event(head: &TaskHead, update: ArtifactUpdate) -> NewEvent {
    NewEvent { kind: EventKind::Artifact, payload: json::to_json(&update.into_wire(&head.id, &head.context_id)) }
}

pub(super) fn status_event(head: &TaskHead, update: &StatusUpdate) -> NewEvent {
    NewEvent {
        kind: EventKind::Status { state: update.state, rests: update.rests },
        payload: json::to_json(&update.to_wire(&head.id, &head.context_id)),
    }
}

/// The commit that makes a task.
pub(super) fn creation(scope: &Scope, head: &TaskHead, metadata: Option<JsonObject>, first: Message) -> Commit {
    Commit {
        task_id: head.id.clone(),
        events: vec![created_event(head, metadata.as_ref())],
        expect: Expect::New(NewTask { scope: scope.clone(), metadata }),
        messages: vec![NewMessage::new(first, 1)],
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now: head.status_timestamp,
        head: Some(head.clone()),
    }
}

/// The commit of a transition.
pub(super) fn commit_of(expect: Expect, transition: Transition, now: Timestamp) -> Commit {
    Commit {
        task_id: transition.head.id.clone(),
        expect,
        events: transition.updates.iter().map(|update| status_event(&transition.head, update)).collect(),
        messages: transition.history.into_iter().map(|joins| NewMessage::new(joins.message, joins.updates)).collect(),
        head: Some(transition.head),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    }
}

/// The commit of artifact pieces under a lease.
pub(super) fn commit_of_pieces(
    head: &TaskHead,
    pieces: impl IntoIterator<Item = ArtifactUpdate>,
    now: Timestamp,
) -> Commit {
    Commit {
        task_id: head.id.clone(),
        expect: Expect::Lease { epoch: head.epoch, last_sequence: head.last_sequence },
        head: None,
        events: pieces.into_iter().map(|piece| artifact_event(head, piece)).collect(),
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    }
}

/// A task that is led through its life, with a model of what it ought to be.
pub(super) struct Life {
    pub store: Arc<dyn Store>,
    pub scope: Scope,
    pub head: TaskHead,
    pub model: Model,
    now: i64,
}

impl Life {
    /// Makes a task.
    pub async fn begin(store: &Arc<dyn Store>, scope: &Scope, id: &str, context: &str, millis: i64) -> Self {
        let head = TaskHead::submitted(task_id(id), context_id(context), at(millis));
        let first = user_message("first", "begin");
        let metadata = Some(object("made", millis));
        let model = Model::begin(&head, metadata.clone(), &first);
        let commit = creation(scope, &head, metadata, first);
        let committed = store.commit(commit).await.expect("a new task is made");
        assert_eq!(committed, Committed { version: 1, last_sequence: 1, has_pushes: false });
        Self { store: Arc::clone(store), scope: scope.clone(), head, model, now: millis }
    }

    /// Follows a task that was made already, with `first` as its first message.
    pub fn adopt(
        store: &Arc<dyn Store>,
        scope: &Scope,
        head: TaskHead,
        metadata: Option<JsonObject>,
        first: &Message,
    ) -> Self {
        let model = Model::begin(&head, metadata, first);
        Self { store: Arc::clone(store), scope: scope.clone(), head, model, now: 0 }
    }

    /// Sets the time of what comes next.
    pub fn at(&mut self, millis: i64) -> &mut Self {
        self.now = millis;
        self
    }

    /// Decides a command by the caller or the engine, and commits it.
    pub async fn give(&mut self, command: Command) -> Committed {
        self.step(command, Writer::Engine, Expect::Version(self.head.version)).await
    }

    /// Decides a command by the agent that holds the lease, and commits it under that lease.
    pub async fn work(&mut self, command: Command) -> Committed {
        let (epoch, version) = (self.head.epoch, self.head.version);
        self.step(command, Writer::Agent { epoch }, Expect::LeaseAndVersion { epoch, version }).await
    }

    async fn step(&mut self, command: Command, writer: Writer, expect: Expect) -> Committed {
        let now = at(self.now);
        let transition = decide(&self.head, command, writer, now).expect("the state allows the command");
        let commit = commit_of(expect, transition, now);
        self.commit(commit).await.expect("nobody else writes")
    }

    /// Appends a piece of an artifact under the lease.
    pub async fn add(&mut self, piece: ArtifactUpdate) -> Committed {
        let commit = commit_of_pieces(&self.head, [piece], at(self.now));
        self.commit(commit).await.expect("the lease is alive")
    }

    /// Commits what was made elsewhere, and keeps up with it when it is made.
    pub async fn commit(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        let committed = self.store.commit(commit.clone()).await?;
        self.model.commit(&commit);
        if let Some(head) = commit.head {
            self.head = head;
        }
        self.head.last_sequence = committed.last_sequence;
        Ok(committed)
    }

    /// Starts the task, with a lease that outlasts the test.
    pub async fn start(&mut self) -> Committed {
        self.give(start()).await
    }

    /// Starts the task, with a lease that runs out.
    pub async fn start_until(&mut self, millis: i64) -> Committed {
        self.give(Command::Start { lease_until: at(millis), worker: worker() }).await
    }

    /// The lease that the task's worker holds.
    pub fn lease(&self) -> HeldLease {
        HeldLease { task_id: self.head.id.clone(), epoch: self.head.epoch }
    }

    /// The head as the store has it.
    pub async fn stored(&self) -> TaskHead {
        self.store.load(&self.scope, &self.head.id).await.expect("the store answers").expect("the task is there")
    }
}

/// A progress report.
pub(super) fn progress(id: &str) -> Command {
    Command::Progress { message: Some(agent_message(id, "under way")), metadata: None }
}

/// A question.
pub(super) fn ask(id: &str) -> Command {
    Command::RequireInput { message: agent_message(id, "which one?") }
}

/// A message of the caller.
pub(super) fn reply(id: &str) -> Command {
    Command::Message { message: user_message(id, "that one") }
}

/// The end of the work.
pub(super) fn complete() -> Command {
    Command::Complete { message: None }
}
