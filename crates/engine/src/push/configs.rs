//! The four operations on push configs.

use longhaul_protocol::{PushConfigId, TaskId, wire};
use longhaul_store::{PushConfig, Scope};

use super::{PushParts, Secrets};
use crate::engine::{Inner, known_form};
use crate::{Engine, EngineError};

/// Which configs are wanted.
#[derive(Clone, Debug)]
pub struct PushConfigsQuery {
    /// Whose task.
    pub scope: Scope,
    /// The task.
    pub task_id: String,
    /// How many configs a page has at the most.
    pub page_size: usize,
    /// Where the page begins: empty for the first one, else what the page before said.
    pub page_token: String,
}

/// One page of configs, in the order of their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigPage {
    /// The configs, without their secrets.
    pub configs: Vec<wire::TaskPushNotificationConfig>,
    /// Where the next page begins; empty on the last one.
    pub next_page_token: String,
}

/// A config that comes with a send, checked, but for a task that may not have an id yet.
#[derive(Clone, Debug)]
pub(crate) struct NewPush {
    config: PushConfig,
    secrets: Secrets,
}

impl Engine {
    /// Whether push notifications are sent.
    #[must_use]
    pub fn pushes(&self) -> bool {
        self.inner.push.get().is_some()
    }

    /// Adds a push config to a task, or replaces the one of the same id (A2A §3.1.7). What is pushed there is written in
    /// `version` of the protocol, which is the caller's. The answer holds no secrets.
    ///
    /// # Errors
    ///
    /// [`EngineError::PushNotSupported`], [`EngineError::TaskNotFound`], [`EngineError::Invalid`], [`EngineError::Exhausted`] when
    /// the task has as many as it may, [`EngineError::Unavailable`].
    pub async fn create_push_config(
        &self,
        scope: &Scope,
        config: wire::TaskPushNotificationConfig,
        version: &'static str,
    ) -> Result<wire::TaskPushNotificationConfig, EngineError> {
        let inner = &self.inner;
        let parts = inner.push_parts()?;
        let task_id = known_form(&config.task_id)?;
        let new = inner.new_push(&config, version, "")?;
        let config = new.seal(parts, &task_id)?;
        let answer = shown(&task_id, scope, &config);
        let configs_max = inner.config.push_configs_max;
        let stored = inner.store.put_push_config(scope, &task_id, config, configs_max, inner.clock.now()).await;
        match stored.map_err(|error| EngineError::store("store the push config", error))? {
            Some(true) => {
                inner.ring_sender();
                Ok(answer)
            }
            Some(false) => Err(too_many_pushes(&task_id, configs_max)),
            None => Err(EngineError::TaskNotFound(task_id.as_str().to_owned())),
        }
    }

    /// Reads a push config (A2A §3.1.8), without its secrets.
    ///
    /// # Errors
    ///
    /// [`EngineError::PushNotSupported`]; [`EngineError::TaskNotFound`] and [`EngineError::PartNotFound`];
    /// [`EngineError::Unavailable`].
    pub async fn push_config(
        &self,
        scope: &Scope,
        task_id: &str,
        id: &str,
    ) -> Result<wire::TaskPushNotificationConfig, EngineError> {
        self.inner.push_parts()?;
        let task_id = known_form(task_id)?;
        let missing = || EngineError::PartNotFound { task: task_id.clone(), what: format!("push config {id:?}") };
        // Whose task it is comes first: who may not see it is told the same as of one that is not there.
        self.inner.load(scope, &task_id).await?;
        let id = PushConfigId::new(id).map_err(|_| missing())?;
        let read = self.inner.store.push_config(scope, &task_id, &id).await;
        let read = read.map_err(|error| EngineError::store("read the push config", error))?;
        read.map(|config| shown(&task_id, scope, &config)).ok_or_else(missing)
    }

    /// Lists the push configs of a task (A2A §3.1.9), without their secrets.
    ///
    /// # Errors
    ///
    /// [`EngineError::PushNotSupported`], [`EngineError::TaskNotFound`]; [`EngineError::Invalid`] for a page token that is not one
    /// of ours; [`EngineError::Unavailable`].
    pub async fn push_configs(&self, query: PushConfigsQuery) -> Result<PushConfigPage, EngineError> {
        self.inner.push_parts()?;
        let task_id = known_form(&query.task_id)?;
        let after = match query.page_token.as_str() {
            "" => None,
            token => Some(PushConfigId::new(token).map_err(|_| {
                EngineError::invalid("pageToken", "is not a page token of this server; begin again without one")
            })?),
        };
        let limit = query.page_size.saturating_add(1);
        let read = self.inner.store.push_configs(&query.scope, &task_id, after.as_ref(), limit).await;
        let read = read.map_err(|error| EngineError::store("list the push configs", error))?;
        let mut configs = read.ok_or_else(|| EngineError::TaskNotFound(task_id.as_str().to_owned()))?;
        let more = configs.len() > query.page_size;
        configs.truncate(query.page_size);
        let last = configs.last().filter(|_| more);
        let next_page_token = last.map(|config| config.id.as_str().to_owned()).unwrap_or_default();
        let configs = configs.iter().map(|config| shown(&task_id, &query.scope, config)).collect();
        Ok(PushConfigPage { configs, next_page_token })
    }

    /// Removes a push config (A2A §3.1.10). One that is gone already is as good as removed.
    ///
    /// # Errors
    ///
    /// [`EngineError::PushNotSupported`], [`EngineError::TaskNotFound`], [`EngineError::Unavailable`].
    pub async fn delete_push_config(&self, scope: &Scope, task_id: &str, id: &str) -> Result<(), EngineError> {
        self.inner.push_parts()?;
        let task_id = known_form(task_id)?;
        let Ok(id) = PushConfigId::new(id) else {
            return self.inner.load(scope, &task_id).await.map(drop);
        };
        let removed = self.inner.store.remove_push_config(scope, &task_id, &id).await;
        match removed.map_err(|error| EngineError::store("remove the push config", error))? {
            true => Ok(()),
            false => Err(EngineError::TaskNotFound(task_id.as_str().to_owned())),
        }
    }
}

pub(crate) fn too_many_pushes(task_id: &TaskId, configs_max: usize) -> EngineError {
    EngineError::Exhausted(format!(
        "task {task_id} has {configs_max} push configs, which is the most; delete one first"
    ))
}

impl Inner {
    pub fn push_parts(&self) -> Result<&PushParts, EngineError> {
        self.push.get().map(|push| &push.parts).ok_or(EngineError::PushNotSupported)
    }

    /// Checks a config. `prefix` says where it stands in its request.
    pub fn new_push(
        &self,
        config: &wire::TaskPushNotificationConfig,
        version: &'static str,
        prefix: &str,
    ) -> Result<NewPush, EngineError> {
        let courier = &self.push_parts()?.courier;
        let field = |name: &str| format!("{prefix}{name}");
        let now = self.clock.now();
        let id = match config.id.as_str() {
            // Of the same making as message ids: in the order of time, and unlike any other.
            "" => PushConfigId::new(self.ids.message_id(now).as_str()),
            given => PushConfigId::new(given),
        };
        let id = id.map_err(|error| EngineError::invalid(&field("id"), error.to_string()))?;
        let host = courier.check_url(&config.url).map_err(|why| EngineError::invalid(&field("url"), why))?;
        let authentication = config.authentication.clone().unwrap_or_default();
        let scheme = Some(authentication.scheme).filter(|scheme| !scheme.is_empty());
        let secrets = Secrets { credentials: authentication.credentials, token: config.token.clone() };
        courier
            .check_secrets(scheme.as_deref(), &secrets)
            .map_err(|(name, why)| EngineError::invalid(&field(name), why))?;
        let config = PushConfig {
            id,
            url: config.url.clone(),
            host,
            scheme,
            secrets: None,
            version: version.to_owned(),
            created_at: now,
        };
        Ok(NewPush { config, secrets })
    }
}

impl NewPush {
    /// The id that it was given, or that was made for it.
    pub fn id(&self) -> &PushConfigId {
        &self.config.id
    }

    /// The config as it is stored with its task.
    pub fn seal(self, parts: &PushParts, task_id: &TaskId) -> Result<PushConfig, EngineError> {
        if self.secrets.is_empty() {
            return Ok(self.config);
        }
        let sealed = parts.vault.seal(task_id, &self.config.id, &self.secrets);
        let failed =
            |error| EngineError::Internal { action: "seal the push config's secrets", source: Box::new(error) };
        Ok(PushConfig { secrets: Some(sealed.map_err(failed)?), ..self.config })
    }
}

/// A config as its task's callers see it: without what only its receiver should know.
fn shown(task_id: &TaskId, scope: &Scope, config: &PushConfig) -> wire::TaskPushNotificationConfig {
    let authentication = config.scheme.clone();
    wire::TaskPushNotificationConfig {
        tenant: scope.tenant.as_str().to_owned(),
        id: config.id.as_str().to_owned(),
        task_id: task_id.as_str().to_owned(),
        url: config.url.clone(),
        token: String::new(),
        authentication: authentication.map(|scheme| wire::AuthenticationInfo { scheme, ..Default::default() }),
    }
}
