//! Leases, checked exhaustively: every order in which two workers, a caller, their messages and the clock can get into each
//! other's way. What a command does to the task is asked of the real lifecycle; the store's guard is a small function.
#![expect(clippy::indexing_slicing, reason = "there are two workers")]

mod promises;
mod store;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use promises::{
    EACH_EPOCH_ONCE, END_IS_FINAL, NO_ZOMBIE, NOBODY_ROBBED, NOT_LATE, NOTHING_UNDONE, ONE_TURN, ONE_WRITER, STAYS_OVER,
};
use store::{Clock, Compare, Guard, Reclaim};
use world::{Adopts, Callers, Reads, Workers, World};

/// Workers whose snapshots may be of any age, and a store that compares everything.
const CAREFUL: World = World {
    guard: Guard::CAREFUL,
    workers: Workers::Alike,
    adopts: Adopts::Name,
    reads: Reads::AnyTime,
    caller: Callers::None,
    attempts_max: 2,
    lost_max: 1,
    handed_back_max: 0,
    end: 4,
};

/// Explores every state, and finds all promises kept and everything possible that should be.
fn holds(world: World) {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("{} states, none deeper than {} steps", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// Explores until each of these promises was broken, the shortest ways first.
fn breaks(world: World, promises: &[&'static str]) {
    let world = World { workers: Workers::Named, ..world };
    let all = HasDiscoveries::AllOf(promises.iter().copied().collect());
    let checker = world.checker().finish_when(all).spawn_bfs().join();
    for promise in promises {
        let path = checker.assert_any_discovery(promise);
        eprintln!("not true that {promise}: {:?}", path.into_actions());
    }
}

#[test]
fn two_workers_keep_all_promises_however_their_messages_arrive() {
    holds(World { end: 5, ..CAREFUL });
}

#[test]
fn a_turn_of_three_attempts_keeps_all_promises() {
    holds(World { attempts_max: 3, lost_max: 0, end: 3, ..CAREFUL });
}

#[test]
fn a_caller_who_cancels_at_any_time_breaks_no_promise() {
    holds(World { caller: Callers::OneCancels, reads: Reads::WhenDue, lost_max: 0, end: 3, ..CAREFUL });
}

#[test]
fn a_turn_that_is_handed_back_breaks_no_promise() {
    holds(World { handed_back_max: 1, lost_max: 0, end: 3, ..CAREFUL });
}

#[test]
fn writes_that_are_judged_by_the_time_they_were_sent_break_no_promise() {
    holds(World { guard: Guard { clock: Clock::Sender, ..Guard::CAREFUL }, ..CAREFUL });
}

/// A reaper that reads only what is due needs less, if heartbeats are judged when they arrive: what it read as over can't
/// come back to life.
#[test]
fn a_reaper_that_reads_what_is_due_may_trust_it_if_the_stores_clock_judges() {
    let guard = Guard { reclaim: Reclaim::Takes, ..Guard::CAREFUL };
    holds(World { guard, reads: Reads::WhenDue, ..CAREFUL });
}

#[test]
fn a_guard_on_the_state_instead_of_the_epoch_lets_zombies_write() {
    let guard = Guard { epoch: Compare::No, ..Guard::CAREFUL };
    breaks(World { guard, ..CAREFUL }, &[NO_ZOMBIE, NOT_LATE]);
}

#[test]
fn a_reaper_that_does_not_repeat_its_conditions_takes_leases_that_are_alive() {
    let guard = Guard { reclaim: Reclaim::None, ..Guard::CAREFUL };
    breaks(World { guard, ..CAREFUL }, &[NOBODY_ROBBED, ONE_TURN]);
}

#[test]
fn conditions_that_are_repeated_only_to_take_a_lease_let_a_live_turn_be_given_up() {
    let guard = Guard { reclaim: Reclaim::Takes, ..Guard::CAREFUL };
    breaks(World { guard, ..CAREFUL }, &[NOBODY_ROBBED]);
    let guard = Guard { clock: Clock::Sender, ..guard };
    breaks(World { guard, reads: Reads::WhenDue, ..CAREFUL }, &[NOBODY_ROBBED]);
}

#[test]
fn a_renewal_after_expiry_brings_a_lease_back_that_was_over() {
    let guard = Guard { renewal: Compare::No, ..Guard::CAREFUL };
    breaks(World { guard, ..CAREFUL }, &[STAYS_OVER]);
}

#[test]
fn without_the_version_an_old_decision_undoes_a_newer_one() {
    let guard = Guard { version: Compare::No, ..Guard::CAREFUL };
    let broken = [NOTHING_UNDONE, END_IS_FINAL, EACH_EPOCH_ONCE, ONE_WRITER, ONE_TURN];
    breaks(World { guard, ..CAREFUL }, &broken);
}

/// Two workers that decide on the same version start the same epoch. The one that had no answer must not take the other's
/// lease for its own.
#[test]
fn a_worker_that_knows_its_lease_by_the_epoch_alone_takes_anothers_for_its_own() {
    breaks(World { adopts: Adopts::Epoch, ..CAREFUL }, &[ONE_WRITER, ONE_TURN]);
}
