//! Seeds that found a fault, each named for what was wrong. What they do changes with the engine and with the simulation; that
//! nothing is wrong with it does not.

use longhaul_simulation::{Scenario, run};

fn holds(seeds: &[u64]) {
    for seed in seeds {
        // As they were found, and as instances work that know of each other.
        for scenario in [Scenario::of(*seed), Scenario::of(*seed).shared()] {
            let outcome = run(&scenario, None, false);
            assert_eq!(outcome.violations, [], "seed {seed}, shared: {}", scenario.shared);
        }
    }
}

/// A commit whose answer got lost was made again, and its chunks and reports stood in the log twice.
#[test]
fn what_was_stored_although_the_store_failed_is_not_stored_twice() {
    holds(&[68, 70, 80, 111, 156, 210, 285, 333]);
}

/// A reader that came later and found in the store what another instance had written kept the sweep from waking the others.
#[test]
fn what_one_reader_finds_in_the_store_wakes_the_others() {
    holds(&[480, 507, 692, 1021, 1201, 2168, 2516]);
}

/// A start that failed was taken for made, because another instance had taken the same epoch: two ran under one lease.
#[test]
fn a_start_that_another_instance_made_is_not_taken_for_ours() {
    holds(&[3924]);
}

/// A task that was due by the store's clock and not yet by the worker's was tried without end.
#[test]
fn a_task_that_cannot_be_begun_is_not_tried_without_end() {
    holds(&[1187, 4145, 4243, 4578, 4880, 5186, 5305, 5457]);
}

/// A repeated send, whose task could not be looked up, was answered with an internal error.
#[test]
fn a_retry_that_cannot_be_looked_up_is_told_to_come_again() {
    holds(&[382, 4646]);
}

/// A lease was over by the clock of who canceled and not by the store's: it was tried 64 times at once, and given up.
#[test]
fn a_cancel_waits_for_a_store_whose_clock_is_behind() {
    holds(&[21397]);
}

/// An instance that was told to stop stored a task behind the last look of the simulation, and nobody was started to work on it.
#[test]
fn what_is_stored_while_an_instance_stops_is_worked_on_by_the_next() {
    holds(&[796_065_707_051]);
}
