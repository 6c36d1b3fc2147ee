//! The methods of v0.3 (§3.5.6 and §7 of v0.3).

use bytes::Bytes;
use longhaul_protocol::v0_3::json_rpc::{
    Event, MessageSendParams, PushNotificationConfigParams, Task, TaskIdParams, TaskPushNotificationConfig,
    TaskPushNotificationConfigs, TaskQueryParams,
};
use longhaul_protocol::v0_3::{Form, from_json, in_names_of, to_json};
use longhaul_protocol::{A2aError, wire};

use super::{Answer, no_method, wrong_params};
use crate::parameters::Parameters;
use crate::route::App;
use crate::v0_3::{no_extended_card, push_config, push_configs};
use crate::version::Version;

/// What a request and its errors are read and told as, `F` of v0.3 for `W` of v1.0.
async fn ask<F: Form<W>, W, R>(
    params: &[u8],
    operation: impl AsyncFnOnce(W) -> Result<R, A2aError>,
) -> Result<R, A2aError> {
    let request = from_json::<F, W>(params).map_err(wrong_params)?;
    operation(request).await.map_err(in_names_of::<F, W>)
}

fn result<F: Form<W>, W>(answer: W) -> Answer {
    Answer::Result(to_json::<F, W>(answer))
}

pub(super) async fn dispatch(
    app: &App,
    parameters: &Parameters,
    method: &str,
    params: &[u8],
) -> Result<Answer, A2aError> {
    let operations = &app.operations;
    operations.admit(parameters)?;
    match method {
        "message/send" => {
            let send = async |request| operations.send_message(parameters, request).await;
            ask::<MessageSendParams, _, _>(params, send).await.map(result::<Event, _>)
        }
        "message/stream" => {
            let send = async |request| operations.send_streaming_message(parameters, request).await;
            ask::<MessageSendParams, _, _>(params, send).await.map(Answer::Stream)
        }
        "tasks/get" => {
            let get = async |request| operations.get_task(parameters, request).await;
            ask::<TaskQueryParams, _, _>(params, get).await.map(result::<Task, _>)
        }
        "tasks/cancel" => {
            let cancel = async |request: wire::CancelTaskRequest| operations.cancel_task(parameters, request).await;
            ask::<TaskIdParams, _, _>(params, cancel).await.map(result::<Task, _>)
        }
        "tasks/resubscribe" => {
            let subscribe =
                async |request: wire::SubscribeToTaskRequest| operations.subscribe_to_task(parameters, request).await;
            ask::<TaskIdParams, _, _>(params, subscribe).await.map(Answer::Stream)
        }
        "tasks/pushNotificationConfig/set" => {
            let set = async |config| operations.create_push_config(parameters, config).await;
            ask::<TaskPushNotificationConfig, _, _>(params, set).await.map(result::<TaskPushNotificationConfig, _>)
        }
        "tasks/pushNotificationConfig/get" => {
            let get = async |request| push_config(operations, parameters, request).await;
            ask::<PushNotificationConfigParams, _, _>(params, get).await.map(result::<TaskPushNotificationConfig, _>)
        }
        "tasks/pushNotificationConfig/list" => {
            let list = async |request| push_configs(operations, parameters, request).await;
            ask::<TaskIdParams, _, _>(params, list).await.map(result::<TaskPushNotificationConfigs, _>)
        }
        "tasks/pushNotificationConfig/delete" => {
            let delete = async |request: wire::DeleteTaskPushNotificationConfigRequest| {
                operations.delete_push_config(parameters, request).await
            };
            let deleted = ask::<PushNotificationConfigParams, _, _>(params, delete).await;
            deleted.map(|()| Answer::Result(Bytes::from_static(b"null")))
        }
        "agent/getAuthenticatedExtendedCard" => Err(no_extended_card()),
        _ => Err(no_method(method, Version::V0_3.name())),
    }
}
