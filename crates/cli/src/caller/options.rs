//! What a client's command is told: flags, then `A2ACLI_*` variables, then a local `.env`, then the global one, then defaults
//! (§7.2 and §8.3 of the contract).

mod dotenv;
mod setting;
mod show;
mod sources;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use longhaul_client::card::{Binding, OriginPolicy, ProtocolVersion};
use longhaul_client::signature::JkuAllowList;
use longhaul_client::{Identity, Secret, Verification};
use longhaul_protocol::json::JsonObject;

use super::failure::{Credentials, Failure};
use super::parts::json_object;
use super::render::{Continuation, Detail};
use crate::arguments::OutputForm;
use setting::Setting;
pub use show::show;
pub use sources::{Given, Sources, Surroundings, output_before, output_variable, parse_output};
use value::POLL_INTERVAL_DEFAULT;
pub use value::duration;

/// Whether the client says what it does, on stderr.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Diagnostics {
    /// It is silent.
    Off,
    /// It tells.
    On,
}

/// Whether a card that nobody vouches for may be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CardTrust {
    /// It may.
    Any,
    /// It has to be signed by a key that is trusted.
    Verified,
}

/// What each command of the client is told.
#[derive(Debug)]
pub struct Options {
    /// Which agent.
    pub agent_card: Option<String>,
    /// Which bindings are preferred, the most wanted first.
    pub transports: Vec<Binding>,
    /// Which version of the protocol is spoken; the card decides when absent.
    pub a2a_version: Option<ProtocolVersion>,
    /// A bearer token.
    pub bearer: Option<Secret>,
    /// An API key.
    pub api_key: Option<Secret>,
    /// Service parameters (§3.2.6), in the order in which they were given.
    pub service_params: Vec<(HeaderName, HeaderValue)>,
    /// Whether certificates are verified.
    pub verification: Verification,
    /// Certificates to be trusted besides those of the system, as PEM.
    pub ca: Option<PathBuf>,
    /// What shows the agent who calls.
    pub identity: Option<Identity>,
    /// Where a card may lead.
    pub origins: OriginPolicy,
    /// Keys that are trusted to sign cards.
    pub card_keys: Option<PathBuf>,
    /// Which key sets a card may point at.
    pub jku_allow: JkuAllowList,
    /// Whether a card that nobody vouches for may be used.
    pub trust: CardTrust,
    /// Who the caller is for authorization servers.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<Secret>,
    /// The file of logins, where there is a place for it.
    pub tokens: Option<PathBuf>,
    /// The ledger, where there is a place for it.
    pub ledger: Option<PathBuf>,
    /// How long a command may take; as long as it takes when absent.
    pub timeout: Option<Duration>,
    /// How often a task that is waited for is asked for.
    pub poll_interval: Duration,
    /// What stdout is for.
    pub output: OutputForm,
    /// How much is shown.
    pub detail: Detail,
    /// Whether stderr tells what is done.
    pub diagnostics: Diagnostics,
    /// What a command that goes on has to be given.
    pub continuation: Continuation,
}

impl Options {
    /// What the sources say.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] that names the source of a value that is wrong.
    pub fn resolve(sources: &Sources) -> Result<Self, Failure> {
        let is = |key| Ok::<_, Failure>(sources.typed(key, value::switch)?.unwrap_or(false));
        let word = |key| sources.typed(key, value::word);
        let secret = |key| sources.typed(key, value::secret);
        Ok(Self {
            agent_card: word(Setting::AgentCard)?,
            transports: sources.typed(Setting::Transport, value::transports)?.unwrap_or_default(),
            a2a_version: sources.typed(Setting::A2aVersion, value::version)?,
            bearer: secret(Setting::Bearer)?,
            api_key: secret(Setting::ApiKey)?,
            service_params: sources.typed(Setting::SvcParam, value::service_params)?.unwrap_or_default(),
            verification: if is(Setting::Insecure)? { Verification::Off } else { Verification::Full },
            ca: word(Setting::Ca)?.map(PathBuf::from),
            identity: identity(sources)?,
            origins: if is(Setting::AnyInterface)? { OriginPolicy::ANY } else { OriginPolicy::default() },
            card_keys: word(Setting::CardKeys)?.map(PathBuf::from),
            jku_allow: sources.typed(Setting::JkuAllow, value::jku_allow)?.unwrap_or_default(),
            trust: if is(Setting::RequireVerified)? { CardTrust::Verified } else { CardTrust::Any },
            client_id: word(Setting::ClientId)?,
            client_secret: secret(Setting::ClientSecret)?,
            tokens: sources.tokens.clone(),
            ledger: word(Setting::Ledger)?.map(PathBuf::from).or_else(|| sources.ledger.clone()),
            timeout: sources.typed(Setting::Timeout, value::timeout)?.flatten(),
            poll_interval: sources.typed(Setting::PollInterval, value::poll_interval)?.unwrap_or(POLL_INTERVAL_DEFAULT),
            output: sources.typed(Setting::Output, value::output)?.unwrap_or(OutputForm::Text),
            detail: if is(Setting::Verbose)? { Detail::Verbose } else { Detail::Concise },
            diagnostics: if is(Setting::Debug)? { Diagnostics::On } else { Diagnostics::Off },
            continuation: Continuation::new(sources.carried()).with_ledger(sources.carried_ledger()),
        })
    }

    /// Whether there is a credential.
    pub fn credentials(&self) -> Credentials {
        match (&self.bearer, &self.api_key) {
            (None, None) => Credentials::Absent,
            _ => Credentials::Given,
        }
    }

    /// Whether something is sent that nobody else should read: to an agent, or at a login.
    pub fn holds_secrets(&self) -> bool {
        self.credentials() == Credentials::Given || self.client_secret.is_some() || !self.service_params.is_empty()
    }

    /// Which agent, where a command needs one.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when nothing says it.
    pub fn agent(&self) -> Result<&str, Failure> {
        self.agent_card.as_deref().ok_or_else(|| {
            Failure::usage("no agent is named").hint("name it with --agent-card REF, or set A2ACLI_AGENT_CARD")
        })
    }
}

/// A certificate is of use with its key only.
fn identity(sources: &Sources) -> Result<Option<Identity>, Failure> {
    let path = |setting| sources.typed(setting, value::word).map(|path| path.map(PathBuf::from));
    match (path(Setting::ClientCert)?, path(Setting::ClientKey)?) {
        (Some(certificates), Some(key)) => Ok(Some(Identity { certificates, key })),
        (None, None) => Ok(None),
        _ => Err(Failure::usage("--client-cert and --client-key need each other").hint("give both, as PEM files")),
    }
}

/// Whether a send waits until the task rests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waiting {
    /// Until it has ended or waits for the caller.
    UntilRest,
    /// Only until the agent has taken it on.
    No,
}

/// What `send` is told besides.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Whether it waits.
    pub waiting: Waiting,
    /// The context that the message belongs to.
    pub context_id: Option<String>,
    /// The task that the message continues.
    pub task_id: Option<String>,
    /// Metadata of the message.
    pub metadata: Option<JsonObject>,
    /// Media types that are accepted in answer; any when empty.
    pub accept: Vec<String>,
}

impl SendOptions {
    /// What the sources say.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] that names the source of a value that is wrong.
    pub fn resolve(sources: &Sources) -> Result<Self, Failure> {
        let asynchronous = sources.typed(Setting::Async, value::switch)?.unwrap_or(false);
        Ok(Self {
            waiting: if asynchronous { Waiting::No } else { Waiting::UntilRest },
            context_id: sources.typed(Setting::ContextId, value::word)?,
            task_id: sources.typed(Setting::TaskId, value::word)?,
            metadata: sources.typed(Setting::Metadata, json_object)?,
            accept: sources.typed(Setting::Accept, value::list)?.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
#[path = "options/tests.rs"]
mod tests;
