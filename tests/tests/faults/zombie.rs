//! A server that slept past its leases (promises 3 to 6).

use std::time::Duration;

use longhaul_tests::steps::{client, count, is_alive, lines, reaches, reason_of, send, task, whole_log};
use longhaul_tests::task::{say, state_of, text_of};
use longhaul_tests::{Binding, Call, Client, Launch, Operation, Server, TestAgent, until};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(30);

/// Past a lease of one second.
const PAUSE: Duration = Duration::from_millis(2500);

async fn pause(server: &Server) {
    server.signal(Signal::STOP);
    tokio::time::sleep(PAUSE).await;
    server.signal(Signal::CONT);
}

#[tokio::test]
async fn turns_of_a_server_that_slept_past_its_leases_run_again_and_end_once() {
    let server = Server::launch(Launch::sqlite("[agent]\nlease_duration = \"1s\"\n")).await;
    let mut reader = client(server.addr());
    let mut ids = Vec::new();
    for number in 0..16 {
        let text = format!("slow {} chunks 40", 1 + number % 4);
        ids.push(send(&mut reader, &text).await);
    }
    // One stream stays open through the pause.
    let call = Call::new(Operation::SendStreamingMessage, say("slow 2 chunks 40"));
    let mut stream = Client::new(Binding::HttpJson, server.addr()).follow(&call).await;
    until(PATIENCE, "all are at work", async || (count(&mut reader, "WORKING").await == 17).then_some(())).await;
    pause(&server).await;
    let whole: String = (1..=40).map(|number| format!("chunk {number}\n")).collect();
    for id in &ids {
        let task = reaches(&mut reader, id, "COMPLETED", PATIENCE).await;
        assert_eq!(text_of(&task), whole);
        whole_log(&mut reader, &task).await;
    }
    let seen = stream.rest().await;
    assert_eq!(state_of(&seen.last().expect("a stream has items").data), "COMPLETED");
    assert!(server.log().contains("attempt=2"), "nobody lost a lease:\n{}", server.log_tail());
}

#[tokio::test]
async fn command_of_a_lost_turn_is_gone_with_its_whole_group() {
    let command = "sleep 1000 & echo \"$LONGHAUL_ATTEMPT $$ $!\" >> attempts; \
                   if [ \"$LONGHAUL_ATTEMPT\" = 1 ]; then while :; do echo tick; sleep 0.05; done; fi; echo done";
    let launch = Launch::sqlite("[agent]\nlease_duration = \"1s\"\n");
    let server = Server::launch(launch.agent(TestAgent::Exec(command.to_owned()))).await;
    let mut reader = client(server.addr());
    let id = send(&mut reader, "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "the command runs", async || (lines(&attempts).len() == 1).then_some(())).await;
    // Longer than a lease: it is kept alive by heartbeats.
    tokio::time::sleep(PAUSE).await;
    assert_eq!(lines(&attempts).len(), 1, "a lease whose worker is alive was taken");
    pause(&server).await;
    let task = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
    assert_eq!(text_of(&task), "done\n", "the second attempt has a version of its own");
    let log = whole_log(&mut reader, &task).await;
    assert!(log.len() > 20, "the first attempt has written: {}", log.len());
    let begun = lines(&attempts);
    let words: Vec<Vec<&str>> = begun.iter().map(|line| line.split(' ').collect()).collect();
    assert_eq!(words.iter().map(|words| words[0]).collect::<Vec<_>>(), ["1", "2"]);
    let pids = words.iter().flat_map(|words| &words[1..]);
    for pid in pids {
        until(PATIENCE, "what the turn left behind is gone", async || (!is_alive(pid)).then_some(())).await;
    }
}

#[tokio::test]
async fn task_whose_server_sleeps_in_each_attempt_has_failed_and_says_so() {
    let config = "[agent]\nlease_duration = \"1s\"\nattempts_max = 2\n";
    let server = Server::launch(Launch::sqlite(config)).await;
    let mut reader = client(server.addr());
    let id = send(&mut reader, "slow 60").await;
    let quick = send(&mut reader, "input").await;
    let asked = reaches(&mut reader, &quick, "INPUT_REQUIRED", PATIENCE).await;
    reaches(&mut reader, &id, "WORKING", PATIENCE).await;
    pause(&server).await;
    until(PATIENCE, "the second attempt runs", async || server.log().contains("attempt=2").then_some(())).await;
    pause(&server).await;
    let failed = reaches(&mut reader, &id, "FAILED", PATIENCE).await;
    let reason = reason_of(&failed);
    assert!(reason.contains("attempt 1") && reason.contains("attempt 2"), "{reason}");
    whole_log(&mut reader, &failed).await;
    assert_eq!(task(&mut reader, &quick).await, asked, "who waits for a caller has no lease to lose");
}
