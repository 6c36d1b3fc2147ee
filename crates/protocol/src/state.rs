//! The states of a task and the roles of a message, without the wire's unspecified value.

use std::fmt;

/// Where a task stands (§4.1.3).
///
/// `TASK_STATE_UNSPECIFIED` does not exist here: it is what the wire layer makes of a state that it
/// does not know, and it is never stored.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TaskState {
    /// Accepted, not yet worked on.
    Submitted,
    /// Being worked on.
    Working,
    /// Ended well; terminal.
    Completed,
    /// Ended with an error; terminal.
    Failed,
    /// Ended because somebody asked for that; terminal.
    Canceled,
    /// Waits for a message of its caller; interrupted.
    InputRequired,
    /// Declined by the agent; terminal.
    Rejected,
    /// Waits for an authorization; interrupted.
    AuthRequired,
}

impl TaskState {
    /// Each state once, in the order of the proto's numbers.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// The number in the proto, 1 to 8.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Submitted => 1,
            Self::Working => 2,
            Self::Completed => 3,
            Self::Failed => 4,
            Self::Canceled => 5,
            Self::InputRequired => 6,
            Self::Rejected => 7,
            Self::AuthRequired => 8,
        }
    }

    /// The state with this number in the proto; none for 0 and for numbers of a later protocol.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// The name in the proto and in JSON, such as `TASK_STATE_INPUT_REQUIRED`.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }

    /// The state with this name in the proto.
    #[must_use]
    pub fn from_wire_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.wire_name() == name)
    }

    /// Whether the task has ended, so that nothing changes it any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Whether the task waits for its caller.
    #[must_use]
    pub fn is_interrupted(self) -> bool {
        match self {
            Self::InputRequired | Self::AuthRequired => true,
            Self::Submitted | Self::Working | Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => false,
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.wire_name())
    }
}

/// Who sent a message (§4.1.5), without the unspecified value of the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// The caller.
    User,
    /// The agent.
    Agent,
}

impl Role {
    /// Each role once, in the order of the proto's numbers.
    pub const ALL: [Self; 2] = [Self::User, Self::Agent];

    /// The number in the proto, 1 or 2.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::User => 1,
            Self::Agent => 2,
        }
    }

    /// The role with this number in the proto.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.number() == number)
    }

    /// The name in the proto and in JSON: `ROLE_USER` or `ROLE_AGENT`.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }

    /// The role with this name in the proto.
    #[must_use]
    pub fn from_wire_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.wire_name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.wire_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_their_state() {
        for (index, state) in TaskState::ALL.into_iter().enumerate() {
            assert_eq!(state.number(), i32::try_from(index).unwrap() + 1);
            assert_eq!(TaskState::from_number(state.number()), Some(state));
            assert_eq!(TaskState::from_wire_name(state.wire_name()), Some(state));
            assert!(!(state.is_terminal() && state.is_interrupted()));
        }
        assert_eq!(TaskState::from_number(0), None);
        assert_eq!(TaskState::from_number(9), None);
        assert_eq!(TaskState::from_wire_name("TASK_STATE_UNSPECIFIED"), None);
    }

    #[test]
    fn numbers_and_names_lead_back_to_their_role() {
        for role in Role::ALL {
            assert_eq!(Role::from_number(role.number()), Some(role));
            assert_eq!(Role::from_wire_name(role.wire_name()), Some(role));
        }
        assert_eq!(Role::from_number(0), None);
        assert_eq!(Role::from_wire_name("user"), None);
    }
}
