use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Scope, Settlement,
    StoreError,
};

use super::{FaultStore, Operation};

#[async_trait]
impl PushStore for FaultStore {
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        self.call(Operation::PushConfigs, self.store.put_push_config(scope, task_id, config, configs_max, now)).await
    }

    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError> {
        self.call(Operation::PushConfigs, self.store.push_configs(scope, task_id, after, limit)).await
    }

    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError> {
        self.call(Operation::PushConfigs, self.store.push_config(scope, task_id, id)).await
    }

    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError> {
        self.call(Operation::PushConfigs, self.store.remove_push_config(scope, task_id, id)).await
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.call(Operation::ClaimDeliveries, self.store.claim_deliveries(now, until, limit, after, busy)).await
    }

    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        self.call(Operation::SettleDelivery, self.store.settle_delivery(delivery, settlement, hold, now)).await
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        self.call(Operation::NextDelivery, self.store.next_delivery()).await
    }

    async fn push_host(&self, host: &str) -> Result<HostState, StoreError> {
        self.call(Operation::PushHost, self.store.push_host(host)).await
    }

    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError> {
        self.call(Operation::PushHost, self.store.set_push_host(host, state)).await
    }

    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError> {
        self.call(Operation::Other, self.store.dead_deliveries(after, limit)).await
    }

    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        self.call(Operation::Other, self.store.retry_dead(task_id, config_id, now)).await
    }

    async fn push_backlog(&self) -> Result<PushBacklog, StoreError> {
        self.call(Operation::Other, self.store.push_backlog()).await
    }

    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError> {
        self.call(Operation::Other, self.store.push_key_check(value)).await
    }

    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError> {
        self.call(Operation::Other, self.store.set_push_key_check(value)).await
    }

    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError> {
        self.call(Operation::Other, self.store.sealed_configs(after, limit)).await
    }

    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError> {
        self.call(Operation::Other, self.store.reseal_config(task_id, id, before, secrets)).await
    }
}
