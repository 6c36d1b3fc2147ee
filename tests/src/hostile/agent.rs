//! What an agent says that keeps to the protocol: where the faults begin.

use serde_json::{Value, json};

use super::{Asked, Script};

/// Where the card is.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";
/// Where JSON-RPC is.
pub const RPC_PATH: &str = "/rpc";
/// Where HTTP+JSON is.
pub const REST_PATH: &str = "/rest";
/// The one task of the scripts.
pub const TASK_ID: &str = "3f2c0000-0000-4000-8000-000000000001";
/// Its context.
pub const CONTEXT_ID: &str = "3f2c0000-0000-4000-8000-0000000000cc";

/// A card that offers JSON-RPC and HTTP+JSON below this URL, and everything else that can be offered.
#[must_use]
pub fn card(base: &str) -> Value {
    let interface = |path: &str, binding: &str| json!({"url": format!("{base}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
    json!({
        "name": "Hostile",
        "description": "Answers by script",
        "version": "1.0.0",
        "supportedInterfaces": [interface(RPC_PATH, "JSONRPC"), interface(REST_PATH, "HTTP+JSON")],
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "script", "name": "Script", "description": "Answers by script", "tags": ["test"]}],
    })
}

/// The task in this state, named with its prefix.
#[must_use]
pub fn task(state: &str) -> Value {
    json!({"id": TASK_ID, "contextId": CONTEXT_ID, "status": {"state": state}})
}

/// Whether this was asked over JSON-RPC.
#[must_use]
pub fn is_rpc(asked: &Asked) -> bool {
    asked.path() == RPC_PATH
}

/// The operation that is asked for, by the protocol's name; empty when it is none.
#[must_use]
pub fn operation(asked: &Asked) -> String {
    if asked.method == "POST" && !asked.rpc_method().is_empty() {
        return asked.rpc_method();
    }
    let (path, get) = (asked.path(), asked.method == "GET");
    let name = match path {
        path if path.ends_with("/message:send") => "SendMessage",
        path if path.ends_with("/message:stream") => "SendStreamingMessage",
        path if path.ends_with(":cancel") => "CancelTask",
        path if path.ends_with(":subscribe") => "SubscribeToTask",
        path if path.ends_with("/extendedAgentCard") => "GetExtendedAgentCard",
        path if path.contains("/pushNotificationConfigs") => "PushConfig",
        path if path.ends_with("/tasks") && get => "ListTasks",
        path if path.contains("/tasks/") && get => "GetTask",
        _ => "",
    };
    name.to_owned()
}

/// The result in the form of the request's binding: in JSON-RPC with the envelope and the request's id.
#[must_use]
pub fn item(asked: &Asked, result: &Value) -> Value {
    match is_rpc(asked) {
        true => json!({"jsonrpc": "2.0", "id": asked.rpc_id(), "result": result}),
        false => result.clone(),
    }
}

/// The envelope of an error of JSON-RPC.
#[must_use]
pub fn rpc_error(asked: &Asked, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": asked.rpc_id(), "error": {"code": code, "message": message}})
}

/// A change of status: the task now has this state, named with its prefix.
#[must_use]
pub fn status_update(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": TASK_ID, "contextId": CONTEXT_ID, "status": {"state": state}}})
}

/// The whole answer with this result, as a good server writes it.
#[must_use]
pub fn reply(asked: &Asked, result: &Value) -> Script {
    let kind = if is_rpc(asked) { "application/json" } else { "application/a2a+json" };
    Script::whole(200, &[("Content-Type", kind), ("A2A-Version", "1.0")], item(asked, result).to_string())
}

/// The result of a good answer: the task, completed, in the shape that the operation has.
pub(super) fn result(asked: &Asked, state: &str) -> Value {
    match operation(asked) == "SendMessage" {
        true => json!({"task": task(state)}),
        false => task(state),
    }
}
