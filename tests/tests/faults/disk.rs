//! A disk that is full: the limit on the size of files stands for it, with the signal ignored, so that writes fail.

use std::time::Duration;

use longhaul_tests::steps::{client, get, task, whole_log};
use longhaul_tests::task::{id_of, is_terminal, message, say, state_of};
use longhaul_tests::{Binding, Call, CallError, Client, Launch, Operation, Refusal, Server, Store, until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(30);

/// How often each caller is refused before it stops.
const REFUSALS: usize = 5;

/// In blocks of 512 or 1,024 bytes, as the shell likes: more than the store of a new server, and soon used up.
const FILE_BLOCKS: u32 = 4000;

/// A server on a disk that is soon full.
pub fn small_disk(blocks: Option<u32>) -> Launch {
    let limit = blocks.map(|blocks| format!("ulimit -S -f {blocks};")).unwrap_or_default();
    let script = format!("trap '' XFSZ; {limit} exec \"$@\"");
    let wrapper = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    Launch { wrapper, args: vec!["--log".to_owned(), "warn".to_owned()], ..Launch::new(Store::Sqlite) }
}

/// Sets how long files may grow; `None`: as long as they like.
pub fn limit_files(server: &Server, bytes: Option<u64>) {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(pid, Resource::Fsize, limit).expect("the limit of a child can be set");
}

fn long_message() -> Value {
    let parts = json!([{"text": format!("echo {}", "x".repeat(6000))}]);
    json!({"message": message(parts), "configuration": {"returnImmediately": true}})
}

/// Sends until the disk is full, through each binding; answers the ids of what was accepted.
async fn fill(server: &Server) -> Vec<String> {
    let addr = server.addr();
    let mut callers = JoinSet::new();
    for binding in Binding::ALL {
        callers.spawn(async move {
            let mut client = Client::new(binding, addr);
            let (mut accepted, mut refusals) = (Vec::new(), 0);
            while refusals < REFUSALS {
                match client.call(&Call::new(Operation::SendMessage, long_message())).await {
                    Ok(answer) => accepted.push(id_of(&answer)),
                    Err(CallError::Refused(refusal)) => {
                        assert_refused(binding, &refusal);
                        refusals += 1;
                    }
                    Err(CallError::Cut(why)) => panic!("{binding:?}: a full disk cuts no connection: {why}"),
                }
            }
            accepted
        });
    }
    let accepted = callers.join_all().await.concat();
    assert!(accepted.len() > 20, "the disk was full at once: {}", accepted.len());
    accepted
}

/// The caller learns that there is no task, and that it may try again.
fn assert_refused(binding: Binding, refusal: &Refusal) {
    refusal.assert(binding, "UNAVAILABLE");
    assert!(refusal.message.contains("cannot accept the task"), "{refusal:?}");
    let kinds: Vec<&str> = refusal.details.iter().filter_map(|detail| detail["@type"].as_str()).collect();
    assert!(kinds.iter().any(|kind| kind.ends_with("RetryInfo")), "{refusal:?}");
}

/// The server is up, says what is wrong with it, and shows what it has.
async fn assert_up_and_not_ready(server: &mut Server, known: &str) {
    let addr = server.addr();
    until(PATIENCE, "it says that it is not ready", async || {
        let answer = get(addr, "/readyz").await;
        (answer.status == 503 && answer.text().contains("store")).then_some(())
    })
    .await;
    assert_eq!(get(addr, "/healthz").await.status, 200);
    assert_eq!(get(addr, "/.well-known/agent-card.json").await.status, 200);
    let mut reader = client(addr);
    assert_eq!(task(&mut reader, known).await["id"], known);
    let page = reader.ask(Operation::ListTasks, json!({"pageSize": 5})).await;
    assert_eq!(page["tasks"].as_array().map(Vec::len), Some(5));
    assert!(server.is_running());
}

/// It works again by itself.
async fn assert_recovers(server: &Server) {
    let addr = server.addr();
    let ready = async || (get(addr, "/readyz").await.status == 200).then_some(());
    until(PATIENCE, "it is ready again", ready).await;
    for binding in Binding::ALL {
        let answer = Client::new(binding, addr).ask(Operation::SendMessage, say("echo")).await;
        assert_eq!(state_of(&answer), "COMPLETED");
    }
}

/// Everything that was accepted is there and comes to rest; what was refused is not there.
async fn assert_kept(server: &Server, accepted: &[String], others: u64) {
    let mut reader = client(server.addr());
    for id in accepted {
        let done = until(PATIENCE, "what was accepted ends", async || {
            let task = task(&mut reader, id).await;
            is_terminal(state_of(&task)).then_some(task)
        })
        .await;
        assert_eq!(state_of(&done), "COMPLETED", "{done}");
        whole_log(&mut reader, &done).await;
    }
    let page = reader.ask(Operation::ListTasks, json!({"pageSize": 1})).await;
    assert_eq!(page["totalSize"], accepted.len() as u64 + others, "what was refused is not there");
}

#[tokio::test]
async fn full_disk_is_told_to_callers_and_when_there_is_space_the_server_goes_on() {
    let mut server = Server::launch(small_disk(Some(FILE_BLOCKS))).await;
    let accepted = fill(&server).await;
    assert_up_and_not_ready(&mut server, &accepted[0]).await;
    limit_files(&server, None);
    assert_recovers(&server).await;
    assert_kept(&server, &accepted, 3).await;
    server.kill().await;
    *server.launch_mut() = small_disk(None);
    server.run().await;
    assert_kept(&server, &accepted, 3).await;
}

#[tokio::test]
async fn server_that_is_killed_on_a_full_disk_has_everything_when_there_is_space() {
    let mut server = Server::launch(small_disk(Some(FILE_BLOCKS))).await;
    let accepted = fill(&server).await;
    server.kill().await;
    *server.launch_mut() = small_disk(None);
    server.run().await;
    assert_recovers(&server).await;
    assert_kept(&server, &accepted, 3).await;
}

#[tokio::test]
async fn server_whose_log_cannot_be_written_either_stays_up() {
    let launch = Launch { args: Vec::new(), ..small_disk(None) };
    let mut server = Server::launch(launch).await;
    let mut reader = client(server.addr());
    let mut accepted = Vec::new();
    for number in 0..6 {
        let params = match number % 2 {
            0 => long_message(),
            _ => longhaul_tests::task::say_and_leave("slow 1 chunks 20"),
        };
        accepted.push(id_of(&reader.ask(Operation::SendMessage, params).await));
    }
    limit_files(&server, Some(0));
    for binding in Binding::ALL {
        let refused = Client::new(binding, server.addr());
        let call = Call::new(Operation::SendMessage, long_message());
        let refusal = { refused }.call(&call).await.map_err(CallError::refusal);
        assert_refused(binding, &refusal.expect_err("nothing can be stored"));
    }
    // The turns end while nothing can be stored, and are stored when it can.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_up_and_not_ready(&mut server, &accepted[0]).await;
    limit_files(&server, None);
    assert_recovers(&server).await;
    assert_kept(&server, &accepted, 3).await;
}

#[tokio::test]
async fn turns_whose_leases_run_out_on_a_full_disk_run_again_when_there_is_space() {
    let config = "[agent]\nlease_duration = \"1s\"\n".to_owned();
    let mut server = Server::launch(Launch { config, args: Vec::new(), ..small_disk(None) }).await;
    let mut reader = client(server.addr());
    let mut accepted = Vec::new();
    for text in ["slow 1 chunks 20", "slow 3 chunks 20", "chunks 30000", "slow 1 burst 20"] {
        accepted.push(id_of(&reader.ask(Operation::SendMessage, longhaul_tests::task::say_and_leave(text)).await));
        accepted.push(id_of(&reader.ask(Operation::SendMessage, long_message()).await));
    }
    limit_files(&server, Some(0));
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_up_and_not_ready(&mut server, &accepted[0]).await;
    limit_files(&server, None);
    assert_recovers(&server).await;
    assert_kept(&server, &accepted, 3).await;
    assert!(server.log().contains("attempt=2"), "no lease ran out:\n{}", server.log_tail());
}
