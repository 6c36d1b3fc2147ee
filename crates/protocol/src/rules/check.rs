//! The rules that the table is made of. Each takes a member, its path, and the list of breaches.

use std::fmt;

use crate::JsonObject;
use crate::error::FieldViolation;
use crate::ids::{ArtifactId, ContextId, InvalidId, MessageId, TaskId, Tenant};
use crate::state::{Role, TaskState};
use crate::wire;

use super::{DATA_DEPTH_MAX, FieldRules, PAGE_SIZE_MAX, Path, TEXT_BYTES_MAX};

type Violations = Vec<FieldViolation>;

#[cold]
fn refuse(at: &Path<'_>, out: &mut Violations, description: impl fmt::Display) {
    out.push(FieldViolation { field: at.to_string(), description: description.to_string() });
}

/// The ids whose form the table can ask for.
pub(super) trait CheckedId {
    fn check_text(text: &str) -> Result<(), InvalidId>;
}

macro_rules! checked_ids {
    ($($id:ty)+) => {$(
        impl CheckedId for $id {
            fn check_text(text: &str) -> Result<(), InvalidId> {
                Self::check(text)
            }
        }
    )+};
}

checked_ids! { TaskId ContextId MessageId ArtifactId }

/// A valid id.
pub(super) fn id<I: CheckedId>(value: &impl AsRef<str>, at: &Path<'_>, out: &mut Violations) {
    if let Err(invalid) = I::check_text(value.as_ref()) {
        refuse(at, out, invalid.problem);
    }
}

/// A valid id, or none.
pub(super) fn optional_id<I: CheckedId>(value: &impl AsRef<str>, at: &Path<'_>, out: &mut Violations) {
    if !value.as_ref().is_empty() {
        id::<I>(value, at, out);
    }
}

/// A valid tenant, or none.
pub(super) fn tenant(value: &impl AsRef<str>, at: &Path<'_>, out: &mut Violations) {
    if let Err(invalid) = Tenant::check(value.as_ref()) {
        refuse(at, out, invalid.problem);
    }
}

/// A text of at most [`TEXT_BYTES_MAX`] bytes without control characters; may be empty.
pub(super) fn no_control_characters(value: &impl AsRef<str>, at: &Path<'_>, out: &mut Violations) {
    let value = value.as_ref();
    if value.chars().any(char::is_control) {
        refuse(at, out, "must not hold control characters");
    } else if value.len() > TEXT_BYTES_MAX {
        refuse(at, out, format_args!("must have at most {TEXT_BYTES_MAX} bytes, has {}", value.len()));
    }
}

/// The same, and not empty.
pub(super) fn required_text(value: &impl AsRef<str>, at: &Path<'_>, out: &mut Violations) {
    if value.as_ref().is_empty() {
        refuse(at, out, "must not be empty");
    }
    no_control_characters(value, at, out);
}

/// A list with at least one item.
pub(super) fn not_empty<T>(value: &[T], at: &Path<'_>, out: &mut Violations) {
    if value.is_empty() {
        refuse(at, out, "must have at least one item");
    }
}

/// A list of which each item keeps a rule.
pub(super) fn each<T>(rule: impl Fn(&T, &Path<'_>, &mut Violations)) -> impl Fn(&Vec<T>, &Path<'_>, &mut Violations) {
    move |value, at, out| {
        for (index, item) in value.iter().enumerate() {
            rule(item, &at.item(index), out);
        }
    }
}

/// A member that must be there and keep a rule.
pub(super) fn present<T>(
    rule: impl Fn(&T, &Path<'_>, &mut Violations),
) -> impl Fn(&Option<T>, &Path<'_>, &mut Violations) {
    move |value, at, out| match value {
        Some(value) => rule(value, at, out),
        None => refuse(at, out, "is required"),
    }
}

/// A member that keeps a rule, or is absent.
pub(super) fn if_present<T>(
    rule: impl Fn(&T, &Path<'_>, &mut Violations),
) -> impl Fn(&Option<T>, &Path<'_>, &mut Violations) {
    move |value, at, out| {
        if let Some(value) = value {
            rule(value, at, out);
        }
    }
}

/// A message that keeps its own rules, or is absent.
pub(super) fn nested<T: FieldRules>(value: &T, at: &Path<'_>, out: &mut Violations) {
    value.check(at, out);
}

impl<T: FieldRules> FieldRules for Option<T> {
    fn check(&self, at: &Path<'_>, out: &mut Violations) {
        if let Some(value) = self {
            value.check(at, out);
        }
    }
}

/// A known role.
pub(super) fn agent_or_user(value: &wire::Role, at: &Path<'_>, out: &mut Violations) {
    match (value.known(), value.0) {
        (Some(_), _) => {}
        (None, 0) => refuse(at, out, "is required, must be ROLE_USER or ROLE_AGENT"),
        (None, number) => refuse(at, out, format_args!("must be ROLE_USER or ROLE_AGENT, not {number}")),
    }
}

/// A message that a caller may send.
pub(super) fn sent_by_user(value: &wire::Message, at: &Path<'_>, out: &mut Violations) {
    if value.role.known() == Some(Role::Agent) {
        refuse(&at.member("role"), out, "must be ROLE_USER in a request, not ROLE_AGENT");
    }
}

/// A part with one of its contents.
pub(super) fn has_content(value: &Option<wire::PartContent>, at: &Path<'_>, out: &mut Violations) {
    if value.is_none() {
        refuse(at, out, "must have one of text, raw, url, data");
    }
}

/// A known state, or none.
pub(super) fn known_state_or_none(value: &wire::TaskState, at: &Path<'_>, out: &mut Violations) {
    if value.0 != 0 && value.known().is_none() {
        let names = TaskState::ALL.map(TaskState::wire_name).join(", ");
        refuse(at, out, format_args!("must be one of {names}, not {}", value.0));
    }
}

/// A number of at least 0, or none.
pub(super) fn not_negative(value: &Option<i32>, at: &Path<'_>, out: &mut Violations) {
    if let Some(number @ ..0) = value {
        refuse(at, out, format_args!("must not be negative, is {number}"));
    }
}

/// A number of at least 1, or none.
pub(super) fn positive(value: &Option<i64>, at: &Path<'_>, out: &mut Violations) {
    if let Some(number @ ..1) = value {
        refuse(at, out, format_args!("must be at least 1, is {number}"));
    }
}

/// The size of a page, or none.
pub(super) fn page_size(value: &Option<i32>, at: &Path<'_>, out: &mut Violations) {
    if let Some(number) = value
        && !(1..=PAGE_SIZE_MAX).contains(number)
    {
        refuse(at, out, format_args!("must be between 1 and {PAGE_SIZE_MAX}, is {number}"));
    }
}

/// The size of a page where the proto cannot tell 0 from none.
pub(super) fn page_size_or_zero(value: &i32, at: &Path<'_>, out: &mut Violations) {
    if *value != 0 {
        page_size(&Some(*value), at, out);
    }
}

/// A push config as it comes with a send: as in the table, but the task need not be named.
pub(super) fn push_target(value: &Option<wire::TaskPushNotificationConfig>, at: &Path<'_>, out: &mut Violations) {
    let Some(config) = value else { return };
    tenant(&config.tenant, &at.member("tenant"), out);
    no_control_characters(&config.id, &at.member("id"), out);
    optional_id::<TaskId>(&config.task_id, &at.member("taskId"), out);
    required_text(&config.url, &at.member("url"), out);
    no_control_characters(&config.token, &at.member("token"), out);
    nested(&config.authentication, &at.member("authentication"), out);
}

/// An object of at most [`DATA_DEPTH_MAX`] levels.
pub(super) fn not_too_deep(value: &JsonObject, at: &Path<'_>, out: &mut Violations) {
    let inside = value.values().map(depth).max().unwrap_or(0);
    refuse_depth(1 + inside, at, out);
}

/// Content that is not `data`, or data of at most [`DATA_DEPTH_MAX`] levels.
pub(super) fn data_not_too_deep(content: &wire::PartContent, at: &Path<'_>, out: &mut Violations) {
    if let wire::PartContent::Data(value) = content {
        refuse_depth(depth(value), at, out);
    }
}

fn refuse_depth(levels: usize, at: &Path<'_>, out: &mut Violations) {
    if levels > DATA_DEPTH_MAX {
        let allowed = format_args!("must have at most {DATA_DEPTH_MAX} levels, has {levels}");
        refuse(at, out, allowed);
    }
}

/// The levels of arrays and objects in a value. It was parsed, so it is not deep enough to exhaust the stack.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => 0,
    }
}
