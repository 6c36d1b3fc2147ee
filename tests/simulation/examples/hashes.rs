//! x
use longhaul_simulation::{Scenario, run};
fn main() {
    let last: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(300);
    let shared = std::env::args().nth(2).is_some();
    let begun = std::time::Instant::now();
    let mut calls = 0;
    for seed in 0..last {
        let scenario = if shared { Scenario::of(seed).shared() } else { Scenario::of(seed) };
        let outcome = run(&scenario, None, false);
        println!("{seed} {:x} {} {}", outcome.hash, outcome.violations.len(), outcome.violations.first().map(|v| v.to_string()).unwrap_or_default());
        calls += outcome.counts.get("calls of the store").copied().unwrap_or(0);
    }
    eprintln!("{:?} {} calls a seed", begun.elapsed(), calls / last);
}
