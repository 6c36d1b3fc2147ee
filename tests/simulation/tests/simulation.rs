//! Seeds: thousands that are always the same, and as many from the clock as there is time for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_simulation::{Mutation, Outcome, Scenario, run};

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
fn run_all(seeds: impl Iterator<Item = u64> + Send, mutation: Option<Mutation>) -> (u64, Vec<(u64, Outcome)>) {
    let (seeds, failed, count) = (Mutex::new(seeds), Mutex::new(Vec::new()), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().expect("no panic here").next() else { return };
                    let outcome = run(&Scenario::of(seed), mutation, false);
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
        println!("{scenario:#?}\n{}", outcome.lines.join("\n"));
        assert!(outcome.violations.is_empty(), "{}", describe(seed, &outcome));
        return;
    }
    let seeds = number("LONGHAUL_SIM_SEEDS").unwrap_or(SEEDS);
    let (count, failed) = run_all(0..seeds, None);
    println!("{count} seeds");
    let told: Vec<String> = failed.iter().take(8).map(|(seed, outcome)| describe(*seed, outcome)).collect();
    assert!(failed.is_empty(), "{} of {count} seeds:\n{}", failed.len(), told.join("\n"));
}
