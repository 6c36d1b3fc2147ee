use longhaul_lifecycle::{AttemptOutcome, Command, CommandKind, Joins, TaskHead, Transition, WorkerId, Writer, decide};
use longhaul_protocol::{ContextId, Message, MessageId, Role, TaskId, TaskState, Timestamp, wire};

/// A moment, in milliseconds after the task was made.
pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_700_000_000_000 + millis)
}

pub fn agent(id: &str) -> Message {
    Message::agent_text(MessageId::new(id).expect("an id"), id)
}

pub fn user(id: &str) -> Message {
    Message::new(wire::Message { role: Role::User.into(), ..agent(id).into_wire() }).expect("a message")
}

pub fn submitted() -> TaskHead {
    TaskHead::submitted(TaskId::new("task").expect("an id"), ContextId::new("context").expect("an id"), at(0))
}

/// How long a lease lasts, in milliseconds.
pub const LEASE: i64 = 1000;

/// How long a turn waits for its next attempt, in milliseconds.
pub const BACKOFF: i64 = 300;

/// A start at that moment.
pub fn start(millis: i64) -> Command {
    Command::Start { lease_until: at(millis + LEASE), worker: WorkerId::new("host/1") }
}

/// The end of an attempt at that moment, with the failure `reason`.
pub fn retry(reason: &str, millis: i64) -> Command {
    Command::Retry { how: failed(reason), at: at(millis + BACKOFF) }
}

pub fn failed(reason: &str) -> AttemptOutcome {
    AttemptOutcome::Failed { reason: reason.to_owned() }
}

/// The command of a kind, given at that moment, with a message of that id where it may have one.
pub fn command(kind: CommandKind, id: &str, millis: i64) -> Command {
    match kind {
        CommandKind::Start => start(millis),
        CommandKind::Retry => retry(id, millis),
        CommandKind::HandBack => Command::HandBack,
        CommandKind::Progress => Command::Progress { message: Some(agent(id)), metadata: None },
        CommandKind::RequireInput => Command::RequireInput { message: agent(id) },
        CommandKind::RequireAuth => Command::RequireAuth { message: agent(id), resume_after: None },
        CommandKind::Complete => Command::Complete { message: Some(agent(id)) },
        CommandKind::Fail => Command::Fail { message: Some(agent(id)) },
        CommandKind::Reject => Command::Reject { message: Some(agent(id)) },
        CommandKind::Message => Command::Message { message: user(id) },
        CommandKind::Resume => Command::Resume,
        CommandKind::Cancel => Command::Cancel,
        CommandKind::FinishCancel => Command::FinishCancel { message: Some(agent(id)) },
    }
}

/// What the engine's command makes of a task that allows it.
pub fn step(head: &TaskHead, command: Command, millis: i64) -> Transition {
    decide(head, command, Writer::Engine, at(millis)).expect("the state allows the command")
}

/// As [`step`], for the head alone.
pub fn after(head: &TaskHead, command: Command, millis: i64) -> TaskHead {
    step(head, command, millis).head
}

/// A working task with a living lease.
pub fn working() -> TaskHead {
    after(&submitted(), start(1), 1)
}

/// A task that waits for an answer to the question `question`.
pub fn asking() -> TaskHead {
    after(&working(), Command::RequireInput { message: agent("question") }, 2)
}

/// A task in a state, by the shortest way there.
pub fn head_in(state: TaskState) -> TaskHead {
    let kind = match state {
        TaskState::Submitted => return submitted(),
        TaskState::Working => return working(),
        TaskState::Completed => CommandKind::Complete,
        TaskState::Failed => CommandKind::Fail,
        TaskState::Canceled => CommandKind::FinishCancel,
        TaskState::InputRequired => CommandKind::RequireInput,
        TaskState::Rejected => CommandKind::Reject,
        TaskState::AuthRequired => CommandKind::RequireAuth,
    };
    after(&working(), command(kind, "status", 2), 2)
}

pub fn ids(history: &[Joins]) -> Vec<&str> {
    history.iter().map(|joins| joins.message.id().as_str()).collect()
}

/// A message that joins with the last of so many updates.
pub fn joins(message: Message, updates: usize) -> Joins {
    Joins { message, updates }
}

/// The states that a transition tells, in order.
pub fn told(transition: &Transition) -> Vec<TaskState> {
    transition.updates.iter().map(|update| update.state).collect()
}
