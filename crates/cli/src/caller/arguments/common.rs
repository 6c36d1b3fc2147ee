//! The options of each of the client's commands (§7.2 of the contract).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::caller::options::Given;

use super::said;

/// What stands below the help of each command.
pub const AFTER: &str = "\
Each option with a value can also be an environment variable, or a line of a file: A2ACLI_ and its name in capitals, such as
A2ACLI_AGENT_CARD or A2ACLI_POLL_INTERVAL. What is asked first wins: flags, variables, the nearest .env from the working
directory upwards (or the file of --config), ~/.config/a2a-cli/.env, the defaults above. longhaul config show says what is in
effect, and why. Only --stream, --save and --interactive are always flags.

Exit codes: 0 it was done, however the agent decided, 1 it failed, 2 the command line is wrong, 3 the agent can't be reached,
4 it wants other credentials, 5 the time was over, 130 it was interrupted.";

/// The heading of these options.
const HEADING: &str = "Options of all client's commands";

/// How a switch is written: `--debug`, or `--debug=false` to take a setting back.
const SWITCH: &str = "BOOL";

/// Options of each of the client's commands.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct CallerFlags {
    /// The agent: a host, the URL of its card, or a file with its card
    #[arg(short = 'a', long, value_name = "REF")]
    agent_card: Option<String>,
    /// A binding that is preferred: jsonrpc, http+json, grpc; repeatable, the most wanted first [default: the card's order]
    #[arg(long, value_name = "BINDING")]
    transport: Vec<String>,
    /// The version of the protocol to speak; 0.3 is spoken only if it is named [default: the highest that both speak, never below 1.0]
    #[arg(long, value_name = "VERSION")]
    a2a_version: Option<String>,
    /// A bearer token. Others see it in the list of processes, and the shell keeps it: A2ACLI_BEARER is the better way
    #[arg(long, value_name = "TOKEN")]
    bearer: Option<String>,
    /// An API key. Others see it in the list of processes, and the shell keeps it: A2ACLI_API_KEY is the better way
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// A service parameter, sent as a header or as gRPC metadata; repeatable
    #[arg(long, value_name = "NAME:VALUE")]
    svc_param: Vec<String>,
    /// Do not verify the agent's certificate: for development only [default: verified]
    #[arg(long, value_name = SWITCH, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    insecure: Option<String>,
    /// Certificates to trust besides those of the system, as PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// A certificate to show the agent, as PEM; with --client-key
    #[arg(long, value_name = "FILE")]
    client_cert: Option<String>,
    /// The private key of that certificate, as PEM
    #[arg(long, value_name = "FILE")]
    client_key: Option<String>,
    /// Let the card send calls, and credentials with them, to any address [default: its own host, and others on the internet by
    /// https without credentials]
    #[arg(long, value_name = SWITCH, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    any_interface: Option<String>,
    /// Keys that are trusted to sign cards: a file with a JWK set, or one JWK
    #[arg(long, value_name = "FILE")]
    card_keys: Option<String>,
    /// A key set that the signatures of a card may point at, by its URL, or all of an origin; repeatable [default: none]
    #[arg(long, value_name = "URL")]
    jku_allow: Vec<String>,
    /// Use only cards that are signed by a trusted key, and of them only what the signature covers [default: any card]
    #[arg(long, value_name = SWITCH, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    require_verified: Option<String>,
    /// How long it may take: 90s, 1m30s, or none [default: none]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// How often a task that is waited for is asked for [default: 2s]
    #[arg(long, value_name = "TIME")]
    poll_interval: Option<String>,
    /// What stdout is for: text for people, json for programs [default: text]
    #[arg(short = 'o', long, value_name = "FORM")]
    output: Option<String>,
    /// Show each part of what was exchanged [default: concise]
    #[arg(long, value_name = SWITCH, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    verbose: Option<String>,
    /// Tell on stderr what is done, with the messages on the wire; never credentials
    #[arg(long, value_name = SWITCH, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    debug: Option<String>,
    /// A .env file that stands in for the local one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl CallerFlags {
    /// What they say.
    pub fn given(&self) -> Given {
        let joined = |values: &[String], between| (!values.is_empty()).then(|| values.join(between));
        let values = [
            said("agent-card", &self.agent_card),
            said("transport", &joined(&self.transport, ",")),
            said("a2a-version", &self.a2a_version),
            said("bearer", &self.bearer),
            said("api-key", &self.api_key),
            said("svc-param", &joined(&self.svc_param, "\n")),
            said("insecure", &self.insecure),
            said("ca", &self.ca),
            said("client-cert", &self.client_cert),
            said("client-key", &self.client_key),
            said("any-interface", &self.any_interface),
            said("card-keys", &self.card_keys),
            said("jku-allow", &joined(&self.jku_allow, ",")),
            said("require-verified", &self.require_verified),
            said("timeout", &self.timeout),
            said("poll-interval", &self.poll_interval),
            said("output", &self.output),
            said("verbose", &self.verbose),
            said("debug", &self.debug),
        ];
        Given { config: self.config.clone(), values: values.into_iter().flatten().collect() }
    }
}

/// Whether what comes is written as it comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Delivery {
    /// When all of it is there: one document.
    Whole,
    /// As it comes: one document a line.
    Stream,
}

/// The flag `--stream`.
#[derive(Args, Clone, Copy, Debug)]
pub struct StreamFlag {
    /// Write what comes as it comes; with -o json one document a line
    #[arg(long)]
    stream: bool,
}

impl StreamFlag {
    /// What it says.
    pub fn delivery(self) -> Delivery {
        if self.stream { Delivery::Stream } else { Delivery::Whole }
    }
}
