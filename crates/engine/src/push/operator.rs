//! What an operator may do with push notifications, of every scope.

use longhaul_protocol::{PushConfigId, TaskId};
use longhaul_store::{DeadDelivery, DeadKey, PushBacklog};

use crate::engine::known_form;
use crate::{Engine, EngineError};

/// How many configs are looked at in one step.
const STEP: usize = 100;

/// What a rotation did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rotated {
    /// How many configs were sealed anew.
    pub resealed: u64,
    /// How many could not be read with any key that is known, and are as they were.
    pub unreadable: u64,
}

impl Engine {
    /// Lists dead deliveries: those that were given up. At most `limit`, behind `after`.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`].
    pub async fn dead_deliveries(
        &self,
        after: Option<&DeadKey>,
        limit: usize,
    ) -> Result<Vec<DeadDelivery>, EngineError> {
        let read = self.inner.store.dead_deliveries(after, limit).await;
        read.map_err(|error| EngineError::store("list dead deliveries", error))
    }

    /// Has dead deliveries tried again: those of a task, or of one of its configs, or all. Answers how many there are.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`] for an id that can't be one; [`EngineError::Unavailable`].
    pub async fn retry_dead(&self, task_id: Option<&str>, config_id: Option<&str>) -> Result<u64, EngineError> {
        let task_id: Option<TaskId> = task_id.map(known_form).transpose()?;
        let config_id = config_id.map(PushConfigId::new).transpose();
        let config_id = config_id.map_err(|error| EngineError::invalid("config", error.to_string()))?;
        let now = self.inner.clock.now();
        let retried = self.inner.store.retry_dead(task_id.as_ref(), config_id.as_ref(), now).await;
        let retried = retried.map_err(|error| EngineError::store("retry dead deliveries", error))?;
        self.inner.ring_sender();
        Ok(retried)
    }

    /// How many deliveries are waiting.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`].
    pub async fn push_backlog(&self) -> Result<PushBacklog, EngineError> {
        self.inner.store.push_backlog().await.map_err(|error| EngineError::store("count deliveries", error))
    }

    /// Makes sure that this process can read what others have sealed: by the fingerprint of their key in the store.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnsupportedOperation`] when the store's secrets were sealed with a key that is not known here;
    /// [`EngineError::PushNotSupported`], [`EngineError::Unavailable`].
    pub async fn check_push_key(&self) -> Result<(), EngineError> {
        let vault = &self.inner.push_parts()?.vault;
        let known = self.inner.store.push_key_check(&vault.fingerprint()).await;
        let known = known.map_err(|error| EngineError::store("look which key seals secrets", error))?;
        match vault.knows(&known) {
            true => Ok(()),
            false => Err(EngineError::UnsupportedOperation(
                "the secrets of push configs in this store were sealed with another key".to_owned(),
            )),
        }
    }

    /// Seals all secrets anew with the key that seals now.
    ///
    /// # Errors
    ///
    /// [`EngineError::PushNotSupported`], [`EngineError::Unavailable`]; what was sealed until then stays so, and it can be done
    /// again.
    pub async fn rotate_push_key(&self) -> Result<Rotated, EngineError> {
        let vault = &self.inner.push_parts()?.vault;
        let failed = |error| EngineError::store("seal secrets anew", error);
        let mut rotated = Rotated::default();
        let mut after: Option<(TaskId, PushConfigId)> = None;
        loop {
            let behind = after.as_ref().map(|(task_id, id)| (task_id, id));
            let configs = self.inner.store.sealed_configs(behind, STEP).await.map_err(failed)?;
            let Some((task_id, id, _)) = configs.last() else { break };
            after = Some((task_id.clone(), id.clone()));
            for (task_id, id, sealed) in &configs {
                if vault.is_current(sealed) {
                    continue;
                }
                let resealed = vault.open(task_id, id, sealed).and_then(|secrets| vault.seal(task_id, id, &secrets));
                let Ok(secrets) = resealed else {
                    rotated.unreadable += 1;
                    continue;
                };
                let done = self.inner.store.reseal_config(task_id, id, sealed, secrets).await.map_err(failed)?;
                rotated.resealed += u64::from(done);
            }
        }
        if rotated.unreadable == 0 {
            self.inner.store.set_push_key_check(&vault.fingerprint()).await.map_err(failed)?;
        }
        Ok(rotated)
    }
}
