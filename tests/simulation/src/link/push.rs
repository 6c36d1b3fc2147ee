use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Scope, Settlement,
    StoreError,
};

use super::Link;

#[async_trait]
impl PushStore for Link {
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        _now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let (shared, writer) = self.parts();
        let (scope, task_id) = (scope.clone(), task_id.clone());
        self.write("put push config", async move {
            writer.store.put_push_config(&scope, &task_id, config, configs_max, shared.now()).await
        })
        .await
    }

    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError> {
        let store = Arc::clone(&self.store);
        let (scope, task_id, after) = (scope.clone(), task_id.clone(), after.cloned());
        self.read("push configs", async move { store.push_configs(&scope, &task_id, after.as_ref(), limit).await })
            .await
    }

    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError> {
        let store = Arc::clone(&self.store);
        let (scope, task_id, id) = (scope.clone(), task_id.clone(), id.clone());
        self.read("push config", async move { store.push_config(&scope, &task_id, &id).await }).await
    }

    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError> {
        let store = Arc::clone(&self.store);
        let (scope, task_id, id) = (scope.clone(), task_id.clone(), id.clone());
        self.write("remove push config", async move { store.remove_push_config(&scope, &task_id, &id).await }).await
    }

    async fn claim_deliveries(
        &self,
        _now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let (shared, writer) = self.parts();
        let (after, busy) = (after.map(str::to_owned), busy.to_vec());
        self.write("claim deliveries", async move {
            writer.store.claim_deliveries(shared.now(), until, limit, after.as_deref(), &busy).await
        })
        .await
    }

    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        _now: Timestamp,
    ) -> Result<Next, StoreError> {
        let (shared, writer) = self.parts();
        let delivery = delivery.clone();
        self.write("settle delivery", async move {
            writer.store.settle_delivery(&delivery, settlement, hold, shared.now()).await
        })
        .await
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("next delivery", async move { store.next_delivery().await }).await
    }

    async fn push_host(&self, host: &str) -> Result<HostState, StoreError> {
        let store = Arc::clone(&self.store);
        let host = host.to_owned();
        self.read("push host", async move { store.push_host(&host).await }).await
    }

    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        let host = host.to_owned();
        self.write("set push host", async move { store.set_push_host(&host, state).await }).await
    }

    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError> {
        let store = Arc::clone(&self.store);
        let after = after.cloned();
        self.read("dead deliveries", async move { store.dead_deliveries(after.as_ref(), limit).await }).await
    }

    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        _now: Timestamp,
    ) -> Result<u64, StoreError> {
        let (shared, writer) = self.parts();
        let (task_id, config_id) = (task_id.cloned(), config_id.cloned());
        self.write("retry dead", async move {
            writer.store.retry_dead(task_id.as_ref(), config_id.as_ref(), shared.now()).await
        })
        .await
    }

    async fn push_backlog(&self) -> Result<PushBacklog, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("push backlog", async move { store.push_backlog().await }).await
    }

    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError> {
        let store = Arc::clone(&self.store);
        let value = value.to_vec();
        self.write("push key check", async move { store.push_key_check(&value).await }).await
    }

    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        let value = value.to_vec();
        self.write("set push key check", async move { store.set_push_key_check(&value).await }).await
    }

    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError> {
        let store = Arc::clone(&self.store);
        let after = after.map(|(task_id, id)| (task_id.clone(), id.clone()));
        self.read("sealed configs", async move {
            store.sealed_configs(after.as_ref().map(|(task_id, id)| (task_id, id)), limit).await
        })
        .await
    }

    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError> {
        let store = Arc::clone(&self.store);
        let (task_id, id, before) = (task_id.clone(), id.clone(), before.to_vec());
        self.write("reseal config", async move { store.reseal_config(&task_id, &id, &before, secrets).await }).await
    }
}
