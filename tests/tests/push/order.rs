//! Each event of many tasks arrives, in order, although the server is killed again and again.

use std::collections::BTreeSet;

use longhaul_client::push::Order;
use longhaul_pgtest::Database;
use longhaul_tests::receiver::{HookReceiver, Reply};
use longhaul_tests::steps::{client, reaches};
use longhaul_tests::{Launch, setting, until};

use crate::support::{PATIENCE, on_postgres, on_sqlite, send, start};

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

async fn all_events_arrive_in_order(launch: (Launch, Option<Database>)) {
    // Now and then it does not answer, or not that it took it.
    let receiver = HookReceiver::start(|_, sequence, tried| match (sequence % 23, tried) {
        (7, 0) => Reply::Status(503, ""),
        (11, 0) => Reply::TakeAndCut,
        _ => Reply::Take,
    })
    .await;
    let (mut server, _database) = start(launch).await;
    let mut tasks = Vec::new();
    let mut caller = client(server.addr());
    let number_of = setting("LONGHAUL_PUSH_TASKS").unwrap_or(TASKS);
    for number in 0..number_of {
        let name = format!("config-{number}");
        let id = send(&mut caller, &format!("chunks {CHUNKS}"), receiver.config(&name)).await;
        tasks.push((id, name));
    }
    for kill in 1..=KILLS {
        // In the middle of it, by what has come and not by time.
        let some = kill as usize * number_of as usize * CHUNKS as usize / (KILLS as usize + 2);
        until(PATIENCE, "deliveries go on", async || (receiver.count() >= some).then_some(())).await;
        server.kill().await;
        server.run().await;
    }
    let mut caller = client(server.addr());
    let mut again = 0;
    for (id, name) in &tasks {
        reaches(&mut caller, id, "COMPLETED", PATIENCE).await;
        let task = longhaul_tests::steps::task(&mut caller, id).await;
        let log = longhaul_tests::steps::whole_log(&mut caller, &task).await;
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
        // What was pushed is what streams tell: the last event to the byte's meaning.
        assert_eq!(came.last().unwrap().body, log.last().unwrap().data, "{name}");
    }
    assert_eq!(receiver.refused(), Vec::<String>::new());
    println!("{} requests, {again} of them again, over {KILLS} kills", receiver.count());
}
