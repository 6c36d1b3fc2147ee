use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use longhaul_protocol::wire::{StreamResponse, StreamResponsePayload};
use longhaul_protocol::{Timestamp, json, v0_3};

use super::expectations::{ID, one};
use super::memory::{Entry, Memory, Name};
use super::{Expectations, Order, Refused, Unprotected};

/// Receives the push notifications of one address. Clones are the same receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    expectations: Arc<Expectations>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    memory: Memory,
    /// The tasks that news is expected of; `None`: of any.
    tasks: Option<HashSet<String>>,
}

/// An event that was received, and is to be handled: [`Delivery::done`] when it was. One that is dropped before may come again.
#[derive(Debug)]
pub struct Delivery {
    /// The task that it is of; empty for a message of none.
    pub task_id: String,
    /// What `Webhook-Id` says: the same when it comes again.
    pub id: Option<String>,
    /// Its number in the log of its task, if its sender says it.
    pub sequence: Option<u64>,
    /// Where it stands among those before.
    pub order: Order,
    /// What it says.
    pub payload: StreamResponsePayload,
    handling: Option<(Name, Receiver)>,
}

impl Receiver {
    /// A receiver that takes what is as expected, of any task until [`Receiver::expect`] is called.
    ///
    /// # Errors
    ///
    /// [`Unprotected`] when nothing is asked for.
    pub fn new(expectations: Expectations) -> Result<Self, Unprotected> {
        if expectations.is_unprotected() {
            return Err(Unprotected);
        }
        let state = State { memory: Memory::new(expectations.remembered_max), tasks: None };
        Ok(Self { expectations: Arc::new(expectations), state: Arc::new(Mutex::new(state)) })
    }

    /// Expects news of this task, and from now on only of those that were named so.
    pub fn expect(&self, task_id: &str) {
        self.state().tasks.get_or_insert_default().insert(task_id.to_owned());
    }

    /// Expects no news of this task any more.
    pub fn forget(&self, task_id: &str) {
        self.state().tasks.get_or_insert_default().remove(task_id);
    }

    /// Says that the delivery of this id, and those before it of the same config, were handled: by a process before this one, which
    /// kept the [`Delivery::id`] with what it did.
    pub fn restore(&self, task_id: &str, id: &str) {
        self.state().memory.restore(&Name::read(id, task_id));
    }

    /// How large a body may be, in bytes: more need not be read.
    #[must_use]
    pub fn body_bytes_max(&self) -> usize {
        self.expectations.body_bytes_max
    }

    /// Looks at a request. `Ok(None)`: it was handled before, and is to be answered as if it were now.
    ///
    /// # Errors
    ///
    /// [`Refused`], which knows what to answer.
    pub fn receive(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<Option<Delivery>, Refused> {
        self.expectations.check(headers, body, now)?;
        let payload = read(body)?;
        let task_id = task_of(&payload).to_owned();
        let mut state = self.state();
        if state.tasks.as_ref().is_some_and(|tasks| !tasks.contains(&task_id)) {
            return Err(Refused::UnknownTask);
        }
        let id = one(headers, ID).filter(|id| !id.is_empty()).map(str::to_owned);
        let Some(name) = id.as_deref().map(|id| Name::read(id, &task_id)) else {
            let (sequence, order) = (None, Order::Unknown);
            return Ok(Some(Delivery { task_id, id, sequence, order, payload, handling: None }));
        };
        let order = match state.memory.begin(&name) {
            Entry::Begun(order) => order,
            Entry::Known => return Ok(None),
            Entry::Busy => return Err(Refused::Busy),
        };
        let sequence = match &name {
            Name::Numbered { sequence, .. } => Some(*sequence),
            Name::Id(_) => None,
        };
        Ok(Some(Delivery { task_id, id, sequence, order, payload, handling: Some((name, self.clone())) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery {
    /// It was handled: when it comes again it is not handed over.
    pub fn done(mut self) {
        if let Some((name, receiver)) = self.handling.take() {
            receiver.state().memory.done(&name);
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some((name, receiver)) = self.handling.take() {
            receiver.state().memory.undo(&name);
        }
    }
}

/// Reads a body. One that holds nothing of v1.0 may be of an agent that speaks v0.3: it pushes the object itself.
fn read(body: &[u8]) -> Result<StreamResponsePayload, Refused> {
    let response: StreamResponse = json::from_json(body).map_err(Refused::Body)?;
    let older = || v0_3::from_json::<v0_3::json_rpc::Event, StreamResponse>(body).ok()?.payload;
    response.payload.or_else(older).ok_or(Refused::Empty)
}

fn task_of(payload: &StreamResponsePayload) -> &str {
    match payload {
        StreamResponsePayload::Task(task) => &task.id,
        StreamResponsePayload::Message(message) => &message.task_id,
        StreamResponsePayload::StatusUpdate(update) => &update.task_id,
        StreamResponsePayload::ArtifactUpdate(update) => &update.task_id,
    }
}
