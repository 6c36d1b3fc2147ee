//! The same scenarios, faults and checkers over PostgreSQL: a store for each instance, on a database of the run's own.
//!
//! The seed says what happens and what fails; who is first of those who write at the same time says the database. So a seed that
//! failed may have to be run more than once until it fails again.

use std::sync::Arc;
use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_simulation::seeds::{run_all, seed_of_the_clock, set_number};
use longhaul_simulation::{Mutation, Outcome, Promise, Scenario, Stores, run, run_over};
use longhaul_store::Store;
use longhaul_store_postgres::{LeaseClock, PostgresConfig, PostgresStore};

/// How many seeds are run from 0 on, unless `LONGHAUL_SIM_SEEDS` says another number.
const SEEDS: u64 = 60;
/// How many that begin at a number of the clock.
const FRESH_SEEDS: u64 = 400;
/// How long they may take in all; what is not run by then is left out.
const LIMIT: Duration = Duration::from_secs(40);
/// How many have to be run in that time, on the slowest of machines.
const SEEDS_MIN: u64 = 10;

fn run_over_postgres(seed: u64, mutation: Option<Mutation>, keeps_lines: bool) -> Outcome {
    let database = Database::fresh().unwrap_or_else(|error| unreachable!("seed {seed}: no database: {error}"));
    let config = PostgresConfig {
        url: database.url().to_owned(),
        readers: 4,
        // Where a machine has too much to do, time is all that is missing.
        connect_timeout: Duration::from_secs(30),
        statement_timeout: Duration::from_secs(50),
        // The simulation rings for itself, at times that it makes up, and makes up the time by which leases live.
        notify: false,
        lease_clock: LeaseClock::Caller,
        ..PostgresConfig::default()
    };
    let stores = Stores::outside(move || {
        let config = config.clone();
        async move {
            let store = PostgresStore::open(&config).await;
            Arc::new(store.unwrap_or_else(|error| unreachable!("seed {seed}: no store: {error}"))) as Arc<dyn Store>
        }
    });
    run_over(&stores, &Scenario::of_many(seed), mutation, keeps_lines)
}

fn repeat(seed: u64) -> String {
    format!(
        "seed {seed}: repeat it with LONGHAUL_SEED={seed} cargo test -p longhaul-simulation --test postgres no_seed"
    )
}

#[test]
fn no_seed_breaks_a_promise_over_postgres() {
    if let Some(seed) = set_number("LONGHAUL_SEED") {
        let outcome = run_over_postgres(seed, None, true);
        println!("{}", outcome.lines.join("\n"));
        assert!(outcome.violations.is_empty(), "seed {seed}:\n  {}", outcome.describe());
        return;
    }
    let seeds = set_number("LONGHAUL_SIM_SEEDS").unwrap_or(SEEDS);
    let limit = set_number("LONGHAUL_SIM_SECONDS").map_or(LIMIT, Duration::from_secs);
    let first = seed_of_the_clock();
    println!("{seeds} seeds from 0 on, and then from {first} on until {limit:?} are over");
    let totals =
        run_all((0..seeds).chain(first..first + FRESH_SEEDS), limit, |seed| run_over_postgres(seed, None, false));
    println!("{}", totals.report());
    assert_eq!(totals.failures(repeat), None);
    assert!(totals.seeds >= SEEDS_MIN, "only {} seeds could be run in time", totals.seeds);
}

/// By which seed a store that is broken has to be found out in memory.
const SEEDS_MAX: u64 = 1000;
/// How many seeds that find it in memory are tried over PostgreSQL until one finds it there.
const TRIES_MAX: usize = 8;

/// A store that breaks a promise in front of PostgreSQL is found out, by a seed that finds it in memory.
fn is_found_out(mutation: Mutation, promise: Promise) {
    let breaks = |outcome: &Outcome| outcome.violations.iter().find(|violation| violation.promise == promise).cloned();
    let seeds = (0..SEEDS_MAX).filter(|seed| breaks(&run(&Scenario::of_many(*seed), Some(mutation), false)).is_some());
    let found =
        seeds.take(TRIES_MAX).find_map(|seed| Some((seed, breaks(&run_over_postgres(seed, Some(mutation), false))?)));
    let Some((seed, found)) = found else {
        unreachable!("{mutation:?} was not found over PostgreSQL by {TRIES_MAX} seeds that find it in memory");
    };
    println!("{mutation:?}: found by seed {seed}: {found}");
    assert_eq!(
        run_over_postgres(seed, None, false).violations,
        [],
        "the same seed finds nothing on the store as it is"
    );
}

#[test]
fn a_store_over_postgres_that_compares_no_epochs_is_found_out() {
    is_found_out(Mutation::DropEpochCheck, Promise::Fenced);
}

#[test]
fn a_store_over_postgres_that_compares_no_versions_is_found_out() {
    is_found_out(Mutation::SkipVersionCheck, Promise::OneOrder);
}

#[test]
fn a_store_over_postgres_that_tells_before_it_commits_is_found_out() {
    is_found_out(Mutation::TellBeforeCommit, Promise::ToldWhatIsStored);
}
