//! How a delegation stands.

use longhaul_protocol::{TaskState, wire};

/// Every way in which a delegation can stand (§4.1.3). To be matched: there is no way to ask only whether it is over.
///
/// Three of them are ends that need nobody ([`Completed`](Self::Completed) and [`Answered`](Self::Answered) are what was
/// hoped for); two wait for the caller and are no ends; [`Running`](Self::Running) and [`Unknown`](Self::Unknown) have to be
/// asked again.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a delegation that waits, or whose state is unknown, is lost when nobody looks"]
pub enum Outcome {
    /// The task ended well. Its artifacts are what was asked for.
    Completed(Box<wire::Task>),
    /// The task ended with an error, which its status message explains.
    Failed(Box<wire::Task>),
    /// The task was canceled.
    Canceled(Box<wire::Task>),
    /// The agent declined to do it; its status message says why.
    Rejected(Box<wire::Task>),
    /// The agent waits for a message of the caller: the task goes on with [`send_message`](crate::Client::send_message) that
    /// names it.
    NeedsInput {
        /// The task.
        task: Box<wire::Task>,
        /// What it asks; an agent may have said nothing.
        question: Option<wire::Message>,
    },
    /// The agent waits for an authorization, which comes by a message or another way (§7.6).
    NeedsAuthorization {
        /// The task.
        task: Box<wire::Task>,
        /// What it needs; an agent may have said nothing.
        explanation: Option<wire::Message>,
    },
    /// The task is SUBMITTED or WORKING.
    Running(Box<wire::Task>),
    /// The agent answered with a message and made no task (§3.1.1).
    Answered(Box<wire::Message>),
    /// The state is unspecified, or one that this version of the protocol does not have. It is no end and no question: ask
    /// again, and if it stays so, ask a person.
    Unknown(Box<wire::Task>),
}

impl Outcome {
    /// How this task stands.
    pub fn of_task(task: wire::Task) -> Self {
        let status = task.status.as_ref();
        let said = || status.and_then(|status| status.message.clone());
        match status.and_then(|status| status.state.known()) {
            Some(TaskState::Completed) => Self::Completed(Box::new(task)),
            Some(TaskState::Failed) => Self::Failed(Box::new(task)),
            Some(TaskState::Canceled) => Self::Canceled(Box::new(task)),
            Some(TaskState::Rejected) => Self::Rejected(Box::new(task)),
            Some(TaskState::InputRequired) => Self::NeedsInput { question: said(), task: Box::new(task) },
            Some(TaskState::AuthRequired) => Self::NeedsAuthorization { explanation: said(), task: Box::new(task) },
            Some(TaskState::Submitted | TaskState::Working) => Self::Running(Box::new(task)),
            None => Self::Unknown(Box::new(task)),
        }
    }

    /// The task, unless the agent answered with a message.
    #[must_use]
    pub fn task(&self) -> Option<&wire::Task> {
        match self {
            Self::Completed(task)
            | Self::Failed(task)
            | Self::Canceled(task)
            | Self::Rejected(task)
            | Self::Running(task)
            | Self::Unknown(task)
            | Self::NeedsInput { task, .. }
            | Self::NeedsAuthorization { task, .. } => Some(task),
            Self::Answered(_) => None,
        }
    }

    /// The task or the message, as the protocol answers a send with it.
    #[must_use]
    pub fn into_payload(self) -> wire::SendMessageResponsePayload {
        match self {
            Self::Completed(task)
            | Self::Failed(task)
            | Self::Canceled(task)
            | Self::Rejected(task)
            | Self::Running(task)
            | Self::Unknown(task)
            | Self::NeedsInput { task, .. }
            | Self::NeedsAuthorization { task, .. } => wire::SendMessageResponsePayload::Task(*task),
            Self::Answered(message) => wire::SendMessageResponsePayload::Message(*message),
        }
    }

    /// The task's state; none for an answer without a task, and for an unknown state.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        self.task().and_then(|task| task.status.as_ref()).and_then(|status| status.state.known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: wire::TaskState) -> wire::Task {
        let status = wire::TaskStatus { state, ..wire::TaskStatus::default() };
        wire::Task { id: "t".to_owned(), status: Some(status), ..wire::Task::default() }
    }

    #[test]
    fn each_state_is_one_outcome() {
        for state in TaskState::ALL {
            assert_eq!(Outcome::of_task(task(state.into())).state(), Some(state));
        }
    }

    #[test]
    fn what_was_told_is_kept_whole() {
        for state in TaskState::ALL {
            let told = task(state.into());
            let outcome = Outcome::of_task(told.clone());
            assert_eq!(outcome.into_payload(), wire::SendMessageResponsePayload::Task(told));
        }
        let said = wire::Message { message_id: "m".to_owned(), ..wire::Message::default() };
        let outcome = Outcome::Answered(Box::new(said.clone()));
        assert_eq!(outcome.into_payload(), wire::SendMessageResponsePayload::Message(said));
    }

    #[test]
    fn what_nobody_knows_is_no_end() {
        for state in [wire::TaskState(0), wire::TaskState(9), wire::TaskState::UNRECOGNIZED] {
            assert!(matches!(Outcome::of_task(task(state)), Outcome::Unknown(_)));
        }
        assert!(matches!(Outcome::of_task(wire::Task::default()), Outcome::Unknown(_)));
    }
}
