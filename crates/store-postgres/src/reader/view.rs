use std::collections::BTreeSet;

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, Timestamp};
use longhaul_store::columns::int;
use longhaul_store::{
    HistoryLimit, Scope, Snapshot, SnapshotQuery, StoreError, StoredEvent, StoredMessage, TaskMark, VersionFold,
    snapshot_task,
};

use super::row::{self, HEAD_COLUMNS, VIEW_COLUMNS, View};
use super::{Reader, statements};
use crate::fault::Fault;
use crate::session::Param;
use crate::shards;

impl Reader {
    pub(crate) async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, Fault> {
        let (shard, id, tenant, owner) =
            (shards::of_task(task_id), task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str());
        let found = self.pool.query_opt(statements::LOAD, &[&shard, &id, &tenant, &owner]).await?;
        found.map(|row| row::head(&row, 0)).transpose()
    }

    pub(crate) async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, Fault> {
        let found = self.pool.query_opt(statements::SCOPE_OF, &[&shards::of_task(task_id), &task_id.as_str()]).await?;
        Ok(found.map(|row| row::scope(&row, 0)).transpose()?)
    }

    pub(crate) async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, Fault> {
        let (shard, id, tenant, owner) =
            (shards::of_task(task_id), task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str());
        let (at, history, artifacts) = (query.at.map(int), history_limit(query.history), query.artifacts);
        let wanted: &[Param<'_>] = &[&shard, &id, &tenant, &owner, &at, &history, &artifacts];
        let Some(row) = self.pool.query_opt(statements::SNAPSHOT, wanted).await? else { return Ok(None) };
        let head = row::head(&row, 0)?;
        let View { metadata, history, artifacts } = row::view(&row, HEAD_COLUMNS)?;
        let told = match query.at {
            None => None,
            Some(_) => Some(row::event(&row, HEAD_COLUMNS + VIEW_COLUMNS)?),
        };
        let past = told.as_ref().map(std::slice::from_ref);
        let task = snapshot_task(&head, metadata, history, past, artifacts)?;
        let sequence = query.at.unwrap_or(head.last_sequence);
        Ok(Some(Snapshot { head, sequence, task }))
    }

    /// As the trait's method; empty as well when the log was merged and tells no more what came after `after`.
    pub(crate) async fn events_after(
        &self,
        task_id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, Fault> {
        let (shard, id, after, limit) = (shards::of_task(task_id), task_id.as_str(), int(after), int(limit as u64));
        let rows = self.pool.query(statements::EVENTS_AFTER, &[&shard, &id, &after, &limit]).await?;
        Ok(rows.iter().map(|row| row::event(row, 0)).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, Fault> {
        let ordinals: Vec<i64> = ordinals.iter().copied().map(int).collect::<BTreeSet<_>>().into_iter().collect();
        let wanted: &[Param<'_>] = &[&shards::of_task(task_id), &task_id.as_str(), &ordinals];
        let rows = self.pool.query(statements::MESSAGES, wanted).await?;
        Ok(rows.iter().map(row::message).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, Fault> {
        let (tenant, owner) = (scope.tenant.as_str(), scope.owner.as_str());
        let shard = shards::of_message(&scope.tenant, message_id);
        let (id, now) = (message_id.as_str(), now.unix_millis());
        let found = self.pool.query_opt(statements::ACCEPTED, &[&shard, &tenant, &owner, &id, &now]).await?;
        let Some(row) = found else { return Ok(None) };
        let digest = row::get::<&[u8]>(&row, 1)?.try_into();
        let digest = digest.map_err(|_| StoreError::corrupt("the digest of an accepted message has another length"))?;
        Ok(Some((row::task_id(&row, 0)?, digest)))
    }

    /// Folds the whole log of one artifact; `None` when the scope has no such task, or the task no artifact at all.
    pub(crate) async fn versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        wanted: Option<u64>,
    ) -> Result<Option<VersionFold>, Fault> {
        let (shard, id, tenant, owner) =
            (shards::of_task(task_id), task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str());
        let rows = self.pool.query(statements::ARTIFACT_EVENTS, &[&shard, &id, &tenant, &owner]).await?;
        let mut fold = None;
        for row in rows {
            let fold = fold.get_or_insert_with(|| VersionFold::new(artifact_id.clone(), wanted));
            fold.apply(&row::event(&row, 0)?)?;
        }
        Ok(fold)
    }

    pub(crate) async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, Fault> {
        let found =
            self.pool.query_opt(statements::CHECKPOINT, &[&shards::of_task(task_id), &task_id.as_str()]).await?;
        Ok(found.map(|row| row::get::<&[u8]>(&row, 0).map(Bytes::copy_from_slice)).transpose()?)
    }

    /// In the order in which the tasks are named.
    pub(crate) async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, Fault> {
        let shards: Vec<i16> = task_ids.iter().map(shards::of_task).collect();
        let ids: Vec<&str> = task_ids.iter().map(TaskId::as_str).collect();
        let mark = |row: &tokio_postgres::Row| {
            Ok::<_, StoreError>(TaskMark {
                task_id: row::task_id(row, 0)?,
                version: row::counter(row, 1, "the version of a task")?,
                last_sequence: row::counter(row, 2, "the last sequence of a task")?,
            })
        };
        Ok(self.pool.query(statements::MARKS, &[&shards, &ids]).await?.iter().map(mark).collect::<Result<_, _>>()?)
    }
}

/// A limit as SQL takes it: NULL for none.
pub(super) fn history_limit(limit: HistoryLimit) -> Option<i64> {
    match limit {
        HistoryLimit::All => None,
        HistoryLimit::Latest(limit) => Some(int(limit as u64)),
    }
}
