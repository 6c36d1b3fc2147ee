//! Runs many seeds on all processors, and tells what became of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Outcome;

/// What became of many seeds.
#[derive(Debug, Default)]
pub struct Totals {
    /// How many were run.
    pub seeds: u64,
    /// How often what happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// Those that broke a promise.
    pub failed: Vec<(u64, Outcome)>,
}

/// Of how many seeds that failed it is said how.
const TOLD_MAX: usize = 8;

impl Totals {
    /// What happened, a line each.
    #[must_use]
    pub fn report(&self) -> String {
        let line = |(what, count): (&&str, &u64)| format!("{count:>9} {what}\n");
        self.counts.iter().map(line).collect()
    }

    /// Which seeds failed and how, if any did; `repeat` says how to repeat one.
    #[must_use]
    pub fn failures(&self, repeat: impl Fn(u64) -> String) -> Option<String> {
        let describe = |(seed, outcome): &(u64, Outcome)| format!("{}\n  {}", repeat(*seed), outcome.describe());
        let told: Vec<String> = self.failed.iter().take(TOLD_MAX).map(describe).collect();
        let of = self.seeds;
        (!told.is_empty()).then(|| format!("{} of {of} seeds broke promises:\n{}", self.failed.len(), told.join("\n")))
    }

    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        for (what, count) in &outcome.counts {
            *self.counts.entry(what).or_default() += count;
        }
        if !outcome.violations.is_empty() {
            self.failed.push((seed, outcome));
        }
    }
}

impl Outcome {
    /// The promises that were broken, a line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let broken: Vec<String> = self.violations.iter().map(ToString::to_string).collect();
        broken.join("\n  ")
    }
}

/// Runs seeds on all processors until there are no more or the time is up.
#[expect(clippy::disallowed_methods, reason = "how long the runs take is nothing that the simulation knows of")]
pub fn run_all(
    seeds: impl Iterator<Item = u64> + Send,
    limit: Duration,
    run: impl Fn(u64) -> Outcome + Sync,
) -> Totals {
    let begun = Instant::now();
    let (seeds, totals) = (Mutex::new(seeds), Mutex::new(Totals::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = lock(&seeds).next();
            let Some(seed) = next.filter(|_| begun.elapsed() < limit) else { return };
            let outcome = run(seed);
            lock(&totals).add(seed, outcome);
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
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is what is wanted of the clock: another number each time")]
pub fn seed_of_the_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Short enough to be written down, and no number that the fixed seeds have.
    1_000_000 + now.as_secs() % 1_000_000_000 * 1000
}

/// A number that the environment sets for a run.
#[must_use]
pub fn set_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
