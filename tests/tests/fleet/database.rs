//! A database that is restarted, crashes or stands still under all instances.

use std::time::Duration;

use longhaul_pgtest::{Cluster, Mode, Options};
use longhaul_tests::promises::{Stops, under_load};
use longhaul_tests::steps::client;
use longhaul_tests::task::{say, state_of};
use longhaul_tests::{Fleet, Launch, Operation, seed};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::block_in_place;

use crate::support::{SHORT_LEASES, SHORT_STATEMENTS, accepts_again, all_say, refused_for_now};

/// How long callers work between two faults.
const WORK: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_and_crash_of_the_database_lose_nothing_and_no_instance_has_to_be_restarted() {
    let mut cluster = block_in_place(|| Cluster::start(Options::default())).unwrap();
    let url = cluster.create_database("longhaul").unwrap();
    let fleet = Fleet::on([url.clone(), url.clone(), url], Launch::postgres(SHORT_LEASES)).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let repeated = under_load(fleet.instances(), Stops::Never, &mut dice, async |_| {
        for mode in [Some(Mode::Fast), Some(Mode::Immediate), None] {
            tokio::time::sleep(WORK).await;
            block_in_place(|| match mode {
                Some(mode) => cluster.stop(mode),
                None => cluster.kill(),
            })
            .unwrap();
            let noticed = all_say(fleet.servers(), 503).await;
            refused_for_now(&fleet[0]).await;
            block_in_place(|| cluster.restart()).unwrap();
            let ready = all_say(fleet.servers(), 200).await;
            let accepts = accepts_again(&fleet).await;
            println!("{mode:?}: noticed after {noticed:?}, ready after {ready:?}, sends accepted after {accepts:?}");
        }
        tokio::time::sleep(WORK).await;
    })
    .await;
    assert!(repeated > 0, "nobody has met the fault");
}

/// Sends a signal to all processes of the cluster.
fn signal_all(cluster: &Cluster, signal: Signal) {
    let postmaster = cluster.pid().unwrap();
    let mut pids = vec![postmaster];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if parent == Some(postmaster) {
            pids.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
    }
    assert!(pids.len() > 5, "the cluster has processes: {pids:?}");
    for pid in pids {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
        // One may have ended since.
        let _ = kill_process(pid, signal);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_that_stands_still_for_seconds_loses_nothing() {
    let cluster = block_in_place(|| Cluster::start(Options::default())).unwrap();
    let url = cluster.create_database("longhaul").unwrap();
    let launch = Launch::postgres(&format!("{SHORT_LEASES}{SHORT_STATEMENTS}"));
    let fleet = Fleet::on([url.clone(), url.clone(), url], launch).await;
    let mut dice = StdRng::seed_from_u64(seed());
    let repeated = under_load(fleet.instances(), Stops::Never, &mut dice, async |_| {
        tokio::time::sleep(WORK).await;
        signal_all(&cluster, Signal::STOP);
        let noticed = all_say(fleet.servers(), 503).await;
        refused_for_now(&fleet[2]).await;
        signal_all(&cluster, Signal::CONT);
        let ready = all_say(fleet.servers(), 200).await;
        println!("noticed after {noticed:?}, ready after {ready:?}");
        tokio::time::sleep(WORK).await;
    })
    .await;
    assert!(repeated > 0, "nobody has met the fault");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_wait_for_a_database_that_starts_after_them() {
    let mut cluster = block_in_place(|| Cluster::start(Options::default())).unwrap();
    let url = cluster.create_database("longhaul").unwrap();
    block_in_place(|| cluster.stop(Mode::Fast)).unwrap();
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        block_in_place(|| cluster.restart()).unwrap();
    };
    let urls = [url.clone(), url.clone(), url];
    let (fleet, ()) = tokio::join!(Fleet::on(urls, Launch::postgres("")), late);
    let done = client(fleet.instances()).ask(Operation::SendMessage, say("echo")).await;
    assert_eq!(state_of(&done), "COMPLETED");
    assert!(fleet[0].log().contains("trying again"), "it did not wait:\n{}", fleet[0].log_tail());
}
