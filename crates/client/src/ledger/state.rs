//! How a delegation stands, and what may follow what: a function of values, without a clock and without the file.

use std::fmt;

use thiserror::Error;

use super::Note;

/// How a delegation stands in the ledger.
///
/// Three kinds: *open* ones are followed by this client ([`is_open`](Self::is_open)); of these, and of the *stuck* ones, some
/// wait for a person ([`waits_for_person`](Self::waits_for_person)); *settled* ones never change again
/// ([`is_settled`](Self::is_settled)).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// Written down, and perhaps sent: the answer is not known.
    Prepared {
        /// The task that the message goes on with; none for one that begins a task.
        task_id: Option<String>,
    },
    /// The agent has it, and works or will.
    Accepted {
        /// The agent's id of the task.
        task_id: String,
    },
    /// The agent waits for a message of the caller.
    Question {
        /// The agent's id of the task.
        task_id: String,
        /// What it asks, shortened.
        text: Note,
    },
    /// The agent waits for an authorization (§7.6).
    Authorization {
        /// The agent's id of the task.
        task_id: String,
        /// What it needs, shortened.
        text: Note,
    },
    /// The agent has it, in a state that nobody here knows: to be asked again.
    Unknown {
        /// The agent's id of the task.
        task_id: String,
    },
    /// The answer was lost, and whether the agent acted can't be found out: a person decides.
    Uncertain {
        /// The task that the message goes on with; none for one that begins a task.
        task_id: Option<String>,
        /// What was tried.
        why: Note,
    },
    /// The agent no longer knows the task: a person decides.
    Lost {
        /// The agent's id of the task.
        task_id: String,
        /// What the agent said.
        why: Note,
    },
    /// Over. Never changes again.
    Settled {
        /// How it ended.
        end: End,
        /// The agent's id of the task, if there was one.
        task_id: Option<String>,
        /// What was said at the end, shortened.
        text: Note,
    },
}

/// How a delegation ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum End {
    /// The task ended well.
    Completed,
    /// The task ended with an error.
    Failed,
    /// The task was canceled.
    Canceled,
    /// The agent declined the task.
    Rejected,
    /// The agent answered with a message and made no task.
    Answered,
    /// The agent refused the request itself; there is no task.
    Refused,
    /// A person gave it up, whatever the agent makes of it.
    Abandoned,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $name:literal;)*) => {
        /// The state of a delegation without what belongs to it: for filters, counts and the history.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum StateKind {
            $($(#[$doc])* $kind = $code,)*
        }

        impl StateKind {
            /// All kinds, in the order of a delegation's life.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The name, as the command line prints and reads it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

// The numbers are stored. Up to 5 a delegation is open, up to 7 it is not settled: queries and indexes rely on it.
kinds! {
    /// [`State::Prepared`].
    Prepared = 1, "prepared";
    /// [`State::Accepted`].
    Accepted = 2, "accepted";
    /// [`State::Question`].
    Question = 3, "question";
    /// [`State::Authorization`].
    Authorization = 4, "authorization";
    /// [`State::Unknown`].
    Unknown = 5, "unknown";
    /// [`State::Uncertain`].
    Uncertain = 6, "uncertain";
    /// [`State::Lost`].
    Lost = 7, "lost";
    /// [`End::Completed`].
    Completed = 8, "completed";
    /// [`End::Failed`].
    Failed = 9, "failed";
    /// [`End::Canceled`].
    Canceled = 10, "canceled";
    /// [`End::Rejected`].
    Rejected = 11, "rejected";
    /// [`End::Answered`].
    Answered = 12, "answered";
    /// [`End::Refused`].
    Refused = 13, "refused";
    /// [`End::Abandoned`].
    Abandoned = 14, "abandoned";
}

impl StateKind {
    /// The kind that is stored as this number.
    pub(super) fn from_code(code: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }

    /// The number that is stored.
    pub(super) fn code(self) -> i64 {
        self as i64
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The end that it stands for; none for what is not settled.
    #[must_use]
    pub fn end(self) -> Option<End> {
        match self {
            Self::Prepared
            | Self::Accepted
            | Self::Question
            | Self::Authorization
            | Self::Unknown
            | Self::Uncertain
            | Self::Lost => None,
            Self::Completed => Some(End::Completed),
            Self::Failed => Some(End::Failed),
            Self::Canceled => Some(End::Canceled),
            Self::Rejected => Some(End::Rejected),
            Self::Answered => Some(End::Answered),
            Self::Refused => Some(End::Refused),
            Self::Abandoned => Some(End::Abandoned),
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<End> for StateKind {
    fn from(end: End) -> Self {
        match end {
            End::Completed => Self::Completed,
            End::Failed => Self::Failed,
            End::Canceled => Self::Canceled,
            End::Rejected => Self::Rejected,
            End::Answered => Self::Answered,
            End::Refused => Self::Refused,
            End::Abandoned => Self::Abandoned,
        }
    }
}

impl State {
    /// The state without what belongs to it.
    #[must_use]
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Prepared { .. } => StateKind::Prepared,
            Self::Accepted { .. } => StateKind::Accepted,
            Self::Question { .. } => StateKind::Question,
            Self::Authorization { .. } => StateKind::Authorization,
            Self::Unknown { .. } => StateKind::Unknown,
            Self::Uncertain { .. } => StateKind::Uncertain,
            Self::Lost { .. } => StateKind::Lost,
            Self::Settled { end, .. } => (*end).into(),
        }
    }

    /// The agent's id of the task, if it is known.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        match self {
            Self::Prepared { task_id } | Self::Uncertain { task_id, .. } | Self::Settled { task_id, .. } => {
                task_id.as_deref()
            }
            Self::Accepted { task_id }
            | Self::Question { task_id, .. }
            | Self::Authorization { task_id, .. }
            | Self::Unknown { task_id }
            | Self::Lost { task_id, .. } => Some(task_id),
        }
    }

    /// What was said or went wrong, shortened; empty where nothing was.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Prepared { .. } | Self::Accepted { .. } | Self::Unknown { .. } => "",
            Self::Question { text, .. } | Self::Authorization { text, .. } | Self::Settled { text, .. } => {
                text.as_str()
            }
            Self::Uncertain { why, .. } | Self::Lost { why, .. } => why.as_str(),
        }
    }

    /// Whether the client has something to do: to send, to ask, to follow.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Prepared { .. }
            | Self::Accepted { .. }
            | Self::Question { .. }
            | Self::Authorization { .. }
            | Self::Unknown { .. } => true,
            Self::Uncertain { .. } | Self::Lost { .. } | Self::Settled { .. } => false,
        }
    }

    /// Whether nothing goes on before a person acts.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        match self {
            Self::Question { .. } | Self::Authorization { .. } | Self::Uncertain { .. } | Self::Lost { .. } => true,
            Self::Prepared { .. } | Self::Accepted { .. } | Self::Unknown { .. } | Self::Settled { .. } => false,
        }
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Settled { .. })
    }
}

/// What happens to a delegation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The request is about to be sent, for the first time or again.
    Sending,
    /// The agent told how the task stands.
    Told {
        /// The agent's id of the task.
        task_id: String,
        /// How it stands.
        stands: Stands,
    },
    /// The agent answered with a message, without a task.
    Answered {
        /// What it says, shortened.
        text: Note,
    },
    /// The agent refused the request.
    Refused {
        /// Its error.
        error: Note,
    },
    /// The agent does not know the task.
    NotFound {
        /// Its error.
        error: Note,
    },
    /// The answer was lost, and it can't be found out what became of the request.
    Unresolved {
        /// What was tried.
        why: Note,
    },
    /// The caller goes on with the task by another message.
    Reply,
    /// A person has the request sent again, at the risk that the agent does it twice.
    SendAgain,
    /// A person found the task.
    Adopt {
        /// The agent's id of the task.
        task_id: String,
    },
    /// A person gives the delegation up.
    Abandon {
        /// Why.
        why: Note,
    },
}

/// How a task stands, as its agent tells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stands {
    /// It is SUBMITTED or WORKING.
    Running,
    /// It waits for a message.
    Question(Note),
    /// It waits for an authorization.
    Authorization(Note),
    /// It is in a state that nobody here knows.
    Unknown,
    /// It ended.
    Ended(TaskEnd, Note),
}

/// The ends that a task has; a delegation has more ([`End`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskEnd {
    /// COMPLETED.
    Completed,
    /// FAILED.
    Failed,
    /// CANCELED.
    Canceled,
    /// REJECTED.
    Rejected,
}

impl From<TaskEnd> for End {
    fn from(end: TaskEnd) -> Self {
        match end {
            TaskEnd::Completed => Self::Completed,
            TaskEnd::Failed => Self::Failed,
            TaskEnd::Canceled => Self::Canceled,
            TaskEnd::Rejected => Self::Rejected,
        }
    }
}

impl Event {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Told { .. } => "news of the task",
            Self::Answered { .. } => "an answer without a task",
            Self::Refused { .. } => "a refusal",
            Self::NotFound { .. } => "that the task is not known",
            Self::Unresolved { .. } => "that the answer is lost",
            Self::Reply => "a reply",
            Self::SendAgain => "sending again",
            Self::Adopt { .. } => "another's task",
            Self::Abandon { .. } => "giving up",
        }
    }
}

/// What an event makes of a state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// It changes nothing.
    Stays,
    /// It leads to another state, or to a different question.
    Moves(State),
}

/// Why an event can't follow.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NotAllowed {
    /// The delegation is over.
    #[error("it is settled as {0}")]
    Settled(StateKind),
    /// The news is of another task.
    #[error("it is about task {known:?}, not {told:?}")]
    OtherTask {
        /// The task of the delegation.
        known: String,
        /// The task of the event.
        told: String,
    },
    /// The event has no meaning in this state.
    #[error("{event} has no meaning while it is {state}")]
    NotNow {
        /// The state.
        state: StateKind,
        /// The event.
        event: &'static str,
    },
}

/// What `event` makes of a delegation that is in `state`.
///
/// # Errors
///
/// [`NotAllowed`], and then nothing changes. A settled delegation allows nothing; only the same end told again is let pass.
pub fn transition(state: &State, event: &Event) -> Result<Step, NotAllowed> {
    let wanted = match state {
        State::Settled { end, task_id, .. } => return settled(*end, task_id.as_deref(), event),
        State::Prepared { task_id } => prepared(task_id.as_ref(), event),
        State::Accepted { task_id } => with_agent(task_id, Asks::Nothing, event),
        State::Unknown { task_id } => with_agent(task_id, Asks::Unclear, event),
        State::Question { task_id, .. } | State::Authorization { task_id, .. } => {
            with_agent(task_id, Asks::Something, event)
        }
        State::Uncertain { task_id, .. } => uncertain(task_id.as_ref(), event),
        State::Lost { task_id, .. } => lost(task_id, event),
    };
    match wanted? {
        None => Err(NotAllowed::NotNow { state: state.kind(), event: event.name() }),
        Some(next) if next == *state => Ok(Step::Stays),
        Some(next) => Ok(Step::Moves(next)),
    }
}

/// The state that follows, itself included; `None` when the event has no meaning.
type Wanted = Result<Option<State>, NotAllowed>;

fn settled(end: End, task_id: Option<&str>, event: &Event) -> Result<Step, NotAllowed> {
    let is_same = match event {
        Event::Told { task_id: told, stands: Stands::Ended(told_end, _) } => {
            end == (*told_end).into() && task_id == Some(told)
        }
        Event::Answered { .. } => end == End::Answered,
        Event::Refused { .. } => end == End::Refused,
        Event::Abandon { .. } => end == End::Abandoned,
        Event::Told { .. }
        | Event::Sending
        | Event::NotFound { .. }
        | Event::Unresolved { .. }
        | Event::Reply
        | Event::SendAgain
        | Event::Adopt { .. } => false,
    };
    if is_same { Ok(Step::Stays) } else { Err(NotAllowed::Settled(end.into())) }
}

fn prepared(known: Option<&String>, event: &Event) -> Wanted {
    Ok(match (event, known) {
        (Event::Sending, _) => Some(State::Prepared { task_id: known.cloned() }),
        (Event::Told { task_id, stands }, _) => Some(told(known, task_id, stands)?),
        (Event::Answered { text }, None) => Some(over(End::Answered, None, text)),
        (Event::Refused { error }, None) => Some(over(End::Refused, None, error)),
        // The task of a reply stands on its own: it is asked how it stands.
        (Event::Answered { .. } | Event::Refused { .. }, Some(task_id)) => {
            Some(State::Accepted { task_id: task_id.clone() })
        }
        (Event::NotFound { error }, Some(task_id)) => {
            Some(State::Lost { task_id: task_id.clone(), why: error.clone() })
        }
        (Event::Unresolved { why }, _) => Some(State::Uncertain { task_id: known.cloned(), why: why.clone() }),
        (Event::Adopt { task_id }, None) => Some(State::Accepted { task_id: task_id.clone() }),
        (Event::Abandon { why }, _) => Some(over(End::Abandoned, known, why)),
        (Event::NotFound { .. }, None) | (Event::Adopt { .. }, Some(_)) | (Event::Reply | Event::SendAgain, _) => None,
    })
}

/// Whether a task that the agent has is one to which a reply makes sense.
#[derive(Clone, Copy)]
enum Asks {
    Nothing,
    Something,
    Unclear,
}

fn with_agent(known: &String, asks: Asks, event: &Event) -> Wanted {
    Ok(match event {
        Event::Told { task_id, stands } => Some(told(Some(known), task_id, stands)?),
        Event::NotFound { error } => Some(State::Lost { task_id: known.clone(), why: error.clone() }),
        Event::Reply => match asks {
            // A message to a task that runs is one that it takes when it next stops.
            Asks::Nothing | Asks::Something => Some(State::Prepared { task_id: Some(known.clone()) }),
            Asks::Unclear => None,
        },
        Event::Abandon { why } => Some(over(End::Abandoned, Some(known), why)),
        Event::Sending
        | Event::Answered { .. }
        | Event::Refused { .. }
        | Event::Unresolved { .. }
        | Event::SendAgain
        | Event::Adopt { .. } => None,
    })
}

fn uncertain(known: Option<&String>, event: &Event) -> Wanted {
    Ok(match (event, known) {
        (Event::Told { task_id, stands }, _) => Some(told(known, task_id, stands)?),
        (Event::Answered { text }, None) => Some(over(End::Answered, None, text)),
        (Event::Answered { .. }, Some(task_id)) => Some(State::Accepted { task_id: task_id.clone() }),
        (Event::NotFound { error }, Some(task_id)) => {
            Some(State::Lost { task_id: task_id.clone(), why: error.clone() })
        }
        (Event::Unresolved { why }, _) => Some(State::Uncertain { task_id: known.cloned(), why: why.clone() }),
        (Event::SendAgain, _) => Some(State::Prepared { task_id: known.cloned() }),
        (Event::Adopt { task_id }, None) => Some(State::Accepted { task_id: task_id.clone() }),
        (Event::Abandon { why }, _) => Some(over(End::Abandoned, known, why)),
        // An earlier attempt may have been taken, so a refusal of a later one settles nothing.
        (Event::NotFound { .. }, None)
        | (Event::Adopt { .. }, Some(_))
        | (Event::Sending | Event::Refused { .. } | Event::Reply, _) => None,
    })
}

fn lost(known: &String, event: &Event) -> Wanted {
    Ok(match event {
        // It was not lost after all: an agent that restores a backup, or whose copies differ for a while.
        Event::Told { task_id, stands } => Some(told(Some(known), task_id, stands)?),
        Event::NotFound { error } => Some(State::Lost { task_id: known.clone(), why: error.clone() }),
        Event::Abandon { why } => Some(over(End::Abandoned, Some(known), why)),
        Event::Sending
        | Event::Answered { .. }
        | Event::Refused { .. }
        | Event::Unresolved { .. }
        | Event::Reply
        | Event::SendAgain
        | Event::Adopt { .. } => None,
    })
}

fn told(known: Option<&String>, told: &str, stands: &Stands) -> Result<State, NotAllowed> {
    if let Some(known) = known.filter(|known| *known != told) {
        return Err(NotAllowed::OtherTask { known: known.clone(), told: told.to_owned() });
    }
    let task_id = told.to_owned();
    Ok(match stands {
        Stands::Running => State::Accepted { task_id },
        Stands::Question(text) => State::Question { task_id, text: text.clone() },
        Stands::Authorization(text) => State::Authorization { task_id, text: text.clone() },
        Stands::Unknown => State::Unknown { task_id },
        Stands::Ended(end, text) => over((*end).into(), Some(&task_id), text),
    })
}

fn over(end: End, task_id: Option<&String>, text: &Note) -> State {
    State::Settled { end, task_id: task_id.cloned(), text: text.clone() }
}

#[cfg(test)]
mod tests;
