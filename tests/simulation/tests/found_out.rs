//! The simulation can find faults: a store that breaks a promise is found out, each by some seed within a few hundred.

use longhaul_simulation::{Mutation, Promise, Scenario, run};

/// By which seed one has to be found at the latest.
const SEEDS_MAX: u64 = 400;

/// Looks for the first seed by which one of these promises is seen broken, on a store that is broken in this way: by instances
/// that only look, and by such that hear of each other.
fn is_found_out(mutation: Mutation, promises: &[Promise]) {
    is_found_out_by(Scenario::of, mutation, promises);
    is_found_out_by(Scenario::of_many, mutation, promises);
}

fn is_found_out_by(of: impl Fn(u64) -> Scenario, mutation: Mutation, promises: &[Promise]) {
    let found = (0..SEEDS_MAX).find_map(|seed| {
        let violations = run(&of(seed), Some(mutation), false).violations;
        let found = violations.into_iter().find(|violation| promises.contains(&violation.promise));
        found.map(|found| (seed, found))
    });
    let Some((seed, found)) = found else {
        unreachable!("{mutation:?} was not found by any of {SEEDS_MAX} seeds");
    };
    println!("{mutation:?}: found by seed {seed}: {found}");
    let sound = run(&of(seed), None, false);
    assert_eq!(sound.violations, [], "the same seed finds nothing on a store that keeps its promises");
}

#[test]
fn a_store_that_compares_no_epochs_is_found_out() {
    is_found_out(Mutation::DropEpochCheck, &[Promise::Fenced]);
}

#[test]
fn a_store_that_tells_before_it_commits_is_found_out() {
    is_found_out(Mutation::TellBeforeCommit, &[Promise::ToldWhatIsStored]);
}

#[test]
fn a_store_that_forgets_wake_ups_is_found_out() {
    is_found_out(Mutation::ForgetWakeUp, &[Promise::ComesToRest]);
}

#[test]
fn a_store_that_renews_leases_that_are_over_is_found_out() {
    is_found_out(Mutation::RenewAfterExpiry, &[Promise::Fenced]);
}

#[test]
fn a_store_that_compares_no_versions_is_found_out() {
    is_found_out(Mutation::SkipVersionCheck, &[Promise::OneOrder]);
}

#[test]
fn a_store_that_forgets_lost_workers_is_found_out() {
    is_found_out(Mutation::ForgetLostWorker, &[Promise::ComesToRest]);
}
