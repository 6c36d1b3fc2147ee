//! The states of a task. Their numbers are those of v1.0; one name is spelled in another way.

use crate::json::wire_enum;
use crate::state;
use crate::wire;

wire_enum! {
    /// The state of a task as a number of the proto: 0 is unspecified, others may be unknown.
    TaskState = NamedState, unspecified "TASK_STATE_UNSPECIFIED"
}

/// A state under its name of v0.3.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct NamedState(pub state::TaskState);

/// The one name that differs.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

impl NamedState {
    /// The number in the proto, 1 to 8.
    #[must_use]
    pub fn number(self) -> i32 {
        self.0.number()
    }

    /// The state with this number in the proto.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        state::TaskState::from_number(number).map(Self)
    }

    /// The name in the proto and in its JSON.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self.0 {
            state::TaskState::Canceled => CANCELLED,
            other => other.wire_name(),
        }
    }

    /// The state with this name. The spelling of v1.0 is taken too.
    #[must_use]
    pub fn from_wire_name(name: &str) -> Option<Self> {
        match name {
            CANCELLED => Some(Self(state::TaskState::Canceled)),
            other => state::TaskState::from_wire_name(other).map(Self),
        }
    }
}

impl From<wire::TaskState> for TaskState {
    fn from(state: wire::TaskState) -> Self {
        Self(state.0)
    }
}

impl From<TaskState> for wire::TaskState {
    fn from(state: TaskState) -> Self {
        Self(state.0)
    }
}
