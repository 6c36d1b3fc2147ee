//! Instances that end one after the other under load: by `kill -9`, and in order.

use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_tests::promises::{Stops, under_load};
use longhaul_tests::task::say;
use longhaul_tests::{Binding, Client, Fleet, Launch, Operation, seed, setting};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use crate::support::SHORT_LEASES;

/// How many instances are killed; `LONGHAUL_FLEET_KILLS` overrules it.
const KILLS: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_are_killed_one_after_the_other_lose_nothing() {
    let mut fleet = Fleet::start(Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let begun = Instant::now();
    let kills = setting("LONGHAUL_FLEET_KILLS").unwrap_or(KILLS);
    let repeated = under_load(fleet.instances(), Stops::Never, &mut dice, async |dice| {
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
    assert!(repeated > 0, "nobody has met a kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_are_restarted_one_after_the_other_hand_their_turns_over() {
    // No lease runs out: what is not handed over never comes to rest.
    let config = "[server]\ndrain_timeout = \"300ms\"\n[agent]\nlease_duration = \"1h\"\n";
    let mut fleet = Fleet::start(Launch::postgres(config)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    under_load(fleet.instances(), Stops::InOrder, &mut dice, async |dice| {
        for number in [0, 1, 2, 0, 1, 2] {
            tokio::time::sleep(Duration::from_millis(dice.random_range(200..800))).await;
            fleet[number].signal(Signal::TERM);
            let status = fleet[number].wait(Duration::from_secs(15)).await;
            assert_eq!(status.code(), Some(0), "{}", fleet[number].log_tail());
            fleet[number].run().await;
        }
    })
    .await;
}

#[tokio::test]
async fn ten_instances_that_start_at_once_agree_on_the_tables() {
    let database = Database::fresh().unwrap();
    let fleet = Fleet::on(vec![database.url().to_owned(); 10], Launch::postgres("")).await;
    let mut client = Client::new(Binding::HttpJson, fleet.instances());
    for _ in 0..20 {
        client.ask(Operation::SendMessage, say("echo")).await;
    }
    for server in fleet.servers() {
        let page = Client::new(Binding::Grpc, server.addr()).ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 20, "{page}");
    }
}
