//! Streams arrive complete, once and in order, whatever becomes of their connections.

use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::follow::Until;
use longhaul_tests::asked::Asked;
use longhaul_tests::proxy::LinkFault;
use longhaul_tests::{FaultProxy, Launch, Peer, Sdk, Server, Store, seed, within};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::relay::Unnumbered;
use crate::stories::{Story, hasty, tell};
use crate::support::{BINDINGS, say};

/// All of them together.
const STREAMS: usize = 500;
/// With the task, WORKING and COMPLETED there are this many events and three more.
const CHUNKS: usize = 197;
/// As many as one stream has.
const EVENTS: usize = CHUNKS + 3;
/// How many streams there are at one time.
const AT_ONCE: usize = 24;
/// How many clients share them, each with connections of its own.
const CLIENTS: usize = 8;

/// One way to fail for each request, by lot. Bytes that come one by one cost most, so they are rare.
fn by_lot(asked: &Asked, seed: u64) -> LinkFault {
    if asked.path().starts_with("/.well-known/") {
        return LinkFault::None;
    }
    let mut dice = StdRng::seed_from_u64(seed.wrapping_add(asked.nth as u64));
    // A stream of JSON has some 60,000 bytes, one of gRPC half of that, and each connection of HTTP/2 fails, since several
    // streams share it.
    let bytes_max = if asked.is_http2() { 60_000 } else { 50_000 };
    match dice.random_range(0..100) {
        0..5 => LinkFault::CutAfter(dice.random_range(1..1_500)),
        5..70 => LinkFault::CutAfter(dice.random_range(1_500..bytes_max)),
        70..78 => LinkFault::LostAnswer,
        78..84 => LinkFault::LostRequest,
        _ if asked.is_http2() => LinkFault::CutAfter(bytes_max),
        84..94 => LinkFault::Repeated,
        94..96 => LinkFault::SingleBytes,
        _ => LinkFault::None,
    }
}

/// A server whose card names the proxy before it.
async fn behind(proxy: &FaultProxy, launch: Launch) -> Server {
    let args = [launch.args.clone(), vec!["--public-url".to_owned(), format!("http://{}", proxy.addr())]].concat();
    let server = Server::launch(Launch { args, ..launch }).await;
    proxy.aim(server.addr());
    server
}

/// What the agent is told: most tasks are done at once, some work while their streams are cut, some only talk.
fn text(number: usize) -> String {
    match number % 10 {
        0 => format!("slow 1 chunks {CHUNKS}"),
        1 => format!("burst {CHUNKS}"),
        _ => format!("chunks {CHUNKS}"),
    }
}

/// Follows so many tasks, and gives what was told.
async fn follow_all(binding: Binding, proxy: &FaultProxy, streams: usize) -> Vec<Story> {
    let (mut running, mut stories) = (JoinSet::new(), Vec::new());
    let (card, mut clients) = (format!("http://{}", proxy.addr()), Vec::new());
    for _ in 0..CLIENTS {
        clients.push(hasty(binding).connect(&card).await.expect("the card is not faulty"));
    }
    for number in 0..streams {
        if running.len() >= AT_ONCE {
            stories.push(running.join_next().await.unwrap().unwrap());
        }
        let client = clients[number % CLIENTS].clone();
        running.spawn(async move { tell(&client, say(&text(number))).await });
    }
    stories.extend(running.join_all().await);
    stories
}

async fn each_comes_whole(binding: Binding) {
    let seed = seed();
    let proxy = FaultProxy::start(move |asked| by_lot(asked, seed)).await;
    let server = behind(&proxy, Launch::new(Store::Sqlite)).await;
    let begun = Instant::now();
    let stories = follow_all(binding, &proxy, STREAMS.div_ceil(BINDINGS.len())).await;
    let took = begun.elapsed();
    let mut events = 0;
    for story in &stories {
        assert_eq!(story.assert_is_the_log(server.addr()).await, EVENTS);
        // From the first event on, also where the message had to be sent again.
        assert_eq!(story.events.len(), EVENTS);
        events += story.events.len();
    }
    // A message that was sent again began no second task.
    crate::stories::assert_tasks(server.addr(), stories.len()).await;
    println!(
        "{binding}: {} streams, {events} events in {took:.1?}, {} requests, {} faults, {} repeated",
        stories.len(),
        proxy.asked(),
        proxy.faults(),
        proxy.repeats()
    );
    assert!(proxy.faults() >= stories.len() / 4, "{} faults are no test", proxy.faults());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_over_json_rpc_come_whole_through_each_fault() {
    each_comes_whole(Binding::JsonRpc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_over_http_json_come_whole_through_each_fault() {
    each_comes_whole(Binding::HttpJson).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_over_grpc_come_whole_through_each_fault() {
    each_comes_whole(Binding::Grpc).await;
}

/// The same where nothing is numbered: only comparing snapshots shows what was missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_without_numbers_bring_each_chunk_once() {
    const STREAMS: usize = 40;
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let seed = seed();
        let proxy = FaultProxy::start(move |asked| by_lot(asked, seed)).await;
        let server = behind(&proxy, Launch::new(Store::Sqlite)).await;
        let relay = Unnumbered::before(server.addr()).await;
        proxy.aim(relay.addr());
        let stories = follow_all(binding, &proxy, STREAMS).await;
        for story in &stories {
            story.assert_folds_to_the_task(server.addr()).await;
            assert!(story.events.iter().all(|event| event.id.is_none()), "{binding}: the relay has left an id");
        }
        println!("{binding}: {} requests, {} faults", proxy.asked(), proxy.faults());
        assert!(proxy.faults() >= STREAMS / 4);
        crate::stories::assert_tasks(server.addr(), STREAMS).await;
    }
}

/// Other people's servers, with whatever they number and tell.
async fn peer_streams_come_whole(sdk: Sdk) {
    const STREAMS: usize = 12;
    let seed = seed();
    let only_subscriptions = move |asked: &Asked| {
        // These servers don't tell a repetition, so the answer to the message has to come.
        let mut dice = StdRng::seed_from_u64(seed.wrapping_add(asked.nth as u64));
        let is_stream = asked.path().contains(":s") || asked.rpc_method().contains('S') || asked.is_http2();
        match dice.random_range(0..4) {
            0..3 if is_stream => LinkFault::CutAfter(dice.random_range(2_500..30_000)),
            _ => LinkFault::None,
        }
    };
    let (http, grpc) = (FaultProxy::start(only_subscriptions).await, FaultProxy::start(only_subscriptions).await);
    let named = longhaul_tests::peers::Named { http: Some(http.addr()), grpc: Some(grpc.addr()) };
    let peer = Peer::named(sdk, named).await;
    http.aim(peer.http());
    grpc.aim(peer.grpc());
    for binding in BINDINGS {
        let mut running = JoinSet::new();
        for number in 0..STREAMS {
            let client = hasty(binding).connect(&peer.card_url()).await.unwrap();
            let text = if number.is_multiple_of(4) { "slow 1 chunks 100" } else { "chunks 100" };
            running.spawn(async move {
                // What was cut before the first event was not begun as far as anybody knows, and is no story.
                let Some(story) = crate::stories::try_to_tell(&client, say(text)).await else { return 0 };
                story.assert_folds_to(&client).await;
                1
            });
        }
        let healed: usize = running.join_all().await.into_iter().sum();
        println!("{sdk:?} {binding}: {healed} of {STREAMS} begun, {} faults", http.faults() + grpc.faults());
        assert!(healed >= STREAMS / 2, "{sdk:?} {binding}: only {healed} streams began");
    }
    assert!(http.faults() > 0 && grpc.faults() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_the_python_sdk_bring_each_chunk_once() {
    peer_streams_come_whole(Sdk::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_the_javascript_sdk_bring_each_chunk_once() {
    peer_streams_come_whole(Sdk::JavaScript).await;
}

/// A proxy that cuts what is silent for 15 s, at a tenth of the time.
const IDLE: Duration = Duration::from_millis(1500);

async fn idle_stream(binding: Binding, keep_alive: &str, is_cut: bool) {
    let config = format!("[server]\nkeep_alive = \"{keep_alive}\"\n");
    let proxy = FaultProxy::start(|_| LinkFault::IdleCut(IDLE)).await;
    let server = behind(&proxy, Launch { config, ..Launch::new(Store::Memory) }).await;
    let client = hasty(binding).connect(&format!("http://{}", proxy.addr())).await.unwrap();
    let before = proxy.asked();
    let story = within(Duration::from_secs(20), "the end", tell(&client, say("slow 4"))).await;
    story.assert_is_the_log(server.addr()).await;
    let asked = proxy.asked() - before;
    assert_eq!(asked > 1, is_cut, "{binding} with {keep_alive}: {asked} requests");
}

#[tokio::test]
async fn idle_stream_is_kept_alive_by_comments_and_heals_without() {
    // gRPC has no comments: nothing of a silent stream passes but pings, which are further apart.
    tokio::join!(
        idle_stream(Binding::JsonRpc, "1s", false),
        idle_stream(Binding::HttpJson, "1s", false),
        idle_stream(Binding::JsonRpc, "60s", true),
        idle_stream(Binding::HttpJson, "60s", true),
        idle_stream(Binding::Grpc, "60s", true),
    );
}

#[tokio::test]
async fn bytes_that_come_alone_make_the_same_events() {
    let proxy = FaultProxy::start(|_| LinkFault::SingleBytes).await;
    let server = behind(&proxy, Launch::new(Store::Memory)).await;
    for binding in BINDINGS {
        let client = hasty(binding).connect(&format!("http://{}", proxy.addr())).await.unwrap();
        let story = tell(&client, say("echo h\u{e9}llo \u{1d11e}\u{2028}\u{1f600}")).await;
        story.assert_is_the_log(server.addr()).await;
        let story = tell(&client, say("chunks 30")).await;
        story.assert_is_the_log(server.addr()).await;
    }
}

#[tokio::test]
async fn stream_outlives_the_timeout_of_a_call() {
    let [one, two, three] = BINDINGS.map(async |binding| {
        let proxy = FaultProxy::start(|_| LinkFault::None).await;
        let server = behind(&proxy, Launch::new(Store::Memory)).await;
        let builder = hasty(binding).timeout(Duration::from_millis(500));
        let client = builder.connect(&format!("http://{}", proxy.addr())).await.unwrap();
        let before = proxy.asked();
        let story = tell(&client, say("slow 2")).await;
        story.assert_is_the_log(server.addr()).await;
        assert_eq!(proxy.asked() - before, 1, "{binding}: it was opened again");
    });
    tokio::join!(one, two, three);
}

#[tokio::test]
async fn message_whose_answer_is_lost_begins_one_task() {
    for binding in BINDINGS {
        let proxy = FaultProxy::start(|asked| match (asked.path().starts_with("/.well-known/"), asked.nth) {
            (false, ..3) => LinkFault::LostAnswer,
            _ => LinkFault::None,
        })
        .await;
        let server = behind(&proxy, Launch::new(Store::Sqlite)).await;
        let client = hasty(binding).connect(&format!("http://{}", proxy.addr())).await.unwrap();
        let story = tell(&client, say("chunks 5")).await;
        story.assert_is_the_log(server.addr()).await;
        assert_eq!(proxy.faults(), 2, "{binding}");
        crate::stories::assert_tasks(server.addr(), 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_outlive_a_server_that_is_killed() {
    outlive(Signal::KILL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_outlive_a_server_that_is_stopped_in_order() {
    outlive(Signal::TERM).await;
}

async fn outlive(signal: Signal) {
    const EACH: usize = 8;
    let mut server = Server::start(Store::Sqlite).await;
    let card = format!("http://{}", server.addr());
    let mut running = JoinSet::new();
    for binding in BINDINGS {
        for number in 0..EACH {
            let client = hasty(binding).connect(&card).await.unwrap();
            let text = if number % 2 == 0 { "burst 20 slow 2 chunks 197" } else { "input" };
            running.spawn(async move {
                let mut options = crate::stories::options();
                options.until = Until::Terminal;
                let mut events = client.send_streaming_message(say(text), options).unwrap();
                let first = events.next().await.unwrap().unwrap();
                (client, events, first)
            });
        }
    }
    // Each has begun.
    let begun = within(Duration::from_secs(20), "the first events", running.join_all()).await;
    server.signal(signal);
    server.wait(Duration::from_secs(60)).await;
    let mut running = JoinSet::new();
    for (client, mut events, first) in begun {
        running.spawn(async move {
            let mut story = Story { events: vec![first] };
            let mut is_answered = false;
            while let Some(event) = events.next().await {
                story.events.push(event.unwrap());
                let waits = events.state().is_some_and(|state| state.is_interrupted());
                if waits && !is_answered {
                    is_answered = true;
                    let id = events.task_id().unwrap().to_owned();
                    let answer = crate::support::say_in("chunks 50", "", &id);
                    client.send_message(answer).await.unwrap();
                }
            }
            story
        });
    }
    server.run().await;
    let stories = within(Duration::from_secs(90), "the ends", running.join_all()).await;
    for story in &stories {
        story.assert_is_the_log(server.addr()).await;
    }
    assert_eq!(stories.len(), 3 * EACH);
}
