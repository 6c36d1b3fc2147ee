//! Each event of many tasks arrives, in order, although the server is killed again and again.

use std::collections::BTreeSet;

use longhaul_client::push::Order;
use longhaul_pgtest::Database;
use longhaul_tests::receiver::{HookReceiver, Reply};
use longhaul_tests::steps::{client, reaches, whole_log};
use longhaul_tests::{Fleet, Instances, Launch, setting, until};

use crate::support::{PATIENCE, on_postgres, on_sqlite, pushing, send, start};

/// How many tasks there are, how many chunks each has, and how often the server is killed.
const TASKS: u64 = 200;
const CHUNKS: u64 = 47;
const KILLS: u32 = 3;

/// Claims of a server that was killed run out soon, and its turns go on soon.
const CONFIG: &str = "\
[agent]
lease_duration = \"2s\"
attempts_max = 100
backoff_min = \"50ms\"
backoff_max = \"200ms\"
[push]
timeout = \"1s\"
delay_min = \"50ms\"
delay_max = \"100ms\"
host_max = 16
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_events_arrive_in_order_over_kills_on_sqlite() {
    all_events_arrive_in_order(on_sqlite(CONFIG)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_events_arrive_in_order_over_kills_on_postgres() {
    all_events_arrive_in_order(on_postgres(CONFIG)).await;
}

/// Any of three instances sends what is due, and one of them is killed again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_events_arrive_in_order_from_three_instances() {
    let receiver = stumbling().await;
    let mut fleet = Fleet::start(pushing(Launch::postgres(CONFIG))).await;
    let tasks = begin(&receiver, fleet.instances(), TASKS / 4).await;
    for kill in 1..=KILLS {
        halfway(&receiver, tasks.len(), kill).await;
        fleet[0].kill().await;
        fleet[0].run().await;
    }
    assert_all_arrived(&receiver, fleet.instances(), &tasks).await;
}

async fn all_events_arrive_in_order((launch, database): (Launch, Option<Database>)) {
    let receiver = stumbling().await;
    let (mut server, _database) = start((launch, database)).await;
    let number_of = setting("LONGHAUL_PUSH_TASKS").unwrap_or(TASKS);
    let tasks = begin(&receiver, server.addr(), number_of).await;
    for kill in 1..=KILLS {
        halfway(&receiver, tasks.len(), kill).await;
        server.kill().await;
        server.run().await;
    }
    assert_all_arrived(&receiver, server.addr(), &tasks).await;
}

/// Now and then it does not answer, or not that it took it.
async fn stumbling() -> HookReceiver {
    HookReceiver::start(|_, sequence, tried| match (sequence % 23, tried) {
        (7, 0) => Reply::Status(503, ""),
        (11, 0) => Reply::TakeAndCut,
        _ => Reply::Take,
    })
    .await
}

/// Begins tasks, each with a config; answers their ids and the configs' names.
async fn begin(receiver: &HookReceiver, at: impl Into<Instances>, number_of: u64) -> Vec<(String, String)> {
    let mut caller = client(at);
    let mut tasks = Vec::new();
    for number in 0..number_of {
        let name = format!("config-{number}");
        let id = send(&mut caller, &format!("chunks {CHUNKS}"), receiver.config(&name)).await;
        tasks.push((id, name));
    }
    tasks
}

/// Waits for the middle of it, by what has come and not by time.
async fn halfway(receiver: &HookReceiver, tasks: usize, kill: u32) {
    let some = kill as usize * tasks * CHUNKS as usize / (KILLS as usize + 2);
    until(PATIENCE, "deliveries go on", async || (receiver.count() >= some).then_some(())).await;
}

async fn assert_all_arrived(receiver: &HookReceiver, at: impl Into<Instances>, tasks: &[(String, String)]) {
    let mut caller = client(at);
    let mut again = 0;
    for (id, name) in tasks {
        let task = reaches(&mut caller, id, "COMPLETED", PATIENCE).await;
        let log = whole_log(&mut caller, &task).await;
        let last = log.last().and_then(|event| event.sequence).unwrap();
        assert!(last >= CHUNKS + 3, "{last}");
        let what = format!("all {last} events of {name} arrive");
        until(PATIENCE, &what, async || (receiver.handed(name).len() as u64 >= last).then_some(())).await;
        let handed = receiver.handed(name);
        let wanted: Vec<_> = (1..=last).map(|sequence| (sequence, Order::Next)).collect();
        assert_eq!(handed, wanted, "{name}");
        let came = receiver.came(name);
        let ids: BTreeSet<_> = came.iter().map(|came| came.id.as_str()).collect();
        assert_eq!(ids.len() as u64, last, "an id is the same at each attempt, and no other's");
        again += came.len() as u64 - last;
        assert_eq!(came.last().unwrap().body, log.last().unwrap().data, "{name}: what streams tell is pushed");
    }
    assert_eq!(receiver.refused(), Vec::<String>::new());
    println!("{} requests, {again} of them again, over {KILLS} kills", receiver.count());
}
