//! The durable record of what was delegated: to whom, why, and how it stands.
//!
//! - An [`Entry`] is written before anything is sent ([`Ledger::prepare`]), and is on the disk when that has answered.
//! - What may follow what is one function ([`transition`]). A settled entry never changes, and nothing but
//!   [`Ledger::remove`] and [`Ledger::prune`] takes an entry away, settled ones alone.
//! - Several processes may have the file open. Who sends or follows an entry holds its [`Claim`]: it runs out when its
//!   holder dies, and who holds an older one is refused.
//! - [`Ledger::delegate`] writes, sends and follows; [`Ledger::recover`] finds everything open again after a crash, and
//!   [`Ledger::resume`] and [`Ledger::answer`] go on with one entry. What they find is a [`Finding`].
//! - What can't go on by itself waits for a person ([`Entry::needs_person`]), and silence raises an alarm ([`Deadline`]).
//!
//! Time comes in as `now` of the wall clock, or is read there by what goes over the network: processes that share a file have
//! to share it.

mod change;
mod check;
mod claimed;
mod db;
mod delegate;
mod driver;
mod entry;
mod error;
mod file;
mod finding;
mod news;
mod query;
mod recover;
mod row;
mod state;
mod store;
mod worker;

pub use change::{CLAIM_DURATION, CLAIM_RENEWAL, ClaimMode, Decision};
pub use delegate::{Delegation, Followed, ResumeOptions};
pub use driver::{FollowUp, Update};
pub use entry::{
    Claim, Claimant, Deadline, Entry, EntryId, Follower, Happening, Held, InvalidEntryId, Kept, NewEntry, Note, Route,
};
pub use error::LedgerError;
pub use finding::Finding;
pub use news::{News, OUTCOME_BYTES_MAX};
pub use query::{Count, Filter, ListQuery, Order, PAGE_MAX, Page};
pub use recover::{Connector, RecoverOptions, Recovery, RunningTasks};
pub use row::HISTORY_MAX;
pub use state::{End, Event, NotAllowed, Stands, State, StateKind, Step, TaskEnd, transition};
pub use store::Ledger;
