use std::collections::VecDeque;

use longhaul_lifecycle::{
    AttemptEnd, AttemptOutcome, CommandKind, Lease, Rejection, TaskHead, Transition, Writer, decide,
};
use longhaul_protocol::TaskState;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::support::{BACKOFF, LEASE, at, command, failed, ids, submitted};
use crate::table::{COMMANDS, row};

/// What is known of a task without looking at how it is decided.
struct Model {
    head: TaskHead,
    /// The time, in milliseconds.
    now: i64,
    /// Until when the lease lasts, if there is one.
    lease: Option<i64>,
    /// The number of the turn's attempt; 0 before the first.
    attempt: u32,
    /// The attempts of the turn that came to nothing.
    failures: Vec<AttemptEnd>,
    /// The ids of all messages in the history.
    history: Vec<String>,
    /// The ids of all messages that were taken in, in status or history.
    accepted: Vec<String>,
    /// The ids of messages that no turn has taken yet.
    queued: VecDeque<String>,
    /// The id of the message that the current turn runs on.
    turn: String,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Engine,
    Caller,
    Agent,
    Zombie(u64),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Give(CommandKind, By),
    /// The lease is renewed, as a store does it: without a decision.
    Renew,
    /// Time goes by.
    Pass(i64),
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![4 => Just(By::Engine), 2 => Just(By::Caller), 6 => Just(By::Agent), 1 => (0..9_u64).prop_map(By::Zombie)]
}

/// Mostly what keeps a task alive, so that lives are long.
fn kind() -> impl Strategy<Value = CommandKind> {
    let lively = [
        CommandKind::Start,
        CommandKind::Retry,
        CommandKind::HandBack,
        CommandKind::Message,
        CommandKind::RequireInput,
        CommandKind::RequireAuth,
        CommandKind::Resume,
    ];
    prop_oneof![4 => proptest::sample::select(lively.to_vec()), 1 => proptest::sample::select(COMMANDS.to_vec())]
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (kind(), by()).prop_map(|(kind, by)| Step::Give(kind, by)),
        1 => Just(Step::Renew),
        2 => (1..LEASE).prop_map(Step::Pass),
        1 => Just(Step::Pass(LEASE)),
    ]
}

proptest! {
    #[test]
    fn random_commands_never_break_a_promise(steps in proptest::collection::vec(a_step(), 1..80)) {
        let mut model = Model::begin();
        for (n, step) in (1..).zip(steps) {
            match step {
                Step::Give(kind, by) => model.give(n, kind, by)?,
                Step::Renew => model.renew()?,
                Step::Pass(millis) => model.now += millis,
            }
        }
    }
}

impl Model {
    fn begin() -> Self {
        let first = "first".to_owned();
        Self {
            head: submitted(),
            now: 0,
            lease: None,
            attempt: 0,
            failures: Vec::new(),
            history: vec![first.clone()],
            accepted: vec![first.clone()],
            queued: VecDeque::new(),
            turn: first,
        }
    }

    /// Whether somebody holds the lease, and it has not run out.
    fn lease_is_alive(&self) -> bool {
        self.lease.is_some_and(|until| self.now < until)
    }

    fn renew(&mut self) -> TestCaseResult {
        prop_assert_eq!(self.head.lease_is_over(at(self.now)), self.lease.is_some() && !self.lease_is_alive());
        if self.lease_is_alive() {
            self.lease = Some(self.now + LEASE);
            self.head.due_at = Some(at(self.now + LEASE));
        }
        Ok(())
    }

    fn give(&mut self, n: i64, kind: CommandKind, by: By) -> TestCaseResult {
        let (before, id, now) = (self.head.clone(), format!("message-{n}"), self.now);
        let writer = match by {
            By::Engine => Writer::Engine,
            By::Caller => Writer::Caller,
            By::Agent => Writer::Agent { epoch: before.epoch },
            By::Zombie(epoch) => Writer::Agent { epoch },
        };
        let answer = decide(&before, command(kind, &id, now), writer, at(now));
        prop_assert_eq!(
            &answer,
            &decide(&before, command(kind, &id, now), writer, at(now)),
            "the same question has one answer"
        );
        match answer {
            Err(rejection) => self.check_rejection(&rejection, kind, writer),
            Ok(transition) => self.check_transition(&before, transition, kind, &id, writer),
        }
    }

    fn check_rejection(&self, rejection: &Rejection, kind: CommandKind, writer: Writer) -> TestCaseResult {
        let head = &self.head;
        let no_lease = matches!(writer, Writer::Agent { epoch } if epoch != head.epoch || !self.lease_is_alive());
        match rejection {
            Rejection::LeaseLost { .. } => prop_assert!(no_lease),
            Rejection::Leased { until } => {
                prop_assert!(kind == CommandKind::Start && self.lease_is_alive());
                prop_assert_eq!(Some(*until), self.lease.map(at));
            }
            Rejection::Ended(state) => prop_assert!(state.is_terminal() && *state == head.state),
            Rejection::NotApplicable { .. } => prop_assert_eq!(self.expected(kind), None),
        }
        Ok(())
    }

    /// The state after a command, by the table, and by what it leaves to the moment.
    fn expected(&self, kind: CommandKind) -> Option<TaskState> {
        let column = COMMANDS.into_iter().position(|column| column == kind).expect("a column for each command");
        let next = row(self.head.state)[column]?;
        match kind {
            CommandKind::RequireInput | CommandKind::RequireAuth if !self.queued.is_empty() => Some(TaskState::Working),
            CommandKind::Retry | CommandKind::HandBack if self.lease.is_none() => None,
            CommandKind::Retry | CommandKind::HandBack if self.head.cancel_requested => Some(TaskState::Canceled),
            CommandKind::Cancel if !self.lease_is_alive() => Some(TaskState::Canceled),
            _ => Some(next),
        }
    }

    fn check_transition(
        &mut self,
        before: &TaskHead,
        done: Transition,
        kind: CommandKind,
        id: &str,
        writer: Writer,
    ) -> TestCaseResult {
        if let Writer::Agent { epoch } = writer {
            prop_assert_eq!(epoch, before.epoch, "a zombie writes nothing");
        }
        let silent = done.updates.is_empty() && done.history.is_empty() && done.lease == Lease::Keep;
        if before.state.is_terminal() {
            prop_assert!(silent && done.head == *before, "an ended task stays as it is");
            return Ok(());
        }
        if matches!(writer, Writer::Agent { .. }) {
            prop_assert!(self.lease_is_alive(), "nor does an agent whose lease has run out");
        }
        if kind == CommandKind::Start {
            prop_assert!(!self.lease_is_alive(), "nobody loses a lease that is alive");
        }
        prop_assert_eq!(Some(done.head.state), self.expected(kind));
        let changed = done.head != *before || !silent;
        prop_assert_eq!(
            done.head.version,
            before.version + u64::from(changed),
            "the version grows with a change, and only then"
        );
        prop_assert_eq!(done.is_empty(before), !changed);
        prop_assert_eq!(done.head.last_sequence, before.last_sequence, "the store counts events");
        prop_assert_eq!(done.head.epoch, before.epoch + u64::from(done.lease == Lease::Take));
        check_updates(before, &done)?;
        self.follow(before.state, &done, kind, id);
        self.follow_lease(before, &done, kind, id);
        self.head = done.head;
        self.check_messages()?;
        self.check_attempts(kind)?;
        check_rest(&self.head)
    }

    /// Keeps up with the messages of a transition.
    fn follow(&mut self, before: TaskState, done: &Transition, kind: CommandKind, id: &str) {
        self.history.extend(ids(&done.history).into_iter().map(str::to_owned));
        match kind {
            CommandKind::Message if before.is_interrupted() => self.turn = id.to_owned(),
            CommandKind::Message => self.queued.push_back(id.to_owned()),
            CommandKind::RequireInput | CommandKind::RequireAuth => {
                if let Some(next) = self.queued.pop_front() {
                    self.turn = next;
                }
            }
            _ => {}
        }
        let carries_none = matches!(
            kind,
            CommandKind::Start | CommandKind::Retry | CommandKind::HandBack | CommandKind::Resume | CommandKind::Cancel
        );
        if !carries_none {
            self.accepted.push(id.to_owned());
        }
    }

    /// Keeps up with the lease, the attempts and their ends.
    fn follow_lease(&mut self, before: &TaskHead, done: &Transition, kind: CommandKind, id: &str) {
        let noted = match kind {
            CommandKind::Start if self.lease.is_some() => Some(AttemptOutcome::LeaseExpired),
            CommandKind::Retry => Some(failed(id)),
            _ => None,
        };
        let (attempt, epoch, ended_at) = (self.attempt, before.epoch, at(self.now));
        self.failures.extend(noted.map(|how| AttemptEnd { attempt, epoch, ended_at, how }));
        match done.lease {
            Lease::Take => (self.lease, self.attempt) = (Some(self.now + LEASE), self.attempt + 1),
            Lease::End => self.lease = None,
            Lease::Keep => {}
        }
        match kind {
            CommandKind::HandBack if !done.head.state.is_terminal() => self.attempt -= 1,
            CommandKind::RequireInput | CommandKind::RequireAuth => (self.attempt, self.failures) = (0, Vec::new()),
            _ if done.head.state.is_terminal() => self.failures.clear(),
            _ => {}
        }
    }

    fn check_attempts(&self, kind: CommandKind) -> TestCaseResult {
        let head = &self.head;
        prop_assert_eq!(head.leased, self.lease.is_some());
        prop_assert_eq!(head.attempt, self.attempt);
        prop_assert_eq!(&head.failures, &self.failures);
        if let Some(until) = self.lease {
            prop_assert_eq!(head.due_at, Some(at(until)), "a leased task is due when its lease runs out");
        } else if kind == CommandKind::Retry && !head.state.is_terminal() {
            prop_assert_eq!(head.due_at, Some(at(self.now + BACKOFF)));
        }
        Ok(())
    }

    /// Every message is kept in one place, and those that wait are the ones that no turn has taken, oldest first.
    fn check_messages(&self) -> TestCaseResult {
        let head = &self.head;
        prop_assert_eq!(head.messages, self.history.len() as u64);
        let current = head.status_message.iter().map(|message| message.id().as_str().to_owned());
        let mut kept: Vec<String> = self.history.iter().cloned().chain(current).collect();
        let mut accepted = self.accepted.clone();
        kept.sort_unstable();
        accepted.sort_unstable();
        prop_assert_eq!(kept, accepted, "no message is lost, and none is there twice");
        prop_assert_eq!(&self.history[usize::try_from(head.turn_message).expect("small")], &self.turn);
        let waiting = head.waiting.iter().map(|ordinal| &self.history[usize::try_from(*ordinal).expect("small")]);
        if head.state.is_terminal() {
            prop_assert_eq!(waiting.count(), 0);
            prop_assert!(self.queued.iter().all(|id| self.history.contains(id)), "what waited stays in the history");
        } else {
            prop_assert_eq!(waiting.collect::<Vec<_>>(), self.queued.iter().collect::<Vec<_>>());
        }
        Ok(())
    }
}

/// One update a change of status, and the last one tells the status as it is.
fn check_updates(before: &TaskHead, done: &Transition) -> TestCaseResult {
    let head = &done.head;
    let status = |head: &TaskHead| (head.state, head.status_message.clone(), head.status_timestamp);
    let Some(last) = done.updates.last() else {
        prop_assert_eq!(status(before), status(head), "no status changes untold");
        return Ok(());
    };
    prop_assert_eq!((last.state, last.message.clone(), last.timestamp), status(head));
    prop_assert_eq!(last.rests, head.rests());
    prop_assert!(done.updates.iter().rev().skip(1).all(|update| update.state.is_interrupted() && !update.rests));
    let answered = head.waiting.len() < before.waiting.len() && !head.state.is_terminal();
    prop_assert_eq!(done.updates.len(), 1 + usize::from(answered));
    Ok(())
}

/// Every task rests, or is worked on, or is due: there is no other case.
fn check_rest(head: &TaskHead) -> TestCaseResult {
    if head.state.is_terminal() {
        prop_assert!(!head.leased && head.due_at.is_none() && !head.cancel_requested);
    } else if head.state.is_interrupted() {
        prop_assert!(!head.leased && head.status_message.is_some(), "an interrupted task holds its question");
        prop_assert!(head.attempt == 0 && head.failures.is_empty());
    } else {
        prop_assert!(head.due_at.is_some(), "due, or worked on until it is");
        prop_assert!(!head.leased || head.attempt > 0);
    }
    Ok(())
}
