//! The command line at a server of v0.3: `--a2a-version 0.3` allows it, and nothing else does.

use std::process::{Output, Stdio};

use longhaul_tests::server::binary;
use longhaul_tests::{PATIENCE, Peer, Sdk, within};
use serde_json::Value;
use tokio::process::Command;

async fn longhaul(peer: &Peer, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).args(["-a", &peer.card_url(), "-o", "json"]);
    command.stdin(Stdio::null()).kill_on_drop(true).env_remove("A2ACLI_A2A_VERSION");
    within(PATIENCE, "the command", command.output()).await.unwrap()
}

#[tokio::test]
async fn message_is_sent_and_its_task_is_read_by_the_version_that_is_named() {
    let peer = Peer::start(Sdk::PythonOld).await;
    for transport in ["jsonrpc", "http+json", "grpc"] {
        let old = ["--a2a-version", "0.3", "--transport", transport];
        let sent = longhaul(&peer, &[&["send", "echo by v0.3"][..], &old].concat()).await;
        assert!(sent.status.success(), "{transport}: {sent:?}");
        let answer: Value = serde_json::from_slice(&sent.stdout).unwrap();
        let task = answer.get("task").unwrap_or(&answer);
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{transport}: {answer}");
        let id = task["id"].as_str().unwrap();
        let got = longhaul(&peer, &[&["task", "get", id][..], &old].concat()).await;
        let got: Value = serde_json::from_slice(&got.stdout).unwrap();
        assert_eq!(got["artifacts"][0]["parts"][0]["text"], "echo by v0.3", "{transport}: {got}");
    }
}

#[tokio::test]
async fn nothing_is_sent_to_an_agent_of_v0_3_that_was_not_asked_for() {
    let peer = Peer::start(Sdk::PythonOld).await;
    let refused = longhaul(&peer, &["send", "echo x"]).await;
    assert!(!refused.status.success(), "{refused:?}");
    let told = [refused.stdout, refused.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("--a2a-version 0.3"), "{told}");
}
