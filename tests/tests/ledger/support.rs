//! What the tests of the ledger share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_client::card::{Binding, Preference};
use longhaul_client::ledger::{
    Connector, Delegation, Entry, EntryId, Finding, Follower, Held, Ledger, ListQuery, NewEntry, PAGE_MAX,
    RecoverOptions, Route, StateKind,
};
use longhaul_client::{Client, ClientBuilder, ClientError, IDEMPOTENT_SEND};
use longhaul_protocol::{Timestamp, wire};
use longhaul_tests::server::Folder;
use longhaul_tests::steps::get;
use longhaul_tests::within;
use serde_json::Value;

/// How long a recovery may take in a test.
pub const RECOVERY_MAX: Duration = Duration::from_secs(90);

/// Leads to the binding of the entry at whatever its card says, without credentials.
#[derive(Debug)]
pub struct ByCard;

#[async_trait]
impl Connector for ByCard {
    async fn connect(&self, route: &Route) -> Result<Client, ClientError> {
        Client::builder().preference(route.preference()).connect(&route.card).await
    }
}

/// A builder that prefers this binding.
pub fn builder(binding: Binding) -> ClientBuilder {
    Client::builder().preference(Preference { bindings: vec![binding], ..Preference::default() })
}

/// A ledger in a folder of its own.
pub struct Kept {
    pub folder: Folder,
    pub ledger: Ledger,
}

impl Kept {
    pub async fn new() -> Self {
        let folder = Folder::new();
        let ledger = Ledger::open(folder.path().join("ledger.db")).await.unwrap();
        Self { folder, ledger }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    /// Delegates without waiting for more than that it is written down.
    pub async fn delegate(&self, card: &str, text: &str) -> longhaul_client::ledger::Followed {
        let client = Client::connect(card).await.unwrap();
        self.ledger.delegate(&client, Delegation::new(card, say(text))).await.unwrap()
    }

    /// Delegates, and waits until it rests.
    pub async fn rest(&self, card: &str, text: &str) -> Finding {
        within(RECOVERY_MAX, text, self.delegate(card, text).await.rest()).await.unwrap()
    }

    /// A delegation of one who died before it was sent, whose claim has run out.
    pub async fn prepare(&self, client: &Client, card: &str) -> Held {
        let mut request = say("echo it");
        request.message.as_mut().unwrap().message_id = longhaul_client::new_id();
        let new = NewEntry { route: Route::of(client, card), purpose: String::new(), request, deadline: None };
        self.ledger.prepare(new, &Follower::new("dead").unwrap(), from_now(-60_000)).await.unwrap()
    }

    /// Lets this much time pass for the claims of now, as they would be if they had been made earlier.
    pub fn age_claims(&self, age: Duration) {
        let db = rusqlite::Connection::open(self.path()).unwrap();
        db.busy_timeout(RECOVERY_MAX).unwrap();
        let age = i64::try_from(age.as_millis()).unwrap();
        db.execute("UPDATE entry SET claim_until = claim_until - ?1 WHERE claim_until IS NOT NULL", [age]).unwrap();
    }

    /// All findings of one recovery.
    pub async fn recover(&self, options: RecoverOptions) -> Vec<Finding> {
        recover(&self.ledger, options).await
    }

    pub async fn entry(&self, id: EntryId) -> Entry {
        self.ledger.get(id).await.unwrap()
    }

    pub async fn entries(&self) -> Vec<Entry> {
        let page = self.ledger.list(ListQuery { limit: PAGE_MAX, ..ListQuery::default() }).await.unwrap();
        assert!(page.unreadable.is_empty() && page.next.is_none());
        page.entries
    }

    pub async fn count(&self, kind: StateKind) -> usize {
        self.entries().await.iter().filter(|entry| entry.state.kind() == kind).count()
    }
}

/// All findings of one recovery of this ledger.
pub async fn recover(ledger: &Ledger, options: RecoverOptions) -> Vec<Finding> {
    let mut recovery = ledger.recover(Arc::new(ByCard), options);
    let all = async {
        let mut findings = Vec::new();
        while let Some(finding) = recovery.next().await {
            findings.push(finding.unwrap());
        }
        findings
    };
    within(RECOVERY_MAX, "the recovery ends", all).await
}

/// The kinds of the entries that were found, those that run and alarms left out.
pub fn rests(findings: &[Finding]) -> Vec<StateKind> {
    let is_rest = |finding: &&Finding| !matches!(finding, Finding::Running(_) | Finding::Alarm(_));
    findings.iter().filter(is_rest).filter_map(Finding::entry).map(|entry| entry.state.kind()).collect()
}

/// A message of one text.
pub fn say(text: &str) -> wire::SendMessageRequest {
    let message = wire::Message {
        role: longhaul_protocol::Role::User.into(),
        parts: vec![wire::Part::text(text)],
        ..wire::Message::default()
    };
    wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() }
}

/// Whether an agent says that it tells a repeated send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repetition {
    Told,
    NotTold,
}

/// A file with the server's card, which leads to `via` instead, by JSON-RPC.
pub async fn card_via(folder: &Path, server: SocketAddr, via: SocketAddr, repetition: Repetition) -> String {
    let card = get(server, "/.well-known/agent-card.json").await.json();
    let mut card: Value =
        serde_json::from_str(&card.to_string().replace(&server.to_string(), &via.to_string())).unwrap();
    card["supportedInterfaces"].as_array_mut().unwrap().retain(|each| each["protocolBinding"] == "JSONRPC");
    if repetition == Repetition::NotTold {
        let extensions = card["capabilities"]["extensions"].as_array_mut().unwrap();
        extensions.retain(|extension| extension["uri"] != IDEMPOTENT_SEND);
    }
    let path = folder.join(format!("card-{}-{repetition:?}.json", via.port()));
    std::fs::write(&path, card.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Every task of the agent, with its history.
pub async fn tasks(card: &str) -> Vec<wire::Task> {
    let client = Client::connect(card).await.unwrap();
    let mut request = wire::ListTasksRequest { history_length: Some(100), page_size: Some(100), ..Default::default() };
    let mut tasks = Vec::new();
    loop {
        let page = client.list_tasks(request.clone()).await.unwrap();
        tasks.extend(page.tasks);
        if page.next_page_token.is_empty() {
            return tasks;
        }
        request.page_token = page.next_page_token;
    }
}

/// How many of the tasks have a message.
pub fn with_message(tasks: &[wire::Task], message_id: &str) -> usize {
    let has = |task: &&wire::Task| task.history.iter().any(|message| message.message_id == message_id);
    tasks.iter().filter(has).count()
}

/// Some moment from now.
pub fn from_now(millis: i64) -> Timestamp {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap() + millis)
}
