//! The objects of v0.3's JSON-RPC, named as its specification names them.
//!
//! Names are read in camelCase and in snake_case, unknown members are ignored, `null` is absent. Names of roles and kinds must
//! be known. `kind` may be missing where the other members say what the object is.

mod data;
mod event;
mod name;
mod request;

pub use data::{Artifact, File, FileContent, Message, Part, Task, TaskStatus};
pub use event::{Event, EventPayload, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
pub use name::{Kind, PartKind, Role, TaskState, Time};
pub use request::{
    MessageSendConfiguration, MessageSendParams, PushNotificationAuthenticationInfo, PushNotificationConfig,
    PushNotificationConfigParams, TaskIdParams, TaskPushNotificationConfig, TaskPushNotificationConfigs,
    TaskQueryParams,
};
