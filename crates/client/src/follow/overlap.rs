//! What comes twice around the snapshot of a subscription: in it, and as the events behind it.
//!
//! Only an agent that numbers its events cannot do so. Of the others, the first updates behind a snapshot are looked at: what
//! says no more than the snapshot is passed over. A piece of an artifact that the snapshot ends with is held back, and the
//! stream is not read on, until the task itself shows whether it is another such piece.

use std::mem;
use std::sync::Arc;

use longhaul_protocol::wire;

use super::EventStream;
use super::fold::Standing;
use super::link::{Checking, Link};
use crate::binding::stream::RawItem;
use crate::error::ClientError;
use wire::StreamResponsePayload as Payload;

/// Of what an update may be one that the snapshot holds, until the first one that is new.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Overlap {
    statuses: bool,
    artifacts: bool,
}

impl EventStream {
    /// A subscription began with a snapshot of this id.
    pub(super) fn began_again(&mut self, id: &Option<Arc<str>>) {
        let is_numbered = self.number(id).is_some();
        self.is_patched |= !is_numbered;
        self.overlap = Overlap { statuses: !is_numbered, artifacts: !is_numbered };
    }

    /// The item behind a snapshot, unless the snapshot holds it, or that is yet to be found out.
    pub(super) fn without_overlap(&mut self, item: RawItem) -> Result<Option<RawItem>, ClientError> {
        let standing = match &item.payload.payload {
            Some(Payload::StatusUpdate(update)) if self.overlap.statuses && self.fold.has_told(update) => {
                Standing::Told
            }
            Some(Payload::ArtifactUpdate(update)) if self.overlap.artifacts => self.fold.standing(update),
            Some(_) | None => Standing::New,
        };
        match standing {
            Standing::Told => {
                self.pass_over(item.id);
                Ok(None)
            }
            Standing::Unclear => {
                let asking = self.compare()?;
                if let Link::Open(open) = mem::replace(&mut self.link, Link::Ended) {
                    self.link = Link::Checking(Box::new(Checking { open, held: item, asking }));
                }
                Ok(None)
            }
            Standing::New => {
                self.is_new(&item);
                Ok(Some(item))
            }
        }
    }

    /// The task was asked for, to find out whether the item that is held is new. What can't be found out is told: then what
    /// is told at the end sets it right.
    pub(super) fn checked(&mut self, task: Result<wire::Task, ClientError>) -> Result<(), ClientError> {
        let Link::Checking(checking) = mem::replace(&mut self.link, Link::Ended) else { return Ok(()) };
        let Checking { open, held, .. } = *checking;
        self.link = Link::Open(open);
        if let (Ok(task), Some(Payload::ArtifactUpdate(update))) = (task, &held.payload.payload)
            && self.fold.goes_on_with(update, task) == Some(false)
        {
            self.pass_over(held.id);
            return Ok(());
        }
        self.is_new(&held);
        self.hand_on(held.id, held.payload)
    }

    /// All that comes behind a new update is new.
    fn is_new(&mut self, item: &RawItem) {
        match &item.payload.payload {
            Some(Payload::StatusUpdate(_)) => self.overlap.statuses = false,
            Some(Payload::ArtifactUpdate(_)) => self.overlap.artifacts = false,
            Some(Payload::Task(_) | Payload::Message(_)) | None => {}
        }
    }

    fn pass_over(&mut self, id: Option<Arc<str>>) {
        if id.is_some() {
            self.last_event_id = id;
        }
    }
}
