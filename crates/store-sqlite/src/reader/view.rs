use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, Timestamp, wire};
use longhaul_store::{
    ArtifactFold, ArtifactVersion, HistoryLimit, Scope, Snapshot, SnapshotQuery, StoredEvent, StoredMessage, TaskMark,
    VersionFold, artifact_update, snapshot_task,
};
use rusqlite::{OptionalExtension, params};

use super::{Reads, row};
use crate::fault::Fault;
use crate::layout::{self, int};

impl Reads<'_> {
    pub(crate) fn load(&mut self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, Fault> {
        Ok(self.head(scope, task_id)?.map(|(_, head)| head))
    }

    pub(crate) fn scope_of(&mut self, task_id: &TaskId) -> Result<Option<Scope>, Fault> {
        let mut rows = self.statements.scope_of.query([task_id.as_str()])?;
        rows.next()?.map(|row| row::scope(row, 0)).transpose()
    }

    pub(crate) fn snapshot(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, Fault> {
        let Some((number, head)) = self.head(scope, task_id)? else { return Ok(None) };
        if let Some(at) = query.at
            && !self.is_told_of(number, at, head.last_sequence)?
        {
            return Ok(None);
        }
        let task = self.task(number, &head, query)?;
        let sequence = query.at.unwrap_or(head.last_sequence);
        Ok(Some(Snapshot { head, sequence, task }))
    }

    pub(crate) fn events_after(
        &mut self,
        task_id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, Fault> {
        let number = self.statements.log_number.query_row([task_id.as_str()], |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(Vec::new()) };
        let range = params![layout::key(number, after), layout::key(number, layout::PLACE_MAX), int(limit as u64)];
        self.statements.events.query_and_then(range, row::event)?.collect()
    }

    pub(crate) fn messages(&mut self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, Fault> {
        let Some(number) = self.number(task_id)? else { return Ok(Vec::new()) };
        let mut ordinals: Vec<u64> = ordinals.iter().copied().filter(|ordinal| *ordinal <= layout::PLACE_MAX).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        let mut messages = Vec::with_capacity(ordinals.len());
        for ordinal in ordinals {
            let mut rows = self.statements.message.query([layout::key(number, ordinal)])?;
            if let Some(row) = rows.next()? {
                messages.push(row::message(row)?);
            }
        }
        Ok(messages)
    }

    pub(crate) fn accepted(
        &mut self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, Fault> {
        let wanted = params![scope.tenant.as_str(), scope.owner.as_str(), message_id.as_str(), now.unix_millis()];
        let mut rows = self.statements.accepted.query(wanted)?;
        rows.next()?.map(row::accepted).transpose()
    }

    /// Folds the whole log of one artifact; `None` when the scope has no such task.
    pub(crate) fn versions(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        wanted: Option<u64>,
    ) -> Result<Option<VersionFold>, Fault> {
        let owned = params![task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str()];
        let number: Option<i64> = self.statements.number_in_scope.query_row(owned, |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(None) };
        let mut fold = VersionFold::new(artifact_id.clone(), wanted);
        let range = [layout::key(number, 0), layout::key(number, layout::PLACE_MAX)];
        let mut rows = self.statements.artifact_events.query(range)?;
        while let Some(row) = rows.next()? {
            fold.apply(&row::event(row)?)?;
        }
        Ok(Some(fold))
    }

    pub(crate) fn artifact_versions(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, Fault> {
        Ok(self.versions(scope, task_id, artifact_id, None)?.and_then(|fold| fold.into_versions(before, limit)))
    }

    pub(crate) fn checkpoint(&mut self, task_id: &TaskId) -> Result<Option<Bytes>, Fault> {
        let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
        let data = self.statements.checkpoint.query_row([task_id.as_str()], read).optional()?;
        Ok(data.map(Bytes::from))
    }

    pub(crate) fn marks(&mut self, task_ids: Vec<TaskId>) -> Result<Vec<TaskMark>, Fault> {
        let mut marks = Vec::with_capacity(task_ids.len());
        for task_id in task_ids {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            if let Some((version, last)) = self.statements.mark.query_row([task_id.as_str()], read).optional()? {
                let version = layout::count(version, "the version of a task")?;
                let last_sequence = layout::count(last, "the last sequence of a task")?;
                marks.push(TaskMark { task_id, version, last_sequence });
            }
        }
        Ok(marks)
    }

    pub(crate) fn check(&mut self) -> Result<(), Fault> {
        Ok(self.statements.checks.query_row([], |_| Ok(()))?)
    }

    /// Puts a task together as the protocol shows it.
    pub(super) fn task(&mut self, number: i64, head: &TaskHead, query: SnapshotQuery) -> Result<wire::Task, Fault> {
        let until = query.at.unwrap_or(head.last_sequence);
        let range = [layout::key(number, 0), layout::key(number, until)];
        let metadata = self.statements.metadata.query_row([number], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let metadata = metadata.as_deref().map(layout::read_metadata).transpose()?;
        let history = self.history(number, until, query.history)?;
        let artifacts = if query.artifacts { self.artifacts(range)? } else { Vec::new() };
        let past = match query.at {
            None => None,
            Some(_) => {
                Some(self.statements.status_event.query_and_then(range, row::event)?.collect::<Result<Vec<_>, _>>()?)
            }
        };
        Ok(snapshot_task(head, metadata, history, past.as_deref(), artifacts)?)
    }

    /// Whether the log tells how the task stood at a sequence.
    fn is_told_of(&mut self, number: i64, at: u64, last_sequence: u64) -> Result<bool, Fault> {
        Ok(at == last_sequence
            || ((1..last_sequence).contains(&at)
                && !self.statements.is_merged.query_row([number], |row| row.get::<_, bool>(0))?))
    }

    fn head(&mut self, scope: &Scope, task_id: &TaskId) -> Result<Option<(i64, TaskHead)>, Fault> {
        let owned = params![task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str()];
        let mut rows = self.statements.head_by_id.query(owned)?;
        rows.next()?.map(row::head).transpose()
    }

    fn number(&mut self, task_id: &TaskId) -> Result<Option<i64>, Fault> {
        Ok(self.statements.number.query_row([task_id.as_str()], |row| row.get(0)).optional()?)
    }

    /// The messages that were known when the log ended at `until`, the oldest first.
    fn history(&mut self, number: i64, until: u64, limit: HistoryLimit) -> Result<Vec<wire::Message>, Fault> {
        let limit = match limit {
            HistoryLimit::Latest(0) => return Ok(Vec::new()),
            HistoryLimit::Latest(limit) => int(limit as u64),
            HistoryLimit::All => i64::MAX,
        };
        let range = params![layout::key(number, 0), layout::key(number, layout::PLACE_MAX), int(until), limit];
        let mut rows = self.statements.history.query(range)?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            messages.push(layout::read_wire_message(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?);
        }
        messages.reverse();
        Ok(messages)
    }

    fn artifacts(&mut self, range: [i64; 2]) -> Result<Vec<wire::Artifact>, Fault> {
        let mut fold = ArtifactFold::default();
        let mut rows = self.statements.artifact_events.query(range)?;
        while let Some(row) = rows.next()? {
            let event = row::event(row)?;
            if let Some(update) = artifact_update(event.kind, event.sequence, &event.payload)? {
                fold.apply(update);
            }
        }
        Ok(fold.into_artifacts())
    }
}
