use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use longhaul_client::Outcome;
use longhaul_client::ledger::{Follower, Held, Ledger, NewEntry, News, Route};
use longhaul_protocol::{TaskState, Timestamp, wire};

/// A folder of its own, which goes when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("longhaul-ledger-{}-{number}", std::process::id())))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("ledger.db")
    }

    pub async fn open(&self) -> Ledger {
        Ledger::open(self.file()).await.unwrap()
    }

    /// The file without the ledger's code.
    pub fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Seconds after some moment.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_800_000_000_000 + seconds * 1000)
}

pub fn follower(name: &str) -> Follower {
    Follower::new(name).unwrap()
}

pub fn request(message_id: &str, task_id: &str) -> wire::SendMessageRequest {
    let message = wire::Message {
        message_id: message_id.to_owned(),
        task_id: task_id.to_owned(),
        role: longhaul_protocol::Role::User.into(),
        parts: vec![wire::Part::text("find the cheapest flight")],
        ..wire::Message::default()
    };
    wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() }
}

pub fn new(message_id: &str) -> NewEntry {
    let route = Route {
        card: "https://agent.example".to_owned(),
        interface_url: "https://agent.example/a2a".to_owned(),
        binding: "JSONRPC".to_owned(),
        protocol_version: "1.0".to_owned(),
        tenant: String::new(),
    };
    NewEntry { route, purpose: "flights for the offsite".to_owned(), request: request(message_id, ""), deadline: None }
}

pub async fn prepare(ledger: &Ledger, message_id: &str) -> Held {
    ledger.prepare(new(message_id), &follower("first"), at(0)).await.unwrap()
}

pub fn task(id: &str, state: TaskState, said: &str) -> wire::Task {
    let message = (!said.is_empty()).then(|| wire::Message {
        message_id: "of the agent".to_owned(),
        role: longhaul_protocol::Role::Agent.into(),
        parts: vec![wire::Part::text(said)],
        ..wire::Message::default()
    });
    let status = Some(wire::TaskStatus { state: state.into(), message, timestamp: None });
    wire::Task { id: id.to_owned(), context_id: "of the agent".to_owned(), status, ..wire::Task::default() }
}

pub fn outcome(id: &str, state: TaskState, said: &str) -> Outcome {
    Outcome::of_task(task(id, state, said))
}

pub fn told(id: &str, state: TaskState, said: &str) -> News {
    News::Told { outcome: Box::new(outcome(id, state, said)), last_event_id: None }
}
