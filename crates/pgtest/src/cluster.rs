use std::fs;
use std::net::TcpListener;
use std::ops::Deref;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::Error;
use crate::home::{Home, random};
use crate::installation::Installation;
use crate::options::Options;
use crate::process;
use crate::server::Server;

/// How long a server may take until it answers, and until it has stopped.
const SERVER_DURATION_MAX: Duration = Duration::from_secs(30);

/// Ports below those that the kernel hands out to outgoing connections, so that none of them takes the port of a server
/// while it restarts.
const PORT_MIN: u16 = 15_000;
const PORT_COUNT: u16 = 17_000;
const PORT_TRIES: u32 = 50;

/// Whoever reaches the loopback may come, as any user.
const ACCESS: &str = "\
local all,replication all trust
host all,replication all 127.0.0.1/32 trust
";

/// How a server is asked to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Waits until all clients have left by themselves.
    Smart,
    /// Rolls back what runs and closes every connection: what an operator's restart does.
    Fast,
    /// Aborts without a checkpoint; the next start recovers, as after a crash.
    Immediate,
}

/// A PostgreSQL server with its data in a temporary folder.
///
/// It derefs to its [`Server`], which runs statements and makes databases. Dropping it ends the server at once and
/// removes its folder; the same happens when the process that started it ends or is killed.
#[derive(Debug)]
pub struct Cluster {
    installation: Installation,
    home: Home,
    options: Options,
    port: u16,
    server: Server,
    postmaster: Option<Child>,
}

impl Cluster {
    /// Makes the data of a new cluster and starts its server.
    ///
    /// # Errors
    ///
    /// [`Error::NotInstalled`] or [`Error::NoUser`] where there is no PostgreSQL. Else whatever failed, with the end of
    /// its log: making the data is limited to 60 s, the start to 30 s.
    pub fn start(options: Options) -> Result<Self, Error> {
        let installation = Installation::find()?;
        let home = Home::create(&installation, options.durability())?;
        home.run(
            &installation,
            "initdb",
            &["-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        )?;
        Self::start_in(home, installation, options)
    }

    /// Makes a streaming replica of this cluster and starts it. It answers reads when this returns.
    ///
    /// Replication is asynchronous, unless the cluster's `synchronous_standby_names` is set. The replica has a slot in
    /// this cluster, which keeps what it has not received yet.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), and when this cluster does not run.
    pub fn standby(&self) -> Result<Self, Error> {
        let home = Home::create(&self.installation, self.options.durability())?;
        let source = format!("host=127.0.0.1 port={} user=postgres", self.port);
        let slot = format!("standby_{:016x}", random());
        let copy = ["-D", "data", "-d", &source, "--checkpoint=fast", "--no-sync"];
        let follow = ["--wal-method=stream", "--write-recovery-conf", "--create-slot", "--slot", &slot];
        home.run(&self.installation, "pg_basebackup", &[copy.as_slice(), &follow].concat())?;
        Self::start_in(home, self.installation.clone(), self.options.clone())
    }

    /// Makes a standby the primary of its own, and returns when it takes writes.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`], also when it is no standby; [`Error::TimedOut`] after 30 s.
    pub fn promote(&self) -> Result<(), Error> {
        let seconds = SERVER_DURATION_MAX.as_secs();
        let rows = self.server.query("postgres", &format!("SELECT pg_promote(true, {seconds})"))?;
        if rows.first().and_then(|row| row.first()) == Some(&Some("t".to_owned())) {
            return Ok(());
        }
        Err(self.timed_out("promote itself", 0))
    }

    /// Waits until a standby has replayed all that `primary` has written by now.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`] when one of both does not answer; [`Error::TimedOut`] after 30 s.
    pub fn catch_up(&self, primary: &Server) -> Result<(), Error> {
        let written = primary.query("postgres", "SELECT pg_current_wal_flush_lsn()")?;
        let written = written.into_iter().flatten().flatten().next().unwrap_or_default();
        let replayed = format!("SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{written}'");
        let reached = process::poll(SERVER_DURATION_MAX, || {
            self.server.query("postgres", &replayed).map(|rows| (!rows.is_empty()).then_some(()))
        })?;
        reached.ok_or_else(|| self.timed_out("catch up", 0))
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The port on 127.0.0.1, the same for the cluster's whole life.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the postmaster, unless it was stopped or killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.postmaster.as_ref().map(Child::id)
    }

    /// The end of the server's log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.home.log_tail(0)
    }

    /// Stops the server and waits for its end. Does nothing when it does not run.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after 30 s, as when a client does not leave in [`Mode::Smart`]: it then still runs, and takes
    /// no new clients.
    pub fn stop(&mut self, mode: Mode) -> Result<(), Error> {
        let Some(postmaster) = &mut self.postmaster else {
            return Ok(());
        };
        let signal = match mode {
            Mode::Smart => Signal::TERM,
            Mode::Fast => Signal::INT,
            Mode::Immediate => Signal::QUIT,
        };
        process::signal(postmaster, signal);
        let waiting = |source| Error::Machine { action: "wait for", path: "postgres".into(), source };
        if process::poll(SERVER_DURATION_MAX, || postmaster.try_wait()).map_err(waiting)?.is_none() {
            return Err(self.timed_out("stop", 0));
        }
        self.postmaster = None;
        Ok(())
    }

    /// Kills the postmaster and all its children with SIGKILL, as a crash or the kernel's want of memory would, and
    /// waits until all are gone. The data stays, for [`restart`](Self::restart).
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when a process does not die within 30 s.
    pub fn kill(&mut self) -> Result<(), Error> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        process::signal(&postmaster, Signal::KILL);
        let _ = postmaster.wait();
        // With the postmaster gone nothing new is started. Its memory is free for the next one when the last has gone.
        let data = self.home.data();
        let gone = process::poll(SERVER_DURATION_MAX, || Ok((process::kill_all_in(&data) == 0).then_some(())))?;
        gone.ok_or_else(|| self.timed_out("die", 0))
    }

    /// Starts the server again, on the same port and data; one that runs is stopped in [`Mode::Fast`] first. Returns
    /// when it answers, after its recovery if it was killed.
    ///
    /// # Errors
    ///
    /// As for the server's start in [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop(Mode::Fast)?;
        self.launch()
    }

    /// Finds a port for a cluster whose data is there, and starts its server.
    fn start_in(home: Home, installation: Installation, options: Options) -> Result<Self, Error> {
        home.write("pg_hba.conf", ACCESS)?;
        let mut cluster = Self { installation, home, options, port: 0, server: Server::local(0), postmaster: None };
        for _ in 0..PORT_TRIES {
            let Some(port) = free_port() else { continue };
            cluster.port = port;
            cluster.server = Server::local(port);
            cluster.home.write("postgresql.conf", &cluster.options.configuration(port, cluster.home.folder()))?;
            match cluster.launch() {
                Ok(()) => return Ok(cluster),
                // Somebody else took it since.
                Err(Error::Failed { log, .. }) if log.contains("could not bind") => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::NoPort { tries: PORT_TRIES })
    }

    /// Starts the server and waits until it answers.
    fn launch(&mut self) -> Result<(), Error> {
        let data = self.home.data();
        let (log, log_start) = self.home.log()?;
        let mut command = self.installation.command("postgres", &data);
        let mut postmaster = self.home.spawn(command.arg("-D").arg(&data), log)?;
        let outcome = process::poll(SERVER_DURATION_MAX, || {
            let waiting = |source| Error::Machine { action: "wait for", path: "postgres".into(), source };
            if let Some(status) = postmaster.try_wait().map_err(waiting)? {
                let log = self.home.log_tail(log_start);
                return Err(Error::Failed { program: "postgres", outcome: status.to_string(), log });
            }
            Ok(self.says_ready(&postmaster).then_some(()))
        });
        // Kept also when it failed: then it is ours to end.
        self.postmaster = Some(postmaster);
        match outcome {
            Ok(Some(())) => self.server.execute("postgres", "SELECT 1"),
            Ok(None) => Err(self.timed_out("answer", log_start)),
            Err(error) => {
                self.postmaster = None;
                Err(error)
            }
        }
    }

    /// Whether the postmaster's file is that of this process, and says that it takes clients. A file of the one before
    /// it may still be there after a crash.
    fn says_ready(&self, postmaster: &Child) -> bool {
        let text = fs::read_to_string(self.home.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        lines.next() == Some(postmaster.id().to_string().as_str()) && lines.nth(6).map(str::trim) == Some("ready")
    }

    fn timed_out(&self, expected: &'static str, log_start: u64) -> Error {
        let log = self.home.log_tail(log_start);
        Error::TimedOut { program: "postgres", expected, limit: SERVER_DURATION_MAX, log }
    }
}

impl Deref for Cluster {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.home.close();
        if let Some(mut postmaster) = self.postmaster.take() {
            let _ = postmaster.wait();
        }
    }
}

fn free_port() -> Option<u16> {
    let port = PORT_MIN + u16::try_from(random() % u64::from(PORT_COUNT)).ok()?;
    TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
}
