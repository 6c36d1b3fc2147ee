//! The messages of v0.3's protobuf package `a2a.v1`, in their ProtoJSON form: the bodies of HTTP+JSON. What gRPC sends
//! becomes these in `longhaul-protobuf`. Numbers and names are those of the proto that v0.3's SDKs use.
//!
//! Read as v1.0's messages are, see [`json`](crate::json). Agent cards are not among them: HTTP+JSON sends the card of
//! JSON-RPC.

mod data;
mod event;
mod name;
mod request;
mod state;

pub use data::{Artifact, DataPart, FilePart, FilePartFile, Message, Part, PartPart, Task, TaskStatus};
pub use event::{
    SendMessageResponse, SendMessageResponsePayload, StreamResponse, StreamResponsePayload, TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
};
pub use request::{
    AuthenticationInfo, CancelTaskRequest, CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigResponse, PushConfigBody,
    PushNotificationConfig, SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig,
    TaskSubscriptionRequest,
};
pub use state::{NamedState, TaskState};
