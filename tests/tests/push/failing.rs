//! Receivers that fail, each in its own way, all at once on one server: each costs its own config alone.

use std::net::SocketAddr;
use std::time::Duration;

use longhaul_client::push::Order;
use longhaul_pgtest::Database;
use longhaul_tests::receiver::{HookReceiver, Reply};
use longhaul_tests::steps::client;
use longhaul_tests::{Client, Launch, Operation, Server, until};
use serde_json::json;

use crate::support::{IMPATIENT, PATIENCE, on_postgres, on_sqlite, send, start};

/// An echo has these: the task, that it works, its artifact, and its end.
const EVENTS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_fail_get_all_events_in_the_end_on_sqlite() {
    receivers_that_fail_get_all_events(on_sqlite(IMPATIENT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_fail_get_all_events_in_the_end_on_postgres() {
    receivers_that_fail_get_all_events(on_postgres(IMPATIENT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_final_is_given_up_and_the_next_follows_on_sqlite() {
    what_is_final_is_given_up(on_sqlite(IMPATIENT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_final_is_given_up_and_the_next_follows_on_postgres() {
    what_is_final_is_given_up(on_postgres(IMPATIENT)).await;
}

/// Waits until so many events of the config were handed over, and checks that they are in order.
async fn complete(receiver: &HookReceiver, name: &str) {
    let what = format!("all events of {name} arrive");
    until(PATIENCE, &what, async || (receiver.handed(name).len() as u64 >= EVENTS).then_some(())).await;
    let wanted: Vec<_> = (1..=EVENTS).map(|sequence| (sequence, Order::Next)).collect();
    assert_eq!((receiver.handed(name), receiver.refused()), (wanted, Vec::new()), "{name}");
}

/// A receiver for each way to fail: each is a host of its own.
async fn failing(script: impl Fn(u64, usize) -> Reply + Send + Sync + 'static) -> HookReceiver {
    HookReceiver::start(move |_, sequence, tried| script(sequence, tried)).await
}

async fn receivers_that_fail_get_all_events(launch: (Launch, Option<Database>)) {
    let (server, _database) = start(launch).await;
    let mut client = client(server.addr());
    let first =
        |sequence: u64, tried: usize, reply: Reply| if (sequence, tried) == (1, 0) { reply } else { Reply::Take };
    let hangs = failing(move |sequence, tried| first(sequence, tried, Reply::Hang)).await;
    let closes = failing(move |sequence, tried| first(sequence, tried, Reply::Close)).await;
    let drips = failing(move |sequence, tried| first(sequence, tried, Reply::DripHead)).await;
    let cuts = failing(move |sequence, tried| first(sequence, tried, Reply::TakeAndCut)).await;
    let limits = failing(move |sequence, tried| first(sequence, tried, Reply::Status(429, "Retry-After: 2\r\n"))).await;
    let stumbles =
        failing(|sequence, tried| if sequence == 2 && tried < 10 { Reply::Status(500, "") } else { Reply::Take }).await;
    let drips_body = failing(|_, _| Reply::TakeAndDripBody).await;
    let cuts_body = failing(|_, _| Reply::TakeAndCutBody).await;
    let fine = failing(|_, _| Reply::Take).await;
    let receivers = [
        (&hangs, "hangs"),
        (&closes, "closes"),
        (&drips, "drips"),
        (&cuts, "cuts"),
        (&limits, "limits"),
        (&stumbles, "stumbles"),
        (&drips_body, "drips-body"),
        (&cuts_body, "cuts-body"),
        (&fine, "fine"),
    ];
    // Nobody listens there yet: who knocks is refused.
    let closed = free_addr();
    let refuses =
        json!({"id": "refuses", "url": format!("http://{closed}/refuses"), "token": longhaul_tests::receiver::TOKEN});
    let refused_task = send(&mut client, "echo", refuses).await;
    for (receiver, name) in receivers {
        send(&mut client, "echo", receiver.config(name)).await;
    }
    until(PATIENCE, "somebody knocks in vain", async || {
        let knocked = |line: &str| line.contains("push notification failed") && line.contains(&refused_task);
        server.log().lines().any(knocked).then_some(())
    })
    .await;
    let opened = HookReceiver::on(closed, |_, _, _| Reply::Take).await;
    for (receiver, name) in receivers {
        complete(receiver, name).await;
    }
    complete(&opened, "refuses").await;
    // How often each had to be asked.
    for (receiver, name) in [(&fine, "fine"), (&drips_body, "drips-body"), (&cuts_body, "cuts-body")] {
        assert_eq!(receiver.came(name).len() as u64, EVENTS, "{name}: what was taken is not sent again");
    }
    for (receiver, name) in [(&hangs, "hangs"), (&drips, "drips"), (&cuts, "cuts"), (&limits, "limits")] {
        assert_eq!(receiver.came(name).len() as u64, EVENTS + 1, "{name}");
    }
    assert_eq!(stumbles.came("stumbles").len() as u64, EVENTS + 10);
    let came = limits.came("limits");
    let waited = came[1].at - came[0].at;
    assert!(waited >= Duration::from_millis(1900), "Retry-After is honoured: {waited:?}");
    let head = &fine.came("fine")[0].headers;
    for (name, value) in [("content-type", "application/a2a+json"), ("a2a-version", "1.0")] {
        assert_eq!(head.get(name).unwrap(), value);
    }
}

async fn what_is_final_is_given_up(launch: (Launch, Option<Database>)) {
    let (server, _database) = start(launch).await;
    let mut client = client(server.addr());
    let inside = failing(|_, _| Reply::Take).await;
    let location: &'static str = Box::leak(format!("Location: http://{}/inside\r\n", inside.addr()).into_boxed_str());
    let second = |sequence: u64, reply: Reply| if sequence == 2 { reply } else { Reply::Take };
    let leads_away = failing(move |sequence, _| second(sequence, Reply::Status(307, location))).await;
    let refuses = failing(move |sequence, _| second(sequence, Reply::Status(404, ""))).await;
    let is_gone = failing(move |sequence, _| second(sequence, Reply::Status(410, ""))).await;
    send(&mut client, "echo", leads_away.config("away")).await;
    send(&mut client, "echo", refuses.config("refuses")).await;
    let gone = send(&mut client, "echo", is_gone.config("gone")).await;
    for (receiver, name) in [(&leads_away, "away"), (&refuses, "refuses")] {
        until(PATIENCE, name, async || (receiver.handed(name).len() as u64 >= EVENTS - 1).then_some(())).await;
        let wanted = [(1, Order::Next), (3, Order::AfterGap { first_missing: 2 }), (4, Order::Next)];
        assert_eq!(receiver.handed(name), wanted, "{name}");
        assert_eq!(receiver.came(name).len() as u64, EVENTS, "{name}: it is not tried again");
    }
    let params = json!({"taskId": gone});
    until(PATIENCE, "the config of who is gone is removed", async || {
        let page = client.ask(Operation::ListTaskPushNotificationConfigs, params.clone()).await;
        page["configs"].as_array().is_none_or(Vec::is_empty).then_some(())
    })
    .await;
    assert_eq!((is_gone.sequences("gone"), is_gone.came("gone").len()), (vec![1], 2));
    assert_eq!(inside.count(), 0, "nothing is followed");
    assert_dead_are_told(&server, &mut client).await;
}

/// What was given up is logged, without secrets.
async fn assert_dead_are_told(server: &Server, _client: &mut Client) {
    let log = server.log();
    assert!(log.contains("push notification given up"), "{log}");
    assert!(!log.contains(longhaul_tests::receiver::TOKEN), "a token is in the log");
}

fn free_addr() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
