//! `kill -9` of one instance after the other, under load.

use std::time::Duration;

use longhaul_tests::promises::under_load;
use longhaul_tests::{Fleet, Launch, setting};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use crate::support::SHORT_LEASES;

/// How many instances are killed; `LONGHAUL_FLEET_KILLS` overrules it.
const KILLS: u32 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_are_killed_one_after_the_other_lose_nothing() {
    let mut fleet = Fleet::start(Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(longhaul_tests::seed());
    let begun = Instant::now();
    let kills = setting("LONGHAUL_FLEET_KILLS").unwrap_or(KILLS);
    under_load(fleet.instances(), &mut dice, async |dice| {
        for _ in 0..kills {
            tokio::time::sleep(Duration::from_millis(dice.random_range(500..1500))).await;
            let number = dice.random_range(0..3);
            fleet[number].kill().await;
            // Its turns are taken by the others, or by its successor.
            tokio::time::sleep(Duration::from_millis(dice.random_range(0..1500))).await;
            fleet[number].run().await;
        }
    })
    .await;
    println!("{kills} kills, {:?}", begun.elapsed());
}
