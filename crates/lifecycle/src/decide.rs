use longhaul_protocol::{Message, TaskState, Timestamp};

use crate::{
    AttemptEnd, AttemptOutcome, Command, CommandKind, Joins, Lease, Rejection, StatusUpdate, TaskHead, Transition,
    WorkerId, Writer,
};

/// Decides what `command` does to the task `head`, by the table of the lifecycle.
///
/// # Errors
///
/// [`Rejection`] when the state does not allow the command, when the task has ended, or when an agent writes without
/// its lease.
pub fn decide(head: &TaskHead, command: Command, writer: Writer, now: Timestamp) -> Result<Transition, Rejection> {
    let kind = command.kind();
    if let Writer::Agent { epoch } = writer {
        check_lease(head, kind, epoch, now)?;
    }
    let refused = || Rejection::NotApplicable { state: head.state, command: kind };
    let step = Step { head, now };
    match head.state {
        TaskState::Submitted => match command {
            Command::Start { lease_until, worker } => step.start(lease_until, worker),
            Command::RequireAuth { message, resume_after } => {
                Ok(step.ask(TaskState::AuthRequired, message, resume_after))
            }
            Command::Fail { message } => Ok(step.end(TaskState::Failed, message)),
            Command::Reject { message } => Ok(step.end(TaskState::Rejected, message)),
            Command::Message { message } => Ok(step.queue(message)),
            Command::Cancel => Ok(step.end(TaskState::Canceled, None)),
            Command::FinishCancel { message } => Ok(step.end(TaskState::Canceled, message)),
            Command::Retry { .. }
            | Command::HandBack
            | Command::Progress { .. }
            | Command::RequireInput { .. }
            | Command::Complete { .. }
            | Command::Resume => Err(refused()),
        },
        TaskState::Working => match command {
            Command::Start { lease_until, worker } => step.start(lease_until, worker),
            Command::Retry { how, at } if head.leased => Ok(step.retry(how, at)),
            Command::HandBack if head.leased => Ok(step.hand_back()),
            Command::Progress { message, metadata } => Ok(step.progress(message, metadata)),
            Command::RequireInput { message } => Ok(step.ask(TaskState::InputRequired, message, None)),
            Command::RequireAuth { message, resume_after } => {
                Ok(step.ask(TaskState::AuthRequired, message, resume_after))
            }
            Command::Complete { message } => Ok(step.end(TaskState::Completed, message)),
            Command::Fail { message } => Ok(step.end(TaskState::Failed, message)),
            Command::Reject { message } => Ok(step.end(TaskState::Rejected, message)),
            Command::Message { message } => Ok(step.queue(message)),
            Command::Cancel => Ok(step.cancel_working()),
            Command::FinishCancel { message } => Ok(step.end(TaskState::Canceled, message)),
            Command::Retry { .. } | Command::HandBack | Command::Resume => Err(refused()),
        },
        TaskState::InputRequired => match command {
            Command::Fail { message } => Ok(step.end(TaskState::Failed, message)),
            Command::Reject { message } => Ok(step.end(TaskState::Rejected, message)),
            Command::Message { message } => Ok(step.go_on(Some(message))),
            Command::Cancel => Ok(step.end(TaskState::Canceled, None)),
            Command::FinishCancel { message } => Ok(step.end(TaskState::Canceled, message)),
            Command::Start { .. }
            | Command::Retry { .. }
            | Command::HandBack
            | Command::Progress { .. }
            | Command::RequireInput { .. }
            | Command::RequireAuth { .. }
            | Command::Complete { .. }
            | Command::Resume => Err(refused()),
        },
        TaskState::AuthRequired => match command {
            Command::Fail { message } => Ok(step.end(TaskState::Failed, message)),
            Command::Reject { message } => Ok(step.end(TaskState::Rejected, message)),
            Command::Message { message } => Ok(step.go_on(Some(message))),
            Command::Resume => Ok(step.go_on(None)),
            Command::Cancel => Ok(step.end(TaskState::Canceled, None)),
            Command::FinishCancel { message } => Ok(step.end(TaskState::Canceled, message)),
            Command::Start { .. }
            | Command::Retry { .. }
            | Command::HandBack
            | Command::Progress { .. }
            | Command::RequireInput { .. }
            | Command::RequireAuth { .. }
            | Command::Complete { .. } => Err(refused()),
        },
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => {
            step.after_the_end(kind, writer)
        }
    }
}

/// An agent writes only under the lease that it holds. A repeated terminal write is looked at later.
fn check_lease(head: &TaskHead, kind: CommandKind, epoch: u64, now: Timestamp) -> Result<(), Rejection> {
    let repeats_the_end = head.state.is_terminal() && ends_in(kind) == Some(head.state);
    let lives = head.leased && !head.lease_is_over(now);
    if head.epoch != epoch || !(lives || repeats_the_end) {
        return Err(Rejection::LeaseLost { held: epoch, current: head.epoch });
    }
    Ok(())
}

/// The terminal state that a command leads to.
fn ends_in(kind: CommandKind) -> Option<TaskState> {
    match kind {
        CommandKind::Complete => Some(TaskState::Completed),
        CommandKind::Fail => Some(TaskState::Failed),
        CommandKind::Reject => Some(TaskState::Rejected),
        CommandKind::FinishCancel => Some(TaskState::Canceled),
        CommandKind::Start
        | CommandKind::Retry
        | CommandKind::HandBack
        | CommandKind::Progress
        | CommandKind::RequireInput
        | CommandKind::RequireAuth
        | CommandKind::Message
        | CommandKind::Resume
        | CommandKind::Cancel => None,
    }
}

/// The moves of the table, each from one head at one time.
struct Step<'a> {
    head: &'a TaskHead,
    now: Timestamp,
}

impl Step<'_> {
    fn start(&self, lease_until: Timestamp, worker: WorkerId) -> Result<Transition, Rejection> {
        let mut transition = self.unchanged();
        if self.head.leased {
            if !self.head.lease_is_over(self.now) {
                return Err(Rejection::Leased { until: self.head.due_at.unwrap_or(Timestamp::MAX) });
            }
            self.note(&mut transition, AttemptOutcome::LeaseExpired);
        }
        transition.lease = Lease::Take;
        if self.head.state == TaskState::Submitted {
            self.enter(&mut transition, TaskState::Working, None, None);
        }
        let head = &mut transition.head;
        head.version += 1;
        head.epoch += 1;
        head.attempt += 1;
        head.leased = true;
        head.due_at = Some(lease_until);
        head.worker = worker;
        Ok(transition)
    }

    /// Ends the attempt; the state stays, and no event is written. A turn that is to be canceled is not tried again.
    fn retry(&self, how: AttemptOutcome, at: Timestamp) -> Transition {
        if self.head.cancel_requested {
            return self.end(TaskState::Canceled, None);
        }
        let mut transition = self.unchanged();
        self.note(&mut transition, how);
        transition.lease = Lease::End;
        let head = &mut transition.head;
        head.version += 1;
        head.leased = false;
        head.worker = WorkerId::default();
        head.due_at = Some(at);
        transition
    }

    fn hand_back(&self) -> Transition {
        if self.head.cancel_requested {
            return self.end(TaskState::Canceled, None);
        }
        let mut transition = self.unchanged();
        transition.lease = Lease::End;
        let head = &mut transition.head;
        head.version += 1;
        head.leased = false;
        head.worker = WorkerId::default();
        head.attempt = head.attempt.saturating_sub(1);
        head.due_at = Some(self.now);
        transition
    }

    fn note(&self, transition: &mut Transition, how: AttemptOutcome) {
        let (attempt, epoch) = (self.head.attempt, self.head.epoch);
        transition.head.failures.push(AttemptEnd { attempt, epoch, ended_at: self.now, how });
    }

    fn progress(&self, message: Option<Message>, metadata: Option<longhaul_protocol::JsonObject>) -> Transition {
        let mut transition = self.unchanged();
        self.enter(&mut transition, TaskState::Working, message, metadata);
        transition.head.version += 1;
        transition
    }

    /// Ends the turn with a question. When messages wait already, the oldest answers it in the same commit.
    fn ask(&self, state: TaskState, question: Message, resume_after: Option<std::time::Duration>) -> Transition {
        let mut transition = self.unchanged();
        self.enter(&mut transition, state, Some(question), None);
        transition.lease = Lease::End;
        let head = &mut transition.head;
        head.version += 1;
        head.leased = false;
        head.worker = WorkerId::default();
        head.attempt = 0;
        head.failures.clear();
        head.due_at = resume_after.map(|delay| {
            let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_unix_millis(self.now.unix_millis().saturating_add(delay))
        });
        if !head.waiting.is_empty() {
            head.turn_message = head.waiting.remove(0);
            head.due_at = Some(self.now);
            if let Some(question) = transition.updates.last_mut() {
                question.rests = false;
            }
            self.enter(&mut transition, TaskState::Working, None, None);
        }
        transition
    }

    fn end(&self, state: TaskState, message: Option<Message>) -> Transition {
        let mut transition = self.unchanged();
        self.enter(&mut transition, state, message, None);
        transition.lease = Lease::End;
        let head = &mut transition.head;
        head.version += 1;
        head.leased = false;
        head.worker = WorkerId::default();
        head.due_at = None;
        head.cancel_requested = false;
        head.failures.clear();
        head.waiting.clear();
        transition
    }

    /// A message that arrives while a turn runs, or before it began: it joins the history and waits.
    fn queue(&self, message: Message) -> Transition {
        let mut transition = self.unchanged();
        let ordinal = transition.head.messages;
        self.remember(&mut transition, message, 0);
        transition.head.waiting.push(ordinal);
        transition.head.version += 1;
        transition
    }

    /// An interrupted task goes on, with the caller's message or without one.
    fn go_on(&self, message: Option<Message>) -> Transition {
        let mut transition = self.unchanged();
        self.enter(&mut transition, TaskState::Working, None, None);
        if let Some(message) = message {
            transition.head.turn_message = transition.head.messages;
            let updates = transition.updates.len();
            self.remember(&mut transition, message, updates);
        }
        let head = &mut transition.head;
        head.version += 1;
        head.attempt = 0;
        head.failures.clear();
        head.due_at = Some(self.now);
        transition
    }

    fn cancel_working(&self) -> Transition {
        if !self.head.leased || self.head.lease_is_over(self.now) {
            return self.end(TaskState::Canceled, None);
        }
        let mut transition = self.unchanged();
        transition.tell_agent = true;
        if !self.head.cancel_requested {
            transition.head.cancel_requested = true;
            transition.head.version += 1;
        }
        transition
    }

    fn after_the_end(&self, kind: CommandKind, writer: Writer) -> Result<Transition, Rejection> {
        let same_writer = matches!(writer, Writer::Agent { epoch } if epoch == self.head.epoch);
        if same_writer && ends_in(kind) == Some(self.head.state) {
            return Ok(self.unchanged());
        }
        Err(Rejection::Ended(self.head.state))
    }

    fn unchanged(&self) -> Transition {
        Transition {
            head: self.head.clone(),
            updates: Vec::new(),
            history: Vec::new(),
            lease: Lease::Keep,
            tell_agent: false,
        }
    }

    /// Writes a status; the message of the one before joins the history.
    fn enter(
        &self,
        transition: &mut Transition,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<longhaul_protocol::JsonObject>,
    ) {
        let before = std::mem::replace(&mut transition.head.status_message, message.clone());
        if let Some(before) = before {
            let updates = transition.updates.len() + 1;
            self.remember(transition, before, updates);
        }
        transition.head.state = state;
        transition.head.status_timestamp = self.now;
        let rests = state.is_terminal() || state.is_interrupted();
        transition.updates.push(StatusUpdate { state, message, timestamp: self.now, metadata, rests });
    }

    fn remember(&self, transition: &mut Transition, message: Message, updates: usize) {
        transition.head.messages += 1;
        transition.history.push(Joins { message, updates });
    }
}
