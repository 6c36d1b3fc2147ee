//! Enters what the store answered into the books in the order in which it was made.

use std::collections::BTreeMap;

use longhaul_protocol::TaskId;
use longhaul_store::{Commit, Committed, HeldLease};

use crate::books::Books;
use crate::{Promise, Trace};

/// Answers that are to be entered into the books. Two commits of one task that were made at the same time may be answered in
/// another order than they were made in, so none is entered before all that are under way are answered.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    tasks: BTreeMap<TaskId, Open>,
}

#[derive(Debug, Default)]
struct Open {
    under_way: u64,
    made: Vec<Made>,
    renewed: Vec<Renewed>,
}

/// A commit that was made.
#[derive(Debug)]
pub(crate) struct Made {
    /// By which instance.
    pub by: u64,
    pub commit: Commit,
    pub committed: Committed,
}

/// A lease that was renewed.
#[derive(Debug)]
pub(crate) struct Renewed {
    /// By which instance.
    pub by: u64,
    pub lease: HeldLease,
    /// In milliseconds since the epoch.
    pub now: i64,
    pub until: i64,
}

impl Entries {
    /// A commit or a renewal of a task is under way.
    pub fn begin(&mut self, trace: &Trace, task_id: &TaskId) {
        let open = self.tasks.entry(task_id.clone()).or_default();
        open.under_way += 1;
        if open.under_way > 1 {
            trace.count("writes to a task that others wrote to at the moment");
        }
    }

    /// Whether nothing of a task is under way.
    pub fn is_entered(&self, task_id: &TaskId) -> bool {
        !self.tasks.contains_key(task_id)
    }

    /// A commit was answered; `None` when it was refused.
    pub fn committed(&mut self, books: &mut Books, trace: &Trace, task_id: &TaskId, made: Option<Made>) {
        self.ended(books, trace, task_id, |open| open.made.extend(made));
    }

    /// A renewal was answered; `None` for a lease that was over.
    pub fn renewed(&mut self, books: &mut Books, trace: &Trace, task_id: &TaskId, renewed: Option<Renewed>) {
        self.ended(books, trace, task_id, |open| open.renewed.extend(renewed));
    }

    fn ended(&mut self, books: &mut Books, trace: &Trace, task_id: &TaskId, note: impl FnOnce(&mut Open)) {
        let Some(open) = self.tasks.get_mut(task_id) else { return };
        note(open);
        open.under_way -= 1;
        if open.under_way == 0
            && let Some(open) = self.tasks.remove(task_id)
        {
            open.enter(books, trace);
        }
    }
}

impl Open {
    fn enter(mut self, books: &mut Books, trace: &Trace) {
        self.made.sort_by_key(|made| (made.committed.version, made.committed.last_sequence));
        for made in self.made {
            // A renewal has no version: it was right if the lease was alive at any moment in between.
            self.renewed.retain(|renewed| !books.renew(renewed));
            books.enter(trace, made.by, &made.commit, made.committed);
        }
        self.renewed.retain(|renewed| !books.renew(renewed));
        for Renewed { lease, .. } in self.renewed {
            let (id, epoch) = (&lease.task_id, lease.epoch);
            trace.broken(Promise::Fenced, format!("a lease of task {id}, epoch {epoch}, was renewed that is over"));
        }
    }
}
