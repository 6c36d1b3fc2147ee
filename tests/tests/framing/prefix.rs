//! Everything below a configured prefix (design section 7).

use http::Uri;
use longhaul_protobuf::a2a;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_tests::http::{Connection, Request};
use longhaul_tests::server::Folder;
use longhaul_tests::task::{id_of, say};
use longhaul_tests::{Channel, Server, Store};
use serde_json::json;

use crate::{exchange, request_text, status};

const PREFIX: &str = "/agents/one";

async fn server() -> (Server, Connection, Folder) {
    let folder = Folder::new();
    let path = folder.path().join("longhaul.toml");
    std::fs::write(&path, format!("[server]\nprefix = \"{PREFIX}\"\n")).unwrap();
    let server = Server::start_with(Store::Memory, &["--config", path.to_str().unwrap()]).await;
    let connection = Connection::open(server.addr()).await.unwrap();
    (server, connection, folder)
}

#[tokio::test]
async fn each_binding_is_below_the_prefix() {
    let (_server, mut connection, _folder) = server().await;
    for path in [PREFIX.to_owned(), format!("{PREFIX}/")] {
        let request = Request::new("POST", &path).v1().with("Content-Type", "application/json");
        let request = request.body(request_text("ListTasks", &json!({})));
        let answer = exchange(&mut connection, &request).await;
        assert_eq!(answer.json()["result"]["totalSize"], 0, "{path}: {}", answer.text());
    }
    for tenant in ["", "/acme"] {
        let path = format!("{PREFIX}{tenant}/message:send");
        let answer = exchange(&mut connection, &Request::new("POST", &path).v1().json(&say("echo"))).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let path = format!("{PREFIX}{tenant}/tasks/{}", id_of(&answer.json()));
        let read = exchange(&mut connection, &Request::get(&path).v1()).await;
        assert_eq!(read.json(), answer.json()["task"]);
    }
}

#[tokio::test]
async fn grpc_is_at_its_address_and_below_the_prefix() {
    let (server, mut connection, _folder) = server().await;
    let path = format!("{PREFIX}/message:send");
    exchange(&mut connection, &Request::new("POST", &path).v1().json(&say("echo"))).await;
    let channel = Channel::open(server.addr()).await.unwrap();
    // The card names host and port alone, as the proto says, so the plain path has to do.
    for origin in [channel.origin.to_string(), format!("{}agents/one", channel.origin)] {
        let origin: Uri = origin.parse().unwrap();
        let mut client = A2aServiceClient::with_origin(channel.clone(), origin.clone());
        let mut request = tonic::Request::new(a2a::ListTasksRequest::default());
        request.metadata_mut().insert("a2a-version", "1.0".parse().unwrap());
        let page = client.list_tasks(request).await;
        let page = page.unwrap_or_else(|status| panic!("{origin}: {status:?}"));
        assert_eq!(page.into_inner().total_size, 1);
    }
}

#[tokio::test]
async fn beside_the_prefix_there_is_only_card_and_health() {
    let (server, mut connection, _folder) = server().await;
    for path in ["/tasks", "/agents/tasks", "/agents/onetasks", "/message:send", "/agents"] {
        let answer = exchange(&mut connection, &Request::get(path).v1()).await;
        status(&answer, 404, "NOT_FOUND", "ROUTE_NOT_FOUND");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(exchange(&mut connection, &Request::get(path)).await.status, 200);
    }
    let card = exchange(&mut connection, &Request::get("/.well-known/agent-card.json")).await.json();
    let below = format!("http://{}{PREFIX}", server.addr());
    for interface in &card["supportedInterfaces"].as_array().unwrap()[..2] {
        let url = interface["url"].as_str().unwrap();
        assert_eq!(url.trim_end_matches('/'), below, "{card}");
    }
}
