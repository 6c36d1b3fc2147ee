use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longhaul_lifecycle::{ArtifactLedger, ArtifactRejection, ArtifactUpdate, TaskHead};
use longhaul_protocol::{
    Artifact, ContextId, FieldViolation, JsonObject, Message, TaskId, Timestamp, json, rules, wire,
};
use longhaul_store::{EventKind, NewEvent, Scope, Store, StoredMessage, TurnRequest};
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Clock;

/// How much an agent may have written that is not stored yet, before it has to wait.
const BUFFER_EVENTS_MAX: usize = 1024;
const BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One run of the agent on one message of the caller: what it is given, and the way to write.
#[derive(Debug)]
pub struct Turn {
    pub(crate) message: Message,
    pub(crate) request: TurnRequest,
    pub(crate) history: u64,
    /// How many messages the history held when the turn began.
    pub(crate) messages: u64,
    pub(crate) resumed: bool,
    pub(crate) writer: TurnWriter,
}

impl Turn {
    /// The task.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        &self.writer.shared.task_id
    }

    /// The task's context.
    #[must_use]
    pub fn context_id(&self) -> &ContextId {
        &self.writer.shared.context_id
    }

    /// The message that this turn is about.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// What the message came with: accepted output modes, request metadata, extensions.
    #[must_use]
    pub fn request(&self) -> &TurnRequest {
        &self.request
    }

    /// How often this turn was begun, this time included: 1 for the first attempt.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.writer.shared.attempt
    }

    /// The fencing token of this turn's lease: it grows with every attempt of the task. Together with the task's id it is a
    /// key under which an effect on something else can be made once.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.writer.shared.epoch
    }

    /// Whether this is the task's first turn: its message is the one that made the task.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.history == 0
    }

    /// Whether the turn goes on after an authorization (A2A §7.6) that came without a message: its agent has asked for it
    /// on this very message, and need not ask again.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Whether a caller has asked for the task to be canceled.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.writer.shared.cancel.is_cancelled()
    }

    /// Waits until a caller asks for the task to be canceled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the wait.
    pub async fn canceled(&self) {
        self.writer.shared.cancel.cancelled().await;
    }

    /// A handle that writes to the same turn from elsewhere. It is refused once the turn is over.
    #[must_use]
    pub fn writer(&self) -> TurnWriter {
        self.writer.clone()
    }

    /// Writes a status update: WORKING, with the agent's word on how it is getting on.
    ///
    /// # Errors
    ///
    /// See [`TurnWriter::progress`].
    pub async fn progress(&self, parts: Vec<wire::Part>) -> Result<(), TurnError> {
        self.writer.progress(Some(parts), None).await
    }

    /// Writes a piece of an artifact.
    ///
    /// # Errors
    ///
    /// See [`TurnWriter::artifact`].
    pub async fn artifact(&self, piece: ArtifactPiece) -> Result<(), TurnError> {
        self.writer.artifact(piece).await
    }

    /// Stores something for the next attempt or the next turn of this task.
    ///
    /// # Errors
    ///
    /// See [`TurnWriter::checkpoint`].
    pub async fn checkpoint(&self, data: impl Into<Bytes>) -> Result<(), TurnError> {
        self.writer.checkpoint(data.into()).await
    }

    /// What an attempt before this one, or a turn before this one, stored last.
    ///
    /// # Errors
    ///
    /// [`TurnError::Store`].
    pub async fn last_checkpoint(&self) -> Result<Option<Bytes>, TurnError> {
        let shared = &self.writer.shared;
        shared.store.checkpoint(&shared.task_id).await.map_err(|error| TurnError::Store(Arc::new(error)))
    }

    /// The task's messages as they stood when the turn began, oldest first, the turn's own among them: at most `limit`,
    /// the latest.
    ///
    /// # Errors
    ///
    /// [`TurnError::Store`].
    pub async fn history(&self, limit: usize) -> Result<Vec<Message>, TurnError> {
        if self.messages <= 1 {
            return Ok(if limit == 0 { Vec::new() } else { vec![self.message.clone()] });
        }
        let first = self.messages.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
        let ordinals: Vec<u64> = (first..self.messages).collect();
        let shared = &self.writer.shared;
        let read = shared.store.messages(&shared.task_id, &ordinals).await;
        let mut messages = read.map_err(|error| TurnError::Store(Arc::new(error)))?;
        messages.sort_unstable_by_key(|stored| stored.ordinal);
        Ok(messages.into_iter().map(|StoredMessage { message, .. }| message).collect())
    }

    /// Waits until [`Turn::inbox`] has something to read.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the wait.
    pub async fn mail(&self) {
        let shared = &self.writer.shared;
        loop {
            let delivered = shared.delivered.notified();
            tokio::pin!(delivered);
            delivered.as_mut().enable();
            if !shared.state().inbox.is_empty() {
                return;
            }
            delivered.await;
        }
    }

    /// The messages that arrived while this turn ran and that it has not read yet, oldest first. What is read here does
    /// not become a turn of its own.
    ///
    /// # Errors
    ///
    /// [`TurnError::Store`]; the messages are then unread.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the messages unread.
    pub async fn inbox(&mut self) -> Result<Vec<Message>, TurnError> {
        let shared = &self.writer.shared;
        let waiting = shared.state().inbox.clone();
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let read = shared.store.messages(&shared.task_id, &waiting).await;
        let mut messages = read.map_err(|error| TurnError::Store(Arc::new(error)))?;
        messages.sort_unstable_by_key(|stored| stored.ordinal);
        let mut state = shared.state();
        state.inbox.retain(|ordinal| !waiting.contains(ordinal));
        state.consumed.extend(waiting);
        Ok(messages.into_iter().map(|StoredMessage { message, .. }| message).collect())
    }
}

/// A piece of an artifact (A2A §4.2.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArtifactPiece {
    /// The artifact, or the parts that it is extended by.
    pub artifact: wire::Artifact,
    /// Whether the parts extend the newest version; otherwise they begin the next one.
    pub append: bool,
    /// Whether this version is complete with this piece.
    pub last_chunk: bool,
    /// Metadata of the update itself.
    pub metadata: Option<JsonObject>,
}

/// Why a turn's write was refused.
#[derive(Clone, Debug, Error)]
pub enum TurnError {
    /// The turn is over: it ended, was canceled, or its lease was lost.
    #[error("the turn is over")]
    Over,
    /// The artifact update contradicts what was written before.
    #[error("the artifact update is refused")]
    Artifact(#[source] ArtifactRejection),
    /// What was written breaks the protocol's rules.
    #[error("the {what} is not valid: {}", describe(.violations))]
    Invalid {
        /// What was to be written.
        what: &'static str,
        /// The rules that it breaks.
        violations: Vec<FieldViolation>,
    },
    /// The event is too large.
    #[error("the event is {bytes} bytes long, {bytes_max} are allowed")]
    TooLarge {
        /// Its length as JSON.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The store could not read what was asked for.
    #[error("the store cannot be read")]
    Store(#[source] Arc<longhaul_store::StoreError>),
}

fn describe(violations: &[FieldViolation]) -> String {
    let all: Vec<String> =
        violations.iter().map(|violation| format!("{}: {}", violation.field, violation.description)).collect();
    all.join("; ")
}

/// Writes into a turn.
///
/// A write is accepted when the method returns, and is stored with whatever else waits, in order; the turn's outcome is
/// stored after all of it. An agent that writes faster than the store waits here.
#[derive(Clone, Debug)]
pub struct TurnWriter {
    pub(crate) shared: Arc<TurnShared>,
}

/// One write that is not stored yet.
#[derive(Debug)]
pub(crate) enum Write {
    /// With the update itself, if somebody wants to see it besides the log.
    Artifact(NewEvent, Option<Box<wire::StreamResponse>>),
    Progress(Box<Progress>),
    Checkpoint(Bytes),
}

/// The agent's word on how it is getting on.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub message: Option<Message>,
    pub metadata: Option<JsonObject>,
}

#[derive(Debug)]
pub(crate) struct TurnShared {
    pub scope: Scope,
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub attempt: u32,
    pub epoch: u64,
    /// The newest version of the task that this turn knows.
    version: AtomicU64,
    pub cancel: CancellationToken,
    pub event_bytes_max: usize,
    pub checkpoint_bytes_max: usize,
    pub begun_at: Timestamp,
    pub clock: Arc<dyn Clock>,
    /// When the lease runs out as far as this process knows, in milliseconds since the epoch.
    lease_until: AtomicI64,
    /// When the agent wrote last, likewise.
    last_write: AtomicI64,
    /// Whether artifact updates are kept for the view of the one who waits.
    pub keeps_updates: bool,
    pub store: Arc<dyn Store>,
    pub new_message_id: MessageIds,
    state: Mutex<TurnState>,
    /// Rung when something was written, for the turn's driver.
    pub written: Notify,
    /// Rung when the buffer was emptied, for writers that wait.
    drained: Notify,
    /// Rung when a message was put into the inbox.
    delivered: Notify,
}

/// Makes ids for the agent's messages.
#[derive(Clone)]
pub(crate) struct MessageIds(pub Arc<dyn Fn() -> longhaul_protocol::MessageId + Send + Sync>);

impl std::fmt::Debug for MessageIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MessageIds")
    }
}

#[derive(Debug, Default)]
pub(crate) struct TurnState {
    pub ledger: ArtifactLedger,
    pub buffer: VecDeque<Write>,
    pub bytes: usize,
    pub over: bool,
    /// The ordinal of the turn's own message: what waits for the turn came after it.
    pub turn_message: u64,
    /// Ordinals of messages that wait and were not read, oldest first.
    pub inbox: Vec<u64>,
    /// Ordinals of messages that the agent has read; they become no turn.
    pub consumed: Vec<u64>,
}

/// What a turn's shared part is made of.
pub(crate) struct TurnParts {
    pub scope: Scope,
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub attempt: u32,
    pub epoch: u64,
    pub version: u64,
    pub lease_until: Timestamp,
    pub event_bytes_max: usize,
    pub checkpoint_bytes_max: usize,
    pub keeps_updates: bool,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub new_message_id: MessageIds,
    pub state: TurnState,
}

impl TurnShared {
    pub fn new(parts: TurnParts) -> Self {
        let begun_at = parts.clock.now();
        Self {
            scope: parts.scope,
            task_id: parts.task_id,
            context_id: parts.context_id,
            attempt: parts.attempt,
            epoch: parts.epoch,
            version: AtomicU64::new(parts.version),
            cancel: CancellationToken::new(),
            event_bytes_max: parts.event_bytes_max,
            checkpoint_bytes_max: parts.checkpoint_bytes_max,
            begun_at,
            clock: parts.clock,
            lease_until: AtomicI64::new(parts.lease_until.unix_millis()),
            last_write: AtomicI64::new(begun_at.unix_millis()),
            keeps_updates: parts.keeps_updates,
            store: parts.store,
            new_message_id: parts.new_message_id,
            state: Mutex::new(parts.state),
            written: Notify::new(),
            drained: Notify::new(),
            delivered: Notify::new(),
        }
    }

    /// The newest version of the task that this turn knows.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Takes note of what the task says, of whoever changed it: that it is to be canceled, and which messages wait.
    pub fn knows(&self, head: &TaskHead) {
        if head.cancel_requested {
            self.cancel.cancel();
        }
        head.waiting.iter().for_each(|ordinal| self.deliver(*ordinal));
        self.version.fetch_max(head.version, Ordering::Relaxed);
    }

    /// When the lease runs out unless it is renewed.
    pub fn lease_until(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.lease_until.load(Ordering::Relaxed))
    }

    /// The lease was renewed.
    pub fn renewed(&self, lease_until: Timestamp) {
        self.lease_until.store(lease_until.unix_millis(), Ordering::Relaxed);
    }

    /// When the agent wrote last, or began.
    pub fn last_write(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.last_write.load(Ordering::Relaxed))
    }

    pub fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes everything that was written, and lets writers that wait go on.
    pub fn take_written(&self) -> VecDeque<Write> {
        let written = self.state().take_written();
        self.drained.notify_waiters();
        written
    }

    /// Takes everything that was written and refuses every later write, in one step: what was accepted is stored.
    pub fn take_last_written(&self) -> VecDeque<Write> {
        let written = {
            let mut state = self.state();
            state.over = true;
            state.take_written()
        };
        self.drained.notify_waiters();
        written
    }

    /// Puts a message that waits into the inbox.
    pub fn deliver(&self, ordinal: u64) {
        let mut state = self.state();
        // It may be told late, when the turn knows the message from its head already, or is about it.
        if ordinal <= state.turn_message || state.inbox.contains(&ordinal) || state.consumed.contains(&ordinal) {
            return;
        }
        state.inbox.push(ordinal);
        state.inbox.sort_unstable();
        drop(state);
        self.delivered.notify_waiters();
    }

    /// Refuses every later write.
    pub fn end(&self) {
        self.state().over = true;
        self.drained.notify_waiters();
    }
}

impl TurnState {
    fn take_written(&mut self) -> VecDeque<Write> {
        self.bytes = 0;
        std::mem::take(&mut self.buffer)
    }
}

impl TurnWriter {
    /// Writes a status update: WORKING, with the agent's word on how it is getting on.
    ///
    /// # Errors
    ///
    /// [`TurnError::Over`] when the turn is over, [`TurnError::Invalid`] when a part is not valid.
    pub async fn progress(
        &self,
        parts: Option<Vec<wire::Part>>,
        metadata: Option<JsonObject>,
    ) -> Result<(), TurnError> {
        check_metadata("status update", metadata.as_ref())?;
        let message = parts.map(|parts| self.shared.message(parts)).transpose()?;
        let bytes = message.as_ref().map_or(0, |message| json::to_json(message.as_wire()).len());
        let progress = Box::new(Progress { message, metadata });
        self.push(bytes, |_| Ok(Write::Progress(progress.clone()))).await
    }

    /// Writes a piece of an artifact.
    ///
    /// # Errors
    ///
    /// [`TurnError::Over`] when the turn is over, [`TurnError::Artifact`] when the piece appends to an artifact that does
    /// not exist or is closed, [`TurnError::Invalid`] or [`TurnError::TooLarge`] when the piece can't be written.
    pub async fn artifact(&self, piece: ArtifactPiece) -> Result<(), TurnError> {
        check_metadata("artifact update", piece.metadata.as_ref())?;
        let artifact =
            Artifact::new(piece.artifact).map_err(|violations| TurnError::Invalid { what: "artifact", violations })?;
        let (id, append, last_chunk) = (artifact.id().clone(), piece.append, piece.last_chunk);
        let update = ArtifactUpdate { artifact, append, last_chunk, metadata: piece.metadata };
        let update = update.into_wire(&self.shared.task_id, &self.shared.context_id);
        let payload: Bytes = json::to_json(&update);
        self.shared.check_size(payload.len())?;
        let mut kept = self.shared.keeps_updates.then(|| Box::new(update));
        self.push(payload.len(), |state| {
            state.ledger.apply(&id, append, last_chunk).map_err(TurnError::Artifact)?;
            Ok(Write::Artifact(NewEvent { kind: EventKind::Artifact, payload: payload.clone() }, kept.take()))
        })
        .await
    }

    /// Stores something for the next attempt or the next turn of this task, in place of what was stored before.
    ///
    /// # Errors
    ///
    /// [`TurnError::Over`] when the turn is over, [`TurnError::TooLarge`] when it is larger than `checkpoint_bytes_max`.
    pub async fn checkpoint(&self, data: Bytes) -> Result<(), TurnError> {
        let (bytes, bytes_max) = (data.len(), self.shared.checkpoint_bytes_max);
        if bytes > bytes_max {
            return Err(TurnError::TooLarge { bytes, bytes_max });
        }
        self.push(bytes, |_| Ok(Write::Checkpoint(data.clone()))).await
    }

    async fn push(
        &self,
        bytes: usize,
        mut write: impl FnMut(&mut TurnState) -> Result<Write, TurnError>,
    ) -> Result<(), TurnError> {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let mut state = self.shared.state();
                if state.over {
                    return Err(TurnError::Over);
                }
                let fits = state.buffer.len() < BUFFER_EVENTS_MAX && state.bytes + bytes <= BUFFER_BYTES_MAX;
                if fits || state.buffer.is_empty() {
                    let write = write(&mut state)?;
                    state.bytes += bytes;
                    state.buffer.push_back(write);
                    self.shared.last_write.store(self.shared.clock.now().unix_millis(), Ordering::Relaxed);
                    drop(state);
                    self.shared.written.notify_one();
                    return Ok(());
                }
            }
            drained.await;
        }
    }
}

impl TurnShared {
    fn check_size(&self, bytes: usize) -> Result<(), TurnError> {
        if bytes > self.event_bytes_max {
            return Err(TurnError::TooLarge { bytes, bytes_max: self.event_bytes_max });
        }
        Ok(())
    }

    /// A message of the agent in this task.
    pub fn message(&self, parts: Vec<wire::Part>) -> Result<Message, TurnError> {
        let message = agent_message((self.new_message_id.0)(), &self.context_id, Some(&self.task_id), parts)?;
        self.check_size(json::to_json(message.as_wire()).len())?;
        Ok(message)
    }
}

/// What is stored must be readable again, however deep it is put.
fn check_metadata(what: &'static str, metadata: Option<&JsonObject>) -> Result<(), TurnError> {
    let violations = metadata.map(rules::metadata_violations).unwrap_or_default();
    if violations.is_empty() { Ok(()) } else { Err(TurnError::Invalid { what, violations }) }
}

/// A message of the agent.
pub(crate) fn agent_message(
    id: longhaul_protocol::MessageId,
    context_id: &ContextId,
    task_id: Option<&TaskId>,
    parts: Vec<wire::Part>,
) -> Result<Message, TurnError> {
    Message::new(wire::Message {
        message_id: id.as_str().to_owned(),
        context_id: context_id.as_str().to_owned(),
        task_id: task_id.map(|id| id.as_str().to_owned()).unwrap_or_default(),
        role: longhaul_protocol::Role::Agent.into(),
        parts,
        ..wire::Message::default()
    })
    .map_err(|violations| TurnError::Invalid { what: "message", violations })
}
