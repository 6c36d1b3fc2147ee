//! What one command has at hand: its options, a way to the agent, stdout, and what it knows of its task by now.

use std::future::pending;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use longhaul_client::card::{self, Chosen};
use longhaul_client::follow::{FollowOptions, Until};
use longhaul_client::ledger::EntryId;
use longhaul_client::{Client, ClientBuilder, ClientError, FoundCard, Verification};
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::wire::{StreamResponse, StreamResponsePayload, Task};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::arguments::OutputForm;

use super::failure::{Credentials, Exit, Failure, LocalCode};
use super::options::{Diagnostics, Options, SendOptions, Sources};
use super::redact::Redactor;
use super::render::{Continuation, Page, clean, json, state_name};
use super::way::{CardKeys, Login, Presents, Way};

/// By how much the wait between two questions grows at most.
const POLL_GROWTH_MAX: u32 = 4;

/// Why a command ends early.
#[derive(Debug)]
pub enum End {
    /// It came to nothing.
    Failed(Failure),
    /// The same, and stdout holds already what there is to say.
    Told(Failure),
    /// Whoever read stdout has what it wanted.
    ReaderLeft,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What one command has at hand.
#[derive(Debug)]
pub struct Session {
    /// What it was told.
    pub options: Arc<Options>,
    /// How agents are reached.
    pub way: Way,
    /// What a send is told besides, or what is wrong about that: it concerns nobody else.
    send: Result<SendOptions, Failure>,
    /// What is known of its task: ids and status.
    seen: Mutex<Option<Task>>,
    /// Whether one can log in to the agent, and has done so.
    login: Mutex<Login>,
    /// Whether it is in the ledger, and which delegation it is.
    delegated: OnceLock<Option<EntryId>>,
    /// Ends what gives something back before it ends.
    pub stop: CancellationToken,
}

impl Session {
    /// Reads the options, and warns of what is dangerous about them.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when one is wrong.
    pub fn new(sources: &Sources) -> Result<Self, Failure> {
        let options = Options::resolve(sources)?;
        let identity = options.identity.as_ref().map(|identity| [&identity.certificates, &identity.key]);
        for path in options.ca.iter().chain(identity.into_iter().flatten()) {
            std::fs::File::open(path).map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", path.display()))
                    .hint("--ca, --client-cert and --client-key name PEM files")
            })?;
        }
        if options.verification == Verification::Off {
            eprintln!(
                "longhaul: WARNING: --insecure: the agent's certificate is not verified; anybody on the way can read and change all"
            );
            if options.holds_secrets() {
                eprintln!("longhaul: WARNING: credentials are sent over a connection that is not verified");
            }
        }
        let trust = CardKeys::read(&options)?;
        let options = Arc::new(options);
        let way = Way::new(Arc::clone(&options), trust);
        let (seen, login) = (Mutex::new(None), Mutex::new(Login::Unknown));
        Ok(Self {
            options,
            way,
            send: SendOptions::resolve(sources),
            seen,
            login,
            delegated: OnceLock::new(),
            stop: CancellationToken::new(),
        })
    }

    /// What a send is told besides.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when something of it is wrong.
    pub fn send_options(&self) -> Result<SendOptions, Failure> {
        self.send.clone()
    }

    /// What takes the credentials out of what is written for people.
    pub fn redactor(&self) -> Redactor {
        self.way.redactor()
    }

    /// The failure for an error of the client library.
    pub fn failure(&self, error: &ClientError) -> Failure {
        let login = *self.login.lock().unwrap_or_else(PoisonError::into_inner);
        let credentials = match login {
            Login::There => Credentials::Given,
            Login::Unknown | Login::Offered => self.options.credentials(),
        };
        let failure = self.redactor().failure(Failure::of(error, credentials));
        let is_refusal = failure.exit == Exit::Unauthenticated;
        let is_own = self.options.credentials() == Credentials::Given;
        match login {
            Login::Offered | Login::There if is_refusal && !is_own => {
                failure.hint(format!("log in with: {}", self.options.continuation.login(&self.options)))
            }
            Login::Unknown | Login::Offered | Login::There => failure,
        }
    }

    /// A client of the agent.
    ///
    /// # Errors
    ///
    /// [`Failure`] when no agent is named, or it can't be had.
    pub async fn client(&self) -> Result<Client, Failure> {
        let found = self.card().await?;
        let client = self.builder()?.connect_card(found).await.map_err(|error| self.failure(&error))?;
        let chosen = client.interface();
        let is_given = self.options.credentials() == Credentials::Given || !self.options.service_params.is_empty();
        let has_secrets = is_given || *self.login.lock().unwrap_or_else(PoisonError::into_inner) == Login::There;
        if let Some(note) = withheld(chosen).filter(|_| has_secrets) {
            eprintln!("longhaul: WARNING: {}", clean::line(&note));
        }
        if self.options.diagnostics == Diagnostics::On {
            let line =
                format!("interface {} of the card: {} {} {}", chosen.index, chosen.binding, chosen.version, chosen.url);
            eprintln!("debug: {}", clean::line(&line));
        }
        Ok(client)
    }

    /// The agent's card, whether or not it can be called.
    ///
    /// # Errors
    ///
    /// As [`client`](Self::client).
    pub async fn card(&self) -> Result<FoundCard, Failure> {
        let found = self.way.fetch(self.options.agent()?, Presents::All).await.map_err(|error| self.failure(&error))?;
        let login = self.way.login(&found).await;
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = login;
        Ok(found)
    }

    /// How a client is made.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] for a service parameter that the client sets itself, or for keys that can't be read.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        self.way.builder(Presents::All).map_err(|error| self.failure(&error))
    }

    /// How a task is followed.
    pub fn follow(&self) -> FollowOptions {
        let interval = self.options.poll_interval;
        let mut follow = FollowOptions::default();
        follow.until = Until::Waiting;
        follow.poll_interval = interval;
        follow.poll_interval_max = interval.saturating_mul(POLL_GROWTH_MAX);
        follow
    }

    /// Writes to stdout at once.
    ///
    /// # Errors
    ///
    /// [`End::ReaderLeft`] when nobody reads it any more.
    pub fn print(&self, text: &str) -> Result<(), End> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => End::ReaderLeft,
            _ => Failure::local(LocalCode::Internal, format!("cannot write to stdout: {error}")).into(),
        })
    }

    /// Writes a document that is none of the protocol.
    ///
    /// # Errors
    ///
    /// As [`print`](Self::print).
    pub fn print_json(&self, value: &Value) -> Result<(), End> {
        self.print(&json::value(value))
    }

    /// Writes an answer: the protocol's own JSON for programs, what `page` writes for people.
    ///
    /// # Errors
    ///
    /// As [`print`](Self::print).
    pub fn answer<T: ProtoJson>(&self, answer: &T, write: impl FnOnce(&mut Page)) -> Result<(), End> {
        match self.options.output {
            OutputForm::Json => self.print(&json::document(answer)),
            OutputForm::Text => {
                let mut page = Page::new();
                write(&mut page);
                self.print(&page.into_text())
            }
        }
    }

    /// Takes note of how a task stands. Answers with its ids when they are the first that are heard of.
    pub fn saw(&self, event: &StreamResponse) -> Option<(String, String)> {
        let (id, context_id, status) = match &event.payload {
            Some(StreamResponsePayload::Task(task)) => (&task.id, &task.context_id, &task.status),
            Some(StreamResponsePayload::StatusUpdate(update)) => (&update.task_id, &update.context_id, &update.status),
            Some(StreamResponsePayload::ArtifactUpdate(_) | StreamResponsePayload::Message(_)) | None => return None,
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = seen.as_ref().is_none_or(|known| known.id != *id);
        *seen =
            Some(Task { id: id.clone(), context_id: context_id.clone(), status: status.clone(), ..Task::default() });
        is_first.then(|| (id.clone(), context_id.clone()))
    }

    /// What is known of the task: ids and status.
    pub fn seen(&self) -> Option<Task> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the task: what comes now is about another.
    pub fn forget(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns when the time is over; never without a limit.
    pub async fn time_over(&self) {
        match self.options.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => pending().await,
        }
    }

    /// What is said when the time is over.
    pub fn late(&self) -> Failure {
        let seconds = self.options.timeout.unwrap_or_default().as_secs_f64();
        self.ended_early(Failure::local(LocalCode::Timeout, format!("the time of {seconds} s was over")))
    }

    /// What is said when a person ended it.
    pub fn interrupted(&self) -> Failure {
        self.ended_early(Failure::local(LocalCode::Interrupted, "interrupted"))
    }

    /// Takes note that what is done is in the ledger, and which delegation it is if it is one.
    pub fn delegated(&self, entry: Option<EntryId>) {
        let _ = self.delegated.set(entry);
    }

    /// Whether something has to be given back at the end: claims of the ledger.
    pub fn is_delegated(&self) -> bool {
        self.delegated.get().is_some()
    }

    /// What says which command goes on.
    pub fn continuation(&self) -> Continuation {
        let known = self.options.continuation.clone();
        match self.delegated.get() {
            Some(Some(entry)) => known.of_delegation(entry.to_string()),
            Some(None) | None => known,
        }
    }

    fn ended_early(&self, failure: Failure) -> Failure {
        let Some(task) = self.seen() else {
            return match self.delegated.get() {
                Some(_) => failure.hint(format!("go on with: {}", self.options.continuation.ledger("recover"))),
                None => failure,
            };
        };
        let state = state_name(task.status.as_ref().map(|status| status.state).unwrap_or_default());
        let message = format!("{}: task {} of context {} is {state}", failure.message, task.id, task.context_id);
        let failure = Failure { message, ..failure };
        match self.continuation().resume(&task) {
            Some(command) => failure.hint(format!("go on with: {command}")),
            None => failure,
        }
    }
}

/// What somebody has to know who gave credentials, where they don't go to the interface.
fn withheld(chosen: &Chosen) -> Option<String> {
    (chosen.credentials == card::Credentials::Withheld).then(|| {
        format!(
            "credentials and service parameters are not sent to {}: it is not on the host that was named (hint: \
             --any-interface sends them)",
            chosen.url
        )
    })
}

#[cfg(test)]
mod tests {
    use longhaul_client::card::{Binding, ProtocolVersion, Reach};

    use super::*;

    #[test]
    fn who_gave_credentials_is_told_where_they_do_not_go() {
        let chosen = |credentials| Chosen {
            binding: Binding::JsonRpc,
            url: "https://other.example/rpc".to_owned(),
            tenant: String::new(),
            version: ProtocolVersion::V1_0,
            index: 0,
            reach: Reach::INTERNET,
            credentials,
        };
        let note = withheld(&chosen(card::Credentials::Withheld)).unwrap();
        assert!(note.contains("not sent to https://other.example/rpc") && note.contains("--any-interface"), "{note}");
        assert_eq!(withheld(&chosen(card::Credentials::Sent)), None);
    }
}
