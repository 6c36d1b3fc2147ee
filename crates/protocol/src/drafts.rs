//! Drafts of the protocol before 0.3, as a translation to and from [`wire`](crate::wire). Pure functions.
//!
//! They know six states. AUTH_REQUIRED and REJECTED become `failed`, with the real one in the message of the status. A caller of
//! them makes the id of its task, and tasks belong to sessions: both are given by whoever translates. Artifacts have no ids but
//! an index.

mod data;
mod request;
mod tell;

pub use data::{Artifact, Message, Part, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent};
pub use request::{TaskIdParams, TaskQueryParams, TaskSendParams};
pub use tell::{Event, Teller};
