//! Where tasks are kept: the [`Store`] trait, its records and errors, and the store in memory.
//!
//! [`Store::commit`] alone changes a task, whole or not at all, and answers when the change can no longer be lost.
//! The trait speaks of tasks, never of SQL: no transaction, row or driver type crosses it. What a crash can't take
//! back is what `commit` has answered; nothing is told to anyone before.

pub mod columns;
mod commit;
mod compaction;
#[cfg(feature = "conformance")]
pub mod conformance;
mod encoded;
mod error;
mod event;
#[cfg(feature = "fill")]
pub mod fill;
mod fold;
mod list;
mod memory;
mod oldest;
mod push;
mod rotation;
mod shard;
mod traits;

pub use commit::{Commit, Committed, Dedup, Expect, NewMessage, NewTask, Scope, Standing, TurnRequest};
pub use compaction::{
    COMPACT_CHANGES_MAX, COMPACT_EVENTS_MIN, COMPACT_READ_BYTES_MAX, COMPACT_WRITE_BYTES_MAX, Compaction,
    CompactionFold, is_compactable,
};
pub use encoded::{EncodedCommit, EncodedMessage};
pub use error::StoreError;
pub use event::{EventKind, NewEvent, StoredEvent};
pub use fold::{ArtifactFold, ArtifactVersion, VersionFold, artifact_update, created_event, snapshot_task};
pub use list::{ListBounds, ListCursor, ListPage, ListQuery};
pub use memory::MemoryStore;
pub use oldest::Oldest;
pub use push::{DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Settlement};
pub use rotation::{Line, Rotation};
pub use shard::{shard, shard_of_task, shard_of_text};
pub use traits::{Claim, Due, Heard, HeldLease, HistoryLimit, Snapshot, SnapshotQuery, Store, StoredMessage, TaskMark};
