//! Seeds: thousands that are always the same, and as many from the clock as there is time for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul_simulation::{Outcome, Scenario, run};

/// How many seeds are run from 0 on, unless `LONGHAUL_SIM_SEEDS` says another number.
const SEEDS: u64 = 5000;
/// How many that begin at a number of the clock.
const FRESH_SEEDS: u64 = 500;
/// How long they may take in all; what is not run by then is left out.
const LIMIT: Duration = Duration::from_secs(85);
/// How many have to be run in that time, on the slowest of machines.
const SEEDS_MIN: u64 = 500;

fn describe(seed: u64, outcome: &Outcome) -> String {
    let broken: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
    format!(
        "seed {seed} broke {} promises; repeat it with LONGHAUL_SEED={seed} cargo test -p longhaul-simulation\n  {}",
        broken.len(),
        broken.join("\n  ")
    )
}

/// What became of many seeds.
#[derive(Default)]
struct Totals {
    seeds: u64,
    counts: BTreeMap<&'static str, u64>,
    failed: Vec<(u64, Outcome)>,
}

/// Runs seeds on all processors until there are no more or the time is up.
#[expect(clippy::disallowed_methods, reason = "how long a test takes is nothing that the simulation knows of")]
fn run_all(seeds: impl Iterator<Item = u64> + Send, limit: Duration) -> Totals {
    let begun = Instant::now();
    let (seeds, totals) = (Mutex::new(seeds), Mutex::new(Totals::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = lock(&seeds).next();
            let Some(seed) = next.filter(|_| begun.elapsed() < limit) else { return };
            let outcome = run(&Scenario::of(seed), None, false);
            let mut totals = lock(&totals);
            totals.seeds += 1;
            for (what, count) in &outcome.counts {
                *totals.counts.entry(what).or_default() += count;
            }
            if !outcome.violations.is_empty() {
                totals.failed.push((seed, outcome));
            }
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    println!("{} seeds, {:.0} a minute", totals.seeds, totals.seeds as f64 / minutes);
    totals
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A seed that nobody has seen before.
#[expect(clippy::disallowed_methods, reason = "this is what is wanted of the clock: another number each time")]
fn seed_of_the_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Short enough to be written down, and no number that the fixed seeds have.
    1_000_000 + now.as_secs() % 1_000_000_000 * 1000
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_seed_breaks_a_promise() {
    if let Some(seed) = number("LONGHAUL_SEED") {
        let scenario = Scenario::of(seed);
        let outcome = run(&scenario, None, true);
        println!("{:?}\n{}", Scenario { ops: Vec::new(), ..scenario }, outcome.lines.join("\n"));
        assert!(outcome.violations.is_empty(), "{}", describe(seed, &outcome));
        return;
    }
    let seeds = number("LONGHAUL_SIM_SEEDS").unwrap_or(SEEDS);
    let limit = number("LONGHAUL_SIM_SECONDS").map_or(LIMIT, Duration::from_secs);
    let first = seed_of_the_clock();
    println!("{seeds} seeds from 0 on, and {FRESH_SEEDS} from {first} on");
    let totals = run_all((first..first + FRESH_SEEDS).chain(0..seeds), limit);
    for (what, count) in &totals.counts {
        println!("{count:>9} {what}");
    }
    let told: Vec<String> = totals.failed.iter().take(8).map(|(seed, outcome)| describe(*seed, outcome)).collect();
    assert!(totals.failed.is_empty(), "{} of {} seeds:\n{}", totals.failed.len(), totals.seeds, told.join("\n"));
    assert!(totals.seeds >= seeds.min(SEEDS_MIN), "only {} seeds could be run in time", totals.seeds);
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..60 {
        let scenario = Scenario::of(seed);
        let first = run(&scenario, None, true);
        // On another thread, where nothing is as it was but the seed.
        let second = std::thread::scope(|scope| scope.spawn(|| run(&scenario, None, true)).join());
        let second = second.expect("no panic here");
        if first.hash != second.hash {
            let differs = first.lines.iter().zip(&second.lines).position(|(one, other)| one != other);
            let place = differs.unwrap_or(first.lines.len().min(second.lines.len()));
            let (one, other) = (first.lines.get(place), second.lines.get(place));
            panic!("seed {seed}: line {place} is {one:?} once, and {other:?} then");
        }
    }
}
