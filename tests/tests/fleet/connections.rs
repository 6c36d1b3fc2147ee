//! Connections to the database that break: all at once, again and again, and with the answer to a commit in them.

use std::net::SocketAddr;
use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_tests::promises::under_load;
use longhaul_tests::proxy::{Network, Proxy};
use longhaul_tests::{Fleet, Launch, seed};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::{SHORT_LEASES, all_say};

/// How often they break.
const CUTS: u32 = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_again_and_again_lose_and_double_nothing() {
    let fleet = Fleet::start(Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let database = fleet.database();
    under_load(fleet.instances(), &mut dice, async |dice| {
        let mut cut = 0;
        for _ in 0..CUTS {
            tokio::time::sleep(Duration::from_millis(dice.random_range(50..500))).await;
            let rows = tokio::task::block_in_place(|| {
                database.query(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()",
                )
            });
            cut += rows.unwrap().len();
        }
        println!("{cut} connections were cut");
        assert!(cut > 3 * CUTS as usize, "there were hardly any connections: {cut}");
    })
    .await;
    all_say(fleet.servers(), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_whose_answers_are_lost_are_done_once() {
    let database = Database::fresh().unwrap();
    let (scheme, place) = database.url().split_once('@').unwrap();
    let (target, name) = place.split_once('/').unwrap();
    let target: SocketAddr = target.parse().unwrap();
    let proxies = [Proxy::start(target).await, Proxy::start(target).await, Proxy::start(target).await];
    let urls = proxies.each_ref().map(|proxy| format!("{scheme}@{}/{name}", proxy.addr()));
    let fleet = Fleet::on(urls, Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    under_load(fleet.instances(), &mut dice, async |dice| {
        for _ in 0..CUTS {
            let proxy = &proxies[dice.random_range(0..proxies.len())];
            // What is said in this time is done, and nobody is told.
            proxy.set(Network::Deaf);
            tokio::time::sleep(Duration::from_millis(dice.random_range(20..150))).await;
            proxy.set(Network::Cut);
            tokio::time::sleep(Duration::from_millis(dice.random_range(0..100))).await;
            proxy.set(Network::Whole);
            tokio::time::sleep(Duration::from_millis(dice.random_range(50..400))).await;
        }
    })
    .await;
    all_say(fleet.servers(), 200).await;
}
