//! How soon an event that one instance has stored is heard at another.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_tests::steps::{client, send};
use longhaul_tests::task::state_of;
use longhaul_tests::{Binding, Call, Client, Event, Fleet, Launch, Operation, TestAgent};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::runs;

/// How many tasks there are at once.
const TASKS: usize = 4;

/// How many lines each writes.
const LINES: usize = 80;

/// Writes what time it is, again and again.
fn agent() -> TestAgent {
    TestAgent::Exec(format!(
        "echo \"$LONGHAUL_TASK_ID\" >> attempts; sleep 0.3; i=0; \
         while [ $i -lt {LINES} ]; do i=$((i + 1)); date +%s%N; sleep 0.03; done"
    ))
}

#[expect(clippy::disallowed_methods, reason = "the agent has read the same clock")]
fn age_of(event: &Event) -> Option<Duration> {
    let text = event.data["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()?;
    let told = Duration::from_nanos(text.trim().parse().ok()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Some(now.saturating_sub(told))
}

/// The ages of the events of some tasks when they were heard where the task runs, and elsewhere.
async fn ages(fleet: &Fleet) -> [Vec<Duration>; 2] {
    let mut streams = JoinSet::new();
    for number in 0..TASKS {
        let id = send(&mut client(fleet[number % 3].addr()), "go").await;
        let (runner, _) = runs(fleet.servers(), &id).await;
        for (place, server) in fleet.servers().iter().enumerate() {
            let mut client = Client::new(Binding::ALL[(number + place) % 3], server.addr());
            let call = Call::new(Operation::SubscribeToTask, json!({"id": id}));
            streams.spawn(async move {
                let mut stream = client.follow(&call).await;
                let (mut ages, mut end) = (Vec::new(), String::new());
                while let Some(event) = stream.next().await.expect("the stream is whole") {
                    ages.extend(age_of(&event));
                    state_of(&event.data).clone_into(&mut end);
                }
                assert_eq!(end, "COMPLETED");
                (usize::from(place != runner), ages)
            });
        }
    }
    let mut all = [Vec::new(), Vec::new()];
    for (elsewhere, ages) in streams.join_all().await {
        all[elsewhere].extend(ages);
    }
    all.iter_mut().for_each(|ages| ages.sort_unstable());
    all
}

fn percentile(ages: &[Duration], percent: usize) -> Duration {
    ages[(ages.len() * percent / 100).min(ages.len() - 1)]
}

/// Prints the figures, and answers the 50th and the 99th of a hundred elsewhere.
async fn measure(config: &str) -> (Duration, Duration) {
    let fleet = Fleet::start(Launch::postgres(config).agent(agent())).await;
    let ages = ages(&fleet).await;
    for (place, ages) in ["where the task runs", "elsewhere"].iter().zip(&ages) {
        let [p50, p99, worst] = [50, 99, 100].map(|percent| percentile(ages, percent));
        println!("{place}: {} events heard after p50 {p50:?}, p99 {p99:?}, at most {worst:?}", ages.len());
    }
    let [here, elsewhere] = &ages;
    assert!(here.len() > TASKS * LINES / 2 && elsewhere.len() > TASKS * LINES, "events are missing");
    (percentile(elsewhere, 50), percentile(elsewhere, 99))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_heard_at_other_instances_at_once() {
    let (p50, p99) = measure("").await;
    assert!(p50 < Duration::from_millis(400), "half of the events came later than {p50:?}");
    assert!(p99 < Duration::from_secs(2), "{p99:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_heard_at_other_instances_within_a_second_without_notifications() {
    let (_, p99) = measure("[store.postgres]\nnotify = false\n").await;
    assert!(p99 < Duration::from_secs(2), "{p99:?}");
}
