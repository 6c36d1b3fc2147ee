//! Each rule once at least, by its path and its words.

use crate::json::{ProtoJson, from_json};

use super::*;

fn breaches<T: FieldRules + ProtoJson>(json: &str) -> Vec<String> {
    let request: T = from_json(json.as_bytes()).unwrap();
    request
        .violations()
        .into_iter()
        .map(|FieldViolation { field, description }| format!("{field}: {description}"))
        .collect()
}

/// Expects each breach to start with the text given.
fn check<T: FieldRules + ProtoJson>(json: &str, wanted: &[&str]) {
    let found = breaches::<T>(json);
    let is_same =
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| found.starts_with(wanted));
    assert!(is_same, "{json}: {found:?}, not {wanted:?}");
}

#[test]
fn a_send_needs_a_message_with_id_role_and_parts() {
    type Send = wire::SendMessageRequest;
    check::<Send>("{}", &["message: is required"]);
    check::<Send>(r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}}"#, &[]);
    check::<Send>(
        r#"{"message":{}}"#,
        &[
            "message.messageId: must not be empty",
            "message.role: is required, must be ROLE_USER or ROLE_AGENT",
            "message.parts: must have at least one item",
        ],
    );
    check::<Send>(
        r#"{"message":{"messageId":"m","role":99,"parts":[{"text":"x"}]}}"#,
        &["message.role: must be ROLE_USER or ROLE_AGENT, not 99"],
    );
    check::<Send>(
        r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#,
        &["message.role: must be ROLE_USER in a request"],
    );
}

#[test]
fn a_send_has_valid_ids_parts_and_configuration() {
    check::<wire::SendMessageRequest>(
        r#"{"tenant":"a/b",
            "message":{"messageId":"m\n","contextId":"c\u0000","taskId":"t\u0000","role":1,
              "referenceTaskIds":["t",""],
              "parts":[{"text":"x"},{"mediaType":"a\nb","filename":"f\u0000"},{"data":null}]},
            "configuration":{"historyLength":-1,"acceptedOutputModes":["text/plain","\n"],
              "taskPushNotificationConfig":{"authentication":{}}}}"#,
        &[
            "tenant: must not hold a slash",
            "message.messageId: must not hold control characters",
            "message.contextId: must not hold control characters",
            "message.taskId: must not hold control characters",
            "message.parts[1]: must have one of text, raw, url, data",
            "message.parts[1].filename: must not hold control characters",
            "message.parts[1].mediaType: must not hold control characters",
            "message.referenceTaskIds[1]: must not be empty",
            "configuration.acceptedOutputModes[1]: must not hold control characters",
            "configuration.taskPushNotificationConfig.url: must not be empty",
            "configuration.taskPushNotificationConfig.authentication.scheme: must not be empty",
            "configuration.historyLength: must not be negative, is -1",
        ],
    );
}

#[test]
fn ids_have_a_limit() {
    let id = "x".repeat(129);
    check::<wire::GetTaskRequest>(&format!(r#"{{"id":"{id}"}}"#), &["id: must have at most 128 bytes, has 129"]);
    let tenant = "x".repeat(257);
    check::<wire::GetExtendedAgentCardRequest>(
        &format!(r#"{{"tenant":"{tenant}"}}"#),
        &["tenant: must have at most 256 bytes, has 257"],
    );
}

#[test]
fn a_page_has_1_to_100_items() {
    for size in [1, 50, 100] {
        check::<wire::ListTasksRequest>(&format!(r#"{{"pageSize":{size}}}"#), &[]);
    }
    for size in [-1, 0, 101] {
        let wanted = format!("pageSize: must be between 1 and 100, is {size}");
        check::<wire::ListTasksRequest>(&format!(r#"{{"pageSize":{size}}}"#), &[&wanted]);
    }
    check::<wire::ListTaskPushNotificationConfigsRequest>(r#"{"taskId":"t","pageSize":0}"#, &[]);
    check::<wire::ListTaskPushNotificationConfigsRequest>(
        r#"{"taskId":"t","pageSize":101}"#,
        &["pageSize: must be between"],
    );
}

#[test]
fn a_list_filters_by_states_that_exist() {
    check::<wire::ListTasksRequest>(r#"{"status":"TASK_STATE_WORKING"}"#, &[]);
    check::<wire::ListTasksRequest>(r#"{"status":0}"#, &[]);
    check::<wire::ListTasksRequest>(r#"{"status":9}"#, &["status: must be one of TASK_STATE_SUBMITTED,"]);
    check::<wire::ListTasksRequest>(
        r#"{"contextId":"\n","historyLength":-5}"#,
        &["contextId: must not hold control characters", "historyLength: must not be negative, is -5"],
    );
}

#[test]
fn requests_about_a_task_need_its_id() {
    check::<wire::GetTaskRequest>("{}", &["id: must not be empty"]);
    check::<wire::CancelTaskRequest>("{}", &["id: must not be empty"]);
    check::<wire::SubscribeToTaskRequest>("{}", &["id: must not be empty"]);
    check::<wire::TaskPushNotificationConfig>("{}", &["taskId: must not be empty", "url: must not be empty"]);
    let both = ["taskId: must not be empty", "id: must not be empty"];
    check::<wire::GetTaskPushNotificationConfigRequest>("{}", &both);
    check::<wire::DeleteTaskPushNotificationConfigRequest>("{}", &both);
    let both = ["taskId: must not be empty", "artifactId: must not be empty"];
    check::<wire::ListArtifactVersionsRequest>("{}", &both);
    check::<wire::GetArtifactRequest>("{}", &both);
    check::<wire::GetArtifactRequest>(
        r#"{"taskId":"t","artifactId":"a","version":0}"#,
        &["version: must be at least 1, is 0"],
    );
    for id in ["a/b", "..", "a?b"] {
        check::<wire::GetTaskRequest>(&format!(r#"{{"id":"{id}"}}"#), &[]);
    }
}

#[test]
fn a_state_that_nobody_knows_is_no_filter_but_a_fault() {
    let request: wire::ListTasksRequest = crate::from_json(br#"{"status":"WORKING"}"#).unwrap();
    let fields: Vec<_> = request.violations().into_iter().map(|breach| breach.field).collect();
    assert_eq!(fields, ["status"]);
    let request: wire::ListTasksRequest = crate::from_json(br#"{"status":"TASK_STATE_UNSPECIFIED"}"#).unwrap();
    assert!(request.violations().is_empty());
}

#[test]
fn data_is_refused_that_could_not_be_read_back_from_a_task() {
    let nested = |levels: usize| {
        let json = format!(
            r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{}{}}}]}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        );
        crate::from_json::<wire::Message>(json.as_bytes()).unwrap()
    };
    let message = nested(DATA_DEPTH_MAX);
    assert!(message.violations().is_empty());
    let task = wire::Task { history: vec![message], ..wire::Task::default() };
    let page = wire::ListTasksResponse { tasks: vec![task], ..wire::ListTasksResponse::default() };
    crate::from_json::<wire::ListTasksResponse>(&crate::to_json(&page)).unwrap();
    assert_eq!(nested(DATA_DEPTH_MAX + 1).violations()[0].field, "parts[0].data");
}
