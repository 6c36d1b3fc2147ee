//! Which version a request is of, and what a caller is told when it is none that is served.

use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::a2a_v0_3::a2a_service_client::A2aServiceClient as OldClient;
use longhaul_protobuf::{a2a, a2a_v0_3, status};
use longhaul_protocol::ErrorCode;
use longhaul_tests::http::Request;
use longhaul_tests::{Channel, Server};
use serde_json::{Value, json};

use crate::{exchange, rpc_request, server, versioned};

/// Both versions, v1.0 alone, v0.3 alone.
const SERVED: [&str; 3] = ["", "server.versions = [\"1.0\"]", "server.versions = [\"0.3\"]"];

/// What an answer says: the code of its error, or the list of versions if it is about them; then the version it was made in.
fn told(code: Option<i64>, details: &Value, version: Option<&str>) -> String {
    let list = details[0]["metadata"]["supportedVersions"].as_str();
    let what = match (code, list) {
        (Some(-32009), Some(list)) => format!("only {list}"),
        (Some(code), _) => code.to_string(),
        (None, _) => "answered".to_owned(),
    };
    format!("{what} in {}", version.unwrap_or("none"))
}

#[tokio::test]
async fn json_rpc_goes_by_the_header_and_then_by_the_name_of_the_method() {
    // A task that is not there: -32001 is the answer of a method that was called.
    #[rustfmt::skip]
    let rows = [
        // version,  method,        both,                      v1.0 alone,          v0.3 alone
        (None,        "tasks/get",   "-32001 in 0.3",           "only 1.0 in 1.0",   "-32001 in 0.3"),
        (Some(""),    "tasks/get",   "-32001 in 0.3",           "only 1.0 in 1.0",   "-32001 in 0.3"),
        (Some("0.3"), "tasks/get",   "-32001 in 0.3",           "only 1.0 in 1.0",   "-32001 in 0.3"),
        (Some("0.3.26"), "tasks/get", "-32001 in 0.3",          "only 1.0 in 1.0",   "-32001 in 0.3"),
        (Some("1.0"), "tasks/get",   "-32601 in 1.0",           "-32601 in 1.0",     "only 0.3 in 1.0"),
        (Some("9.9"), "tasks/get",   "only 1.0, 0.3 in 1.0",    "only 1.0 in 1.0",   "only 0.3 in 1.0"),
        (None,        "GetTask",     "only 1.0 in 1.0",         "only 1.0 in 1.0",   "only 0.3 in 1.0"),
        (Some(""),    "GetTask",     "only 1.0 in 1.0",         "only 1.0 in 1.0",   "only 0.3 in 1.0"),
        (Some("0.3"), "GetTask",     "only 1.0 in 1.0",         "only 1.0 in 1.0",   "only 0.3 in 1.0"),
        (Some("1.0"), "GetTask",     "-32001 in 1.0",           "-32001 in 1.0",     "only 0.3 in 1.0"),
        (None,        "no/such",     "-32601 in 0.3",           "only 1.0 in 1.0",   "-32601 in 0.3"),
        (Some("1.0"), "NoSuch",      "-32601 in 1.0",           "-32601 in 1.0",     "only 0.3 in 1.0"),
    ];
    for (place, config) in SERVED.iter().enumerate() {
        let (_server, mut connection) = server(config).await;
        for (version, method, both, new, old) in rows {
            let request = rpc_request(version, method, &json!({"id": "nobody"}));
            let answer = exchange(&mut connection, &request).await;
            let error = answer.json()["error"].clone();
            let told = told(error["code"].as_i64(), &error["data"], answer.header("a2a-version"));
            assert_eq!(told, [both, new, old][place], "{config:?}: {version:?} {method}: {error}");
        }
    }
}

#[tokio::test]
async fn who_lacks_the_header_is_told_which_one_it_needs() {
    let (_server, mut connection) = server("").await;
    let answer = exchange(&mut connection, &rpc_request(None, "SendMessage", &json!({}))).await;
    let rpc = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(rpc.contains("SendMessage") && rpc.contains("send A2A-Version: 1.0"), "{rpc}");
    let answer = exchange(&mut connection, &Request::new("POST", "/message:send").json(&json!({}))).await;
    assert_eq!(answer.status, 400);
    let http = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(http.contains("send A2A-Version: 1.0") && http.contains("/v1"), "{http}");
}

#[tokio::test]
async fn http_json_is_of_v0_3_below_v1_unless_the_header_says_otherwise() {
    #[rustfmt::skip]
    let rows = [
        // version,  path,                   both,                        v1.0 alone,              v0.3 alone
        (None,        "/v1/tasks/nobody",     "404 -32001 in 0.3",         "400 only 1.0 in 1.0",   "404 -32001 in 0.3"),
        (Some(""),    "/v1/tasks/nobody",     "404 -32001 in 0.3",         "400 only 1.0 in 1.0",   "404 -32001 in 0.3"),
        (Some("0.3"), "/v1/tasks/nobody",     "404 -32001 in 0.3",         "400 only 1.0 in 1.0",   "404 -32001 in 0.3"),
        (Some("1.0"), "/v1/tasks/nobody",     "404 in 1.0",                "404 in 1.0",            "400 only 0.3 in 1.0"),
        (Some("9.9"), "/v1/tasks/nobody",     "400 only 1.0, 0.3 in 1.0",  "400 only 1.0 in 1.0",   "400 only 0.3 in 1.0"),
        (None,        "/tasks/nobody",        "400 only 1.0 in 1.0",       "400 only 1.0 in 1.0",   "400 only 0.3 in 1.0"),
        (Some("0.3"), "/tasks/nobody",        "400 only 1.0 in 1.0",       "400 only 1.0 in 1.0",   "400 only 0.3 in 1.0"),
        (Some("1.0"), "/tasks/nobody",        "404 in 1.0",                "404 in 1.0",            "400 only 0.3 in 1.0"),
        (None,        "/v1/nothing",          "404 -32601 in 0.3",         "404 in 1.0",            "404 -32601 in 0.3"),
        (None,        "/v1/tasks",            "404 -32601 in 0.3",         "400 only 1.0 in 1.0",   "404 -32601 in 0.3"),
        (Some("1.0"), "/v1/tasks",            "200 in 1.0",                "200 in 1.0",            "400 only 0.3 in 1.0"),
        (None,        "/v1/message:send",     "405 -32601 in 0.3",         "405 in 1.0",            "405 -32601 in 0.3"),
    ];
    for (place, config) in SERVED.iter().enumerate() {
        let (_server, mut connection) = server(config).await;
        for (version, path, both, new, old) in rows {
            let answer = exchange(&mut connection, &versioned(Request::get(path), version)).await;
            let body = answer.json();
            let list = body["error"]["details"][0]["metadata"]["supportedVersions"].as_str();
            let what = match (list, body.get("code")) {
                (Some(list), _) => format!(" only {list}"),
                (None, Some(code)) => format!(" {code}"),
                (None, None) => String::new(),
            };
            let told = format!("{}{what} in {}", answer.status, answer.header("a2a-version").unwrap());
            assert_eq!(told, [both, new, old][place], "{config:?}: {version:?} {path}: {body}");
        }
    }
    // A tenant that is called like this is one of v1.0.
    let (_server, mut connection) = server("").await;
    let send = Request::new("POST", "/v1/message:send").v1().json(&longhaul_tests::task::say("echo"));
    let task = exchange(&mut connection, &send).await.json()["task"].clone();
    let id = task["id"].as_str().unwrap();
    let of_tenant = exchange(&mut connection, &Request::get(&format!("/v1/tasks/{id}")).v1()).await;
    let of_none = exchange(&mut connection, &Request::get(&format!("/v1/tasks/{id}"))).await;
    assert_eq!((of_tenant.status, of_none.status), (200, 404));
}

fn request<T>(message: T, version: Option<&str>) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Some(version) = version {
        request.metadata_mut().insert("a2a-version", version.parse().unwrap());
    }
    request
}

async fn channel(server: &Server) -> (Channel, http::Uri) {
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    (channel, origin)
}

#[tokio::test]
async fn grpc_goes_by_the_package() {
    let code = |status: tonic::Status| status::decode(&status).unwrap().code;
    for (config, new_is_served, old_is_served) in [("", true, true), (SERVED[1], true, false), (SERVED[2], false, true)]
    {
        let (server, _) = server(config).await;
        let expected = |is_served| if is_served { ErrorCode::TaskNotFound } else { ErrorCode::VersionNotSupported };
        let (channel, origin) = channel(&server).await;
        let mut old = OldClient::with_origin(channel.clone(), origin.clone());
        for version in [None, Some("0.3"), Some("1.0")] {
            let get = a2a_v0_3::GetTaskRequest { name: "tasks/nobody".to_owned(), ..Default::default() };
            let status = old.get_task(request(get, version)).await.unwrap_err();
            let name = if old_is_served { "TaskNotFoundError: " } else { "VersionNotSupportedError: " };
            assert!(status.message().starts_with(name), "{config:?} {version:?}: {status:?}");
            assert_eq!(code(status), expected(old_is_served), "{config:?} {version:?}");
        }
        let mut new = A2aServiceClient::with_origin(channel, origin);
        for (version, is_asked_for) in [(Some("1.0"), true), (None, false), (Some("0.3"), false)] {
            let get = a2a::GetTaskRequest { id: "nobody".to_owned(), ..Default::default() };
            let status = new.get_task(request(get, version)).await.unwrap_err();
            assert_eq!(code(status), expected(new_is_served && is_asked_for), "{config:?} {version:?}");
        }
    }
}
