use longhaul_store::Compaction;
use rusqlite::params;

use super::transaction::Writer;
use crate::fault::Fault;
use crate::layout;

/// A task whose log was read to be merged.
#[derive(Debug)]
pub(crate) struct Compact {
    pub(crate) number: i64,
    /// `None`: the log stays as it is.
    pub(crate) changes: Option<Compaction>,
}

impl Writer<'_> {
    /// Deals with a task whose log was to be merged, unless it is gone, or was dealt with meanwhile: its log is then none of
    /// what was read.
    pub(super) fn compact(&mut self, compact: &Compact) -> Result<(), Fault> {
        let Compact { number, changes } = compact;
        let mark = if changes.is_some() { layout::Compaction::Merged } else { layout::Compaction::Whole };
        if self.statements.end_compaction.execute(params![number, mark])? == 0 {
            return Ok(());
        }
        let Some(Compaction { removed, rewritten }) = changes else { return Ok(()) };
        let key = |sequence: &u64| layout::key(*number, *sequence);
        for range in removed {
            self.statements.remove_events.execute([key(range.start()), key(range.end())])?;
        }
        for event in rewritten {
            self.statements.rewrite_event.execute(params![key(&event.sequence), &*event.payload])?;
        }
        Ok(())
    }
}
