//! The caller's side: what a call costs beside a bare one, and how many streams one process follows.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use longhaul_client::Client;
use longhaul_client::card::Binding;
use longhaul_protobuf::a2a;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protocol::{Role, wire};

use crate::follow::{Follower, connect};
use crate::load::Window;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::run::Run;
use crate::stats::{Latencies, as_f64};

/// Streams followed at once.
const STREAMS: usize = 4000;
/// Requests at once while tasks are begun and ended.
const REQUESTS: usize = 32;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    calls(run, figures).await?;
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        streams(run, figures, binding).await?;
    }
    Ok(())
}

fn say(text: &str, task: Option<&wire::Task>) -> wire::SendMessageRequest {
    let message = wire::Message {
        role: Role::User.into(),
        parts: vec![wire::Part::text(text)],
        task_id: task.map(|task| task.id.clone()).unwrap_or_default(),
        context_id: task.map(|task| task.context_id.clone()).unwrap_or_default(),
        ..wire::Message::default()
    };
    wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() }
}

async fn send(client: &Client, text: &str, task: Option<&wire::Task>) -> Result<wire::Task> {
    match client.send_message(say(text, task)).await?.payload {
        Some(wire::SendMessageResponsePayload::Task(task)) => Ok(task),
        other => bail!("the demo agent makes a task, and answered {other:?}"),
    }
}

/// `GetTask`, one after the other over one connection, through the client and by bare means.
async fn calls(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let server = run.server(StoreKind::Memory, None).await?;
    let addr = server.addr();
    let id = send(&connect(addr, Binding::JsonRpc).await?, "echo hello", None).await?.id;
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let client = connect(addr, binding).await?;
        let bare = Bare::new(addr, binding, &id)?;
        let (mut ours, mut theirs) = (Latencies::default(), Latencies::default());
        for _ in 0..run.options.rounds {
            let window = Window::after_warm_up(run.options.window);
            while !window.is_over() {
                let begun = Instant::now();
                let request = wire::GetTaskRequest { id: id.clone(), ..wire::GetTaskRequest::default() };
                client.get_task(request).await?;
                window.record(begun, &mut ours);
            }
            let window = Window::after_warm_up(run.options.window);
            while !window.is_over() {
                let begun = Instant::now();
                bare.call().await?;
                window.record(begun, &mut theirs);
            }
        }
        let (ours, theirs) = (ours.p50_ms(), theirs.p50_ms());
        let name = binding.wire_name();
        figures.push(Figure::new(format!("{name}: bare GetTask ({}), p50", bare.name()), theirs, "ms"));
        figures.push(Figure::new(format!("{name}: GetTask, p50"), ours, "ms").ratio(
            theirs,
            "bare",
            Bound::AtMost,
            1.5,
        ));
        figures.push(Figure::new(format!("{name}: added by the client, p50"), (ours - theirs) * 1e3, "µs"));
    }
    server.stop().await
}

/// The same call by the library that one would take without ours.
enum Bare {
    Reqwest { client: reqwest::Client, request: reqwest::Request },
    Tonic { client: A2aServiceClient<legacy::Client<HttpConnector, tonic::body::Body>>, id: String },
}

impl Bare {
    fn new(addr: SocketAddr, binding: Binding, id: &str) -> Result<Self> {
        let client = || reqwest::Client::builder().no_proxy().build();
        Ok(match binding {
            Binding::JsonRpc => {
                let client = client()?;
                let params = serde_json::json!({"id": id});
                let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params});
                let request = client
                    .post(format!("http://{addr}/"))
                    .header("A2A-Version", "1.0")
                    .header("Content-Type", "application/json")
                    .body(body.to_string());
                Self::Reqwest { request: request.build()?, client }
            }
            Binding::HttpJson => {
                let client = client()?;
                let request = client.get(format!("http://{addr}/tasks/{id}")).header("A2A-Version", "1.0").build()?;
                Self::Reqwest { client, request }
            }
            Binding::Grpc => {
                let mut connector = HttpConnector::new();
                connector.set_nodelay(true);
                let http = legacy::Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
                let origin = format!("http://{addr}").parse()?;
                Self::Tonic { client: A2aServiceClient::with_origin(http, origin), id: id.to_owned() }
            }
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Reqwest { .. } => "reqwest",
            Self::Tonic { .. } => "tonic",
        }
    }

    async fn call(&self) -> Result<()> {
        match self {
            Self::Reqwest { client, request } => {
                let request = request.try_clone().context("its body is bytes")?;
                client.execute(request).await?.error_for_status()?.bytes().await?;
            }
            Self::Tonic { client, id } => {
                let request = a2a::GetTaskRequest { id: id.clone(), ..a2a::GetTaskRequest::default() };
                let mut request = tonic::Request::new(request);
                request.metadata_mut().insert("a2a-version", tonic::metadata::MetadataValue::from_static("1.0"));
                client.clone().get_task(request).await?;
            }
        }
        Ok(())
    }
}

/// Another process follows many tasks that wait; then all are ended, and each stream must tell of it.
async fn streams(run: &mut Run, figures: &mut Vec<Figure>, binding: Binding) -> Result<()> {
    let server = run.server(StoreKind::Memory, None).await?;
    let client = connect(server.addr(), binding).await?;
    let tasks = each(&client, vec!["input"; STREAMS], async |client, text| send(client, text, None).await).await?;
    let mut follower = Follower::start(server.addr(), binding)?;
    for task in &tasks {
        follower.tell(&task.id).await?;
    }
    let opened = follower.opened().await?;
    let name = binding.wire_name();
    let memory = opened.growth_mb * 1e3 / as_f64(STREAMS);
    figures.push(Figure::new(format!("{name}: memory for each of {STREAMS} streams"), memory, "kB"));
    let rate = as_f64(STREAMS) / opened.seconds;
    figures.push(Figure::new(format!("{name}: streams opened one after the other"), rate, "/s"));
    let begun = Instant::now();
    each(&client, tasks, async |client, task| send(client, "echo done", Some(&task)).await).await?;
    let completed = follower.completed().await?;
    let figure = Figure::new(format!("{name}: streams that told of their end"), as_f64(completed), "");
    figures.push(figure.limit("streams", Bound::AtLeast, as_f64(STREAMS)));
    figures.push(Figure::new(format!("{name}: all tasks ended and told of in"), begun.elapsed().as_secs_f64(), "s"));
    server.stop().await
}

/// Does something for each of `inputs`, a few at once.
async fn each<I: Send + 'static>(
    client: &Client,
    inputs: Vec<I>,
    act: impl AsyncFn(&Client, I) -> Result<wire::Task>,
) -> Result<Vec<wire::Task>> {
    let mut done = Vec::new();
    let mut inputs = inputs.into_iter();
    loop {
        let some: Vec<I> = inputs.by_ref().take(REQUESTS).collect();
        if some.is_empty() {
            return Ok(done);
        }
        let acts = some.into_iter().map(|input| act(client, input));
        done.extend(futures_util::future::try_join_all(acts).await?);
    }
}
