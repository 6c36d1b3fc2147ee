//! Flags of `auth …`.

use clap::{Args, Subcommand, ValueEnum};

use crate::caller::options::Given;

use super::common::{AFTER, CallerFlags};
use super::said;

/// What stands below the help of `auth login`.
const LOGIN: &str = "\
The card says where one logs in. A code and a URL are shown on stderr: enter the code there, on any machine. With a client's
own credentials nobody is asked: A2ACLI_CLIENT_ID and A2ACLI_CLIENT_SECRET name it, and have to be there for later commands too,
since the secret is not kept. The token is, in ~/.config/a2a-cli/tokens.json, which nobody else can read, and goes with later
calls to this agent and to no other. --bearer and A2ACLI_BEARER are stronger.

Exit codes: 0 logged in, 1 it failed, 2 the command line is wrong, 3 the agent can't be reached, 4 the login was refused or its
code ran out, 5 the time was over, 130 it was interrupted.";

/// What to do about logins.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Get a token for an agent by OAuth 2, and keep it for later calls
    #[command(after_help = LOGIN)]
    Login(Box<LoginFlags>),
    /// Forget the tokens for an agent
    #[command(after_help = AFTER)]
    Logout(LogoutFlags),
    /// List the logins, and until when they hold; tokens are never shown
    #[command(after_help = AFTER)]
    Status(CallerFlags),
}

/// A way to a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Flow {
    /// A person enters a code in a browser.
    DeviceCode,
    /// The client shows its own secret.
    ClientCredentials,
}

/// Flags of `auth login`.
#[derive(Args, Debug)]
pub struct LoginFlags {
    /// The client's id, as whoever runs the authorization server gave it
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The client's secret. Others see it in the list of processes, and the shell keeps it: A2ACLI_CLIENT_SECRET is the better way
    #[arg(long, value_name = "SECRET")]
    client_secret: Option<String>,
    /// What the token is to be good for; repeatable [default: what the card asks for]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// The security scheme of the card to log in by [default: the first that it requires and that one can log in by]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// The way to the token [default: what the card says; without that, a code]
    #[arg(long, value_name = "FLOW", value_enum)]
    pub flow: Option<Flow>,
    /// Where tokens are given out, where the card does not say it, or is not to be believed
    #[arg(long, value_name = "URL")]
    pub token_url: Option<String>,
    /// Where codes are given out; with --token-url
    #[arg(long, value_name = "URL", requires = "token_url")]
    pub device_url: Option<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `auth logout`.
#[derive(Args, Debug)]
pub struct LogoutFlags {
    /// Forget the tokens for all agents
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub caller: CallerFlags,
}

impl AuthCommand {
    /// What the command line says about settings.
    pub fn given(&self) -> Given {
        match self {
            Self::Login(flags) => flags.given(),
            Self::Logout(flags) => flags.caller.given(),
            Self::Status(flags) => flags.given(),
        }
    }
}

impl LoginFlags {
    fn given(&self) -> Given {
        let mut given = self.caller.given();
        given.values.extend(said("client-id", &self.client_id));
        given.values.extend(said("client-secret", &self.client_secret));
        given
    }
}
