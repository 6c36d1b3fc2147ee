//! An instance that sleeps past its leases, or is cut from the database for longer: its turns go on elsewhere, and it writes
//! nothing afterwards (promise 6).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_tests::proxy::{Network, Proxy};
use longhaul_tests::server::readiness;
use longhaul_tests::steps::{client, is_alive, lines, reaches, send, whole_log};
use longhaul_tests::task::{say, state_of, text_of};
use longhaul_tests::{Call, CallError, Event, Fleet, Launch, Operation, Server, TestAgent, contents, until, within};
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{PATIENCE, SHORT_LEASES, SHORT_STATEMENTS, all_say, runs};

/// Says who it is, and counts, until there is a file `end`.
const COMMAND: &str = "echo \"$LONGHAUL_TASK_ID $LONGHAUL_ATTEMPT $$\" >> attempts; i=0; \
                       while [ ! -e end ]; do i=$((i + 1)); echo \"$LONGHAUL_ATTEMPT $i\"; sleep 0.05; done";

fn launch() -> Launch {
    let config = format!("{SHORT_LEASES}{SHORT_STATEMENTS}");
    Launch::postgres(&config).agent(TestAgent::Exec(COMMAND.to_owned()))
}

/// Waits until the task's second attempt runs at one of these, and answers which.
async fn taken_over(servers: &[Server], id: &str, begun: Instant) -> usize {
    let (number, line) = runs(servers, id).await;
    println!("taken over after {:?}", begun.elapsed());
    assert!(line.starts_with(&format!("{id} 2 ")), "{line}");
    number
}

/// The process id of the only command in this folder.
fn command_in(folder: &Path) -> String {
    let lines = lines(&folder.join("attempts"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].split(' ').nth(2).expect("a line has a process id").to_owned()
}

/// Follows a task at one instance to its end, through whatever happens to that: a stream that is refused for now is resumed.
fn follow(server: &Server, id: &str) -> JoinSet<Vec<Event>> {
    let (addr, id) = (server.addr(), id.to_owned());
    let mut following = JoinSet::new();
    following.spawn(async move {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let after = events.last().and_then(|event| event.sequence);
            let call = Call::new(Operation::SubscribeToTask, json!({"id": id})).after(after.unwrap_or(1));
            let mut stream = match client(addr).open(&call).await {
                Ok(stream) => stream,
                Err(CallError::Refused(refusal)) if refusal.reason == "UNAVAILABLE" => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            // Where it goes on, the first item is the task at the number of the last one.
            let first = stream.event().await;
            assert_eq!(first.sequence, Some(after.unwrap_or(1)));
            if events.is_empty() {
                events.push(first);
            }
            loop {
                match stream.next().await {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => return events,
                    Err(CallError::Refused(refusal)) if refusal.reason == "UNAVAILABLE" => break,
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    });
    following
}

/// Ends the second attempt, and checks that nothing of the first was stored once the second had begun.
/// Who followed the task saw just its log.
async fn ends_as_the_second_attempt(server: &Server, id: &str, following: JoinSet<Vec<Event>>) {
    std::fs::write(server.folder().join("end"), "").unwrap();
    let mut reader = client(server.addr());
    let done = reaches(&mut reader, id, "COMPLETED", PATIENCE).await;
    let log = whole_log(&mut reader, &done).await;
    let seen = within(PATIENCE, "the stream ends", following.join_all()).await;
    assert_eq!(contents(&seen[0]), contents(&log), "a subscriber has seen something else");
    let lines = log.iter().filter_map(|event| event.data["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
    let attempts: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    assert!(attempts.is_sorted(), "a lost attempt has written: {attempts:?}");
    assert!(attempts.contains(&"1") && attempts.contains(&"2"), "{attempts:?}");
    let text = text_of(&done);
    let whole: String = (1..=text.lines().count()).map(|number| format!("2 {number}\n")).collect();
    assert_eq!(text, whole, "the second attempt's artifact is not its own");
}

#[tokio::test]
async fn instance_that_slept_past_its_lease_writes_nothing_afterwards() {
    let fleet = Fleet::start(launch()).await;
    let id = send(&mut client(fleet[0].addr()), "go").await;
    let (runner, _) = runs(fleet.servers(), &id).await;
    let pid = command_in(fleet[runner].folder());
    let following = follow(&fleet[runner], &id);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    fleet[runner].signal(Signal::STOP);
    let others: Vec<&Server> = (1..3).map(|more| &fleet[(runner + more) % 3]).collect();
    let second = until(PATIENCE, "another has taken the turn", async || {
        others.iter().find(|server| !lines(&server.folder().join("attempts")).is_empty())
    })
    .await;
    println!("taken over after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Its command has written all the while, and it has all that to store.
    assert!(is_alive(&pid));
    fleet[runner].signal(Signal::CONT);
    until(PATIENCE, "the command of the lost turn is gone", async || (!is_alive(&pid)).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    ends_as_the_second_attempt(second, &id, following).await;
    // It is as good as the others again.
    std::fs::write(fleet[runner].folder().join("end"), "").unwrap();
    all_say(fleet.servers(), 200).await;
    for server in &others {
        std::fs::write(server.folder().join("end"), "").unwrap();
    }
    let done = client(fleet[runner].addr()).ask(Operation::SendMessage, say("go")).await;
    assert_eq!(state_of(&done), "COMPLETED");
}

/// One instance beyond a network that fails, and two that reach the database directly.
async fn lost_for_a_while(network: Network) {
    let database = Database::fresh().unwrap();
    let (scheme, place) = database.url().split_once('@').unwrap();
    let (target, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(target.parse::<SocketAddr>().unwrap()).await;
    let lonely = Fleet::on([format!("{scheme}@{}/{name}", proxy.addr())], launch()).await;
    let id = send(&mut client(lonely[0].addr()), "go").await;
    runs(lonely.servers(), &id).await;
    let pid = command_in(lonely[0].folder());
    let following = follow(&lonely[0], &id);
    let others = Fleet::on([database.url().to_owned(), database.url().to_owned()], launch()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    proxy.set(network);
    let second = taken_over(others.servers(), &id, begun).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // It knows by its own clock that it has lost the turn.
    until(PATIENCE, "the command of the lost turn is gone", async || (!is_alive(&pid)).then_some(())).await;
    println!("the lost command was gone after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    all_say(lonely.servers(), 503).await;
    proxy.set(Network::Whole);
    println!("ready again after {:?}", all_say(lonely.servers(), 200).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    ends_as_the_second_attempt(&others[second], &id, following).await;
    std::fs::write(lonely[0].folder().join("end"), "").unwrap();
    std::fs::write(others[1 - second].folder().join("end"), "").unwrap();
    let done = client(lonely[0].addr()).ask(Operation::SendMessage, say("go")).await;
    assert_eq!(state_of(&done), "COMPLETED");
    assert_eq!(readiness(lonely[0].addr()).await, Some(200));
}

#[tokio::test]
async fn instance_that_is_cut_from_the_database_past_its_lease_writes_nothing_afterwards() {
    lost_for_a_while(Network::Cut).await;
}

#[tokio::test]
async fn instance_that_hears_nothing_from_the_database_past_its_lease_writes_nothing_afterwards() {
    lost_for_a_while(Network::Silent).await;
}
