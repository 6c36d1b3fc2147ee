//! Flags of `ledger …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::caller::options::duration;

use super::common::{AFTER, CallerFlags};

/// What to do with what was written down.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// List what was delegated, and how it stands
    #[command(after_help = AFTER)]
    List(EntriesFlags),
    /// Show one delegation
    #[command(after_help = AFTER)]
    Show(EntryFlags),
    /// Find every task again after a crash, follow it, and say what needs a person
    #[command(after_help = AFTER)]
    Recover(EntriesFlags),
    /// Settle by hand what can not be settled otherwise
    #[command(after_help = AFTER)]
    Resolve(ResolveFlags),
    /// Remove one delegation
    #[command(after_help = AFTER)]
    Remove(EntryFlags),
    /// Remove what was settled long ago
    #[command(after_help = AFTER)]
    Prune(PruneFlags),
}

impl LedgerCommand {
    /// The options of all client's commands.
    pub fn caller(&self) -> &CallerFlags {
        match self {
            Self::List(flags) | Self::Recover(flags) => &flags.ledger.caller,
            Self::Show(flags) | Self::Remove(flags) => &flags.ledger.caller,
            Self::Resolve(flags) => &flags.ledger.caller,
            Self::Prune(flags) => &flags.ledger.caller,
        }
    }
}

/// Which file it is.
#[derive(Args, Debug)]
pub struct LedgerFlags {
    /// The file [default: the usual place]
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `ledger list` and `ledger recover`.
#[derive(Args, Debug)]
pub struct EntriesFlags {
    /// Those that are settled too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub ledger: LedgerFlags,
}

/// Flags of `ledger show` and `ledger remove`.
#[derive(Args, Debug)]
pub struct EntryFlags {
    /// The delegation's id, or its task's
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub ledger: LedgerFlags,
}

/// Flags of `ledger resolve`.
#[derive(Args, Debug)]
pub struct ResolveFlags {
    /// The delegation's id, or its task's
    #[arg(value_name = "ID")]
    pub id: String,
    /// What is known of it
    #[arg(long = "as", value_name = "END", value_enum)]
    pub end: ResolveTo,
    /// Why, to be written down
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    #[command(flatten)]
    pub ledger: LedgerFlags,
}

/// What a person knows of a delegation.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ResolveTo {
    /// It was done.
    Completed,
    /// It was not.
    Failed,
    /// Nobody wants it any more.
    Abandoned,
}

/// Flags of `ledger prune`.
#[derive(Args, Debug)]
pub struct PruneFlags {
    /// Only those that were settled longer ago than this: 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub older_than: Duration,
    #[command(flatten)]
    pub ledger: LedgerFlags,
}
