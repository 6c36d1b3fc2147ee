//! A primary that dies, and a standby that takes its place.

use std::time::Duration;

use longhaul_pgtest::{Cluster, Options};
use longhaul_tests::promises::{Stops, under_load};
use longhaul_tests::{Fleet, Launch, seed, until};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::block_in_place;
use tokio::time::Instant;

use crate::support::{PATIENCE, SHORT_LEASES, accepts_again, all_say};

const WORK: Duration = Duration::from_millis(2000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_go_on_at_the_standby_that_was_promoted_and_nothing_is_lost() {
    let mut primary = block_in_place(|| Cluster::start(Options::default())).unwrap();
    primary.create_database("longhaul").unwrap();
    let standby = block_in_place(|| primary.standby()).unwrap();
    // Set behind the copy: the standby waits for nobody when it is the primary.
    primary.execute("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'").unwrap();
    primary.execute("postgres", "SELECT pg_reload_conf()").unwrap();
    until(PATIENCE, "the standby is synchronous", async || {
        let rows = primary.query("postgres", "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/longhaul", primary.port(), standby.port());
    let fleet = Fleet::on([url.clone(), url.clone(), url], Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    under_load(fleet.instances(), Stops::Never, &mut dice, async |_| {
        tokio::time::sleep(WORK).await;
        let begun = Instant::now();
        block_in_place(|| primary.kill()).unwrap();
        // There is a standby, which answers and takes no writes.
        all_say(fleet.servers(), 503).await;
        let noticed = begun.elapsed();
        block_in_place(|| standby.promote()).unwrap();
        let promoted = begun.elapsed();
        all_say(fleet.servers(), 200).await;
        accepts_again(&fleet).await;
        println!("noticed after {noticed:?}, promoted after {promoted:?}, accepting after {:?}", begun.elapsed());
        tokio::time::sleep(WORK).await;
    })
    .await;
}
