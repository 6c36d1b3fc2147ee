//! Conversions between the messages of v0.3's package `a2a.v1` and v1.0's data model, by way of
//! `longhaul_protocol::v0_3::proto`, where the one translation is.

mod card;
mod data;
mod request;

use longhaul_protocol::v0_3::{Form, proto};

use crate::a2a_v0_3;
use crate::convert::ConvertError;

pub use card::{card_from_v1, card_into_v1};

/// A message of `a2a.v1` that stands for the v1.0 message `W`.
pub trait Older<W>: Sized {
    /// Says in v0.3 what `message` says, as far as v0.3 can.
    fn from_v1(message: W) -> Self;

    /// Says the same in v1.0. What v1.0 requires is not asked for.
    ///
    /// # Errors
    ///
    /// [`ConvertError`] names the field as v0.3's JSON does.
    fn into_v1(self) -> Result<W, ConvertError>;
}

macro_rules! older {
    ($($message:ident)+) => {$(
        impl<W> Older<W> for a2a_v0_3::$message
        where
            proto::$message: Form<W>,
        {
            fn from_v1(message: W) -> Self {
                <proto::$message as Form<W>>::from_v1(message).into()
            }

            fn into_v1(self) -> Result<W, ConvertError> {
                Ok(proto::$message::try_from(self)?.into_v1()?)
            }
        }
    )+};
}

older! {
    Task TaskStatus Part Message Artifact TaskStatusUpdateEvent TaskArtifactUpdateEvent
    SendMessageResponse StreamResponse SendMessageRequest SendMessageConfiguration PushNotificationConfig
    TaskPushNotificationConfig GetTaskRequest CancelTaskRequest TaskSubscriptionRequest
    GetTaskPushNotificationConfigRequest DeleteTaskPushNotificationConfigRequest
    CreateTaskPushNotificationConfigRequest ListTaskPushNotificationConfigRequest
    ListTaskPushNotificationConfigResponse
}
