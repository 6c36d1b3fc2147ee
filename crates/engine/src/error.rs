use std::time::Duration;

use longhaul_lifecycle::Rejection;
use longhaul_protocol::{A2aError, ErrorCode, FieldViolation, TaskId};
use longhaul_store::StoreError;
use thiserror::Error;

/// Why an operation was not carried out.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no such task, or the caller may not see it (A2A §3.3.2).
    #[error("there is no task {0:?}")]
    TaskNotFound(String),
    /// What was asked for of a task that exists is not there.
    #[error("task {task} has no {what}")]
    PartNotFound {
        /// The task.
        task: TaskId,
        /// What it does not have.
        what: String,
    },
    /// The task has ended, so there is nothing to cancel.
    #[error("task {0} has ended and cannot be canceled")]
    TaskNotCancelable(TaskId),
    /// The task's state does not allow the operation, or the agent does not offer it.
    #[error("{0}")]
    UnsupportedOperation(String),
    /// A part's media type is none that the agent takes.
    #[error("media type {media_type:?} of {field} is not supported")]
    ContentTypeNotSupported {
        /// Which part.
        field: String,
        /// Its media type.
        media_type: String,
    },
    /// The request breaks a rule.
    #[error("invalid request")]
    Invalid(Vec<FieldViolation>),
    /// Push notifications are not sent (A2A §3.3.4).
    #[error("push notifications are not supported; follow the task by a stream, or read it")]
    PushNotSupported,
    /// The agent answered with something that can't be shown.
    #[error("the agent's answer is not valid: {0}")]
    InvalidAgentResponse(String),
    /// A limit is reached for now.
    #[error("{0}")]
    Exhausted(String),
    /// The server is going down, or its store can't work now.
    #[error("cannot {action} now")]
    Unavailable {
        /// What was attempted.
        action: &'static str,
        /// Why not, if there is more to know.
        source: Option<StoreError>,
    },
    /// Our own fault.
    #[error("cannot {action}")]
    Internal {
        /// What was attempted.
        action: &'static str,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// After which time it may be worth trying again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl EngineError {
    /// What a store's error means for an operation.
    pub(crate) fn store(action: &'static str, error: StoreError) -> Self {
        match error {
            StoreError::NotFound { task } => Self::TaskNotFound(task.as_str().to_owned()),
            StoreError::LogFull { .. } => Self::UnsupportedOperation(error.to_string()),
            // A message that was accepted before, and the store can't say now what became of it: the next try is told.
            StoreError::Unavailable { .. } | StoreError::Duplicate { .. } => {
                Self::Unavailable { action, source: Some(error) }
            }
            StoreError::Conflict { .. } | StoreError::LeaseLost { .. } | StoreError::Corrupt { .. } => {
                Self::Internal { action, source: Box::new(error) }
            }
        }
    }

    /// What a refusal of the lifecycle means for a message of the caller.
    pub(crate) fn message_refused(task: &TaskId, rejection: &Rejection) -> Self {
        Self::UnsupportedOperation(format!("task {task} takes no message: {rejection}"))
    }

    /// One field of the request that breaks a rule.
    pub(crate) fn invalid(field: &str, description: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldViolation { field: field.to_owned(), description: description.into() }])
    }
}

impl From<EngineError> for A2aError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::TaskNotFound(id) => Self::task_not_found(&id),
            EngineError::PartNotFound { task, .. } => {
                Self::new(ErrorCode::TaskNotFound, message).with_metadata("taskId", task.as_str())
            }
            EngineError::TaskNotCancelable(task) => {
                Self::new(ErrorCode::TaskNotCancelable, message).with_metadata("taskId", task.as_str())
            }
            EngineError::UnsupportedOperation(_) => Self::new(ErrorCode::UnsupportedOperation, message),
            EngineError::ContentTypeNotSupported { field, media_type } => {
                Self::new(ErrorCode::ContentTypeNotSupported, message)
                    .with_metadata("field", field)
                    .with_metadata("mediaType", media_type)
            }
            EngineError::Invalid(violations) => Self::invalid_argument(violations),
            EngineError::PushNotSupported => Self::new(ErrorCode::PushNotificationNotSupported, message),
            EngineError::InvalidAgentResponse(_) => {
                Self::new(ErrorCode::InvalidAgentResponse, "the agent's answer is not valid")
            }
            EngineError::Exhausted(_) => Self::new(ErrorCode::ResourceExhausted, message).with_retry_after(RETRY_AFTER),
            EngineError::Unavailable { .. } => Self::new(ErrorCode::Unavailable, message).with_retry_after(RETRY_AFTER),
            EngineError::Internal { .. } => Self::new(ErrorCode::Internal, "internal error"),
        }
    }
}
