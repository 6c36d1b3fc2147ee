//! Push configs and deliveries.

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Scope, Settlement,
    StoreError,
};

use crate::PostgresStore;

mod claims;
mod configs;
mod dead;
mod hosts;
mod row;
pub(crate) mod settle;
mod statements;
mod turns;

#[async_trait]
impl PushStore for PostgresStore {
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let put = configs::put(&self.pool, scope, task_id, &config, configs_max, now);
        self.read("write a push config", put).await
    }

    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError> {
        self.read("read push configs", configs::page(&self.pool, scope, task_id, after, limit)).await
    }

    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError> {
        self.read("read a push config", configs::one(&self.pool, scope, task_id, id)).await
    }

    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError> {
        self.read("remove a push config", configs::remove(&self.pool, scope, task_id, id)).await
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let claims = claims::Claims { now, until, limit, after: after.unwrap_or_default(), busy };
        self.read("claim deliveries", claims::claim(&self.pool, &claims)).await
    }

    /// # Cancel safety
    ///
    /// What was asked for may be made all the same.
    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        match settle::Told::new(delivery, settlement, hold, now) {
            Some(told) => self.settle(told).await,
            None => self.read(settle::SETTLE, configs::gone(&self.pool, delivery)).await,
        }
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read when a delivery becomes due", hosts::next_delivery(&self.pool)).await
    }

    async fn push_host(&self, host: &str) -> Result<HostState, StoreError> {
        self.read("read how a host answers", hosts::state(&self.pool, host)).await
    }

    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError> {
        self.read("write how a host answers", hosts::set(&self.pool, host, &state)).await
    }

    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError> {
        self.read("read dead deliveries", dead::page(&self.pool, after, limit)).await
    }

    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        self.read("try dead deliveries again", dead::wake(&self.pool, task_id, config_id, now)).await
    }

    async fn push_backlog(&self) -> Result<PushBacklog, StoreError> {
        self.read("count deliveries", hosts::backlog(&self.pool)).await
    }

    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError> {
        self.read("check the key of push configs", configs::key_check(&self.pool, value)).await
    }

    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError> {
        self.read("write the check of a key", configs::set_key_check(&self.pool, value)).await
    }

    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError> {
        self.read("read sealed push configs", configs::sealed(&self.pool, after, limit)).await
    }

    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError> {
        self.read("seal a push config", configs::reseal(&self.pool, task_id, id, before, &secrets)).await
    }
}

impl PostgresStore {
    /// Lets a settlement be made together with others.
    async fn settle(&self, told: settle::Told) -> Result<Next, StoreError> {
        let unavailable = |why: &'static str| StoreError::unavailable(settle::SETTLE, why);
        let settler = self.settler(settle::SETTLE)?;
        let (answer, answered) = tokio::sync::oneshot::channel();
        settler.send(settle::Job { told, answer }).await.map_err(|_| unavailable("the settler has stopped"))?;
        answered.await.map_err(|_| unavailable("the settler stopped before it answered"))?
    }
}
