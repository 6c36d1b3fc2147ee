//! The versions of artifacts: ours, beyond the protocol (extension `urn:longhaul:ext:artifact-versions:v1`).

use longhaul_protocol::{ArtifactId, wire};
use longhaul_store::Scope;

use crate::engine::known_form;
use crate::{Engine, EngineError};

/// Which versions are wanted.
#[derive(Clone, Debug)]
pub struct VersionsQuery {
    /// Whose task.
    pub scope: Scope,
    /// The task.
    pub task_id: String,
    /// The artifact.
    pub artifact_id: String,
    /// How many versions a page has at the most.
    pub page_size: usize,
    /// Where the page begins: empty for the first one, else what the page before said.
    pub page_token: String,
}

/// One page of versions, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactVersionPage {
    /// The versions.
    pub versions: Vec<longhaul_store::ArtifactVersion>,
    /// Where the next page begins; empty on the last one.
    pub next_page_token: String,
}

impl Engine {
    /// Lists the versions of an artifact, the newest first.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`] and [`EngineError::PartNotFound`]; [`EngineError::Invalid`] for a page token that is
    /// not one of ours.
    pub async fn list_artifact_versions(&self, query: VersionsQuery) -> Result<ArtifactVersionPage, EngineError> {
        let before = match query.page_token.as_str() {
            "" => None,
            token => Some(token.strip_prefix('v').and_then(|version| version.parse().ok()).ok_or_else(|| {
                EngineError::invalid("pageToken", "is not a page token of this server; begin again without one")
            })?),
        };
        let task_id = known_form(&query.task_id)?;
        let artifact_id = artifact_id(&task_id, &query.artifact_id)?;
        let read =
            self.inner.store.artifact_versions(&query.scope, &task_id, &artifact_id, before, query.page_size + 1).await;
        let mut versions = match read.map_err(|error| EngineError::store("read the artifact", error))? {
            Some(versions) => versions,
            None => return Err(self.missing(&query.scope, &task_id, &format!("artifact {artifact_id}")).await),
        };
        let more = versions.len() > query.page_size;
        versions.truncate(query.page_size);
        let next_page_token =
            versions.last().filter(|_| more).map(|oldest| format!("v{}", oldest.version)).unwrap_or_default();
        Ok(ArtifactVersionPage { versions, next_page_token })
    }

    /// Reads one version of an artifact, or the newest.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`] and [`EngineError::PartNotFound`].
    pub async fn artifact(
        &self,
        scope: &Scope,
        task_id: &str,
        artifact: &str,
        version: Option<u64>,
    ) -> Result<(u64, wire::Artifact), EngineError> {
        let task_id = known_form(task_id)?;
        let artifact_id = artifact_id(&task_id, artifact)?;
        let read = self.inner.store.artifact(scope, &task_id, &artifact_id, version).await;
        match read.map_err(|error| EngineError::store("read the artifact", error))? {
            Some(found) => Ok(found),
            None => {
                let version = version.map(|version| format!(" in version {version}")).unwrap_or_default();
                Err(self.missing(scope, &task_id, &format!("artifact {artifact_id}{version}")).await)
            }
        }
    }

    /// What exactly is not there: the task, or a part of it.
    async fn missing(&self, scope: &Scope, task_id: &longhaul_protocol::TaskId, what: &str) -> EngineError {
        match self.inner.load(scope, task_id).await {
            Ok(_) => EngineError::PartNotFound { task: task_id.clone(), what: what.to_owned() },
            Err(error) => error,
        }
    }
}

fn artifact_id(task_id: &longhaul_protocol::TaskId, artifact_id: &str) -> Result<ArtifactId, EngineError> {
    ArtifactId::new(artifact_id)
        .map_err(|_| EngineError::PartNotFound { task: task_id.clone(), what: format!("artifact {artifact_id:?}") })
}
