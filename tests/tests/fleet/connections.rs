//! Connections to the database that break: all at once, again and again, and with the answer to a commit in them.

use std::net::SocketAddr;
use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_tests::promises::{Stops, under_load};
use longhaul_tests::proxy::{Network, Proxy};
use longhaul_tests::{Fleet, Launch, seed};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::block_in_place;

use crate::support::{SHORT_LEASES, all_say};

/// How often they break with an answer in them.
const CUTS: u32 = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_again_and_again_lose_and_double_nothing() {
    cut_again_and_again(SHORT_LEASES, 25).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_lose_and_double_nothing_without_notifications() {
    cut_again_and_again(&format!("{SHORT_LEASES}[store.postgres]\nnotify = false\n"), 10).await;
}

async fn cut_again_and_again(config: &str, cuts: usize) {
    let fleet = Fleet::start(Launch::postgres(config)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let database = fleet.database();
    under_load(fleet.instances(), Stops::Never, &mut dice, async |dice| {
        let mut cut = 0;
        for _ in 0..cuts {
            tokio::time::sleep(Duration::from_millis(dice.random_range(50..500))).await;
            // Either whole connections, or what is said on them at this moment.
            let how = if dice.random_ratio(2, 3) { "terminate" } else { "cancel" };
            let statement = format!(
                "SELECT pg_{how}_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()"
            );
            let rows = block_in_place(|| database.query(&statement)).unwrap();
            cut += if how == "terminate" { rows.len() } else { 0 };
        }
        println!("{cut} connections were cut");
        assert!(cut > cuts, "there were hardly any connections: {cut}");
    })
    .await;
    all_say(fleet.servers(), 200).await;
}

/// What one in ten statements meets that store events, and some transactions when they end: what a database that is busy elsewhere, or
/// that is spread over several machines, does to its clients.
const TROUBLE: &str = "
CREATE FUNCTION public.trouble() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    dice float8 := random();
BEGIN
    IF dice < 0.05 THEN RAISE EXCEPTION 'not serializable, says the test' USING ERRCODE = '40001'; END IF;
    IF dice < 0.1 THEN RAISE EXCEPTION 'a deadlock, says the test' USING ERRCODE = '40P01'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER trouble AFTER INSERT ON longhaul.event FOR EACH STATEMENT EXECUTE FUNCTION public.trouble();
CREATE CONSTRAINT TRIGGER trouble_at_the_end AFTER INSERT ON longhaul.task_count_delta
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.trouble();
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialisation_failures_and_deadlocks_lose_and_double_nothing() {
    let fleet = Fleet::start(Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let database = fleet.database();
    under_load(fleet.instances(), Stops::Never, &mut dice, async |_| {
        block_in_place(|| database.execute(TROUBLE)).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        block_in_place(|| database.execute("DROP FUNCTION public.trouble() CASCADE")).unwrap();
    })
    .await;
    let rows = block_in_place(|| {
        database.query("SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()")
    });
    let undone: u64 = rows.unwrap()[0][0].as_deref().unwrap().parse().unwrap();
    println!("{undone} transactions were rolled back");
    assert!(undone > 10, "there was no trouble: {undone}");
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
    let repeated = under_load(fleet.instances(), Stops::Never, &mut dice, async |dice| {
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
    assert!(repeated > 0, "nobody has met the fault");
    all_say(fleet.servers(), 200).await;
}
