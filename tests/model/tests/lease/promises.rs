use longhaul_protocol::TaskState;
use stateright::Property;

use crate::store::{Expect, Head, Renewal, Write, written};
use crate::world::{LEASE, Phase, State, World};

/// What must never happen.
#[derive(Clone, Copy, Debug)]
pub enum Promise {
    OneWriter,
    NoZombie,
    NotLate,
    EndIsFinal,
    EpochsGrow,
    NothingUndone,
    NobodyRobbed,
    StaysOver,
    Rests,
}

/// The promises that were broken, as a set.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Broken(u16);

impl Broken {
    fn note(&mut self, promise: Promise, broken: bool) {
        self.0 |= u16::from(broken) << promise as u16;
    }

    fn keeps(self, promise: Promise) -> bool {
        self.0 & (1 << promise as u16) == 0
    }
}

pub const ONE_WRITER: &str = "the writes of one epoch come from one worker";
pub const NO_ZOMBIE: &str = "nobody writes whose lease another has taken, or which has ended";
pub const NOT_LATE: &str = "nobody writes whose lease has run out";
pub const END_IS_FINAL: &str = "a task that has ended stays as it is";
pub const EACH_EPOCH_ONCE: &str = "each start has an epoch of its own, greater than all before";
pub const NOTHING_UNDONE: &str = "no write undoes one that it has not seen";
pub const NOBODY_ROBBED: &str = "nobody loses a lease that is alive for having run out";
pub const STAYS_OVER: &str = "a lease that has run out stays so";
pub const ONE_TURN: &str = "no two workers believe at once that they hold the lease";
pub const ATTEMPTS: &str = "a turn has no more attempts than it may, and no more leases";
pub const RESTS: &str = "the task rests, or is due, or is worked on, and comes to rest";

/// Looks at a write that the guard lets through, before it is made.
pub fn write(world: &World, state: &mut State, write: &Write, by: Option<usize>) {
    let now = world.guard.time(write.sent_at, state.now);
    let (before, after) = (&state.row, &written(&state.row, write));
    let broken = &mut state.broken;
    if let Expect::LeaseAndVersion { epoch, .. } | Expect::Lease { epoch, .. } = write.expect {
        broken.note(Promise::NoZombie, epoch != before.epoch || !before.leased);
        broken.note(Promise::OneWriter, epoch == before.epoch && by != state.owner);
        broken.note(Promise::NotLate, epoch == before.epoch && before.leased && !before.is_held(now));
    }
    let unseen = |version| version != before.version;
    if let Expect::Version(version) | Expect::Unheld(version) | Expect::LeaseAndVersion { version, .. } = write.expect {
        broken.note(Promise::NothingUndone, unseen(version));
    }
    broken.note(Promise::NobodyRobbed, matches!(write.expect, Expect::Unheld(_)) && before.is_held(now));
    broken.note(Promise::EndIsFinal, before.state.is_terminal());
    broken.note(Promise::Rests, !world.comes_to_rest(after, state.now));
    let starts = write.head.as_ref().is_some_and(|head| head.leased) && matches!(write.expect, Expect::Unheld(_));
    broken.note(Promise::EpochsGrow, after.epoch < before.epoch || (starts && after.epoch == before.epoch));
}

/// Looks at a renewal that the guard lets through, before it is made.
pub fn renewal(world: &World, state: &mut State, renewal: Renewal) {
    let now = world.guard.time(renewal.sent_at, state.now);
    state.broken.note(Promise::StaysOver, !state.row.is_held(now));
}

fn two_believe(state: &State) -> bool {
    let believes = |phase: &Phase| matches!(phase, Phase::Working { until, .. } if state.now < *until);
    state.workers.iter().filter(|worker| believes(&worker.phase)).count() > 1
}

/// A lease ends within its length, so that a dead worker is noticed.
fn is_noticed(row: &Head, now: i64) -> bool {
    !row.leased || row.due_at.is_some_and(|due_at| due_at.unix_millis() <= now + LEASE)
}

/// Everything that must hold in each state, and what must be possible, lest the model holds by doing nothing.
pub fn all() -> Vec<Property<World>> {
    vec![
        Property::always(ONE_WRITER, |_: &World, state: &State| state.broken.keeps(Promise::OneWriter)),
        Property::always(NO_ZOMBIE, |_: &World, state: &State| state.broken.keeps(Promise::NoZombie)),
        Property::always(NOT_LATE, |_: &World, state: &State| state.broken.keeps(Promise::NotLate)),
        Property::always(END_IS_FINAL, |_: &World, state: &State| state.broken.keeps(Promise::EndIsFinal)),
        Property::always(EACH_EPOCH_ONCE, |_: &World, state: &State| state.broken.keeps(Promise::EpochsGrow)),
        Property::always(NOTHING_UNDONE, |_: &World, state: &State| state.broken.keeps(Promise::NothingUndone)),
        Property::always(NOBODY_ROBBED, |_: &World, state: &State| state.broken.keeps(Promise::NobodyRobbed)),
        Property::always(STAYS_OVER, |_: &World, state: &State| state.broken.keeps(Promise::StaysOver)),
        Property::always(ONE_TURN, |_: &World, state: &State| !two_believe(state)),
        Property::always(ATTEMPTS, |world: &World, state: &State| {
            state.row.attempt <= world.attempts_max && state.row.epoch <= world.epochs_max()
        }),
        Property::always(RESTS, |_: &World, state: &State| {
            state.broken.keeps(Promise::Rests) && is_noticed(&state.row, state.now)
        }),
        Property::sometimes("an attempt after another completes the task", |_: &World, state: &State| {
            state.row.state == TaskState::Completed && state.row.attempt > 1
        }),
        Property::sometimes("a task is given up when its attempts are used up", |world: &World, state: &State| {
            state.row.state == TaskState::Failed && state.row.attempt == world.attempts_max
        }),
        Property::sometimes("a zombie's write arrives while another works", |_: &World, state: &State| {
            let late = |write: &Write| matches!(write.expect, Expect::Lease { epoch, .. } if epoch < state.row.epoch);
            state.row.is_held(state.now) && state.workers.iter().any(|worker| worker.write.as_ref().is_some_and(late))
        }),
        Property::sometimes("a worker wakes up behind its lease and goes on", |_: &World, state: &State| {
            let behind = |phase: &Phase| matches!(phase, Phase::Working { view, until, .. } if view.epoch < state.row.epoch && *until < state.now);
            state.row.is_held(state.now) && state.workers.iter().any(|worker| behind(&worker.phase))
        }),
        Property::sometimes("a lease is renewed beyond its first length", |_: &World, state: &State| {
            state.row.epoch == 1 && state.row.is_held(LEASE + 2)
        }),
    ]
}

/// Without a caller none of this happens.
pub fn of_a_caller() -> Vec<Property<World>> {
    vec![
        Property::sometimes("a running turn is canceled", |_: &World, state: &State| {
            state.row.state == TaskState::Canceled && state.row.epoch > 0
        }),
        Property::sometimes("a turn that is to be canceled completes", |_: &World, state: &State| {
            state.row.state == TaskState::Completed && state.caller == crate::world::Caller::Grace
        }),
    ]
}
