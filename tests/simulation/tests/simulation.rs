//! Seeds: thousands that are always the same, and as many from the clock as there is time for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_simulation::{Outcome, Scenario, run};

/// How many seeds are run from 0 on, unless `LONGHAUL_SIM_SEEDS` says another number.
const SEEDS: u64 = 2000;

fn describe(seed: u64, outcome: &Outcome) -> String {
    let broken: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
    format!(
        "seed {seed} broke {} promises; repeat it with LONGHAUL_SEED={seed} cargo test -p longhaul-simulation\n  {}",
        broken.len(),
        broken.join("\n  ")
    )
}

/// Runs seeds on all processors, and answers those that broke a promise.
fn run_all(seeds: impl Iterator<Item = u64> + Send) -> (u64, Vec<(u64, Outcome)>) {
    let (seeds, failed, count) = (Mutex::new(seeds), Mutex::new(Vec::new()), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().expect("no panic here").next() else { return };
                    let outcome = run(&Scenario::of(seed), None, false);
                    count.fetch_add(1, Ordering::Relaxed);
                    if !outcome.violations.is_empty() {
                        failed.lock().expect("no panic here").push((seed, outcome));
                    }
                }
            });
        }
    });
    (count.into_inner(), failed.into_inner().expect("no panic here"))
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
    let (count, failed) = run_all(0..seeds);
    println!("{count} seeds");
    let told: Vec<String> = failed.iter().take(8).map(|(seed, outcome)| describe(*seed, outcome)).collect();
    assert!(failed.is_empty(), "{} of {count} seeds:\n{}", failed.len(), told.join("\n"));
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
