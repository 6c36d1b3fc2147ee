//! Servers that live for a moment: many kills in little time, with several servers at once.

use std::time::Duration;

use longhaul_tests::promises::{Caller, Checker, Ledger, whole_texts};
use longhaul_tests::{Server, Store, seed, setting};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many kills there are in all: with those of the other tests there are 200 and more.
const KILLS: u32 = 192;

/// How many servers there are at once: two would leave a core idle while they start.
const LANES: u32 = 3;

/// How often a server is killed between two checks.
const LIVES: u32 = 8;

/// How many callers each server has.
const CALLERS: u64 = 3;

/// How long a server lives at the most, in milliseconds.
const LIFE_MAX: u64 = 200;

/// Kills a server again and again, and checks after each round; answers how many tasks were known in the end.
async fn lane(mut dice: StdRng, kills: u32) -> usize {
    let mut server = Server::start(Store::Sqlite).await;
    let checker = Checker::new(server.addr(), whole_texts(server.addr()).await);
    let ledger = Ledger::default();
    for round in 0..kills.div_ceil(LIVES) {
        let context = format!("round {round}");
        for _ in 0..LIVES.min(kills - round * LIVES) {
            let mut callers = JoinSet::new();
            for number in 0..CALLERS {
                let dice = StdRng::seed_from_u64(dice.random());
                let caller = Caller::new(server.addr(), number, context.clone(), dice, ledger.clone());
                callers.spawn(caller.run());
            }
            tokio::time::sleep(Duration::from_millis(dice.random_range(2..LIFE_MAX))).await;
            server.kill().await;
            callers.join_all().await;
            ledger.count_kill(&context);
            server.run().await;
        }
        checker.check_round(&ledger, &context, &mut dice).await;
    }
    checker.check_all(&ledger).await;
    ledger.ids(None).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_live_for_a_moment_lose_nothing() {
    let mut dice = StdRng::seed_from_u64(seed());
    let kills: u32 = setting("LONGHAUL_STORM_KILLS").unwrap_or(KILLS);
    let begun = Instant::now();
    let mut lane = || lane(StdRng::seed_from_u64(dice.random()), kills.div_ceil(LANES));
    let tasks: [usize; 3] = tokio::join!(lane(), lane(), lane()).into();
    let tasks: usize = tasks.into_iter().sum();
    println!("{kills} kills, {tasks} tasks, {:?}", begun.elapsed());
    assert!(tasks > 100, "there was no load: {tasks}");
}
