//! An agent of gRPC that writes down what comes with each call, and answers each with the same task, completed.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longhaul_protobuf::a2a::{self, a2a_service_server as server};
use longhaul_protocol::from_json;
use longhaul_protocol::wire;
use longhaul_tests::hostile::{CONTEXT_ID, TASK_ID, card, task};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::codegen::{Service as _, tokio_stream};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::agents::{bearer, require_scheme};

/// One call.
#[derive(Clone, Debug)]
pub struct Called {
    /// The operation.
    pub operation: &'static str,
    /// The tenant in the request message.
    pub tenant: String,
    metadata: MetadataMap,
}

impl Called {
    /// The value of a key of its metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(|value| value.to_str().unwrap())
    }
}

#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Called>>>);

/// The agent, until it is dropped.
#[derive(Debug)]
pub struct GrpcAgent {
    addr: SocketAddr,
    recorder: Recorder,
    _serving: JoinSet<()>,
}

impl GrpcAgent {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (addr, recorder) = (listener.local_addr().unwrap(), Recorder::default());
        let service = server::A2aServiceServer::new(recorder.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                connections.spawn(async move {
                    let answer = service_fn(move |request| {
                        let mut service = service.clone();
                        async move { service.call(request).await }
                    });
                    // A client that goes away ends its connection, and nothing else.
                    let _ =
                        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { addr, recorder, _serving: serving }
    }

    /// A card that leads to it and nowhere else, with a bearer token as its scheme.
    pub fn card(&self, tenant: Option<&str>) -> Value {
        let mut card = card("");
        let mut interface = json!({"url": self.addr.to_string(), "protocolBinding": "GRPC", "protocolVersion": "1.0"});
        if let Some(tenant) = tenant {
            interface["tenant"] = tenant.into();
        }
        card["supportedInterfaces"] = json!([interface]);
        require_scheme(&mut card, "tokens", bearer());
        card
    }

    /// The calls, in order.
    pub fn called(&self) -> Vec<Called> {
        self.recorder.0.lock().unwrap().clone()
    }
}

impl Recorder {
    fn note<T>(&self, operation: &'static str, request: &Request<T>, tenant: &str) {
        let called = Called { operation, tenant: tenant.to_owned(), metadata: request.metadata().clone() };
        self.0.lock().unwrap().push(called);
    }
}

fn completed() -> wire::Task {
    from_json(task("TASK_STATE_COMPLETED").to_string().as_bytes()).unwrap()
}

fn config(id: &str) -> a2a::TaskPushNotificationConfig {
    let config = json!({"taskId": TASK_ID, "id": id, "url": "https://hooks.example.com/"});
    from_json::<wire::TaskPushNotificationConfig>(config.to_string().as_bytes()).unwrap().into()
}

type Items = Pin<Box<dyn tokio_stream::Stream<Item = Result<a2a::StreamResponse, Status>> + Send>>;

fn items() -> Response<Items> {
    let item = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::Task(completed())) };
    Response::new(Box::pin(tokio_stream::once(Ok(item.into()))))
}

#[tonic::async_trait]
impl server::A2aService for Recorder {
    type SendStreamingMessageStream = Items;
    type SubscribeToTaskStream = Items;

    async fn send_message(
        &self,
        request: Request<a2a::SendMessageRequest>,
    ) -> Result<Response<a2a::SendMessageResponse>, Status> {
        self.note("SendMessage", &request, &request.get_ref().tenant);
        let answer = wire::SendMessageResponse { payload: Some(wire::SendMessageResponsePayload::Task(completed())) };
        Ok(Response::new(answer.into()))
    }

    async fn send_streaming_message(
        &self,
        request: Request<a2a::SendMessageRequest>,
    ) -> Result<Response<Items>, Status> {
        self.note("SendStreamingMessage", &request, &request.get_ref().tenant);
        Ok(items())
    }

    async fn get_task(&self, request: Request<a2a::GetTaskRequest>) -> Result<Response<a2a::Task>, Status> {
        self.note("GetTask", &request, &request.get_ref().tenant);
        Ok(Response::new(completed().into()))
    }

    async fn list_tasks(
        &self,
        request: Request<a2a::ListTasksRequest>,
    ) -> Result<Response<a2a::ListTasksResponse>, Status> {
        self.note("ListTasks", &request, &request.get_ref().tenant);
        let answer = wire::ListTasksResponse { tasks: vec![completed()], ..wire::ListTasksResponse::default() };
        Ok(Response::new(answer.into()))
    }

    async fn cancel_task(&self, request: Request<a2a::CancelTaskRequest>) -> Result<Response<a2a::Task>, Status> {
        self.note("CancelTask", &request, &request.get_ref().tenant);
        Ok(Response::new(completed().into()))
    }

    async fn subscribe_to_task(
        &self,
        request: Request<a2a::SubscribeToTaskRequest>,
    ) -> Result<Response<Items>, Status> {
        self.note("SubscribeToTask", &request, &request.get_ref().tenant);
        Ok(items())
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<a2a::TaskPushNotificationConfig>,
    ) -> Result<Response<a2a::TaskPushNotificationConfig>, Status> {
        self.note("CreateTaskPushNotificationConfig", &request, &request.get_ref().tenant);
        Ok(Response::new(config("made")))
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<a2a::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<a2a::TaskPushNotificationConfig>, Status> {
        self.note("GetTaskPushNotificationConfig", &request, &request.get_ref().tenant);
        Ok(Response::new(config(&request.get_ref().id)))
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<a2a::ListTaskPushNotificationConfigsRequest>,
    ) -> Result<Response<a2a::ListTaskPushNotificationConfigsResponse>, Status> {
        self.note("ListTaskPushNotificationConfigs", &request, &request.get_ref().tenant);
        Ok(Response::new(wire::ListTaskPushNotificationConfigsResponse::default().into()))
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<a2a::GetExtendedAgentCardRequest>,
    ) -> Result<Response<a2a::AgentCard>, Status> {
        self.note("GetExtendedAgentCard", &request, &request.get_ref().tenant);
        let card: wire::AgentCard = from_json(card("http://127.0.0.1:1").to_string().as_bytes()).unwrap();
        Ok(Response::new(card.into()))
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<a2a::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        self.note("DeleteTaskPushNotificationConfig", &request, &request.get_ref().tenant);
        Ok(Response::new(()))
    }
}

#[tokio::test]
async fn a2acli_tx_005_what_goes_with_a_call_goes_with_it_over_grpc_too() {
    let params = "x-trace-id:abc123";
    for tenant in [Some("acme Ü/1"), None] {
        let agent = GrpcAgent::start().await;
        let cli = crate::cli::Cli::of("./card.json").with("A2ACLI_BEARER", "t0ken");
        cli.file("card.json", agent.card(tenant).to_string());
        for (args, operation) in [
            (&["send", "hello"][..], "SendStreamingMessage"),
            (&["send", "hello", "--async"], "SendMessage"),
            (&["task", "get", TASK_ID], "GetTask"),
            (&["task", "list"], "ListTasks"),
            (&["task", "cancel", TASK_ID], "CancelTask"),
            (&["task", "subscribe", TASK_ID], "SubscribeToTask"),
            (&["card", "get", "--extended"], "GetExtendedAgentCard"),
            (
                &["task", "push-config", "create", TASK_ID, "https://hooks.example.com/"],
                "CreateTaskPushNotificationConfig",
            ),
            (&["task", "push-config", "get", TASK_ID, "c"], "GetTaskPushNotificationConfig"),
            (&["task", "push-config", "list", TASK_ID], "ListTaskPushNotificationConfigs"),
            (&["task", "push-config", "delete", TASK_ID, "c"], "DeleteTaskPushNotificationConfig"),
        ] {
            let before = agent.called().len();
            let done = cli.run(&[args, &["--svc-param", params]].concat()).await;
            done.exits(0);
            let called = agent.called().split_off(before);
            assert!(called.iter().any(|call| call.operation == operation), "{operation}: {called:?}\n{}", done.told());
            for call in called {
                assert_eq!(call.tenant, tenant.unwrap_or_default(), "{operation}");
                assert_eq!(call.metadata("a2a-version"), Some("1.0"), "{operation}");
                assert_eq!(call.metadata("authorization"), Some("Bearer t0ken"), "{operation}");
                assert_eq!(call.metadata("x-trace-id"), Some("abc123"), "{operation}");
            }
        }
        let text = cli.run(&["task", "get", TASK_ID]).await.exits(0).text();
        assert_eq!(text.standing(), (TASK_ID.to_owned(), CONTEXT_ID.to_owned(), "TASK_STATE_COMPLETED".to_owned()));
    }
}
