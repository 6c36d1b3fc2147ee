//! An agent that takes its server down with it.

use std::time::Duration;

use longhaul_tests::steps::{client, lines, reaches, reason_of, send, whole_log};
use longhaul_tests::{Launch, Server, TestAgent, until};

#[tokio::test]
async fn task_that_kills_its_server_has_failed_after_its_attempts_and_tells_of_each() {
    // A message of another kind does no harm, and must not suffer any.
    let command = "read -r text; echo \"$text $LONGHAUL_ATTEMPT\" >> attempts; \
                   while [ ! -e told ]; do sleep 0.02; done; \
                   [ \"$text\" = poison ] && kill -9 $PPID; sleep 0.2; echo fine";
    let config = "[agent]\nattempts_max = 3\nbackoff_min = \"100ms\"\n";
    let launch = Launch::sqlite(config).agent(TestAgent::Exec(command.to_owned()));
    let mut server = Server::launch(launch).await;
    let poison = send(&mut client(server.addr()), "poison").await;
    // It must not kill the server before that has answered.
    std::fs::write(server.folder().join("told"), "").expect("a file beside the attempts");
    let mut kills = 0;
    loop {
        let addr = server.addr();
        if kills >= 3 {
            break;
        }
        server.wait(Duration::from_secs(20)).await;
        kills += 1;
        // It may be killed again before it says that it is ready.
        while !server.run_or_end().await {
            kills += 1;
            assert!(kills <= 3, "it was run more often than it may: {:?}", lines(&server.folder().join("attempts")));
        }
        assert_eq!(addr, server.addr());
    }
    let mut reader = client(server.addr());
    let failed = reaches(&mut reader, &poison, "FAILED", Duration::from_secs(20)).await;
    let reason = reason_of(&failed);
    for attempt in ["attempt 1", "attempt 2", "attempt 3"] {
        assert!(reason.contains(attempt), "{reason}");
    }
    assert!(!reason.contains("attempt 4"), "{reason}");
    whole_log(&mut reader, &failed).await;
    assert_eq!(lines(&server.folder().join("attempts")), ["poison 1", "poison 2", "poison 3"]);
    let fine = send(&mut reader, "fine").await;
    reaches(&mut reader, &fine, "COMPLETED", Duration::from_secs(20)).await;
    until(Duration::from_secs(5), "the server is still up", async || server.is_running().then_some(())).await;
}
