use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{DeadDelivery, DeadKey, HostState, PushBacklog, PushConfig, Scope};
use rusqlite::{OptionalExtension, Row, params};

use super::{Reads, row};
use crate::fault::Fault;
use crate::layout::{self, int};

impl Reads<'_> {
    pub(crate) fn push_configs(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, Fault> {
        if !self.is_task_of(scope, task_id)? {
            return Ok(None);
        }
        let page = params![task_id.as_str(), after.map_or("", PushConfigId::as_str), int(limit as u64)];
        let configs = self.statements.push_configs.query_and_then(page, row::push_config)?;
        Ok(Some(configs.map(|read| Ok(read?.1)).collect::<Result<_, Fault>>()?))
    }

    pub(crate) fn push_config(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, Fault> {
        if !self.is_task_of(scope, task_id)? {
            return Ok(None);
        }
        let mut rows = self.statements.push_config.query([task_id.as_str(), id.as_str()])?;
        Ok(rows.next()?.map(row::push_config).transpose()?.map(|(_, config)| config))
    }

    fn is_task_of(&mut self, scope: &Scope, task_id: &TaskId) -> Result<bool, Fault> {
        Ok(self.statements.is_task_of.exists([task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str()])?)
    }

    /// When the first of all deliveries is due: the first of each host is the first of its range of the index.
    pub(crate) fn next_delivery(&mut self) -> Result<Option<Timestamp>, Fault> {
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let mut earliest: Option<i64> = None;
        for statement in [&mut self.statements.next_push, &mut self.statements.next_dead] {
            let mut behind = String::new();
            while let Some((host, due_at)) = statement.query_row([&behind], read).optional()? {
                earliest = Some(earliest.map_or(due_at, |earliest| earliest.min(due_at)));
                behind = host;
            }
        }
        Ok(earliest.map(Timestamp::from_unix_millis))
    }

    pub(crate) fn push_host(&mut self, host: &str) -> Result<HostState, Fault> {
        let mut rows = self.statements.push_host.query([host])?;
        Ok(rows.next()?.map(row::push_host).transpose()?.unwrap_or_default())
    }

    pub(crate) fn dead_deliveries(
        &mut self,
        after: Option<&DeadKey>,
        limit: usize,
    ) -> Result<Vec<DeadDelivery>, Fault> {
        let (task_id, config_id, sequence) =
            after.map_or(("", "", 0), |key| (key.task_id.as_str(), key.config_id.as_str(), int(key.sequence)));
        let page = params![task_id, config_id, sequence, int(limit as u64)];
        self.statements.dead.query_and_then(page, row::dead)?.collect()
    }

    pub(crate) fn push_backlog(&mut self) -> Result<PushBacklog, Fault> {
        let configs = self.statements.count_pushes.query_row([], |row| row.get(0))?;
        let dead = self.statements.count_dead.query_row([], |row| row.get(0))?;
        Ok(PushBacklog {
            configs: layout::count(configs, "a count of push configs")?,
            dead: layout::count(dead, "a count of dead deliveries")?,
        })
    }

    pub(crate) fn sealed_configs(
        &mut self,
        after: Option<&(TaskId, PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, Fault> {
        let (task_id, id) = after.map_or(("", ""), |(task_id, id)| (task_id.as_str(), id.as_str()));
        let read = |row: &Row<'_>| {
            Ok((row::task_id(row, 0)?, row::config_id(row, 1)?, Bytes::from(row.get::<_, Vec<u8>>(2)?)))
        };
        let page = params![task_id, id, int(limit as u64)];
        self.statements.sealed_configs.query_and_then(page, read)?.collect()
    }
}
