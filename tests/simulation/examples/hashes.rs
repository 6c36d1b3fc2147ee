fn main() {
    let last: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(300);
    let begun = std::time::Instant::now();
    let mut calls = 0;
    for seed in 0..last {
        let outcome = longhaul_simulation::run(&longhaul_simulation::Scenario::of(seed), None, false);
        println!("{seed} {:x} {}", outcome.hash, outcome.violations.len());
        calls += outcome.counts.get("calls of the store").copied().unwrap_or(0);
    }
    eprintln!("{:?} {} calls a seed", begun.elapsed(), calls / last);
}
