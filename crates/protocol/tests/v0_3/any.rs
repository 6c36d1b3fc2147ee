//! Any message of v1.0: also what v0.3 cannot say.

use bytes::Bytes;
use longhaul_protocol::{JsonObject, Timestamp, wire};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

/// A text, often empty: an absent one.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z/ é]{1,6}"]
}

/// An id as the rules allow it.
fn id() -> impl Strategy<Value = String> {
    "[a-z0-9:-]{1,8}"
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((text(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Option<JsonObject>> {
    option::of(vec((text(), json()), 0..3).prop_map(|members| members.into_iter().collect()))
}

fn state() -> impl Strategy<Value = wire::TaskState> {
    prop_oneof![8 => (0..=8).prop_map(wire::TaskState), 1 => Just(wire::TaskState::UNRECOGNIZED)]
}

fn timestamp() -> impl Strategy<Value = Option<Timestamp>> {
    let times = (0_i64..4_000_000_000, 0..1_000_000_000);
    option::of(times.prop_map(|(seconds, nanos)| Timestamp::from_parts(seconds, nanos).unwrap()))
}

fn content() -> impl Strategy<Value = wire::PartContent> {
    prop_oneof![
        text().prop_map(wire::PartContent::Text),
        vec(any::<u8>(), 0..9).prop_map(|bytes| wire::PartContent::Raw(Bytes::from(bytes))),
        text().prop_map(wire::PartContent::Url),
        json().prop_map(wire::PartContent::Data),
    ]
}

prop_compose! {
    fn part()(content in content(), metadata in metadata(), filename in text(), media_type in text()) -> wire::Part {
        wire::Part { content: Some(content), metadata, filename, media_type }
    }
}

prop_compose! {
    pub fn message()(
        (message_id, context_id, task_id) in (text(), text(), text()),
        role in (1..=2).prop_map(wire::Role),
        parts in vec(part(), 0..3),
        metadata in metadata(),
        extensions in vec(text(), 0..2),
        reference_task_ids in vec(text(), 0..2),
    ) -> wire::Message {
        wire::Message { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids }
    }
}

prop_compose! {
    fn status()(state in state(), message in option::of(message()), timestamp in timestamp()) -> wire::TaskStatus {
        wire::TaskStatus { state, message, timestamp }
    }
}

prop_compose! {
    fn artifact()(
        (artifact_id, name, description) in (text(), text(), text()),
        parts in vec(part(), 0..3),
        metadata in metadata(),
        extensions in vec(text(), 0..2),
    ) -> wire::Artifact {
        wire::Artifact { artifact_id, name, description, parts, metadata, extensions }
    }
}

prop_compose! {
    fn task()(
        (id, context_id) in (text(), text()),
        status in option::of(status()),
        artifacts in vec(artifact(), 0..2),
        history in vec(message(), 0..2),
        metadata in metadata(),
    ) -> wire::Task {
        wire::Task { id, context_id, status, artifacts, history, metadata }
    }
}

prop_compose! {
    fn status_update()(
        (task_id, context_id) in (text(), text()),
        status in option::of(status()),
        metadata in metadata(),
    ) -> wire::TaskStatusUpdateEvent {
        wire::TaskStatusUpdateEvent { task_id, context_id, status, metadata }
    }
}

prop_compose! {
    fn artifact_update()(
        (task_id, context_id) in (text(), text()),
        artifact in option::of(artifact()),
        (append, last_chunk) in any::<(bool, bool)>(),
        metadata in metadata(),
    ) -> wire::TaskArtifactUpdateEvent {
        wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata }
    }
}

pub fn item() -> impl Strategy<Value = wire::StreamResponse> {
    use wire::StreamResponsePayload::*;
    let payload = prop_oneof![
        task().prop_map(Task),
        message().prop_map(Message),
        status_update().prop_map(StatusUpdate),
        artifact_update().prop_map(ArtifactUpdate),
    ];
    payload.prop_map(|payload| wire::StreamResponse { payload: Some(payload) })
}

pub fn answer() -> impl Strategy<Value = wire::SendMessageResponse> {
    use wire::SendMessageResponsePayload::*;
    let payload = prop_oneof![task().prop_map(Task), message().prop_map(Message)];
    payload.prop_map(|payload| wire::SendMessageResponse { payload: Some(payload) })
}

prop_compose! {
    /// The task is named as the rules allow it: v0.3's names of resources hold its id.
    pub fn push_config()(
        (tenant, task_id) in (text(), id()),
        id in prop_oneof![Just(String::new()), id()],
        (url, token) in (text(), text()),
        authentication in option::of((text(), text())),
    ) -> wire::TaskPushNotificationConfig {
        let authentication = authentication.map(|(scheme, credentials)| wire::AuthenticationInfo { scheme, credentials });
        wire::TaskPushNotificationConfig { tenant, id, task_id, url, token, authentication }
    }
}

prop_compose! {
    fn configuration()(
        accepted_output_modes in vec(text(), 0..2),
        task_push_notification_config in option::of(push_config()),
        history_length in option::of(-1..4),
        return_immediately in any::<bool>(),
    ) -> wire::SendMessageConfiguration {
        wire::SendMessageConfiguration {
            accepted_output_modes,
            task_push_notification_config,
            history_length,
            return_immediately,
        }
    }
}

prop_compose! {
    pub fn send()(
        tenant in text(),
        message in option::of(message()),
        configuration in option::of(configuration()),
        metadata in metadata(),
    ) -> wire::SendMessageRequest {
        wire::SendMessageRequest { tenant, message, configuration, metadata }
    }
}

prop_compose! {
    pub fn get_task()(tenant in text(), id in id(), history_length in option::of(-1..4)) -> wire::GetTaskRequest {
        wire::GetTaskRequest { tenant, id, history_length }
    }
}

prop_compose! {
    pub fn cancel()(tenant in text(), id in id(), metadata in metadata()) -> wire::CancelTaskRequest {
        wire::CancelTaskRequest { tenant, id, metadata }
    }
}

prop_compose! {
    pub fn get_push_config()(
        tenant in text(),
        task_id in id(),
        id in id(),
    ) -> wire::GetTaskPushNotificationConfigRequest {
        wire::GetTaskPushNotificationConfigRequest { tenant, task_id, id }
    }
}

prop_compose! {
    pub fn list_push_configs()(
        (tenant, task_id) in (text(), id()),
        page_size in 0..9,
        page_token in text(),
    ) -> wire::ListTaskPushNotificationConfigsRequest {
        wire::ListTaskPushNotificationConfigsRequest { tenant, task_id, page_size, page_token }
    }
}

prop_compose! {
    pub fn push_configs()(
        configs in vec(push_config(), 0..3),
        next_page_token in text(),
    ) -> wire::ListTaskPushNotificationConfigsResponse {
        wire::ListTaskPushNotificationConfigsResponse { configs, next_page_token }
    }
}
