//! v1.0 → v0.3 → v1.0 keeps everything but what [`Forget`] forgets: the list in `docs/migration.md`.

use std::fmt::Debug;

use longhaul_protocol::v0_3::{self, Form, json_rpc, proto};
use longhaul_protocol::wire;
use proptest::prelude::*;

use crate::any;

/// The dialects of v0.3.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dialect {
    JsonRpc,
    Proto,
}

use Dialect::{JsonRpc, Proto};

/// Takes out of a message what a dialect cannot say.
trait Forget {
    fn forget(&mut self, dialect: Dialect);
}

impl<T: Forget> Forget for Option<T> {
    fn forget(&mut self, dialect: Dialect) {
        self.iter_mut().for_each(|value| value.forget(dialect));
    }
}

impl<T: Forget> Forget for Vec<T> {
    fn forget(&mut self, dialect: Dialect) {
        self.iter_mut().for_each(|value| value.forget(dialect));
    }
}

impl Forget for wire::Part {
    fn forget(&mut self, _: Dialect) {
        match &self.content {
            Some(wire::PartContent::Raw(_) | wire::PartContent::Url(_)) => {}
            Some(wire::PartContent::Text(_) | wire::PartContent::Data(_)) | None => {
                self.filename.clear();
                self.media_type.clear();
            }
        }
        if matches!(&self.content, Some(wire::PartContent::Data(data)) if !data.is_object()) {
            self.metadata = self.metadata.take().filter(|metadata| !metadata.is_empty());
        }
    }
}

impl Forget for wire::Message {
    fn forget(&mut self, dialect: Dialect) {
        self.parts.forget(dialect);
        if dialect == Proto {
            self.reference_task_ids.clear();
        }
    }
}

impl Forget for wire::Artifact {
    fn forget(&mut self, dialect: Dialect) {
        self.parts.forget(dialect);
    }
}

impl Forget for wire::TaskStatus {
    fn forget(&mut self, dialect: Dialect) {
        self.message.forget(dialect);
        // A name that nobody knows is `unknown`, and written in no dialect.
        if self.state == wire::TaskState::UNRECOGNIZED {
            self.state = wire::TaskState::default();
        }
    }
}

/// What JSON-RPC requires is there in any case.
fn required<T: Default>(member: &mut Option<T>, dialect: Dialect) {
    if dialect == JsonRpc {
        member.get_or_insert_default();
    }
}

impl Forget for wire::Task {
    fn forget(&mut self, dialect: Dialect) {
        required(&mut self.status, dialect);
        self.status.forget(dialect);
        self.artifacts.forget(dialect);
        self.history.forget(dialect);
    }
}

impl Forget for wire::StreamResponse {
    fn forget(&mut self, dialect: Dialect) {
        use wire::StreamResponsePayload::*;
        match self.payload.as_mut().unwrap() {
            Task(task) => task.forget(dialect),
            Message(message) => message.forget(dialect),
            StatusUpdate(event) => {
                required(&mut event.status, dialect);
                event.status.forget(dialect);
            }
            ArtifactUpdate(event) => {
                required(&mut event.artifact, dialect);
                event.artifact.forget(dialect);
            }
        }
    }
}

impl Forget for wire::SendMessageResponse {
    fn forget(&mut self, dialect: Dialect) {
        use wire::SendMessageResponsePayload::*;
        match self.payload.as_mut().unwrap() {
            Task(task) => task.forget(dialect),
            Message(message) => message.forget(dialect),
        }
    }
}

impl Forget for wire::TaskPushNotificationConfig {
    fn forget(&mut self, _: Dialect) {
        self.tenant.clear();
        let empty = wire::AuthenticationInfo::default();
        self.authentication = self.authentication.take().filter(|info| *info != empty);
    }
}

impl Forget for wire::SendMessageConfiguration {
    fn forget(&mut self, dialect: Dialect) {
        self.history_length = self.history_length.filter(|length| *length != 0);
        self.task_push_notification_config.forget(dialect);
        // The task is that of the message.
        if let Some(config) = &mut self.task_push_notification_config {
            config.task_id.clear();
        }
    }
}

impl Forget for wire::SendMessageRequest {
    fn forget(&mut self, dialect: Dialect) {
        self.tenant.clear();
        self.message.forget(dialect);
        if dialect == Proto {
            self.configuration.get_or_insert_default();
        }
        self.configuration.forget(dialect);
    }
}

impl Forget for wire::GetTaskRequest {
    fn forget(&mut self, _: Dialect) {
        self.tenant.clear();
        self.history_length = self.history_length.filter(|length| *length != 0);
    }
}

impl Forget for wire::CancelTaskRequest {
    fn forget(&mut self, dialect: Dialect) {
        self.tenant.clear();
        if dialect == Proto {
            self.metadata = None;
        }
    }
}

impl Forget for wire::GetTaskPushNotificationConfigRequest {
    fn forget(&mut self, _: Dialect) {
        self.tenant.clear();
    }
}

impl Forget for wire::ListTaskPushNotificationConfigsRequest {
    fn forget(&mut self, dialect: Dialect) {
        self.tenant.clear();
        if dialect == JsonRpc {
            self.page_size = 0;
            self.page_token.clear();
        }
    }
}

impl Forget for wire::ListTaskPushNotificationConfigsResponse {
    fn forget(&mut self, dialect: Dialect) {
        self.configs.forget(dialect);
        if dialect == JsonRpc {
            self.next_page_token.clear();
        }
    }
}

#[track_caller]
fn check<F: Form<W>, W: Clone + Debug + Forget + PartialEq>(dialect: Dialect, message: &W) {
    let json = v0_3::to_json::<F, W>(message.clone());
    let back = v0_3::from_json::<F, W>(&json).unwrap();
    let mut kept = message.clone();
    kept.forget(dialect);
    assert_eq!(back, kept, "by way of {}", String::from_utf8_lossy(&json));
    // What came through once comes through whole.
    assert_eq!(v0_3::from_json::<F, W>(&v0_3::to_json::<F, W>(back.clone())), Ok(back));
}

proptest! {
    #[test]
    fn an_item_of_a_stream_comes_back(item in any::item()) {
        check::<json_rpc::Event, _>(JsonRpc, &item);
        check::<proto::StreamResponse, _>(Proto, &item);
    }

    #[test]
    fn an_answer_comes_back(answer in any::answer()) {
        check::<json_rpc::Event, _>(JsonRpc, &answer);
        check::<proto::SendMessageResponse, _>(Proto, &answer);
    }

    #[test]
    fn a_send_comes_back(request in any::send()) {
        check::<json_rpc::MessageSendParams, _>(JsonRpc, &request);
        check::<proto::SendMessageRequest, _>(Proto, &request);
    }

    #[test]
    fn a_request_about_a_task_comes_back(get in any::get_task(), cancel in any::cancel()) {
        check::<json_rpc::TaskQueryParams, _>(JsonRpc, &get);
        check::<proto::GetTaskRequest, _>(Proto, &get);
        check::<json_rpc::TaskIdParams, _>(JsonRpc, &cancel);
        check::<proto::CancelTaskRequest, _>(Proto, &cancel);
    }

    #[test]
    fn a_push_config_comes_back(config in any::push_config(), page in any::push_configs()) {
        check::<json_rpc::TaskPushNotificationConfig, _>(JsonRpc, &config);
        check::<proto::TaskPushNotificationConfig, _>(Proto, &config);
        check::<proto::CreateTaskPushNotificationConfigRequest, _>(Proto, &config);
        check::<proto::PushConfigBody, _>(Proto, &config);
        check::<json_rpc::TaskPushNotificationConfigs, _>(JsonRpc, &page);
        check::<proto::ListTaskPushNotificationConfigResponse, _>(Proto, &page);
    }

    #[test]
    fn a_request_about_push_configs_comes_back(get in any::get_push_config(), list in any::list_push_configs()) {
        check::<json_rpc::PushNotificationConfigParams, _>(JsonRpc, &get);
        check::<proto::GetTaskPushNotificationConfigRequest, _>(Proto, &get);
        check::<json_rpc::TaskIdParams, _>(JsonRpc, &list);
        check::<proto::ListTaskPushNotificationConfigRequest, _>(Proto, &list);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = v0_3::from_json::<json_rpc::Event, wire::StreamResponse>(&bytes);
        let _ = v0_3::from_json::<json_rpc::MessageSendParams, wire::SendMessageRequest>(&bytes);
        let _ = v0_3::from_json::<proto::SendMessageRequest, wire::SendMessageRequest>(&bytes);
    }
}
