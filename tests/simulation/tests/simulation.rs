//! Seeds: thousands that are always the same, and as many from the clock as there is time for.

use std::time::Duration;

use longhaul_simulation::seeds::{run_all, seed_of_the_clock, set_number};
use longhaul_simulation::{Scenario, run};

/// How many seeds are run from 0 on, unless `LONGHAUL_SIM_SEEDS` says another number.
const SEEDS: u64 = 5000;
/// How many that begin at a number of the clock.
const FRESH_SEEDS: u64 = 500;
/// How long they may take in all; what is not run by then is left out.
const LIMIT: Duration = Duration::from_secs(85);
/// How many have to be run in that time, on the slowest of machines.
const SEEDS_MIN: u64 = 500;

/// Runs seeds from the clock and fixed ones, each as the scenario that `of` makes of it.
fn holds(of: impl Fn(u64) -> Scenario + Sync, seeds: u64, test: &str) {
    if let Some(seed) = set_number("LONGHAUL_SEED") {
        let scenario = of(seed);
        let outcome = run(&scenario, None, true);
        println!("{:?}\n{}", Scenario { ops: Vec::new(), ..scenario }, outcome.lines.join("\n"));
        assert!(outcome.violations.is_empty(), "seed {seed}:\n  {}", outcome.describe());
        return;
    }
    let seeds = set_number("LONGHAUL_SIM_SEEDS").unwrap_or(seeds);
    let limit = set_number("LONGHAUL_SIM_SECONDS").map_or(LIMIT, Duration::from_secs);
    let first = seed_of_the_clock();
    println!("{seeds} seeds from 0 on, and {FRESH_SEEDS} from {first} on");
    let all = (first..first + FRESH_SEEDS).chain(0..seeds);
    let totals = run_all(all, limit, |seed| run(&of(seed), None, false));
    println!("{}", totals.report());
    let repeat =
        |seed| format!("seed {seed}: repeat it with LONGHAUL_SEED={seed} cargo test -p longhaul-simulation {test}");
    assert_eq!(totals.failures(repeat), None);
    assert!(totals.seeds >= seeds.min(SEEDS_MIN), "only {} seeds could be run in time", totals.seeds);
}

#[test]
fn no_seed_breaks_a_promise() {
    holds(Scenario::of, SEEDS, "no_seed_breaks_a_promise");
}

#[test]
fn no_seed_breaks_a_promise_where_instances_hear_of_each_other() {
    holds(Scenario::of_many, SEEDS / 2, "no_seed_breaks_a_promise_where_instances_hear_of_each_other");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for scenario in (0..60).flat_map(|seed| [Scenario::of(seed), Scenario::of_many(seed)]) {
        let first = run(&scenario, None, true);
        // On another thread, where nothing is as it was but the seed.
        let second = std::thread::scope(|scope| scope.spawn(|| run(&scenario, None, true)).join());
        let second = second.expect("no panic here");
        if first.hash != second.hash {
            let differs = first.lines.iter().zip(&second.lines).position(|(one, other)| one != other);
            let place = differs.unwrap_or(first.lines.len().min(second.lines.len()));
            let (one, other) = (first.lines.get(place), second.lines.get(place));
            panic!("seed {}: line {place} is {one:?} once, and {other:?} then", scenario.seed);
        }
    }
}
