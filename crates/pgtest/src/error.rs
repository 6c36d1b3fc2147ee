use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no cluster, or why it did not do what it was asked.
///
/// Its `Debug` form is the message with its causes and the end of the server's log, on lines of their own, so that a
/// test that unwraps it is readable.
#[derive(thiserror::Error)]
pub enum Error {
    /// No PostgreSQL server of a version that Longhaul supports is installed.
    #[error("there is no PostgreSQL {wanted} or later (hint: apt-get install postgresql); {looked}")]
    NotInstalled {
        /// The oldest version that would do.
        wanted: u32,
        /// Where it was looked for and what was there.
        looked: String,
    },
    /// PostgreSQL refuses to run as root, and the machine has no user to run it as.
    #[error("PostgreSQL does not run as root, and there is no user `{name}` (hint: apt-get install postgresql)")]
    NoUser {
        /// The user that was looked for.
        name: &'static str,
    },
    /// A server's address, as from the environment, is not of the form that tests can use.
    #[error("a server's address is like postgres://USER@HOST:PORT, with no database, and not `{address}`")]
    Address {
        /// The address.
        address: String,
    },
    /// The machine refused something.
    #[error("cannot {action} {}", path.display())]
    Machine {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file, folder or program it was attempted with.
        path: PathBuf,
        /// What the machine said.
        source: io::Error,
    },
    /// No free port was found.
    #[error("none of {tries} ports on 127.0.0.1 is free")]
    NoPort {
        /// How many were tried.
        tries: u32,
    },
    /// A program of PostgreSQL failed.
    #[error("{program} failed ({outcome}); its log ends:\n{log}")]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        outcome: String,
        /// The end of its log.
        log: String,
    },
    /// Something took too long.
    #[error("{program} did not {expected} within {limit:?}; its log ends:\n{log}")]
    TimedOut {
        /// The program.
        program: &'static str,
        /// What was waited for.
        expected: &'static str,
        /// For how long.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
    /// The cluster was stopped or killed, or ended by itself.
    #[error("the cluster does not run")]
    NotRunning,
    /// A statement failed, or there was no connection to send it on.
    #[error("cannot run `{statement}`")]
    Statement {
        /// The statement.
        statement: String,
        /// What the server or the connection said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "\n  caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
