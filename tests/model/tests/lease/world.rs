use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use longhaul_lifecycle::{AttemptOutcome, Command, Next, RetryPolicy, TaskHead, WorkerId, Writer};
use longhaul_protocol::{ContextId, TaskId, TaskState};
use stateright::{Model, Property};

use crate::promises::{self, Broken};
use crate::store::{Clock, Expect, Guard, Head, Renewal, Write, at, written};

/// How long a lease lasts, in ticks.
pub const LEASE: i64 = 2;

/// By what a worker knows a lease again whose start was not answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adopts {
    /// By its own name in it.
    Name,
    /// By its epoch alone.
    Epoch,
}

/// When workers read a task that they may want to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reads {
    /// At any time, even long before it is due.
    AnyTime,
    /// When it is due.
    WhenDue,
}

/// Whether somebody cancels the task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Callers {
    None,
    OneCancels,
}

/// Whether states that differ only in who is who are one. It halves their number, and makes paths hard to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workers {
    Named,
    Alike,
}

/// One task, two workers, one caller who may cancel, and a store with this guard.
#[derive(Clone, Copy, Debug)]
pub struct World {
    pub guard: Guard,
    pub workers: Workers,
    pub adopts: Adopts,
    /// How many attempts a turn has.
    pub attempts_max: u32,
    /// When time ends, in ticks.
    pub end: i64,
    /// How many answers get lost, at the most.
    pub lost_max: u8,
    pub reads: Reads,
    pub caller: Callers,
    /// How many turns are handed back, at the most.
    pub handed_back_max: u8,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub struct State {
    /// The store's clock.
    pub now: i64,
    pub row: Head,
    /// The worker whose start made the row's epoch.
    pub owner: Option<usize>,
    pub workers: [Worker; 2],
    pub caller: Caller,
    pub lost: u8,
    pub handed_back: u8,
    /// The promises that were broken on the way here.
    pub broken: Broken,
}

/// A worker, and what it has on its way to the store. What is on its way arrives even if the worker is gone.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct Worker {
    pub phase: Phase,
    pub write: Option<Write>,
    pub renewal: Option<Renewal>,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Phase {
    /// Has nothing to do, or begins anew.
    Idle,
    /// Has read that the task is there, some time ago.
    Read(Head),
    /// Waits for the answer to its start, or to what it writes instead.
    Taking,
    /// Had no answer to its start of this epoch.
    Unsure { epoch: u64 },
    /// Its agent runs, and it believes that it holds the lease until then.
    Working { view: Head, until: i64, wrote: Wrote },
    /// Its agent has ended, and this is yet to be written.
    Ending { epoch: u64, end: End },
}

/// What an agent has written in its attempt, besides its end: one thing at the most.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Wrote {
    Nothing,
    Something,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum End {
    Completes,
    /// Fails in a way that is worth another attempt.
    Fails,
    HandsBack,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Caller {
    Away,
    /// Has read the task, some time ago.
    Read(Head),
    Canceling(Write),
    /// The agent was told, and has its grace.
    Grace,
    Finishing(Write),
    Done,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    Tick,
    Read(usize),
    Take(usize),
    Progress(usize),
    Chunk(usize),
    End(usize, End),
    EndAgain(usize),
    Heartbeat(usize),
    WriteArrives(usize, Answer),
    RenewalArrives(usize, Answer),
    Settle(usize),
    Die(usize),
    CallerReads,
    CallerCancels,
    GraceEnds,
    CallersWriteArrives,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    Arrives,
    GetsLost,
}

impl State {
    /// Puts the workers into an order that does not depend on their names.
    fn order_workers(&mut self) {
        let digest = |w: usize, worker: &Worker| {
            let mut hasher = DefaultHasher::new();
            (worker, self.owner == Some(w)).hash(&mut hasher);
            hasher.finish()
        };
        let [first, second] = &self.workers;
        if digest(0, first) > digest(1, second) {
            self.workers.swap(0, 1);
            self.owner = self.owner.map(|owner| 1 - owner);
        }
    }
}

impl World {
    pub fn policy(&self) -> RetryPolicy {
        let (backoff_min, backoff_max) = (Duration::from_millis(1), Duration::from_millis(2));
        RetryPolicy { attempts_max: self.attempts_max, backoff_min, backoff_max }
    }

    /// How many leases a task of one turn may have: one an attempt, and one more for each that is handed back.
    pub fn epochs_max(&self) -> u64 {
        u64::from(self.attempts_max) + u64::from(self.handed_back_max)
    }

    /// What becomes of a turn of which an attempt came to nothing.
    fn after_failure(&self, head: &Head, how: AttemptOutcome, now: i64) -> Command {
        match self.policy().next(head, 0.0, at(now)) {
            Next::Retry { at } => Command::Retry { how, at },
            Next::GiveUp => Command::Fail { message: None },
        }
    }

    /// What a worker does with a task that it may take, as the engine's scheduler decides it.
    pub fn take(&self, head: &Head, now: i64) -> Command {
        if head.cancel_requested {
            return Command::FinishCancel { message: None };
        }
        let start = Command::Start { lease_until: at(now + LEASE), worker: WorkerId::default() };
        if !head.lease_is_over(at(now)) {
            return start;
        }
        match self.after_failure(head, AttemptOutcome::LeaseExpired, now) {
            Command::Retry { at: next, .. } if next <= at(now) => start,
            later => later,
        }
    }

    fn sent_at(&self, now: i64) -> i64 {
        match self.guard.clock {
            Clock::Store => 0,
            Clock::Sender => now,
        }
    }

    /// Sends what the engine decides, if the lifecycle allows it and it changes something.
    fn send(&self, head: &Head, command: Command, expect: impl Fn(u64) -> Expect, now: i64) -> Option<Write> {
        let transition = head.decide(command, Writer::Engine, now)?;
        let changed = !transition.is_empty(head);
        let sent_at = self.sent_at(now);
        changed.then(|| Write { expect: expect(head.version), head: Some(Head::new(transition.head)), sent_at })
    }

    /// Sends what an agent decides. `Err`: its lease is lost. `Ok(None)`: it is written already.
    fn send_as_agent(&self, view: &Head, epoch: u64, command: Command, now: i64) -> Result<Option<Write>, ()> {
        let transition = view.decide(command, Writer::Agent { epoch }, now).ok_or(())?;
        if transition.is_empty(view) {
            return Ok(None);
        }
        let expect = Expect::LeaseAndVersion { epoch, version: view.version };
        Ok(Some(Write { expect, head: Some(Head::new(transition.head)), sent_at: self.sent_at(now) }))
    }

    fn end_command(&self, view: &Head, end: End, now: i64) -> Command {
        match end {
            End::Completes => Command::Complete { message: None },
            End::Fails => self.after_failure(view, AttemptOutcome::Inactive, now),
            End::HandsBack => Command::HandBack,
        }
    }

    fn worker_step(&self, state: &mut State, w: usize, action: Action) -> Option<()> {
        let (now, row) = (state.now, state.row.clone());
        let worker = &mut state.workers[w];
        match (action, worker.phase.clone()) {
            (Action::Read(_), Phase::Idle) => worker.phase = Phase::Read(row),
            (Action::Take(_), Phase::Read(head)) => {
                worker.write = self.send(&head, self.take(&head, now), Expect::Unheld, now);
                worker.phase = if worker.write.is_some() { Phase::Taking } else { Phase::Idle };
            }
            (Action::Progress(_), Phase::Working { view, until, .. }) => {
                let progress = Command::Progress { message: None, metadata: None };
                match self.send_as_agent(&view, view.epoch, progress, now) {
                    Ok(write) => {
                        worker.write = write;
                        worker.phase = Phase::Working { view, until, wrote: Wrote::Something };
                    }
                    Err(()) => worker.phase = Phase::Idle,
                }
            }
            (Action::Chunk(_), Phase::Working { view, until, .. }) => {
                let expect = Expect::Lease { epoch: view.epoch };
                worker.write = Some(Write { expect, head: None, sent_at: self.sent_at(now) });
                worker.phase = Phase::Working { view, until, wrote: Wrote::Something };
            }
            (Action::End(_, end), Phase::Working { view, .. }) => {
                self.end(worker, &view, view.epoch, end, now);
                state.handed_back += u8::from(end == End::HandsBack);
            }
            (Action::EndAgain(_), Phase::Ending { epoch, end }) => self.end(worker, &row, epoch, end, now),
            (Action::Heartbeat(_), Phase::Working { view, .. }) => {
                worker.renewal = Some(Renewal { epoch: view.epoch, sent_at: now });
            }
            (Action::Settle(_), Phase::Unsure { epoch }) => {
                let known = match self.adopts {
                    Adopts::Name => state.owner == Some(w),
                    Adopts::Epoch => true,
                };
                let mine = known && row.leased && row.epoch == epoch;
                let until = row.due_at.map_or(now, |due_at| due_at.unix_millis());
                worker.phase =
                    if mine { Phase::Working { view: row, until, wrote: Wrote::Nothing } } else { Phase::Idle };
            }
            (Action::Die(_), Phase::Working { .. }) => worker.phase = Phase::Idle,
            _ => return None,
        }
        Some(())
    }

    fn end(&self, worker: &mut Worker, view: &Head, epoch: u64, end: End, now: i64) {
        worker.phase = Phase::Ending { epoch, end };
        match self.send_as_agent(view, epoch, self.end_command(view, end, now), now) {
            Ok(Some(write)) => worker.write = Some(write),
            Ok(None) | Err(()) => worker.phase = Phase::Idle,
        }
    }

    fn write_arrives(&self, state: &mut State, w: usize, answer: Answer) -> Option<()> {
        let write = state.workers[w].write.take()?;
        let stored = self.store(state, &write, Some(w));
        let row = state.row.clone();
        let worker = &mut state.workers[w];
        let phase = std::mem::replace(&mut worker.phase, Phase::Idle);
        worker.phase = match (phase, answer) {
            (Phase::Taking, Answer::Arrives) if stored && row.leased => {
                let until = row.due_at.map_or(0, |due_at| due_at.unix_millis());
                Phase::Working { view: row, until, wrote: Wrote::Nothing }
            }
            (Phase::Taking, Answer::GetsLost) => match write.head {
                Some(head) if head.leased => Phase::Unsure { epoch: head.epoch },
                _ => Phase::Idle,
            },
            (Phase::Working { view, until, wrote }, _) => {
                // Stored, refused or unknown: it looks again, and stops if the lease is another's.
                let mine = row.leased && row.epoch == view.epoch;
                if mine { Phase::Working { view: row, until, wrote } } else { Phase::Idle }
            }
            (Phase::Ending { .. }, Answer::Arrives) if stored => Phase::Idle,
            (Phase::Ending { epoch, end }, _) => Phase::Ending { epoch, end },
            (Phase::Idle | Phase::Read(_) | Phase::Taking | Phase::Unsure { .. }, _) => Phase::Idle,
        };
        Some(())
    }

    fn renewal_arrives(&self, state: &mut State, w: usize, answer: Answer) -> Option<()> {
        let renewal = state.workers[w].renewal.take()?;
        let until = renewal.sent_at + LEASE;
        let renewed = self.guard.lets_renew(&state.row, renewal, state.now);
        if renewed {
            promises::renewal(self, state, renewal);
            state.row = state.row.with_due_at(Some(at(until)));
        }
        let worker = &mut state.workers[w];
        if let Phase::Working { view, until: believed, .. } = &mut worker.phase
            && view.epoch == renewal.epoch
            && answer == Answer::Arrives
        {
            if renewed {
                *view = view.with_due_at(Some(at(until)));
                *believed = until;
            } else {
                worker.phase = Phase::Idle;
            }
        }
        Some(())
    }

    fn caller_step(&self, state: &mut State, action: Action) -> Option<()> {
        let (now, row) = (state.now, state.row.clone());
        state.caller = match (action, std::mem::replace(&mut state.caller, Caller::Done)) {
            (Action::CallerReads, Caller::Away) => Caller::Read(row),
            (Action::CallerCancels, Caller::Read(head)) => {
                let rests_on_nobody = !head.is_held(now);
                let expect = if rests_on_nobody { Expect::Unheld } else { Expect::Version };
                let write = self.send(&head, Command::Cancel, expect, now);
                write.map_or(Caller::Done, Caller::Canceling)
            }
            (Action::CallersWriteArrives, Caller::Canceling(write)) => {
                match (self.store(state, &write, None), state.row.state.is_terminal()) {
                    (true, false) => Caller::Grace,
                    (_, true) => Caller::Done,
                    (false, false) => Caller::Away,
                }
            }
            (Action::GraceEnds, Caller::Grace) => {
                let finish = Command::FinishCancel { message: None };
                self.send(&row, finish, Expect::Version, now).map_or(Caller::Done, Caller::Finishing)
            }
            (Action::CallersWriteArrives, Caller::Finishing(write)) => {
                if self.store(state, &write, None) {
                    Caller::Done
                } else {
                    Caller::Grace
                }
            }
            _ => return None,
        };
        Some(())
    }

    /// Makes a write, if the guard lets it. Answers whether it did.
    fn store(&self, state: &mut State, write: &Write, by: Option<usize>) -> bool {
        if !self.guard.lets_write(&state.row, write, state.now) {
            return false;
        }
        let before = state.row.clone();
        promises::write(self, state, write, by);
        state.row = written(&before, write);
        if state.row.epoch != before.epoch {
            state.owner = by;
        }
        true
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        #[expect(clippy::expect_used, reason = "the ids are good")]
        let (id, context_id) = (TaskId::new("task").expect("an id"), ContextId::new("context").expect("an id"));
        let idle = Worker { phase: Phase::Idle, write: None, renewal: None };
        vec![State {
            now: 0,
            row: Head::new(TaskHead::submitted(id, context_id, at(0))),
            owner: None,
            workers: [idle.clone(), idle],
            caller: if self.caller == Callers::OneCancels { Caller::Away } else { Caller::Done },
            lost: 0,
            handed_back: 0,
            broken: Broken::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < self.end {
            actions.push(Action::Tick);
        }
        let answers: &[Answer] =
            if state.lost < self.lost_max { &[Answer::Arrives, Answer::GetsLost] } else { &[Answer::Arrives] };
        for (w, worker) in state.workers.iter().enumerate() {
            if worker.write.is_some() {
                actions.extend(answers.iter().map(|answer| Action::WriteArrives(w, *answer)));
            }
            if worker.renewal.is_some() {
                actions.extend(answers.iter().map(|answer| Action::RenewalArrives(w, *answer)));
            }
            self.actions_of(state, w, worker, actions);
        }
        match &state.caller {
            Caller::Away => actions.push(Action::CallerReads),
            Caller::Read(_) => actions.push(Action::CallerCancels),
            Caller::Canceling(_) | Caller::Finishing(_) => actions.push(Action::CallersWriteArrives),
            Caller::Grace => actions.push(Action::GraceEnds),
            Caller::Done => {}
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => state.now += 1,
            Action::WriteArrives(w, answer) | Action::RenewalArrives(w, answer) => {
                state.lost += u8::from(answer == Answer::GetsLost);
                match action {
                    Action::WriteArrives(..) => self.write_arrives(&mut state, w, answer)?,
                    _ => self.renewal_arrives(&mut state, w, answer)?,
                }
            }
            Action::Read(w)
            | Action::Take(w)
            | Action::Progress(w)
            | Action::Chunk(w)
            | Action::End(w, _)
            | Action::EndAgain(w)
            | Action::Heartbeat(w)
            | Action::Settle(w)
            | Action::Die(w) => self.worker_step(&mut state, w, action)?,
            Action::CallerReads | Action::CallerCancels | Action::GraceEnds | Action::CallersWriteArrives => {
                self.caller_step(&mut state, action)?;
            }
        }
        if self.workers == Workers::Alike {
            state.order_workers();
        }
        Some(state)
    }

    /// A lifecycle that never gives a task up would be explored forever: a little behind the limit is far enough.
    fn within_boundary(&self, state: &State) -> bool {
        state.row.epoch <= self.epochs_max() + 1
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = promises::all();
        if self.caller == Callers::OneCancels {
            all.extend(promises::of_a_caller());
        }
        all
    }
}

impl World {
    fn actions_of(&self, state: &State, w: usize, worker: &Worker, actions: &mut Vec<Action>) {
        let free = worker.write.is_none();
        match &worker.phase {
            Phase::Idle => {
                let due =
                    self.reads == Reads::AnyTime || state.row.due_at.is_some_and(|due_at| due_at <= at(state.now));
                let of_interest = due && !state.row.state.is_terminal();
                actions.extend((free && of_interest).then_some(Action::Read(w)));
            }
            Phase::Read(_) => actions.push(Action::Take(w)),
            Phase::Taking => {}
            Phase::Unsure { .. } => actions.push(Action::Settle(w)),
            Phase::Working { wrote, .. } => {
                if free {
                    if *wrote == Wrote::Nothing {
                        actions.extend([Action::Progress(w), Action::Chunk(w)]);
                    }
                    actions.extend([End::Completes, End::Fails].map(|end| Action::End(w, end)));
                    if state.handed_back < self.handed_back_max {
                        actions.push(Action::End(w, End::HandsBack));
                    }
                }
                actions.extend(worker.renewal.is_none().then_some(Action::Heartbeat(w)));
                actions.push(Action::Die(w));
            }
            Phase::Ending { .. } => actions.extend(free.then_some(Action::EndAgain(w))),
        }
    }

    /// Whether the task comes to rest from here, if all workers die now and each that comes dies at once.
    pub fn comes_to_rest(&self, row: &Head, mut now: i64) -> bool {
        let mut head = row.clone();
        for _ in 0..=2 * self.attempts_max {
            if head.state.is_terminal() || head.state == TaskState::InputRequired {
                return true;
            }
            let Some(due_at) = head.due_at else { return false };
            now = now.max(due_at.unix_millis());
            let Some(next) = head.decide(self.take(&head, now), Writer::Engine, now) else { return false };
            head = Head::new(next.head);
        }
        false
    }
}
