//! What a client's command says when it came to nothing: the contract's codes, its exit codes, and the next step.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use longhaul_client::{CardError, ClientError, error_name};
use longhaul_protocol::ErrorCode;
use serde_json::json;

use super::render::{clean, json};

/// What to do where it is not known what became of a request.
const ACTED_HINT: &str =
    "the agent may have acted on it all the same: look with longhaul task list before you try again";
/// The same, where it may only have taken longer.
const LATE_HINT: &str =
    "give it longer with --timeout; the agent may have acted on it all the same, so look with longhaul task list first";
/// Where a failure says how to see what was exchanged.
const DEBUG_HINT: &str = "--debug shows what was exchanged with the agent";

/// What makes a card trusted.
pub const TRUST_HINT: &str =
    "--card-keys names the keys that you trust to sign cards, --jku-allow the key sets that a card may point at";

/// The exit codes of the contract, but for 0, and one of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// It could not be done, and there is nothing more particular to say.
    Failed,
    /// The command line, or a setting, is wrong.
    Usage,
    /// The agent or its card could not be reached.
    Unreachable,
    /// There were no credentials, or they were refused.
    Unauthenticated,
    /// The time was over before the task came to rest.
    TimedOut,
    /// Something of the ledger waits for a person.
    NeedsPerson,
    /// A person ended it: the code that shells have for that.
    Interrupted,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Unauthenticated => 4,
            Self::TimedOut => 5,
            Self::NeedsPerson => 6,
            Self::Interrupted => 130,
        }
    }
}

macro_rules! local_codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal, $exit:ident;)+) => {
        /// The failures that the protocol has no name for. Those of the contract begin with `A2ACLI_ERR_`, ours with
        /// `LONGHAUL_ERR_`.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum LocalCode {
            $($(#[$doc])* $code,)+
        }

        impl LocalCode {
            /// Each code once.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$code,)+];

            /// The name on the outside.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }

            /// The exit code that goes with it.
            pub fn exit(self) -> Exit {
                match self {
                    $(Self::$code => Exit::$exit,)+
                }
            }
        }
    };
}

local_codes! {
    /// The command line, or a setting, is wrong.
    Usage = "A2ACLI_ERR_USAGE", Usage;
    /// The reference leads to no card.
    CardNotFound = "A2ACLI_ERR_CARD_NOT_FOUND", Unreachable;
    /// What the reference leads to is no card.
    CardInvalid = "A2ACLI_ERR_CARD_INVALID", Failed;
    /// Name, connection, or TLS.
    Unreachable = "A2ACLI_ERR_UNREACHABLE", Unreachable;
    /// The agent wants credentials and got none.
    CredentialsMissing = "A2ACLI_ERR_CREDENTIALS_MISSING", Unauthenticated;
    /// The agent refused the credentials.
    AuthFailed = "A2ACLI_ERR_AUTH_FAILED", Unauthenticated;
    /// The time was over.
    Timeout = "A2ACLI_ERR_TIMEOUT", TimedOut;
    /// Nothing better fits.
    Internal = "A2ACLI_ERR_INTERNAL", Failed;
    /// A rule of this client forbids it.
    Forbidden = "LONGHAUL_ERR_FORBIDDEN", Failed;
    /// The answer is larger than this client reads.
    AnswerTooLarge = "LONGHAUL_ERR_ANSWER_TOO_LARGE", Failed;
    /// The card has to be signed by a trusted key, and is not.
    NotVerified = "LONGHAUL_ERR_CARD_NOT_VERIFIED", Failed;
    /// The card is one, and names nothing that can be used.
    NoInterface = "LONGHAUL_ERR_NO_INTERFACE", Failed;
    /// The agent does not keep to the protocol.
    NotConformant = "LONGHAUL_ERR_NOT_CONFORMANT", Failed;
    /// Something of the ledger waits for a person.
    NeedsPerson = "LONGHAUL_ERR_NEEDS_PERSON", NeedsPerson;
    /// The ledger can't do what was asked.
    Ledger = "LONGHAUL_ERR_LEDGER", Failed;
    /// A person ended it.
    Interrupted = "LONGHAUL_ERR_INTERRUPTED", Interrupted;
    /// Something answered that does not speak A2A.
    NotA2a = "LONGHAUL_ERR_NOT_A2A", Failed;
}

/// Whether the caller gave credentials: without any, a refusal is not about wrong ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Credentials {
    /// None were given.
    Absent,
    /// Some were.
    Given,
}

/// Why a command came to nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The error's name of the protocol, or that of a [`LocalCode`].
    pub code: &'static str,
    /// What went wrong, with its causes.
    pub message: String,
    /// The next step, where there is one.
    pub hint: Option<Cow<'static, str>>,
    /// The code on the wire, where there is one.
    pub a2a_code: Option<i64>,
    /// How the process ends.
    pub exit: Exit,
}

impl Failure {
    /// A failure that the protocol has no name for.
    pub fn local(code: LocalCode, message: impl Into<String>) -> Self {
        Self { code: code.name(), message: message.into(), hint: None, a2a_code: None, exit: code.exit() }
    }

    /// Something is wrong with the command line or a setting.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::local(LocalCode::Usage, message)
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the client library says, in the contract's words.
    pub fn of(error: &ClientError, credentials: Credentials) -> Self {
        let local = |code| Self::local(code, told(error));
        match error {
            ClientError::Agent(error) => {
                Self::of_agent(error.name(), error.code, &error.error.message, error.wire_code)
            }
            ClientError::Unauthorized { .. } => unauthorized(told(error), credentials),
            ClientError::Http { status, .. } => {
                Self { a2a_code: Some(i64::from(*status)), ..of_status(*status, error) }
            }
            ClientError::Connect { .. } => local(LocalCode::Unreachable)
                .hint("check that the agent runs, and the reference given with --agent-card"),
            ClientError::Broken { .. } => local(LocalCode::Unreachable).hint(ACTED_HINT),
            ClientError::Timeout { .. } => local(LocalCode::Timeout).hint(LATE_HINT),
            ClientError::InvalidAnswer { .. } => {
                Self { code: error_name(ErrorCode::InvalidAgentResponse), ..local(LocalCode::Internal) }
                    .hint(DEBUG_HINT)
            }
            ClientError::TooLarge { .. } => local(LocalCode::AnswerTooLarge),
            ClientError::Card(card) => Self::of_card(card, credentials),
            ClientError::NotOffered { what } => Self::not_offered(what, told(error)),
            ClientError::Invalid { .. } => local(LocalCode::Usage),
            ClientError::Forbidden { .. } => local(LocalCode::Forbidden),
            ClientError::Credential { .. } => {
                local(LocalCode::AuthFailed).hint("longhaul auth status shows which credentials there are")
            }
            _ => local(LocalCode::Internal),
        }
    }

    fn of_agent(name: &'static str, code: Option<ErrorCode>, message: &str, wire_code: i64) -> Self {
        let hint = match code {
            Some(ErrorCode::VersionNotSupported) => {
                "longhaul card get shows the versions that the agent speaks; --a2a-version chooses one"
            }
            Some(ErrorCode::ContentTypeNotSupported) => {
                "longhaul card get --verbose shows the media types that the agent takes; --media-type says what a part is"
            }
            _ => DEBUG_HINT,
        };
        let message = if message.is_empty() { "the agent gave no reason" } else { message }.to_owned();
        Self { code: name, message, hint: Some(hint.into()), a2a_code: Some(wire_code), exit: Exit::Failed }
    }

    fn of_card(error: &CardError, credentials: Credentials) -> Self {
        let local = |code| Self::local(code, told(error));
        match error {
            CardError::Reference { .. } => {
                local(LocalCode::CardNotFound).hint("a reference is a host, a URL, or the path of a card in a file")
            }
            CardError::NotFound { source, .. } => match source.downcast_ref::<ClientError>() {
                Some(ClientError::Unauthorized { .. }) => unauthorized(told(error), credentials),
                Some(ClientError::Connect { .. } | ClientError::Broken { .. }) => local(LocalCode::Unreachable)
                    .hint("check that the agent runs, and the reference given with --agent-card"),
                Some(ClientError::Timeout { .. }) => local(LocalCode::Timeout).hint("give it longer with --timeout"),
                Some(ClientError::Forbidden { .. }) => local(LocalCode::Forbidden),
                _ => local(LocalCode::CardNotFound).hint("give the whole URL of the card, or the agent's host"),
            },
            CardError::Invalid { .. } => {
                local(LocalCode::CardInvalid).hint("longhaul card get --validate lists all that is wrong with it")
            }
            CardError::Unverified { .. } => local(LocalCode::NotVerified).hint(TRUST_HINT),
            CardError::NoInterface { allow: Some(version), .. } => {
                local(LocalCode::NoInterface).hint(format!("--a2a-version {version} speaks to it by that version"))
            }
            CardError::NoInterface { allow: None, .. } => local(LocalCode::NoInterface)
                .hint("longhaul card get shows the interfaces; --any-interface trusts the card to lead anywhere"),
            _ => local(LocalCode::Internal),
        }
    }

    /// The protocol has names for what an agent does not do (§3.3.2).
    fn not_offered(what: &str, message: String) -> Self {
        let code = match what {
            what if what.contains("push") => ErrorCode::PushNotificationNotSupported,
            _ => ErrorCode::UnsupportedOperation,
        };
        Self { code: error_name(code), ..Self::local(LocalCode::Internal, message) }
            .hint("longhaul card get shows what the agent offers")
    }

    /// The envelope of the contract (appendix B), on one line.
    pub fn envelope(&self) -> String {
        let error = json!({
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "a2aCode": self.a2a_code,
        });
        json::value(&json!({ "error": error }))
    }

    /// For people, on stderr.
    pub fn text(&self) -> String {
        let mut text = format!("longhaul: {} ({})\n", clean::line(&self.message), self.code);
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {}", clean::line(hint));
        }
        text
    }
}

fn unauthorized(message: String, credentials: Credentials) -> Failure {
    match credentials {
        Credentials::Absent => Failure::local(LocalCode::CredentialsMissing, message)
            .hint("longhaul card get shows what the agent asks for; give it with A2ACLI_BEARER or A2ACLI_API_KEY"),
        Credentials::Given => Failure::local(LocalCode::AuthFailed, message)
            .hint("the credentials were refused: longhaul config show says where they come from"),
    }
}

/// Something before the agent says that it cannot be reached; or it is no agent at all.
fn of_status(status: u16, error: &ClientError) -> Failure {
    match status {
        502..=504 => Failure::local(LocalCode::Unreachable, told(error)).hint(ACTED_HINT),
        _ => Failure::local(LocalCode::NotA2a, told(error)).hint(DEBUG_HINT),
    }
}

/// An error with its causes, each once.
pub fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
#[path = "failure/tests.rs"]
mod tests;
