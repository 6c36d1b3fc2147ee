//! What both dialects share: how a few things of v1.0 are said in v0.3.

use serde_json::Value;

use crate::JsonObject;
use crate::state::TaskState;
use crate::wire;

/// The member of a part's metadata by which v1.0's SDKs mark data that is no object.
const WRAPPED: &str = "data_part_compat";

/// The only member of the object that stands for such data.
const VALUE: &str = "value";

/// Data for v0.3, where it must be an object, and the metadata of its part. Anything else is put into an object, and
/// marked.
pub(super) fn wrap_data(data: Value, metadata: Option<JsonObject>) -> (JsonObject, Option<JsonObject>) {
    match data {
        Value::Object(object) => (object, metadata),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let mut metadata = metadata.unwrap_or_default();
            metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
            (JsonObject::from_iter([(VALUE.to_owned(), data)]), Some(metadata))
        }
    }
}

/// Data of v0.3, taken out of its object if it is marked so, and the metadata of its part without the mark.
pub(super) fn unwrap_data(mut object: JsonObject, metadata: Option<JsonObject>) -> (Value, Option<JsonObject>) {
    if let Some(metadata) = &metadata
        && metadata.get(WRAPPED) == Some(&Value::Bool(true))
        && object.len() == 1
        && let Some(value) = object.remove(VALUE)
    {
        let mut metadata = metadata.clone();
        metadata.shift_remove(WRAPPED);
        return (value, (!metadata.is_empty()).then_some(metadata));
    }
    (Value::Object(object), metadata)
}

/// Whether a status is the last of a turn: v0.3 ends its streams there. One that asks for an authorization is not, since
/// the agent goes on by itself.
pub(super) fn is_final(status: Option<&wire::TaskStatus>) -> bool {
    match status.and_then(|status| status.state.known()) {
        Some(TaskState::InputRequired) => true,
        Some(state) => state.is_terminal(),
        None => false,
    }
}

/// How many messages of the history are wanted. To v0.3, 0 is no limit.
pub(super) fn history_length(length: Option<i32>) -> Option<i32> {
    length.filter(|length| *length != 0)
}

/// The scheme of v1.0 for the schemes that v0.3 lists: the first. None is no authentication, if there are no credentials
/// either.
pub(super) fn authentication(schemes: Vec<String>, credentials: String) -> Option<wire::AuthenticationInfo> {
    let scheme = schemes.into_iter().next().unwrap_or_default();
    let is_none = scheme.is_empty() && credentials.is_empty();
    (!is_none).then_some(wire::AuthenticationInfo { scheme, credentials })
}

/// The schemes of v0.3 for the scheme of v1.0.
pub(super) fn schemes(scheme: String) -> Vec<String> {
    if scheme.is_empty() { Vec::new() } else { vec![scheme] }
}
