//! HTTP+JSON: routes, ids in paths, methods and content types (§11).

use longhaul_tests::http::Request;
use longhaul_tests::http_binding::escape;
use longhaul_tests::task::{id_of, say, state_of};
use serde_json::json;

use crate::{count, exchange, send, server, status};

#[tokio::test]
async fn unknown_route_answers_in_json() {
    let (_server, mut connection) = server().await;
    for (method, path) in [
        ("GET", "/nope"),
        ("GET", "/a/b/c/d/e"),
        ("POST", "/message:nope"),
        ("POST", "/message"),
        ("GET", "/tasks/x/nope"),
        ("GET", "/.well-known/nope"),
        ("GET", "/tasks/../tasks"),
        ("GET", "//tasks"),
    ] {
        let answer = exchange(&mut connection, &Request::new(method, path).v1()).await;
        status(&answer, 404, "NOT_FOUND", "ROUTE_NOT_FOUND");
    }
}

#[tokio::test]
async fn wrong_method_answers_in_json_and_says_which_is_right() {
    let (_server, mut connection) = server().await;
    for (method, path, right) in [
        ("PUT", "/tasks", "GET"),
        ("POST", "/tasks", "GET"),
        ("DELETE", "/tasks/x", "GET"),
        ("POST", "/tasks/x", "GET"),
        // A verb that nobody knows is part of the id.
        ("POST", "/tasks/x:nope", "GET"),
        ("GET", "/message:send", "POST"),
        ("GET", "/message:stream", "POST"),
        ("GET", "/tasks/x:cancel", "POST"),
        ("PUT", "/tasks/x:subscribe", "POST"),
        ("POST", "/extendedAgentCard", "GET"),
        ("PATCH", "/tasks/x/pushNotificationConfigs", "POST"),
    ] {
        let answer = exchange(&mut connection, &Request::new(method, path).v1()).await;
        status(&answer, 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED");
        let allow = answer.header("allow").unwrap_or_default();
        assert!(allow.contains(right), "{method} {path}: Allow: {allow:?}");
    }
}

#[tokio::test]
async fn head_and_options_leave_the_connection_usable() {
    let (_server, mut connection) = server().await;
    for path in ["/tasks", "/tasks/x", "/message:send", "/", "/nope", "/healthz"] {
        for method in ["HEAD", "OPTIONS"] {
            let answer = exchange(&mut connection, &Request::new(method, path).v1()).await;
            assert!((200..500).contains(&answer.status), "{method} {path}: {answer:?}");
            if answer.status == 405 {
                assert!(answer.header("allow").is_some(), "{method} {path}: {answer:?}");
            }
        }
        assert_eq!(count(&mut connection).await, 0);
    }
}

#[tokio::test]
async fn ids_are_unescaped_after_routing() {
    let (_server, mut connection) = server().await;
    for id in ["a/b", "..", ".", "a?b", "a#b", "a%2Fb", "a:b", "a:cancel", "../tasks", "ü 漢", "/"] {
        let path = format!("/tasks/{}", escape(id));
        let answer = exchange(&mut connection, &Request::get(&path).v1()).await;
        let error = status(&answer, 404, "NOT_FOUND", "TASK_NOT_FOUND");
        assert_eq!(error["details"][0]["metadata"]["taskId"], id);
    }
    let task = send(&mut connection, "echo").await;
    let all: String = id_of(&task).bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = exchange(&mut connection, &Request::get(&format!("/tasks/{all}")).v1()).await;
    assert_eq!(answer.json(), task);
}

#[tokio::test]
async fn escaped_colon_is_part_of_the_id() {
    let (_server, mut connection) = server().await;
    let task = send(&mut connection, "input").await;
    let id = id_of(&task);
    let answer = exchange(&mut connection, &Request::new("POST", &format!("/tasks/{id}%3Acancel")).v1()).await;
    status(&answer, 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED");
    let answer = exchange(&mut connection, &Request::get(&format!("/tasks/{id}%3Asubscribe")).v1()).await;
    status(&answer, 404, "NOT_FOUND", "TASK_NOT_FOUND");
    // An id that ends in a verb is reached when it is escaped, and the verb behind it still counts.
    let answer = exchange(&mut connection, &Request::new("POST", "/tasks/a%3Acancel:cancel").v1()).await;
    let error = status(&answer, 404, "NOT_FOUND", "TASK_NOT_FOUND");
    assert_eq!(error["details"][0]["metadata"]["taskId"], "a:cancel");
    let answer = exchange(&mut connection, &Request::get(&format!("/tasks/{id}")).v1()).await;
    assert_eq!(answer.json(), task);
}

#[tokio::test]
async fn broken_escapes_are_refused_in_json() {
    let (_server, mut connection) = server().await;
    for path in ["/tasks/%zz", "/tasks/%", "/tasks/%ff%fe", "/tasks/a%0"] {
        let answer = exchange(&mut connection, &Request::get(path).v1()).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], answer.status);
    }
    let answer = exchange(&mut connection, &Request::get("/tasks/a%00b").v1()).await;
    status(&answer, 400, "INVALID_ARGUMENT", "INVALID_PARAMS");
}

#[tokio::test]
async fn cancel_and_subscribe_need_no_body() {
    let (_server, mut connection) = server().await;
    for body in [None, Some(""), Some("{}")] {
        let task = send(&mut connection, "input").await;
        let mut request = Request::new("POST", &format!("/tasks/{}:cancel", id_of(&task))).v1();
        request.body = body.map(Into::into);
        let answer = exchange(&mut connection, &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(state_of(&answer.json()), "CANCELED");
    }
}

#[tokio::test]
async fn body_that_is_no_message_is_an_invalid_argument() {
    let (_server, mut connection) = server().await;
    for body in ["[]", "\"x\"", "7", "null", "{\"message\":7}"] {
        let request = Request::new("POST", "/message:send").v1().body(body);
        let answer = exchange(&mut connection, &request).await;
        status(&answer, 400, "INVALID_ARGUMENT", "INVALID_PARAMS");
    }
    for body in ["{", "", "nonsense", "{\"message\":"] {
        let request = Request::new("POST", "/message:send").v1().body(body);
        let answer = exchange(&mut connection, &request).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.json()["error"]["status"], "INVALID_ARGUMENT");
    }
    assert_eq!(count(&mut connection).await, 0);
}

#[tokio::test]
async fn query_that_does_not_fit_is_an_invalid_argument() {
    let (_server, mut connection) = server().await;
    for (query, field) in [
        ("pageSize=many", "pageSize"),
        ("pageSize=2147483648", "pageSize"),
        ("pageSize=0", "pageSize"),
        ("historyLength=-1", "historyLength"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("includeArtifacts=maybe", "includeArtifacts"),
    ] {
        let answer = exchange(&mut connection, &Request::get(&format!("/tasks?{query}")).v1()).await;
        let error = status(&answer, 400, "INVALID_ARGUMENT", "INVALID_PARAMS");
        assert_eq!(error["details"][1]["fieldViolations"][0]["field"], field, "{error}");
    }
    for query in ["unknown=1", "page_size=7", "pageSize=7&pageToken=", "contextId=a%20b+c%2B"] {
        let answer = exchange(&mut connection, &Request::get(&format!("/tasks?{query}")).v1()).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    }
}

#[tokio::test]
async fn tenant_stands_before_the_path() {
    let (_server, mut connection) = server().await;
    let request = Request::new("POST", "/acme%20inc/message:send").v1().json(&say("echo"));
    let answer = exchange(&mut connection, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = id_of(&answer.json());
    for (path, found) in [
        (format!("/acme%20inc/tasks/{id}"), true),
        (format!("/tasks/{id}"), false),
        (format!("/other/tasks/{id}"), false),
    ] {
        let answer = exchange(&mut connection, &Request::get(&path).v1()).await;
        assert_eq!(answer.status, if found { 200 } else { 404 }, "{path}");
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"tenant": "acme inc"}});
    let answer = crate::rpc(&mut connection, list.to_string()).await;
    assert_eq!(answer.json()["result"]["totalSize"], 1);
    let answer = exchange(&mut connection, &Request::get("/acme%20inc/nope").v1()).await;
    status(&answer, 404, "NOT_FOUND", "ROUTE_NOT_FOUND");
}

#[tokio::test]
async fn version_in_the_query_counts() {
    let (_server, mut connection) = server().await;
    let answer = exchange(&mut connection, &Request::get("/tasks?A2A-Version=1.0")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for target in ["/tasks", "/tasks?A2A-Version=9.9", "/tasks?A2A-Version="] {
        let answer = exchange(&mut connection, &Request::get(target)).await;
        status(&answer, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED");
    }
}

#[tokio::test]
async fn each_answer_carries_the_version_and_its_content_type() {
    let (_server, mut connection) = server().await;
    let task = send(&mut connection, "echo").await;
    for path in ["/tasks".to_owned(), format!("/tasks/{}", id_of(&task))] {
        let answer = exchange(&mut connection, &Request::get(&path).v1()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.head.media_type(), "application/a2a+json");
        assert_eq!(answer.header("a2a-version"), Some("1.0"));
        let patch = exchange(&mut connection, &Request::get(&path).with("A2A-Version", "1.0.9")).await;
        assert_eq!(patch.body, answer.body);
    }
}
