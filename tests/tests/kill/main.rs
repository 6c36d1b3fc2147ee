//! `kill -9` of the real binary at random moments under load (promises 1, 2, 4 and 5).
//!
//! Callers write down what they are told; after each restart that has to hold, and nothing may be
//! stuck. `LONGHAUL_SEED` repeats a run's choices (not its timing), `LONGHAUL_KILLS` and
//! `LONGHAUL_STORM_KILLS` set how many kills there are in each test.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod checkpoints;
mod storm;

use std::time::Duration;

use longhaul_tests::promises::{Caller, Checker, Ledger, whole_texts};
use longhaul_tests::{Server, Store, seed, setting};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many callers there are at once.
const CALLERS: u64 = 8;

/// How many kills there are at most, and after how long no further one is begun.
const KILLS: u32 = 25;
const KILLS_MIN: u32 = 10;
const TIME_MAX: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_before_a_kill_holds_after_it() {
    let mut dice = StdRng::seed_from_u64(seed());
    let mut server = Server::start(Store::Sqlite).await;
    let checker = Checker::new(server.addr(), whole_texts(server.addr()).await);
    let ledger = Ledger::default();

    let begun = Instant::now();
    let (mut rounds, mut kills, mut interrupted) = (0_u64, 0, 0);
    while kills < setting("LONGHAUL_KILLS").unwrap_or(KILLS) {
        if begun.elapsed() > TIME_MAX && kills >= KILLS_MIN {
            println!("stopped after {kills} kills");
            break;
        }
        rounds += 1;
        let context = format!("round {rounds}");
        let mut callers = JoinSet::new();
        for number in 0..CALLERS {
            let dice = StdRng::seed_from_u64(dice.random());
            let caller = Caller::new(server.addr(), number, context.clone(), dice, ledger.clone());
            callers.spawn(caller.run());
        }
        tokio::time::sleep(Duration::from_millis(dice.random_range(5..600))).await;
        server.kill().await;
        kills += 1;
        callers.join_all().await;
        interrupted += ledger.count_kill(&context);
        // Now and then it is killed again while it puts things in order.
        while dice.random_ratio(1, 4) {
            server.run().await;
            tokio::time::sleep(Duration::from_millis(dice.random_range(0..120))).await;
            server.kill().await;
            kills += 1;
            ledger.count_kill(&context);
        }
        server.run().await;
        checker.check_round(&ledger, &context, &mut dice).await;
    }
    checker.check_all(&ledger).await;
    let tasks = ledger.ids(None).len();
    println!("{kills} kills, {interrupted} of {tasks} tasks interrupted, {:?}", begun.elapsed());
    assert!(interrupted > 0, "no kill hit a task at work");
}
