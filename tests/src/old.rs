//! A client of v0.3's three bindings with the face of v1.0: what is asked is told in v0.3, and what is answered in v1.0 again, by
//! the translation that the vectors hold. So a scenario of v1.0 can be run through v0.3.

use std::net::SocketAddr;

use longhaul_protobuf::a2a_v0_3 as proto_v0_3;
use longhaul_protobuf::a2a_v0_3::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::convert::v0_3::Older;
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::v0_3::{self, Form, json_rpc, proto};
use longhaul_protocol::wire;
use serde_json::{Value, json};
use tonic::Request as GrpcRequest;

use crate::grpc::{first_sequence, read_params, refused_v0_3, request, to_value};
use crate::http::{Connection, Head, Request};
use crate::http_binding::escape;
use crate::sse::{Item, Items};
use crate::{Binding, Call, CallError, Channel, Event, Operation, Refusal};

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Speech {
    /// 1.0.
    V1_0,
    /// 0.3, where it has the operation.
    V0_3,
}

/// The method of an operation in JSON-RPC; none for those that v0.3 lacks.
#[must_use]
pub fn method(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::SendMessage => Some("message/send"),
        Operation::SendStreamingMessage => Some("message/stream"),
        Operation::GetTask => Some("tasks/get"),
        Operation::CancelTask => Some("tasks/cancel"),
        Operation::SubscribeToTask => Some("tasks/resubscribe"),
        Operation::CreateTaskPushNotificationConfig => Some("tasks/pushNotificationConfig/set"),
        Operation::GetTaskPushNotificationConfig => Some("tasks/pushNotificationConfig/get"),
        Operation::ListTaskPushNotificationConfigs => Some("tasks/pushNotificationConfig/list"),
        Operation::DeleteTaskPushNotificationConfig => Some("tasks/pushNotificationConfig/delete"),
        Operation::ListTasks
        | Operation::GetExtendedAgentCard
        | Operation::ListArtifactVersions
        | Operation::GetArtifact => None,
    }
}

/// The parameters of a call, told in v0.3.
fn old<F: Form<W>, W: ProtoJson>(call: &Call) -> Value {
    let message: W = read_params(call);
    serde_json::from_slice(&v0_3::to_json::<F, W>(message)).expect("it was just written")
}

/// A value of v0.3, told in v1.0.
fn new<F: Form<W>, W: ProtoJson>(value: &Value) -> Value {
    let message = v0_3::from_json::<F, W>(value.to_string().as_bytes())
        .unwrap_or_else(|error| panic!("the server's answer is none of v0.3: {error}: {value}"));
    to_value(&message)
}

/// The parameters of a call in JSON-RPC.
fn rpc_params(call: &Call) -> Value {
    use json_rpc as old_of;
    match call.operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            old::<old_of::MessageSendParams, wire::SendMessageRequest>(call)
        }
        Operation::GetTask => old::<old_of::TaskQueryParams, wire::GetTaskRequest>(call),
        Operation::CancelTask => old::<old_of::TaskIdParams, wire::CancelTaskRequest>(call),
        Operation::SubscribeToTask => old::<old_of::TaskIdParams, wire::SubscribeToTaskRequest>(call),
        Operation::CreateTaskPushNotificationConfig => {
            old::<old_of::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(call)
        }
        Operation::GetTaskPushNotificationConfig => {
            old::<old_of::PushNotificationConfigParams, wire::GetTaskPushNotificationConfigRequest>(call)
        }
        Operation::ListTaskPushNotificationConfigs => {
            old::<old_of::TaskIdParams, wire::ListTaskPushNotificationConfigsRequest>(call)
        }
        Operation::DeleteTaskPushNotificationConfig => {
            old::<old_of::PushNotificationConfigParams, wire::DeleteTaskPushNotificationConfigRequest>(call)
        }
        other => panic!("v0.3 has no {other:?}"),
    }
}

/// The result of a call in JSON-RPC, in v1.0.
fn rpc_result(operation: Operation, result: &Value) -> Value {
    use json_rpc as old_of;
    match operation {
        Operation::SendMessage => new::<old_of::Event, wire::SendMessageResponse>(result),
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            new::<old_of::Event, wire::StreamResponse>(result)
        }
        Operation::GetTask | Operation::CancelTask => new::<old_of::Task, wire::Task>(result),
        Operation::CreateTaskPushNotificationConfig | Operation::GetTaskPushNotificationConfig => {
            new::<old_of::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(result)
        }
        Operation::ListTaskPushNotificationConfigs => {
            new::<old_of::TaskPushNotificationConfigs, wire::ListTaskPushNotificationConfigsResponse>(result)
        }
        _ => {
            assert_eq!(*result, Value::Null, "a delete has no result");
            json!({})
        }
    }
}

/// The body of a call in HTTP+JSON, if it has one.
fn http_body(call: &Call) -> Option<Value> {
    match call.operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            Some(old::<proto::SendMessageRequest, wire::SendMessageRequest>(call))
        }
        Operation::CancelTask => Some(old::<proto::CancelTaskRequest, wire::CancelTaskRequest>(call)),
        Operation::CreateTaskPushNotificationConfig => {
            Some(old::<proto::CreateTaskPushNotificationConfigRequest, wire::TaskPushNotificationConfig>(call))
        }
        _ => None,
    }
}

/// The result of a call in HTTP+JSON, in v1.0.
fn http_result(operation: Operation, result: &Value) -> Value {
    match operation {
        Operation::SendMessage => new::<proto::SendMessageResponse, wire::SendMessageResponse>(result),
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            new::<proto::StreamResponse, wire::StreamResponse>(result)
        }
        Operation::GetTask | Operation::CancelTask => new::<proto::Task, wire::Task>(result),
        Operation::CreateTaskPushNotificationConfig | Operation::GetTaskPushNotificationConfig => {
            new::<proto::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(result)
        }
        Operation::ListTaskPushNotificationConfigs => {
            new::<proto::ListTaskPushNotificationConfigResponse, wire::ListTaskPushNotificationConfigsResponse>(result)
        }
        _ => result.clone(),
    }
}

fn http_request(call: &Call) -> Request {
    let (method, route) = call.operation.route();
    let id_of = |name: &str| escape(call.params[name].as_str().unwrap_or_default());
    let path = route.replace("{id}", &id_of("id")).replace("{taskId}", &id_of("taskId"));
    let mut target = format!("/v1{path}");
    if let Some(length) = call.params.get("historyLength") {
        target.push_str(&format!("?historyLength={length}"));
    }
    let request = Request::new(method, &target);
    match http_body(call) {
        Some(body) => request.json(&body),
        None => request,
    }
}

/// A client of v0.3; each call has a connection of its own.
#[derive(Debug)]
pub struct OldClient {
    binding: Binding,
    addr: SocketAddr,
}

impl OldClient {
    pub(crate) fn new(binding: Binding, addr: SocketAddr) -> Self {
        Self { binding, addr }
    }

    fn request(&self, call: &Call) -> Request {
        let request = match self.binding {
            Binding::HttpJson => http_request(call),
            Binding::JsonRpc | Binding::Grpc => {
                let method = method(call.operation).expect("v0.3 has it");
                let body = json!({"jsonrpc": "2.0", "id": "old", "method": method, "params": rpc_params(call)});
                Request::new("POST", "/").json(&body)
            }
        };
        call.headers.iter().fold(request, |request, (name, value)| request.with(name, value))
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<Value, CallError> {
        // Callers of v0.3 name no version.
        let call = &call.clone().version(None);
        if self.binding == Binding::Grpc {
            return grpc_call(Channel::open(self.addr).await?, call).await;
        }
        let mut connection = Connection::open(self.addr).await?;
        let answer = connection.exchange(&self.request(call)).await?;
        assert_eq!(answer.head.media_type(), "application/json", "{answer:?}");
        read_answer(self.binding, call.operation, &answer.head, &answer.json())
    }

    pub(crate) async fn open(&self, call: &Call) -> Result<OldStream, CallError> {
        let call = &call.clone().version(None);
        if self.binding == Binding::Grpc {
            return grpc_open(Channel::open(self.addr).await?, call).await;
        }
        let mut connection = Connection::open(self.addr).await?;
        // Whoever asks for events alone is told a refusal as one.
        let accepted = "text/event-stream, application/json";
        let head = connection.send(&self.request(call).with("Accept", accepted)).await?;
        if head.media_type() != "text/event-stream" {
            let answer = connection.answer(head).await?;
            let result = read_answer(self.binding, call.operation, &answer.head, &answer.json())?;
            panic!("a stream was answered with one result: {result}");
        }
        assert_eq!((head.status, head.header("a2a-version")), (200, Some("0.3")), "{head:?}");
        let (binding, operation, items) = (self.binding, call.operation, Items::new(connection));
        Ok(OldStream { is_over: false, from: From::Http { binding, operation, items } })
    }
}

/// Takes the result, or the error, out of an answer.
fn read_answer(binding: Binding, operation: Operation, head: &Head, body: &Value) -> Result<Value, CallError> {
    assert_eq!(head.header("a2a-version"), Some("0.3"), "{head:?} {body}");
    match (binding, body.get("error")) {
        (Binding::HttpJson, None) => Ok(http_result(operation, body)),
        (Binding::HttpJson, Some(_)) => Err(CallError::Refused(Refusal::of_http_v0_3(head.status, body))),
        (_, None) => Ok(rpc_result(operation, &body["result"])),
        (_, Some(error)) => Err(CallError::Refused(Refusal::of_json_rpc(head.status, error))),
    }
}

/// A stream of v0.3. It has to end with the item that says so, and with none before.
#[derive(Debug)]
pub struct OldStream {
    is_over: bool,
    from: From,
}

#[derive(Debug)]
enum From {
    Http { binding: Binding, operation: Operation, items: Items },
    Grpc { sequence: Option<u64>, items: tonic::Streaming<proto_v0_3::StreamResponse> },
}

impl OldStream {
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CallError> {
        let next = match &mut self.from {
            From::Http { binding, operation, items } => http_item(*binding, *operation, items).await?,
            From::Grpc { sequence, items } => grpc_item(sequence, items).await?,
        };
        let Some((event, is_final)) = next else { return Ok(None) };
        assert!(!self.is_over, "an item after the final one: {event:?}");
        self.is_over = is_final;
        Ok(Some(event))
    }
}

async fn http_item(
    binding: Binding,
    operation: Operation,
    items: &mut Items,
) -> Result<Option<(Event, bool)>, CallError> {
    loop {
        match items.next().await? {
            None => return Ok(None),
            Some(Item::Comment(_)) => {}
            Some(Item::Event { id, data: text }) => {
                let item: Value = serde_json::from_str(&text).expect("an event holds JSON");
                let (data, is_final) = match binding {
                    Binding::HttpJson => (http_result(operation, &item), &item["statusUpdate"]["final"]),
                    _ => (rpc_result(operation, &item["result"]), &item["result"]["final"]),
                };
                let sequence = id.map(|id| id.parse().expect("an event id is a number"));
                let is_final = is_final == true;
                return Ok(Some((Event { sequence, data, text }, is_final)));
            }
        }
    }
}

async fn grpc_item(
    sequence: &mut Option<u64>,
    items: &mut tonic::Streaming<proto_v0_3::StreamResponse>,
) -> Result<Option<(Event, bool)>, CallError> {
    let Some(item) = items.message().await.map_err(refused_v0_3)? else { return Ok(None) };
    let is_final = match &item.payload {
        Some(proto_v0_3::stream_response::Payload::StatusUpdate(update)) => update.r#final,
        _ => false,
    };
    let data = to_value::<wire::StreamResponse>(&item.into_v1().expect("the server's item is one of v0.3"));
    let number = *sequence;
    *sequence = number.map(|number| number + 1);
    Ok(Some((Event { sequence: number, text: data.to_string(), data }, is_final)))
}

type GrpcClient = A2aServiceClient<Channel>;

fn grpc_request<O: Older<W>, W: ProtoJson>(call: &Call) -> GrpcRequest<O> {
    request(call, O::from_v1(read_params::<W>(call)))
}

fn grpc_answer<O: Older<W>, W: ProtoJson>(
    answer: Result<tonic::Response<O>, tonic::Status>,
) -> Result<Value, CallError> {
    let answer = answer.map_err(refused_v0_3)?;
    let version = answer.metadata().get("a2a-version").and_then(|version| version.to_str().ok());
    assert_eq!(version, Some("0.3"));
    Ok(to_value::<W>(&answer.into_inner().into_v1().expect("the server's answer is one of v0.3")))
}

fn grpc_client(channel: Channel) -> GrpcClient {
    let origin = channel.origin.clone();
    A2aServiceClient::with_origin(channel, origin)
}

async fn grpc_call(channel: Channel, call: &Call) -> Result<Value, CallError> {
    use proto_v0_3 as old_of;
    let mut client = grpc_client(channel);
    match call.operation {
        Operation::SendMessage => {
            let request = grpc_request::<old_of::SendMessageRequest, wire::SendMessageRequest>(call);
            grpc_answer::<_, wire::SendMessageResponse>(client.send_message(request).await)
        }
        Operation::GetTask => {
            let request = grpc_request::<old_of::GetTaskRequest, wire::GetTaskRequest>(call);
            grpc_answer::<_, wire::Task>(client.get_task(request).await)
        }
        Operation::CancelTask => {
            let request = grpc_request::<old_of::CancelTaskRequest, wire::CancelTaskRequest>(call);
            grpc_answer::<_, wire::Task>(client.cancel_task(request).await)
        }
        Operation::CreateTaskPushNotificationConfig => {
            let request =
                grpc_request::<old_of::CreateTaskPushNotificationConfigRequest, wire::TaskPushNotificationConfig>(call);
            let made = client.create_task_push_notification_config(request).await;
            grpc_answer::<_, wire::TaskPushNotificationConfig>(made)
        }
        Operation::GetTaskPushNotificationConfig => {
            let request = grpc_request::<
                old_of::GetTaskPushNotificationConfigRequest,
                wire::GetTaskPushNotificationConfigRequest,
            >(call);
            let read = client.get_task_push_notification_config(request).await;
            grpc_answer::<_, wire::TaskPushNotificationConfig>(read)
        }
        Operation::ListTaskPushNotificationConfigs => {
            let request = grpc_request::<
                old_of::ListTaskPushNotificationConfigRequest,
                wire::ListTaskPushNotificationConfigsRequest,
            >(call);
            let page = client.list_task_push_notification_config(request).await;
            grpc_answer::<_, wire::ListTaskPushNotificationConfigsResponse>(page)
        }
        Operation::DeleteTaskPushNotificationConfig => {
            let request = grpc_request::<
                old_of::DeleteTaskPushNotificationConfigRequest,
                wire::DeleteTaskPushNotificationConfigRequest,
            >(call);
            let deleted = client.delete_task_push_notification_config(request).await;
            deleted.map(|_| json!({})).map_err(refused_v0_3)
        }
        other => panic!("{other:?} is no call of v0.3"),
    }
}

async fn grpc_open(channel: Channel, call: &Call) -> Result<OldStream, CallError> {
    let mut client = grpc_client(channel);
    let answer = match call.operation {
        Operation::SendStreamingMessage => {
            let request = grpc_request::<proto_v0_3::SendMessageRequest, wire::SendMessageRequest>(call);
            client.send_streaming_message(request).await
        }
        _ => {
            let request = grpc_request::<proto_v0_3::TaskSubscriptionRequest, wire::SubscribeToTaskRequest>(call);
            client.task_subscription(request).await
        }
    };
    let answer = answer.map_err(refused_v0_3)?;
    let sequence = first_sequence(answer.metadata());
    Ok(OldStream { is_over: false, from: From::Grpc { sequence, items: answer.into_inner() } })
}
