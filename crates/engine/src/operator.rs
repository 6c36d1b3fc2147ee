//! What an operator may do, who sees the tasks of every scope.

use crate::engine::known_form;
use crate::{Engine, EngineError};

impl Engine {
    /// Does what [`Engine::resume_task`] does, whoever the task belongs to.
    ///
    /// # Errors
    ///
    /// As [`Engine::resume_task`].
    pub async fn resume_task_of_anyone(&self, task_id: &str) -> Result<(), EngineError> {
        let scope = self.inner.store.scope_of(&known_form(task_id)?).await;
        let scope = scope.map_err(|error| EngineError::store("read whose task it is", error))?;
        let scope = scope.ok_or_else(|| EngineError::TaskNotFound(task_id.to_owned()))?;
        self.resume_task(&scope, task_id).await
    }
}
