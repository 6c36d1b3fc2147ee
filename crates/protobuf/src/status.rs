//! An A2A error as a gRPC status with details (A2A §10.6), and back.
//!
//! The numbers and reasons are those of `longhaul_protocol::ErrorCode`; this module only encodes.
//! The details travel in one trailer, and common clients give up on a call whose trailers pass 8 KiB:
//! so the message is cut at [`MESSAGE_BYTES_MAX`] and field violations past
//! [`VIOLATIONS_BYTES_MAX`] are left out.

use std::time::Duration;

use bytes::Bytes;
use longhaul_protocol::{A2aError, ERROR_DOMAIN, ErrorCode, FieldViolation, v0_3};
use prost::{Message, Name};
use prost_types::Any;
use tonic::{Code, Status};

use crate::rpc;

/// The longest message of a status, in bytes of UTF-8; the rest is cut off.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// The most bytes of encoded field violations in one status. The first is always sent.
pub const VIOLATIONS_BYTES_MAX: usize = 2048;

/// What precedes the name of a message in the type of a detail.
const TYPE_PREFIX: &str = "type.googleapis.com/";

/// Encodes `error` as the status that ends a call.
#[must_use]
pub fn encode(error: &A2aError) -> Status {
    finish(encode_details(error))
}

/// Encodes `error` as the status that ends a call of v0.3: its message begins with the name of the error, by which alone
/// old clients tell errors of one code apart.
#[must_use]
pub fn encode_v0_3(error: &A2aError) -> Status {
    let code = v0_3::error::row(error.code).grpc.number();
    let message = cut(&v0_3::error::to_grpc_message(error), MESSAGE_BYTES_MAX).to_owned();
    finish(rpc::Status { code, message, ..encode_details(error) })
}

fn finish(status: rpc::Status) -> Status {
    let details = Bytes::from(status.encode_to_vec());
    Status::with_details(Code::from_i32(status.code), status.message, details)
}

/// Encodes `error` as the message inside the trailer `grpc-status-details-bin`.
///
/// Its details are an `ErrorInfo`, a `BadRequest` when fields were wrong, and a `RetryInfo` when the
/// error says when to try again.
#[must_use]
pub fn encode_details(error: &A2aError) -> rpc::Status {
    let row = error.code.row();
    let mut details = vec![detail(&rpc::ErrorInfo {
        reason: row.reason.to_owned(),
        domain: ERROR_DOMAIN.to_owned(),
        metadata: error.metadata.iter().cloned().collect(),
    })];
    if !error.violations.is_empty() {
        details.push(detail(&bad_request(&error.violations)));
    }
    if let Some(delay) = error.retry_after {
        details.push(detail(&rpc::RetryInfo {
            // A delay that protobuf cannot hold is not one of ours.
            retry_delay: prost_types::Duration::try_from(delay).ok(),
        }));
    }
    rpc::Status { code: row.grpc.number(), message: cut(&error.message, MESSAGE_BYTES_MAX).to_owned(), details }
}

/// Reads the A2A error out of a status that ended a call.
///
/// `None` when the status has no details, or details of another kind of server: then only its code
/// and message are known.
#[must_use]
pub fn decode(status: &Status) -> Option<A2aError> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let info: rpc::ErrorInfo = find(&details)?;
    if info.domain != ERROR_DOMAIN {
        return None;
    }
    let code = ErrorCode::ALL.iter().copied().find(|code| code.row().reason == info.reason)?;
    let mut error = A2aError::new(code, status.message());
    for (key, value) in info.metadata {
        error = error.with_metadata(key, value);
    }
    if let Some(bad) = find::<rpc::BadRequest>(&details) {
        error.violations = bad
            .field_violations
            .into_iter()
            .map(|violation| FieldViolation { field: violation.field, description: violation.description })
            .collect();
    }
    let retry = find::<rpc::RetryInfo>(&details).and_then(|retry| retry.retry_delay);
    if let Some(delay) = retry.and_then(|delay| Duration::try_from(delay).ok()) {
        error = error.with_retry_after(delay);
    }
    Some(error)
}

/// Reads the A2A error out of a status that ended a call of v0.3.
///
/// `None` when neither its details nor its message name one: then only its code and message are known.
#[must_use]
pub fn decode_v0_3(status: &Status) -> Option<A2aError> {
    let named = v0_3::error::from_grpc_message(status.message());
    match (decode(status), named) {
        (Some(mut detailed), Some(named)) => {
            detailed.message = named.message;
            Some(detailed)
        }
        (detailed, named) => detailed.or(named),
    }
}

fn bad_request(violations: &[FieldViolation]) -> rpc::BadRequest {
    let mut bad = rpc::BadRequest::default();
    let mut room = VIOLATIONS_BYTES_MAX;
    for violation in violations {
        let violation = rpc::bad_request::FieldViolation {
            field: cut(&violation.field, VIOLATIONS_BYTES_MAX / 4).to_owned(),
            description: cut(&violation.description, VIOLATIONS_BYTES_MAX / 2).to_owned(),
        };
        let Some(left) = room.checked_sub(violation.encoded_len()) else {
            break;
        };
        room = left;
        bad.field_violations.push(violation);
    }
    bad
}

fn detail<M: Message + Name>(message: &M) -> Any {
    Any { type_url: type_url::<M>(), value: message.encode_to_vec() }
}

fn find<M: Message + Name + Default>(details: &[Any]) -> Option<M> {
    let type_url = type_url::<M>();
    let detail = details.iter().find(|detail| detail.type_url == type_url)?;
    M::decode(detail.value.as_slice()).ok()
}

fn type_url<M: Name>() -> String {
    format!("{TYPE_PREFIX}{}", M::full_name())
}

/// The longest start of `text` of at most `bytes_max` bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}
