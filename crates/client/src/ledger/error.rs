//! What can go wrong with the ledger.

use std::path::PathBuf;
use std::time::Duration;

use longhaul_protocol::Timestamp;
use thiserror::Error;

use super::{EntryId, NotAllowed};
use crate::Cause;

/// Why the ledger could not do what was asked. Nothing of it was done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There is no such entry.
    #[error("the ledger has no entry {entry}")]
    NotFound {
        /// The entry.
        entry: EntryId,
    },
    /// The entry can't be read: the file was changed by something else, or is damaged.
    #[error("entry {entry} of the ledger can't be read: {problem}")]
    Corrupt {
        /// The entry.
        entry: EntryId,
        /// Which of its members, and what is wrong with it.
        problem: String,
    },
    /// What was given can't be written down.
    #[error("{field} {problem}")]
    Invalid {
        /// What was given.
        field: &'static str,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// It can't follow on how the entry stands.
    #[error("entry {entry} can't be changed so")]
    NotAllowed {
        /// The entry.
        entry: EntryId,
        /// Why not.
        source: NotAllowed,
    },
    /// Only settled entries can be removed.
    #[error("entry {entry} is not settled")]
    NotSettled {
        /// The entry.
        entry: EntryId,
    },
    /// The entry changed since it was read: read it again and decide again.
    #[error("entry {entry} changed meanwhile: it has version {found}, not {expected}")]
    Conflict {
        /// The entry.
        entry: EntryId,
        /// The version that was expected.
        expected: u64,
        /// The version that it has.
        found: u64,
    },
    /// Another follower has it.
    #[error("entry {entry} is followed by {by} (until {until}, unless that is renewed)")]
    Claimed {
        /// The entry.
        entry: EntryId,
        /// Who follows it.
        by: String,
        /// When the claim runs out.
        until: Timestamp,
    },
    /// The claim ran out or was taken over, and another may follow the entry: stop following it.
    #[error("entry {entry} is no longer followed from here")]
    ClaimLost {
        /// The entry.
        entry: EntryId,
    },
    /// Other processes kept the file locked for all of this time: try again.
    #[error("other processes kept the ledger busy for {} s", after.as_secs())]
    Busy {
        /// How long it was waited.
        after: Duration,
    },
    /// The file was made by a newer release, which changed its form.
    #[error("{} has schema {found}, and this release knows schemas up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file's schema.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The file was made by something else.
    #[error("{} is not a ledger of Longhaul", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The folder or the file can't be used.
    #[error("cannot {action} {}", path.display())]
    Files {
        /// What was attempted.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The database failed: a full disk, a broken one, a damaged file.
    #[error("the ledger cannot {action}")]
    Unavailable {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        source: Cause,
    },
    /// The ledger was closed.
    #[error("the ledger is closed")]
    Closed,
}
