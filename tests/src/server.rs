//! One process of the server, with a folder and a port that outlive it.

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::http::{Connection, Request};
use crate::{until, within};

/// How long a server may take to become ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// How many free ports are tried: somebody else may take one between our look and the bind.
const PORT_TRIES: u32 = 5;

/// Where the server keeps its tasks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Store {
    /// In memory.
    Memory,
    /// In a SQLite file.
    Sqlite,
    /// In the PostgreSQL database with this address.
    Postgres(String),
}

impl Store {
    /// The value of `--store`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres(url) => url,
        }
    }
}

/// What does the work.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TestAgent {
    /// That of `longhaul demo-server`.
    #[default]
    Demo,
    /// `longhaul serve --exec` with this command.
    Exec(String),
    /// `longhaul serve --exec-jsonl` with this command.
    ExecJsonl(String),
}

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Where it keeps its tasks.
    pub store: Store,
    /// What does the work.
    pub agent: TestAgent,
    /// Its `longhaul.toml`; none when empty.
    pub config: String,
    /// Further arguments.
    pub args: Vec<String>,
    /// What stands before the name of the binary on the command line.
    pub wrapper: Vec<String>,
    /// Further variables.
    pub env: Vec<(String, String)>,
}

impl Launch {
    /// The demo agent on this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let (config, args, wrapper, env) = (String::new(), Vec::new(), Vec::new(), Vec::new());
        Self { store, agent: TestAgent::Demo, config, args, wrapper, env }
    }

    /// The demo agent on SQLite with these lines as `longhaul.toml`.
    #[must_use]
    pub fn sqlite(config: &str) -> Self {
        Self { config: config.to_owned(), ..Self::new(Store::Sqlite) }
    }

    /// The demo agent with these lines as `longhaul.toml`, on a database that [`Fleet`](crate::Fleet) names.
    #[must_use]
    pub fn postgres(config: &str) -> Self {
        Self { config: config.to_owned(), ..Self::new(Store::Postgres(String::new())) }
    }

    /// Another agent.
    #[must_use]
    pub fn agent(self, agent: TestAgent) -> Self {
        Self { agent, ..self }
    }
}

/// The binary under test: `LONGHAUL_BIN`, or `longhaul` in the target folder of this test.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("LONGHAUL_BIN") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "LONGHAUL_BIN is no file: {}", path.display());
        return path;
    }
    // target/PROFILE/deps/TEST-HASH
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.ancestors().nth(2).expect("a test lies in a target folder").join("longhaul");
    assert!(
        path.is_file(),
        "there is no {}; build it first: cargo build -p longhaul, or set LONGHAUL_BIN",
        path.display()
    );
    path
}

/// A folder that is removed in the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes an empty folder.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("longhaul-tests-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is left to the system's own cleaning.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server process. Dropping it kills the process, and fails the test when the server has panicked.
#[derive(Debug)]
pub struct Server {
    folder: Folder,
    launch: Launch,
    addr: SocketAddr,
    child: Option<Child>,
    /// How long the log was when the process was started.
    log_before: usize,
}

impl Server {
    /// Starts a server on an empty folder and waits until it is ready.
    pub async fn start(store: Store) -> Self {
        Self::start_with(store, &[]).await
    }

    /// Starts a server with more arguments.
    pub async fn start_with(store: Store, extra: &[&str]) -> Self {
        let args = extra.iter().map(|&word| word.to_owned()).collect();
        Self::launch(Launch { args, ..Launch::new(store) }).await
    }

    /// Starts a server as this says, on an empty folder, and waits until it is ready.
    pub async fn launch(launch: Launch) -> Self {
        let mut servers = Self::launch_all([launch]).await;
        servers.pop().expect("it was just started")
    }

    /// Starts several servers at once, each on an empty folder, and waits until all are ready.
    pub async fn launch_all(launches: impl IntoIterator<Item = Launch>) -> Vec<Self> {
        let new = |launch| Self { folder: Folder::new(), launch, addr: free_addr(), child: None, log_before: 0 };
        let mut servers: Vec<Self> = launches.into_iter().map(new).collect();
        servers.iter_mut().for_each(Self::spawn);
        for server in &mut servers {
            let mut outcome = server.ready().await;
            for _ in 1..PORT_TRIES {
                match outcome {
                    Err(log) if log.to_lowercase().contains("in use") => server.addr = free_addr(),
                    other => {
                        outcome = other;
                        break;
                    }
                }
                outcome = server.try_run().await;
            }
            if let Err(log) = outcome {
                panic!("the server did not start:\n{log}");
            }
        }
        servers
    }

    /// Starts the process again, on the same folder and port.
    pub async fn run(&mut self) {
        if let Err(log) = self.try_run().await {
            panic!("the server did not start:\n{log}");
        }
    }

    /// Starts the process again, and says whether it became ready; it may end before.
    pub async fn run_or_end(&mut self) -> bool {
        self.try_run().await.is_ok()
    }

    async fn try_run(&mut self) -> Result<(), String> {
        self.spawn();
        self.ready().await
    }

    /// Waits until the process is ready, or has ended.
    async fn ready(&mut self) -> Result<(), String> {
        let (addr, limit, log, before) = (self.addr, READY_MAX, self.log_path(), self.log_before);
        let says_so = || {
            let log = std::fs::read(&log).unwrap_or_default();
            String::from_utf8_lossy(log.get(before..).unwrap_or_default()).contains(&format!("http://{addr}"))
        };
        let child = self.child.as_mut().expect("it was just started");
        let ended = until(limit, "the server becomes ready", async || {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(Some(status));
            }
            // Another server may have taken the port, and answer there.
            (says_so() && is_ready(addr).await).then_some(None)
        })
        .await;
        match ended {
            None => Ok(()),
            Some(status) => {
                self.child = None;
                Err(format!("{status}\n{}", self.log_tail()))
            }
        }
    }

    fn spawn(&mut self) {
        assert!(self.child.is_none(), "the server runs already");
        self.log_before = std::fs::read(self.log_path()).map_or(0, |log| log.len());
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the log can be written");
        let child = self
            .command(self.addr)
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("the binary can be started");
        self.child = Some(child);
    }

    /// The command line of a server on this folder that listens on `addr`: this one, or another that
    /// has to be refused.
    #[must_use]
    pub fn command(&self, addr: SocketAddr) -> Command {
        let launch = &self.launch;
        let mut words: Vec<OsString> = launch.wrapper.iter().map(Into::into).collect();
        words.push(binary().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if !launch.config.is_empty() {
            std::fs::write(self.folder.path().join("longhaul.toml"), &launch.config).expect("a file can be written");
        }
        // Neither a file in the current folder nor a variable of the caller is a setting of the server.
        command.current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LONGHAUL_") {
                command.env_remove(name);
            }
        }
        match &launch.agent {
            TestAgent::Demo => command.arg("demo-server"),
            TestAgent::Exec(line) => command.arg("serve").arg("--exec").arg(line),
            TestAgent::ExecJsonl(line) => command.arg("serve").arg("--exec-jsonl").arg(line),
        };
        if !matches!(launch.store, Store::Postgres(_)) {
            command.arg("--data").arg(self.data());
        }
        command
            .arg("--listen")
            .arg(addr.to_string())
            .arg("--store")
            .arg(launch.store.name())
            .args(&launch.args)
            .env("RUST_BACKTRACE", "1")
            .env("NO_COLOR", "1")
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// How it is started from the next time on.
    pub fn launch_mut(&mut self) -> &mut Launch {
        &mut self.launch
    }

    /// The folder that it runs in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        let child = self.child.as_mut().expect("the server was started");
        matches!(child.try_wait(), Ok(None))
    }

    /// Where the server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The folder with its data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        let child = self.child.as_ref().expect("the server runs");
        child.id().expect("nobody has waited for it")
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has an id"), signal).expect("it is our child");
    }

    /// Ends the process with SIGKILL: what it had not stored is gone.
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(10)).await;
    }

    /// Waits until the process has ended.
    pub async fn wait(&mut self, limit: Duration) -> ExitStatus {
        let mut child = self.child.take().expect("the server runs");
        let status = within(limit, "the server ends", child.wait()).await;
        status.expect("it is our child")
    }

    /// Everything that it printed, since the first start.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The newest lines of it.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// How many files and sockets it has open.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let path = format!("/proc/{}/fd", self.pid());
        std::fs::read_dir(path).expect("the server runs").count()
    }

    /// How much memory is resident, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("Linux says how much is resident") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the server's log ends so:\n{}", self.log_tail());
        } else {
            assert!(!self.log().contains("panicked at"), "the server panicked:\n{}", self.log_tail());
        }
    }
}

/// An address of this machine that nobody listens on.
#[must_use]
pub fn free_addr() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("a bound socket has an address")
}

async fn is_ready(addr: SocketAddr) -> bool {
    readiness(addr).await == Some(200)
}

/// The status of `/readyz`; none when nobody listens or answers.
pub async fn readiness(addr: SocketAddr) -> Option<u16> {
    let mut connection = Connection::open(addr).await.ok()?;
    let answer = connection.exchange(&Request::get("/readyz")).await;
    answer.ok().map(|answer| answer.status)
}
