//! What can be written down, and what is too long for it.

use bytes::Bytes;
use longhaul_protocol::{to_json, wire};

use super::{LedgerError, NewEntry, Route};

/// The most bytes of an agent's id of a task.
pub(super) const TASK_ID_BYTES_MAX: usize = 2048;
/// The most bytes of a context's or a message's id.
pub(super) const ID_BYTES_MAX: usize = 2048;
const URL_BYTES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 64;
const TENANT_BYTES_MAX: usize = 1024;

/// Refuses a text that has fewer or more bytes than it may have.
pub(super) fn length(field: &'static str, text: &str, min: usize, max: usize) -> Result<(), LedgerError> {
    let problem = if text.len() < min {
        "must not be empty".to_owned()
    } else if text.len() > max {
        format!("must have at most {max} bytes, has {}", text.len())
    } else {
        return Ok(());
    };
    Err(LedgerError::Invalid { field, problem })
}

pub(super) fn route(route: &Route) -> Result<(), LedgerError> {
    length("the card's URL", &route.card, 1, URL_BYTES_MAX)?;
    length("the interface's URL", &route.interface_url, 1, URL_BYTES_MAX)?;
    length("the binding", &route.binding, 1, NAME_BYTES_MAX)?;
    length("the protocol's version", &route.protocol_version, 1, NAME_BYTES_MAX)?;
    length("the tenant", &route.tenant, 0, TENANT_BYTES_MAX)
}

pub(super) fn task_id(id: &str) -> Result<(), LedgerError> {
    length("the task's id", id, 1, TASK_ID_BYTES_MAX)
}

/// A request as it is stored, and what the entry says about it.
pub(super) struct CheckedRequest {
    pub(super) json: Bytes,
    pub(super) message_id: String,
    pub(super) context_id: Option<String>,
    /// The task that the message goes on with.
    pub(super) task_id: Option<String>,
}

pub(super) fn request(request: &wire::SendMessageRequest) -> Result<CheckedRequest, LedgerError> {
    let Some(message) = &request.message else {
        return Err(LedgerError::Invalid { field: "the request", problem: "must have a message".to_owned() });
    };
    length("the message's id", &message.message_id, 1, ID_BYTES_MAX)?;
    length("the context's id", &message.context_id, 0, ID_BYTES_MAX)?;
    length("the task's id", &message.task_id, 0, TASK_ID_BYTES_MAX)?;
    let json = to_json(request);
    if json.len() > NewEntry::REQUEST_BYTES_MAX {
        let problem = format!("must have at most {} bytes, has {}", NewEntry::REQUEST_BYTES_MAX, json.len());
        return Err(LedgerError::Invalid { field: "the request", problem });
    }
    let given = |id: &String| Some(id.clone()).filter(|id| !id.is_empty());
    Ok(CheckedRequest {
        json,
        message_id: message.message_id.clone(),
        context_id: given(&message.context_id),
        task_id: given(&message.task_id),
    })
}
