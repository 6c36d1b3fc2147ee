//! Attempts that fail by themselves, their waits, and what they leave to the next.

use std::time::Duration;

use longhaul_tests::steps::{client, lines, reaches, reason_of, send, whole_log};
use longhaul_tests::task::text_of;
use longhaul_tests::{Launch, Server, TestAgent, until};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(30);

fn exec(command: &str) -> TestAgent {
    TestAgent::Exec(command.to_owned())
}

#[tokio::test]
async fn exit_code_75_is_tried_again_and_any_other_is_not() {
    let command = "read -r code; echo \"$code $LONGHAUL_ATTEMPT\" >> attempts; \
                   if [ \"$LONGHAUL_ATTEMPT\" = 3 ]; then echo third; exit 0; fi; exit \"$code\"";
    let launch = Launch::sqlite("[agent]\nbackoff_min = \"100ms\"\n").agent(exec(command));
    let server = Server::launch(launch).await;
    let mut reader = client(server.addr());
    let (again, never) = (send(&mut reader, "75").await, send(&mut reader, "1").await);
    let done = reaches(&mut reader, &again, "COMPLETED", PATIENCE).await;
    assert_eq!(text_of(&done), "third\n");
    whole_log(&mut reader, &done).await;
    let failed = reaches(&mut reader, &never, "FAILED", PATIENCE).await;
    assert!(reason_of(&failed).contains("exit code 1"), "{failed}");
    let mut begun = lines(&server.folder().join("attempts"));
    begun.sort_unstable();
    assert_eq!(begun, ["1 1", "75 1", "75 2", "75 3"]);
}

#[tokio::test]
async fn task_that_fails_in_each_attempt_tells_of_all() {
    let launch = Launch::sqlite("[agent]\nattempts_max = 2\nbackoff_min = \"100ms\"\n").agent(exec("exit 75"));
    let server = Server::launch(launch).await;
    let mut reader = client(server.addr());
    let id = send(&mut reader, "go").await;
    let failed = reaches(&mut reader, &id, "FAILED", PATIENCE).await;
    let reason = reason_of(&failed);
    assert!(reason.contains("attempt 1") && reason.contains("attempt 2"), "{reason}");
    whole_log(&mut reader, &failed).await;
}

#[tokio::test]
async fn wait_for_the_next_attempt_survives_a_kill() {
    let command = "echo \"$LONGHAUL_ATTEMPT\" >> attempts; [ \"$LONGHAUL_ATTEMPT\" = 3 ] && exit 0; exit 75";
    let launch = Launch::sqlite("[agent]\nbackoff_min = \"6s\"\n").agent(exec(command));
    let mut server = Server::launch(launch).await;
    let id = send(&mut client(server.addr()), "go").await;
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "two attempts have failed", async || (lines(&attempts).len() == 2).then_some(())).await;
    let begun = Instant::now();
    // The second failure is stored soon after.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.kill().await;
    server.run().await;
    let mut reader = client(server.addr());
    let done = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
    // Jitter takes away up to half of the wait.
    let waited = begun.elapsed();
    assert!(waited > Duration::from_millis(2500), "the third attempt came too early: {waited:?}");
    assert!(waited < Duration::from_secs(12), "the third attempt came too late: {waited:?}");
    assert_eq!(lines(&attempts), ["1", "2", "3"], "the kill cost no attempt");
    whole_log(&mut reader, &done).await;
}
