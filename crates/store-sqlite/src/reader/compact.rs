use longhaul_protocol::Timestamp;
use longhaul_store::CompactionFold;
use rusqlite::params;

use super::{Reads, row};
use crate::fault::Fault;
use crate::layout::{self, int};

/// How many events are read at once, and how many bytes of them, a single one apart: so others need not wait for the reader.
const EVENTS_MAX: usize = 2000;
const BYTES_MAX: usize = 4 << 20;

/// A log of which a part was merged in memory.
#[derive(Debug, Default)]
pub(crate) struct PartlyRead {
    pub(crate) fold: CompactionFold,
    /// Behind which event it goes on; `None` when all was read that is needed.
    pub(crate) after: Option<u64>,
}

impl Reads<'_> {
    /// The numbers of the tasks whose logs are to be merged, the oldest first.
    pub(crate) fn compactable(&mut self, before: Timestamp, limit: usize) -> Result<Vec<i64>, Fault> {
        let wanted = params![layout::ceil_millis(before), int(limit as u64)];
        Ok(self.statements.compactable.query_map(wanted, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Merges the next events of a log in memory.
    pub(crate) fn merge(&mut self, number: i64, partly: PartlyRead) -> Result<PartlyRead, Fault> {
        let PartlyRead { mut fold, after } = partly;
        let range = [layout::key(number, after.unwrap_or(0)), layout::key(number, layout::PLACE_MAX)];
        let mut rows = self.statements.artifact_events.query(range)?;
        let (mut events, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let event = row::event(row)?;
            fold.apply(&event)?;
            events += 1;
            bytes += event.payload.len();
            if fold.is_too_large() {
                break;
            }
            if events == EVENTS_MAX || bytes >= BYTES_MAX {
                return Ok(PartlyRead { fold, after: Some(event.sequence) });
            }
        }
        Ok(PartlyRead { fold, after: None })
    }
}
