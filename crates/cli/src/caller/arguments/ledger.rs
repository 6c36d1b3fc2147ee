//! Flags of `ledger …`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::caller::options::{Given, duration};
use crate::caller::parts::PartFlags;

use super::common::CallerFlags;
use super::said;

/// What stands below the help of each command.
const AFTER: &str = "\
The ledger is ~/.local/state/longhaul/ledger.db, or below XDG_STATE_HOME; --ledger FILE or A2ACLI_LEDGER names another one.
longhaul send --ledger writes to it. docs/cli.md describes the states, and the JSON of -o json.

Exit codes: 0 it was done, 1 it was not, 2 the command line is wrong, or there is no such entry, 3 an agent can't be reached, 4 it
wants other credentials, 5 the time was over, 130 it was interrupted.";

/// What stands below the help of `recover`.
const RECOVER: &str = "\
Messages that were not sent are sent, tasks whose answer was lost are looked for, and those that run are followed to their
rest. Each finding is written as it comes. Who follows an entry elsewhere is left to it; what a process that died followed is
free after 30 s.

Credentials: each agent is given its own login (longhaul auth login). --bearer, --api-key and --svc-param, or their variables,
go only to the agent of --agent-card or A2ACLI_AGENT_CARD.

Exit codes: 0 nothing is left to be done, 1 it failed, 2 the command line is wrong, 3 an agent could not be reached, so that its
entries stay open, 5 the time was over, 6 something waits for a person, 130 it was interrupted.";

/// What to do with what was written down.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// List what was delegated, and how it stands
    #[command(after_help = AFTER)]
    List(EntriesFlags),
    /// Show one delegation: how it stands, what came of it, and what happened to it
    #[command(after_help = AFTER)]
    Show(EntryFlags),
    /// Find every open delegation again after a crash, follow it to its rest, and say what needs a person
    #[command(after_help = RECOVER)]
    Recover(RecoverFlags),
    /// Answer the question of a delegation, and follow it to its next rest
    #[command(after_help = AFTER)]
    Answer(Box<AnswerFlags>),
    /// Decide about a delegation that can't go on by itself
    #[command(subcommand)]
    Resolve(ResolveCommand),
    /// Remove one delegation that is settled
    #[command(after_help = AFTER)]
    Remove(EntryFlags),
    /// Remove the delegations that were settled long ago
    #[command(after_help = AFTER)]
    Prune(PruneFlags),
}

/// What a person decides.
#[derive(Debug, Subcommand)]
pub enum ResolveCommand {
    /// Have a message sent again whose answer was lost, although the agent may then do it twice; ledger recover sends it
    #[command(after_help = AFTER)]
    SendAgain(EntryFlags),
    /// Say which task came of a message whose answer was lost; ledger recover goes on with it
    #[command(after_help = AFTER)]
    Adopt(AdoptFlags),
    /// Give the delegation up. The agent is not told: longhaul task cancel does that
    #[command(after_help = AFTER)]
    Abandon(AbandonFlags),
    /// Say that an alarm was seen
    #[command(after_help = AFTER)]
    Acknowledge(EntryFlags),
}

/// Which file it is.
#[derive(Args, Debug)]
pub struct LedgerFlags {
    /// The ledger [default: ~/.local/state/longhaul/ledger.db]
    #[arg(long, value_name = "FILE")]
    ledger: Option<String>,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Which entries are meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Which {
    /// Those that are not settled.
    Unsettled,
    /// Those that the client has to do with.
    Open,
    /// Those that a person has to look at.
    NeedsPerson,
    /// Those that are over.
    Settled,
    /// All.
    All,
}

/// Flags of `ledger list`.
#[derive(Args, Debug)]
pub struct EntriesFlags {
    /// Which of them
    #[arg(long, value_name = "WHICH", value_enum, default_value = "unsettled")]
    pub which: Which,
    /// How many at the most, the newest first
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    #[command(flatten)]
    ledger: LedgerFlags,
}

/// A flag for one entry.
#[derive(Args, Debug)]
pub struct EntryFlags {
    /// The delegation's id, or the id of its task
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    ledger: LedgerFlags,
}

/// Flags of `ledger recover`.
#[derive(Args, Debug)]
pub struct RecoverFlags {
    /// Look once: how tasks stand that run is written down, and they are not followed
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    ledger: LedgerFlags,
}

/// Flags of `ledger answer`.
#[derive(Args, Debug)]
pub struct AnswerFlags {
    /// The delegation's id, or the id of its task
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub parts: PartFlags,
    /// Go on although another process follows it, which then stops
    #[arg(long)]
    pub take_over: bool,
    #[command(flatten)]
    ledger: LedgerFlags,
}

/// Flags of `ledger resolve adopt`.
#[derive(Args, Debug)]
pub struct AdoptFlags {
    #[command(flatten)]
    pub entry: EntryFlags,
    /// The task's id
    #[arg(long, value_name = "TASK")]
    pub task: String,
}

/// Flags of `ledger resolve abandon`.
#[derive(Args, Debug)]
pub struct AbandonFlags {
    #[command(flatten)]
    pub entry: EntryFlags,
    /// Why, to be written down
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub why: String,
}

/// Flags of `ledger prune`.
#[derive(Args, Debug)]
pub struct PruneFlags {
    /// Only those that were settled longer ago than this: 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub older_than: Duration,
    #[command(flatten)]
    ledger: LedgerFlags,
}

impl LedgerCommand {
    /// What the command line says about settings.
    pub fn given(&self) -> Given {
        let ledger = match self {
            Self::List(flags) => &flags.ledger,
            Self::Show(flags) | Self::Remove(flags) => &flags.ledger,
            Self::Recover(flags) => &flags.ledger,
            Self::Answer(flags) => &flags.ledger,
            Self::Resolve(command) => &command.entry().ledger,
            Self::Prune(flags) => &flags.ledger,
        };
        let mut given = ledger.caller.given();
        given.values.extend(said("ledger", &ledger.ledger));
        given
    }
}

impl ResolveCommand {
    /// Which entry.
    pub fn entry(&self) -> &EntryFlags {
        match self {
            Self::SendAgain(entry) | Self::Acknowledge(entry) => entry,
            Self::Adopt(flags) => &flags.entry,
            Self::Abandon(flags) => &flags.entry,
        }
    }
}
