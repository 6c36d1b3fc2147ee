//! What a stream shows (promise 4): the task first, then everything after it, once and in order,
//! whenever it begins, however slowly it is read, and however often it is cut.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::http_binding::HttpClient;
use longhaul_tests::sse::{Item, Items};
use longhaul_tests::task::{assert_numbered, fold, id_of, say, say_and_leave, say_to, state_of};
use longhaul_tests::{
    Binding, Call, CallError, Client, Event, Fleet, Instances, Launch, Operation, Server, Store, Stream, contents,
    seed, until, within,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

fn subscribe(id: &str) -> Call {
    Call::new(Operation::SubscribeToTask, json!({"id": id}))
}

fn dice() -> StdRng {
    StdRng::seed_from_u64(seed())
}

/// The whole log of a task that has ended, from its first event.
async fn log_of(client: &mut Client, id: &str) -> Vec<Event> {
    let events = client.follow(&subscribe(id).after(1)).await.rest().await;
    assert_numbered(&events, 1);
    events
}

/// Follows a task from a moment on, over a connection that is made already; nothing when it had ended.
async fn follow_from(mut client: HttpClient, id: String, moment: Instant) -> Vec<Event> {
    // Timers are too coarse: a task may be done within a millisecond.
    while Instant::now() < moment {
        tokio::task::yield_now().await;
    }
    match client.open(&subscribe(&id)).await {
        Ok(stream) => Stream::Http(stream).rest().await,
        Err(CallError::Refused(refusal)) => {
            refusal.assert(Binding::HttpJson, "UNSUPPORTED_OPERATION");
            Vec::new()
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Lets an agent write chunks, follows the task from 10 random moments within `spread` on, and
/// checks what each stream showed. Returns how many streams there were, and how many of them began
/// between the first chunk and the last.
async fn follow_at_random(instances: &Instances, text: &str, spread: Duration, dice: &mut StdRng) -> (usize, usize) {
    let mut client = Client::new(Binding::HttpJson, instances);
    // The task is there before its chunks are, so that it can be followed from any moment on.
    let asked = client.ask(Operation::SendMessage, say("input")).await;
    let id = id_of(&asked);
    let before = client.follow(&subscribe(&id)).await.event().await.sequence.unwrap();
    let mut clients = Vec::new();
    for number in 0..10 {
        let addrs = instances.addrs();
        let mut client = HttpClient::new(Binding::HttpJson, addrs[number % addrs.len()]);
        client.prepare().await.unwrap();
        clients.push(client);
    }
    let begun = Instant::now();
    let mut streams = JoinSet::new();
    for client in clients {
        let moment = begun + spread.mul_f64(dice.random_range(0.0..1.0));
        streams.spawn(follow_from(client, id.clone(), moment));
    }
    let done = client.ask(Operation::SendMessage, say_to(&id, text)).await;
    let streams = streams.join_all().await;
    let log = log_of(&mut client, &id).await;
    let (mut seen, mut midway) = (0, 0);
    for events in streams.iter().filter(|events| !events.is_empty()) {
        let first = events[0].sequence.unwrap();
        seen += 1;
        midway += usize::from(first > before + 1);
        assert_numbered(events, first);
        // Behind the snapshot: the log itself, to its end, byte for byte.
        assert_eq!(events[1..], log[usize::try_from(first).unwrap()..]);
        let folded = fold(events);
        assert_eq!(folded["artifacts"], done["task"]["artifacts"]);
        assert_eq!(folded["status"], done["task"]["status"]);
    }
    (seen, midway)
}

/// At least so many of the short artifact, and of the long one.
async fn subscriptions_at_random_moments(instances: Instances, [short, long]: [usize; 2]) {
    let mut dice = dice();
    // 500 chunks that are written at once are one commit, and nothing is seen in between; the
    // longer artifact takes several.
    for (text, wanted, midway_min) in [("chunks 500", short, 0), ("chunks 4000", long, 6)] {
        let mut client = Client::new(Binding::HttpJson, &instances);
        let begun = Instant::now();
        client.ask(Operation::SendMessage, say(text)).await;
        let mut spread = begun.elapsed();
        let (mut seen, mut midway, mut tasks) = (0, 0, 0);
        while seen < wanted || midway < midway_min {
            tasks += 1;
            assert!(tasks <= 200, "{seen} subscriptions found {text:?} at work, {midway} midway");
            let here = follow_at_random(&instances, text, spread, &mut dice).await;
            seen += here.0;
            midway += here.1;
            // More than half of them should find their task at work.
            spread = spread.mul_f64(if here.0 < 6 { 0.8 } else { 1.2 });
        }
        println!("{text}: {seen} subscriptions to {tasks} tasks, {midway} of them midway");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_at_any_moment_has_no_gap_and_no_double_on_sqlite() {
    let server = Server::start(Store::Sqlite).await;
    subscriptions_at_random_moments(server.addr().into(), [200, 60]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_at_any_moment_has_no_gap_and_no_double_in_memory() {
    let server = Server::start(Store::Memory).await;
    subscriptions_at_random_moments(server.addr().into(), [200, 60]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_at_any_moment_has_no_gap_and_no_double_at_any_instance() {
    let fleet = Fleet::start(Launch::postgres("")).await;
    subscriptions_at_random_moments(fleet.instances(), [80, 20]).await;
}

#[tokio::test]
async fn subscribers_see_one_order() {
    let server = Server::start(Store::Sqlite).await;
    one_order(server.addr().into()).await;
}

#[tokio::test]
async fn subscribers_of_different_instances_see_one_order() {
    let fleet = Fleet::start(Launch::postgres("")).await;
    one_order(fleet.instances()).await;
}

async fn one_order(instances: Instances) {
    let mut client = Client::new(Binding::HttpJson, &instances);
    let task = client.ask(Operation::SendMessage, say_and_leave("burst 300")).await;
    let id = id_of(&task);
    let mut streams = JoinSet::new();
    for binding in [0, 1, 2, 0, 1].map(|index| Binding::ALL[index]) {
        let call = subscribe(&id).after(1);
        let mut client = Client::new(binding, &instances);
        streams.spawn(async move { client.follow(&call).await.rest().await });
    }
    let streams = streams.join_all().await;
    let first = contents(&streams[0]);
    assert!(first.len() >= 302, "{}", first.len());
    for events in &streams {
        assert_numbered(events, 1);
        assert_eq!(contents(events), first);
    }
}

#[tokio::test]
async fn many_short_streams_each_begin_and_end() {
    let server = Server::start(Store::Sqlite).await;
    let addr = server.addr();
    let mut workers = JoinSet::new();
    for worker in 0..50 {
        workers.spawn(async move {
            let mut client = Client::new(Binding::ALL[worker % 3], addr);
            for _ in 0..10 {
                let call = Call::new(Operation::SendStreamingMessage, say("echo"));
                let events = client.follow(&call).await.rest().await;
                assert_numbered(&events, 1);
                assert!(events[0].data.get("task").is_some());
                assert_eq!(state_of(&events.last().unwrap().data), "COMPLETED");
            }
        });
    }
    workers.join_all().await;
}

#[tokio::test]
async fn slow_reader_hinders_nobody_and_loses_nothing() {
    const CHUNKS: usize = 5_000;
    let server = Server::start(Store::Sqlite).await;
    let addr = server.addr();
    let mut client = Client::new(Binding::HttpJson, addr);
    let text = format!("chunks {CHUNKS}");
    let before = server.resident_bytes();

    // Its socket takes little, and nothing is read from it until the others are done.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = Connection::over(socket.connect(addr).await.unwrap());
    slow.send(&Request::new("POST", "/message:stream").v1().json(&say(&text))).await.unwrap();

    let page = client.ask(Operation::ListTasks, json!({})).await;
    let id = id_of(&page["tasks"][0]);
    let mut readers = JoinSet::new();
    for binding in Binding::ALL {
        let call = subscribe(&id).after(1);
        readers.spawn(async move {
            let events = Client::new(binding, addr).follow(&call).await.rest().await;
            assert_numbered(&events, 1);
            assert_eq!(state_of(&events.last().unwrap().data), "COMPLETED");
            events.len()
        });
    }
    let lengths = readers.join_all().await;
    assert!(lengths[0] > CHUNKS && lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let begun = Instant::now();
    client.ask(Operation::SendMessage, say("echo")).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "a send beside a slow reader: {:?}", begun.elapsed());
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 128 * 1024 * 1024, "{grown} bytes are kept for a slow reader");

    let last = u64::try_from(lengths[0]).unwrap();
    assert_eq!(sequences(slow).await, (1..=last).collect::<Vec<_>>());
}

/// The numbers of all items of a stream, read to its end.
async fn sequences(connection: Connection) -> Vec<u64> {
    let mut items = Items::new(connection);
    let mut numbers = Vec::new();
    let read = async {
        while let Some(item) = items.next().await.unwrap() {
            if let Item::Event { id, .. } = item {
                numbers.push(id.unwrap().parse().unwrap());
            }
        }
    };
    within(Duration::from_secs(120), "a slow stream ends", read).await;
    numbers
}

#[tokio::test]
async fn streams_that_are_aborted_leave_nothing_behind() {
    let server = Server::start(Store::Memory).await;
    let addr = server.addr();
    let mut client = Client::new(Binding::HttpJson, addr);
    let task = client.ask(Operation::SendMessage, say("input")).await;
    let id = id_of(&task);

    let abort = async |count: usize| {
        let mut workers = JoinSet::new();
        for worker in 0..20 {
            let call = subscribe(&id);
            workers.spawn(async move {
                for _ in 0..count / 20 {
                    // A client of its own, so that a connection is dropped with each stream.
                    let mut client = Client::new(Binding::ALL[worker % 3], addr);
                    client.follow(&call).await.event().await;
                }
            });
        }
        workers.join_all().await;
    };
    let at_rest = async |files: usize| {
        until(Duration::from_secs(20), "the server closes what was aborted", async || {
            (server.open_files() <= files).then_some(())
        })
        .await;
    };

    let files = server.open_files();
    abort(200).await;
    at_rest(files + 4).await;
    let resident = server.resident_bytes();
    abort(1000).await;
    at_rest(files + 4).await;
    let grown = server.resident_bytes().saturating_sub(resident);
    assert!(grown < 16 * 1024 * 1024, "{grown} bytes were kept after 1,000 streams");
    let done = client.ask(Operation::SendMessage, say_to(&id, "more")).await;
    assert_eq!(state_of(&done), "COMPLETED");
}

#[tokio::test]
async fn stream_resumes_after_each_event_through_each_binding() {
    let server = Server::start(Store::Sqlite).await;
    for binding in Binding::ALL {
        let mut client = Client::new(binding, server.addr());
        let call = Call::new(Operation::SendStreamingMessage, say("chunks 20"));
        let whole = client.follow(&call).await.rest().await;
        assert_numbered(&whole, 1);
        let id = id_of(&whole[0].data);
        for (cut, event) in whole.iter().enumerate() {
            let number = event.sequence.unwrap();
            let resumed = client.follow(&subscribe(&id).after(number)).await.rest().await;
            assert_numbered(&resumed, number);
            assert_eq!(contents(&resumed[1..]), contents(&whole[cut + 1..]));
            assert_eq!(resumed[0].data["task"], fold(&whole[..=cut]), "{binding:?} at {number}");
        }
    }
}

#[tokio::test]
async fn stream_that_is_cut_and_resumed_shows_what_an_uncut_one_shows() {
    let server = Server::start(Store::Sqlite).await;
    cut_and_resumed(server.addr().into()).await;
}

#[tokio::test]
async fn stream_that_is_cut_and_resumed_at_another_instance_shows_what_an_uncut_one_shows() {
    let fleet = Fleet::start(Launch::postgres("")).await;
    cut_and_resumed(fleet.instances()).await;
}

async fn cut_and_resumed(instances: Instances) {
    let mut dice = dice();
    for binding in Binding::ALL {
        let mut client = Client::new(binding, &instances);
        for text in ["chunks 300", "burst 300"] {
            let task = client.ask(Operation::SendMessage, say_and_leave(text)).await;
            let id = id_of(&task);
            let mut seen: BTreeMap<u64, Value> = BTreeMap::new();
            let mut after = 1;
            let mut ended = false;
            while !ended {
                let mut client = Client::new(binding, &instances);
                let mut stream = client.follow(&subscribe(&id).after(after)).await;
                let first = stream.event().await;
                assert_eq!(first.sequence, Some(after), "{binding:?}");
                for _ in 0..dice.random_range(1..60) {
                    let Some(event) = stream.next().await.unwrap() else {
                        ended = true;
                        break;
                    };
                    after = event.sequence.unwrap();
                    assert!(seen.insert(after, event.data).is_none(), "{after} came twice");
                }
            }
            let log = log_of(&mut client, &id).await;
            let expected = log[1..].iter().map(|event| (event.sequence.unwrap(), event.data.clone()));
            assert_eq!(seen, expected.collect());
        }
    }
}
