//! Other people's A2A servers, unchanged, for our client to be tested against.
//!
//! An agent of `tests/peers` stands on each SDK's own server and in-memory store, and does what the words of a message say:
//! those of `longhaul demo-server` but `stubborn`, and three more. `data` makes an artifact with JSON, `file` one with bytes
//! ([`FILE`]), and `raise` raises before the first event.
//!
//! What they need is installed by `./test --only rust`; where it is missing, a test fails.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::http::{Connection, Request};
use crate::server::Folder;
use crate::{Binding, Operation, within};

/// How long a peer may take to become ready: its packages are large, and tests run side by side.
const READY_MAX: Duration = Duration::from_secs(60);
/// How many lines of its log a failure shows.
const LOG_LINES: usize = 40;
const CARD_PATH: &str = "/.well-known/agent-card.json";

/// The bytes in the artifact `file`: one of each.
pub const FILE: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut index = 0;
    while index < 256 {
        bytes[index] = index as u8;
        index += 1;
    }
    bytes
};

/// Whose server it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sdk {
    /// `a2a-sdk` of PyPI.
    Python,
    /// `@a2a-js/sdk` of npm.
    JavaScript,
    /// `a2a-sdk` of PyPI as it was for v0.3, which speaks nothing else.
    PythonOld,
}

impl Sdk {
    /// Those that speak v1.0.
    pub const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    /// The program and the agent that it runs.
    ///
    /// # Panics
    ///
    /// When something is missing.
    fn command(self) -> Command {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (program, installed, agent) = match self {
            Self::Python => (tests.join(".work/venv/bin/python"), tests.join(".work/venv/stamp"), "python_agent.py"),
            Self::PythonOld => {
                (tests.join(".work/venv-v03/bin/python"), tests.join(".work/venv-v03/stamp"), "python_agent_v03.py")
            }
            Self::JavaScript => (node(tests), tests.join("js/node_modules/.stamp"), "js_agent.js"),
        };
        assert!(
            installed.is_file(),
            "the packages of the {self:?} SDK are not installed: there is no {}; run ./test --only rust once",
            installed.display()
        );
        let mut command = Command::new(program);
        command.arg(tests.join("peers").join(agent));
        command
    }
}

/// The Node that `./test` has installed where the machine's is too old, else the machine's.
fn node(tests: &Path) -> PathBuf {
    let folders = std::fs::read_dir(tests.join("js/node20/node_modules")).into_iter().flatten().flatten();
    let programs = folders.map(|folder| folder.path().join("bin/node"));
    programs.into_iter().find(|program| program.is_file()).unwrap_or_else(|| PathBuf::from("node"))
}

/// What the card says instead of the real addresses, when a proxy stands between.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    /// Where JSON-RPC and HTTP+JSON are.
    pub http: Option<SocketAddr>,
    /// Where gRPC is.
    pub grpc: Option<SocketAddr>,
}

/// A peer's process. Dropping it kills the process.
#[derive(Debug)]
pub struct Peer {
    sdk: Sdk,
    folder: Folder,
    child: Child,
    http: SocketAddr,
    grpc: SocketAddr,
    card: Value,
    _reading: JoinSet<()>,
}

impl Peer {
    /// Starts the Python SDK's server.
    pub async fn python() -> Self {
        Self::start(Sdk::Python).await
    }

    /// Starts the JavaScript SDK's server.
    pub async fn js() -> Self {
        Self::start(Sdk::JavaScript).await
    }

    /// Starts a server and waits until it is ready.
    pub async fn start(sdk: Sdk) -> Self {
        Self::named(sdk, Named::default()).await
    }

    /// The same with a card that names other addresses.
    ///
    /// # Panics
    ///
    /// When a tool is missing, or the server does not start.
    pub async fn named(sdk: Sdk, named: Named) -> Self {
        let folder = Folder::new();
        let log = File::create(folder.path().join("peer.log")).expect("the log can be written");
        let mut command = sdk.command();
        for (option, addr) in [("--http-as", named.http), ("--grpc-as", named.grpc)] {
            command.args(addr.iter().flat_map(|addr| [option.to_owned(), addr.to_string()]));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("the {sdk:?} peer can't be started ({error}): {command:?}; run ./test --only rust once")
        });
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        within(READY_MAX, "the peer becomes ready", stdout.read_line(&mut line)).await.expect("it can be read");
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("the {sdk:?} peer did not start, is ./test --only rust due?\n{line}{}", log_tail(&folder))
        });
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            // What it says later is of no interest, and must not fill the pipe.
            let mut rest = Vec::new();
            while stdout.read_buf(&mut rest).await.is_ok_and(|read| read > 0) {
                rest.clear();
            }
        });
        let (http, grpc) = addresses(&ready);
        let card = card(http).await;
        Self { sdk, folder, child, http, grpc, card, _reading: reading }
    }

    /// Whose it is.
    #[must_use]
    pub fn sdk(&self) -> Sdk {
        self.sdk
    }

    /// Where its card is.
    #[must_use]
    pub fn card_url(&self) -> String {
        format!("http://{}{CARD_PATH}", self.http)
    }

    /// Its card.
    #[must_use]
    pub fn card(&self) -> &Value {
        &self.card
    }

    /// Where JSON-RPC and HTTP+JSON really are.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where gRPC really is.
    #[must_use]
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// The URL that its card gives for a binding. That of gRPC has no scheme, as both SDKs write it.
    ///
    /// # Panics
    ///
    /// When the card does not offer it, or is one of v0.3.
    #[must_use]
    pub fn url(&self, binding: Binding) -> &str {
        let interfaces = self.card["supportedInterfaces"].as_array().into_iter().flatten();
        let found = interfaces.into_iter().find(|interface| interface["protocolBinding"] == binding.card_name());
        found.and_then(|interface| interface["url"].as_str()).unwrap_or_else(|| panic!("{binding:?}: {}", self.card))
    }

    /// The bindings that it offers: all, in both SDKs.
    #[must_use]
    pub fn bindings(&self) -> &'static [Binding] {
        &Binding::ALL
    }

    /// Whether it has this operation: each of the protocol, over each binding, in both SDKs; those of Longhaul in none.
    #[must_use]
    pub fn offers(&self, operation: Operation) -> bool {
        !matches!(operation, Operation::ListArtifactVersions | Operation::GetArtifact)
    }

    /// Ends the process at once. Its tasks are gone, and nobody listens any more.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("it is our child");
    }

    /// The newest lines of what it wrote to stderr.
    #[must_use]
    pub fn log_tail(&self) -> String {
        log_tail(&self.folder)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the log of the {:?} peer ends so:\n{}", self.sdk, self.log_tail());
        }
    }
}

fn log_tail(folder: &Folder) -> String {
    let log = std::fs::read(folder.path().join("peer.log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Where it listens, of what it said.
fn addresses(ready: &Value) -> (SocketAddr, SocketAddr) {
    let port = |url: &str| url.split('/').nth(2)?.rsplit(':').next()?.parse::<u16>().ok();
    let grpc = ready["grpc"].as_u64().and_then(|port| u16::try_from(port).ok());
    let http = ready["card"].as_str().and_then(port);
    let local = |port: Option<u16>| SocketAddr::from(([127, 0, 0, 1], port.expect("a ready peer names its ports")));
    (local(http), local(grpc))
}

async fn card(http: SocketAddr) -> Value {
    let answer = async {
        let mut connection = Connection::open(http).await?;
        connection.exchange(&Request::get(CARD_PATH)).await
    };
    let answer = within(READY_MAX, "a peer's card", answer).await.expect("a ready peer answers");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}
