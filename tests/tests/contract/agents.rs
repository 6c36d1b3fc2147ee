//! Agents that answer by script, whatever the binding.

use longhaul_tests::Hostile;
use longhaul_tests::hostile::{Asked, REST_PATH, RPC_PATH, Script, is_rpc, item, operation, reply, task};
use serde_json::{Value, json};

/// The parameters of a request: the body in HTTP+JSON, `params` in JSON-RPC.
pub fn params(asked: &Asked) -> Value {
    if is_rpc(asked) || !asked.rpc_method().is_empty() { asked.json()["params"].clone() } else { asked.json() }
}

/// The requests that are operations, without those for the card.
pub fn operations(agent: &Hostile) -> Vec<Asked> {
    agent.asked().into_iter().filter(|asked| !operation(asked).is_empty()).collect()
}

/// The messages that were sent, in order.
pub fn sent(agent: &Hostile) -> Vec<Value> {
    let sends = operations(agent).into_iter().filter(|asked| operation(asked).starts_with("Send"));
    sends.map(|asked| params(&asked)["message"].clone()).collect()
}

/// The same, by name.
pub fn names(agent: &Hostile) -> Vec<String> {
    operations(agent).iter().map(operation).collect()
}

/// The whole task in this state, with these members besides.
pub fn task_with(state: &str, more: &Value) -> Value {
    let mut task = task(state);
    for (name, value) in more.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

/// A stream of these items, and its end.
pub fn stream(asked: &Asked, items: &[Value]) -> Script {
    items.iter().fold(Script::events(), |script, each| script.event(&item(asked, each))).end()
}

/// A good answer with this task, whatever is asked: in the shape of a send, as the only event of a stream, or bare.
pub fn with_task(asked: &Asked, task: &Value) -> Script {
    match operation(asked).as_str() {
        "SendMessage" => reply(asked, &json!({"task": task})),
        "SendStreamingMessage" | "SubscribeToTask" => stream(asked, &[json!({"task": task})]),
        "ListTasks" => reply(asked, &json!({"tasks": [task], "nextPageToken": "", "pageSize": 50, "totalSize": 1})),
        _ => reply(asked, task),
    }
}

/// An agent whose one task has this state.
pub async fn standing(state: &str) -> Hostile {
    let state = state.to_owned();
    Hostile::agent(move |asked| with_task(asked, &task(&state))).await
}

/// An agent whose one task is complete, behind this card; the card is changed by `change`, which gets the agent's URL too.
pub async fn with_card(change: impl Fn(&mut Value, &str) + Send + Sync + 'static) -> Hostile {
    Hostile::agent_with(change, |asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await
}

/// An interface of a card.
pub fn interface(url: &str, binding: &str, version: &str) -> Value {
    let path = if binding == "HTTP+JSON" { REST_PATH } else { RPC_PATH };
    json!({"url": format!("{url}{path}"), "protocolBinding": binding, "protocolVersion": version})
}

/// The one scheme of a card, which it requires.
pub fn require_scheme(card: &mut Value, name: &str, scheme: Value) {
    card["securitySchemes"][name] = scheme;
    card["securityRequirements"] = json!([{"schemes": {name: {"list": []}}}]);
}

/// HTTP's scheme with bearer tokens.
pub fn bearer() -> Value {
    json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}})
}

/// An API key at this place.
pub fn api_key(location: &str, name: &str) -> Value {
    json!({"apiKeySecurityScheme": {"location": location, "name": name}})
}
