use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Scope, Settlement,
    StoreError,
};

use crate::SqliteStore;
use crate::writer::push::{Claims, Meant};

#[async_trait]
impl PushStore for SqliteStore {
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let (scope, task_id) = (scope.clone(), task_id.clone());
        self.change("write a push config", move |batch| batch.put_config(&scope, &task_id, &config, configs_max, now))
            .await
    }

    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError> {
        let (scope, task_id, after) = (scope.clone(), task_id.clone(), after.cloned());
        self.read("read push configs", move |reads| reads.push_configs(&scope, &task_id, after.as_ref(), limit)).await
    }

    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError> {
        let (scope, task_id, id) = (scope.clone(), task_id.clone(), id.clone());
        self.read("read a push config", move |reads| reads.push_config(&scope, &task_id, &id)).await
    }

    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError> {
        let (scope, task_id, id) = (scope.clone(), task_id.clone(), id.clone());
        self.change("remove a push config", move |batch| batch.remove_config(&scope, &task_id, &id)).await
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let claims = Claims { now, until, limit, after: after.unwrap_or_default().to_owned(), busy: busy.to_vec() };
        self.change("claim deliveries", move |batch| batch.claim(&claims)).await
    }

    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        let delivery = delivery.clone();
        self.change("settle a delivery", move |batch| batch.settle(&delivery, &settlement, hold, now)).await
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read when a delivery becomes due", |reads| reads.next_delivery()).await
    }

    async fn push_host(&self, host: &str) -> Result<HostState, StoreError> {
        let host = host.to_owned();
        self.read("read how a host answers", move |reads| reads.push_host(&host)).await
    }

    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError> {
        let host = host.to_owned();
        self.change("write how a host answers", move |batch| batch.set_host(&host, &state)).await
    }

    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError> {
        let after = after.cloned();
        self.read("read dead deliveries", move |reads| reads.dead_deliveries(after.as_ref(), limit)).await
    }

    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let meant = Meant { task_id: task_id.cloned(), config_id: config_id.cloned() };
        let (mut after, mut count) = (None, 0);
        loop {
            let (meant, behind) = (meant.clone(), after.take());
            let wake =
                self.change("try dead deliveries again", move |batch| batch.wake_dead(&meant, behind.as_ref(), now));
            let (woken, next) = wake.await?;
            count += woken;
            after = next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    async fn push_backlog(&self) -> Result<PushBacklog, StoreError> {
        self.read("count deliveries", |reads| reads.push_backlog()).await
    }

    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError> {
        let value = value.to_vec();
        self.change("check the key of push configs", move |batch| batch.key_check(&value)).await
    }

    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError> {
        let value = value.to_vec();
        self.change("write the check of a key", move |batch| batch.set_key_check(&value)).await
    }

    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError> {
        let after = after.map(|(task_id, id)| (task_id.clone(), id.clone()));
        self.read("read sealed push configs", move |reads| reads.sealed_configs(after.as_ref(), limit)).await
    }

    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError> {
        let (task_id, id, before) = (task_id.clone(), id.clone(), before.to_vec());
        self.change("seal a push config", move |batch| batch.reseal_config(&task_id, &id, &before, &secrets)).await
    }
}
