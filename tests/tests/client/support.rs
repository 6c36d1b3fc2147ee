//! How the tests reach an agent.

use std::net::SocketAddr;

use longhaul_client::card::{Binding, Preference};
use longhaul_client::{Client, ClientBuilder};
use longhaul_protocol::wire;

/// The three bindings.
pub const BINDINGS: [Binding; 3] = Binding::ALL;

/// A builder that takes this binding and no proxy of the environment.
pub fn builder(binding: Binding) -> ClientBuilder {
    let preference = Preference { bindings: vec![binding], ..Preference::default() };
    Client::builder().preference(preference)
}

/// A client of the server at this address.
pub async fn connect(binding: Binding, addr: SocketAddr) -> Client {
    let client = builder(binding).connect(&format!("http://{addr}")).await.expect("the card leads to the server");
    assert_eq!(client.binding(), binding);
    client
}

/// A message of one text.
pub fn say(text: &str) -> wire::SendMessageRequest {
    say_in(text, "", "")
}

/// A message of one text, to a task in a context.
pub fn say_in(text: &str, context_id: &str, task_id: &str) -> wire::SendMessageRequest {
    let message = wire::Message {
        role: longhaul_protocol::Role::User.into(),
        context_id: context_id.to_owned(),
        task_id: task_id.to_owned(),
        parts: vec![wire::Part::text(text)],
        ..wire::Message::default()
    };
    wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() }
}

/// The request of a task.
pub fn get(id: &str) -> wire::GetTaskRequest {
    wire::GetTaskRequest { id: id.to_owned(), ..wire::GetTaskRequest::default() }
}
