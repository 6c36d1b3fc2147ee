//! The field rules: what a request must hold before anybody acts on it.
//!
//! One table for all bindings, at the end of this file. Each line names a member and its rules, and
//! a rule says what is wrong and what is allowed.

mod check;
mod media_type;
mod path;

use crate::error::FieldViolation;
use crate::ids::{ArtifactId, ContextId, MessageId, TaskId};
use crate::wire;

use check::{
    agent_or_user, data_not_too_deep, each, has_content, id, if_present, known_state_or_none, nested,
    no_control_characters, not_empty, not_negative, not_too_deep, optional_id, page_size, page_size_or_zero, positive,
    present, push_target, required_text, sent_by_user, tenant,
};

pub use media_type::media_type_matches;
pub use path::Path;

/// The most items of a page that a caller can ask for (§3.1.4).
pub const PAGE_SIZE_MAX: i32 = 100;

/// The items of a page when the caller names no number (§3.1.4).
pub const PAGE_SIZE_DEFAULT: i32 = 50;

/// The most bytes of a text that has no limit of its own: a token, a media type, a file name.
pub const TEXT_BYTES_MAX: usize = 4096;

/// How many levels of arrays and objects `data` and `metadata` may have: so many that whatever was
/// accepted can be read back from inside any message that comes to hold it.
pub const DATA_DEPTH_MAX: usize = 119;

/// A message of the wire that has field rules.
pub trait FieldRules {
    /// Adds each breach of a rule to `out`; `at` is the path to this message.
    fn check(&self, at: &Path<'_>, out: &mut Vec<FieldViolation>);

    /// Each breach of a rule, in the order of the proto's members; empty when there is none.
    fn violations(&self) -> Vec<FieldViolation> {
        let mut out = Vec::new();
        self.check(&Path::Root, &mut out);
        out
    }
}

/// What breaks the rules of metadata that stands for itself, beside an event.
#[must_use]
pub fn metadata_violations(metadata: &crate::JsonObject) -> Vec<FieldViolation> {
    let mut out = Vec::new();
    not_too_deep(metadata, &Path::Root.member("metadata"), &mut out);
    out
}

macro_rules! rules {
    ($($message:ident { $($field:ident $json:literal: $($rule:expr),+;)* })+) => {$(
        impl FieldRules for wire::$message {
            fn check(&self, at: &Path<'_>, out: &mut Vec<FieldViolation>) {
                $(
                    let field = at.member($json);
                    $($rule(&self.$field, &field, out);)+
                )*
            }
        }
    )+};
}

rules! {
    Message {
        message_id "messageId": id::<MessageId>;
        context_id "contextId": optional_id::<ContextId>;
        task_id "taskId": optional_id::<TaskId>;
        role "role": agent_or_user;
        parts "parts": not_empty, each(nested);
        metadata "metadata": if_present(not_too_deep);
        reference_task_ids "referenceTaskIds": each(id::<TaskId>);
    }
    Artifact {
        artifact_id "artifactId": id::<ArtifactId>;
        parts "parts": not_empty, each(nested);
        metadata "metadata": if_present(not_too_deep);
    }
    Part {
        // A oneof has no name in JSON: its absence is the part's own.
        content "": has_content;
        content "data": if_present(data_not_too_deep);
        metadata "metadata": if_present(not_too_deep);
        filename "filename": no_control_characters;
        media_type "mediaType": no_control_characters;
    }
    SendMessageRequest {
        tenant "tenant": tenant;
        message "message": present(nested), if_present(sent_by_user);
        configuration "configuration": nested;
        metadata "metadata": if_present(not_too_deep);
    }
    SendMessageConfiguration {
        accepted_output_modes "acceptedOutputModes": each(no_control_characters);
        // The task is the one that the send makes or names, so its id is not asked for.
        task_push_notification_config "taskPushNotificationConfig": push_target;
        history_length "historyLength": not_negative;
    }
    GetTaskRequest {
        tenant "tenant": tenant;
        id "id": id::<TaskId>;
        history_length "historyLength": not_negative;
    }
    ListTasksRequest {
        tenant "tenant": tenant;
        context_id "contextId": optional_id::<ContextId>;
        status "status": known_state_or_none;
        page_size "pageSize": page_size;
        page_token "pageToken": no_control_characters;
        history_length "historyLength": not_negative;
    }
    CancelTaskRequest {
        tenant "tenant": tenant;
        id "id": id::<TaskId>;
    }
    SubscribeToTaskRequest {
        tenant "tenant": tenant;
        id "id": id::<TaskId>;
    }
    // The request of `CreateTaskPushNotificationConfig`.
    TaskPushNotificationConfig {
        tenant "tenant": tenant;
        id "id": no_control_characters;
        task_id "taskId": id::<TaskId>;
        url "url": required_text;
        token "token": no_control_characters;
        authentication "authentication": nested;
    }
    AuthenticationInfo {
        scheme "scheme": required_text;
        credentials "credentials": no_control_characters;
    }
    GetTaskPushNotificationConfigRequest {
        tenant "tenant": tenant;
        task_id "taskId": id::<TaskId>;
        id "id": required_text;
    }
    DeleteTaskPushNotificationConfigRequest {
        tenant "tenant": tenant;
        task_id "taskId": id::<TaskId>;
        id "id": required_text;
    }
    ListTaskPushNotificationConfigsRequest {
        tenant "tenant": tenant;
        task_id "taskId": id::<TaskId>;
        page_size "pageSize": page_size_or_zero;
        page_token "pageToken": no_control_characters;
    }
    GetExtendedAgentCardRequest {
        tenant "tenant": tenant;
    }
    ListArtifactVersionsRequest {
        tenant "tenant": tenant;
        task_id "taskId": id::<TaskId>;
        artifact_id "artifactId": id::<ArtifactId>;
        page_size "pageSize": page_size;
        page_token "pageToken": no_control_characters;
    }
    GetArtifactRequest {
        tenant "tenant": tenant;
        task_id "taskId": id::<TaskId>;
        artifact_id "artifactId": id::<ArtifactId>;
        version "version": positive;
    }
}

#[cfg(test)]
mod tests;
