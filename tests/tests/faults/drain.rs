//! SIGTERM: what does not end in time is handed back, and goes on at once in the next process.

use std::time::Duration;

use longhaul_tests::steps::{client, is_alive, lines, reaches, reason_of, send, task, whole_log};
use longhaul_tests::{Launch, Server, TestAgent, until};
use rustix::process::Signal;
use tokio::time::Instant;

use crate::disk::{limit_files, small_disk};

const PATIENCE: Duration = Duration::from_secs(30);

/// Writes down its attempt and its process, and runs until it is told to end.
const COMMAND: &str = "echo \"$LONGHAUL_ATTEMPT $$\" >> attempts; while [ ! -e end ]; do sleep 0.05; done";

/// No lease runs out while these tests run.
fn launch(agent: &str) -> Launch {
    let config = format!("[server]\ndrain_timeout = \"500ms\"\n[agent]\nlease_duration = \"1h\"\n{agent}");
    Launch::sqlite(&config).agent(TestAgent::Exec(COMMAND.to_owned()))
}

async fn stop(server: &mut Server) {
    server.signal(Signal::TERM);
    let status = server.wait(Duration::from_secs(15)).await;
    assert_eq!(status.code(), Some(0), "{}", server.log_tail());
}

#[tokio::test]
async fn turn_that_is_handed_back_starts_at_once_in_the_next_process_with_its_attempt_unspent() {
    let mut server = Server::launch(launch("")).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    // More often than there are attempts.
    for times in 1..=4 {
        until(PATIENCE, "the command runs", async || (lines(&attempts).len() == times).then_some(())).await;
        stop(&mut server).await;
        for line in lines(&attempts) {
            let pid = line.split(' ').nth(1).expect("a line has a process id").to_owned();
            assert!(!is_alive(&pid), "a command outlives its server");
        }
        server.run().await;
        let begun = Instant::now();
        until(PATIENCE, "it runs again", async || (lines(&attempts).len() == times + 1).then_some(())).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "it waited: {:?}", begun.elapsed());
    }
    std::fs::write(server.folder().join("end"), "").unwrap();
    let mut reader = client(server.addr());
    let done = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
    whole_log(&mut reader, &done).await;
    assert!(lines(&attempts).iter().all(|line| line.starts_with("1 ")), "{:?}", lines(&attempts));
}

#[tokio::test]
async fn turn_that_must_not_run_twice_has_failed_at_the_end_of_the_drain() {
    let mut server = Server::launch(launch("attempts_max = 1\n")).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "the command runs", async || (lines(&attempts).len() == 1).then_some(())).await;
    stop(&mut server).await;
    server.run().await;
    let mut reader = client(server.addr());
    let failed = task(&mut reader, &id).await;
    assert_eq!(reason_of(&failed), "interrupted by shutdown", "{failed}");
    whole_log(&mut reader, &failed).await;
    assert_eq!(lines(&attempts).len(), 1, "it was run twice");
}

#[tokio::test]
async fn turn_that_must_not_run_twice_has_failed_after_a_kill() {
    let mut server = Server::launch(launch("attempts_max = 1\n")).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "the command runs", async || (lines(&attempts).len() == 1).then_some(())).await;
    server.kill().await;
    // Its command has lost its server, and nobody is left to end it.
    std::fs::write(server.folder().join("end"), "").unwrap();
    server.run().await;
    let mut reader = client(server.addr());
    let failed = reaches(&mut reader, &id, "FAILED", PATIENCE).await;
    assert!(reason_of(&failed).contains("attempt 1"), "{failed}");
    assert_eq!(lines(&attempts).len(), 1, "it was run twice");
}

#[tokio::test]
async fn server_that_is_told_to_end_while_it_sleeps_ends_and_its_turn_goes_on() {
    let config = "[server]\ndrain_timeout = \"500ms\"\n[agent]\nlease_duration = \"1s\"\n";
    let mut server = Server::launch(Launch::sqlite(config).agent(TestAgent::Exec(COMMAND.to_owned()))).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "the command runs", async || (lines(&attempts).len() == 1).then_some(())).await;
    server.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    server.signal(Signal::TERM);
    server.signal(Signal::CONT);
    let status = server.wait(Duration::from_secs(15)).await;
    assert_eq!(status.code(), Some(0), "{}", server.log_tail());
    server.run().await;
    until(PATIENCE, "it runs again", async || (lines(&attempts).len() >= 2).then_some(())).await;
    std::fs::write(server.folder().join("end"), "").unwrap();
    let mut reader = client(server.addr());
    let done = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
    whole_log(&mut reader, &done).await;
}

#[tokio::test]
async fn server_that_is_told_to_end_on_a_full_disk_ends_and_its_turn_goes_on() {
    let config = "[server]\ndrain_timeout = \"500ms\"\n".to_owned();
    let agent = TestAgent::Exec(COMMAND.to_owned());
    let mut server = Server::launch(Launch { config, agent, args: Vec::new(), ..small_disk(None) }).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "the command runs", async || (lines(&attempts).len() == 1).then_some(())).await;
    limit_files(&server, Some(0));
    server.signal(Signal::TERM);
    server.wait(Duration::from_secs(16)).await;
    let pid = lines(&attempts)[0].split(' ').nth(1).expect("a line has a process id").to_owned();
    assert!(!is_alive(&pid), "a command outlives its server");
    server.run().await;
    until(PATIENCE, "it runs again", async || (lines(&attempts).len() == 2).then_some(())).await;
    std::fs::write(server.folder().join("end"), "").unwrap();
    let mut reader = client(server.addr());
    let done = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
    whole_log(&mut reader, &done).await;
}
