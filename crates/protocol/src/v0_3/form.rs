//! What each form of v0.3 can do, and the ways in and out that all of them share.

use bytes::Bytes;

use crate::error::{A2aError, ErrorCode, FieldViolation};
use crate::json::{self, JsonError, ProtoJson};

use super::fault::inside;

/// An object of v0.3 that stands for the v1.0 message `W`.
pub trait Form<W>: ProtoJson {
    /// Says in v0.3 what `message` says, as far as v0.3 can.
    fn from_v1(message: W) -> Self;

    /// Says the same in v1.0.
    ///
    /// What v1.0 requires is not asked for: the field rules do that, and [`in_names_of`] translates their findings.
    ///
    /// # Errors
    ///
    /// When the object is none of v0.3, although each of its members is one. The path is in the names of v0.3.
    fn into_v1(self) -> Result<W, JsonError>;

    /// The breach of a rule of v1.0, told in the names of v0.3.
    #[must_use]
    fn violation(breach: FieldViolation) -> FieldViolation {
        breach
    }
}

/// Reads an object of v0.3 as the v1.0 message that it stands for.
///
/// # Errors
///
/// [`JsonError`] says what is wrong and where, in the names of v0.3.
pub fn from_json<F: Form<W>, W>(json: &[u8]) -> Result<W, JsonError> {
    json::from_json::<F>(json)?.into_v1()
}

/// Writes a v1.0 message as an object of v0.3, without white space.
#[must_use]
pub fn to_json<F: Form<W>, W>(message: W) -> Bytes {
    json::to_json(&F::from_v1(message))
}

/// Tells an error about a request of v1.0 in the names of the v0.3 object that it came as.
#[must_use]
pub fn in_names_of<F: Form<W>, W>(mut error: A2aError) -> A2aError {
    if error.violations.is_empty() {
        return error;
    }
    let violations: Vec<FieldViolation> = error.violations.iter().cloned().map(F::violation).collect();
    // The message tells the first violation, unless somebody had more to say.
    let is_told = error.code == ErrorCode::InvalidArgument
        && error.message == A2aError::invalid_argument(std::mem::take(&mut error.violations)).message;
    if is_told {
        error.message = A2aError::invalid_argument(violations.clone()).message;
    }
    error.violations = violations;
    error
}

/// Translates a list; the path of a fault begins with the item's index.
pub(crate) fn each<F: Form<W>, W>(items: Vec<F>, name: &'static str) -> Result<Vec<W>, JsonError> {
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| item.into_v1().map_err(|error| inside(name)(inside(&format!("[{index}]"))(error))))
        .collect()
}

/// Translates a list towards v0.3.
pub(crate) fn all<F: Form<W>, W>(items: Vec<W>) -> Vec<F> {
    items.into_iter().map(F::from_v1).collect()
}

/// Translates a member that may be absent.
pub(super) fn optional<F: Form<W>, W>(member: Option<F>, name: &'static str) -> Result<Option<W>, JsonError> {
    member.map(Form::into_v1).transpose().map_err(inside(name))
}
