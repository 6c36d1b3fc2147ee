//! `task push-config` (§7.1, appendix A).

use longhaul_protocol::wire::{ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig};
use longhaul_tests::receiver::{HookReceiver, Reply};
use longhaul_tests::{Launch, PATIENCE, Server, Store, until};
use serde_json::json;

use crate::cli::Cli;

#[tokio::test]
async fn a2acli_push_001_configs_are_created_read_listed_and_deleted() {
    let launch = Launch {
        args: vec!["--push-allow".into(), "127.0.0.1".into(), "--push-allow-http".into()],
        ..Launch::new(Store::Memory)
    };
    let server = Server::launch(launch).await;
    let cli = Cli::of(&format!("http://{}", server.addr()));
    let hooks = HookReceiver::start(|_, _, _| Reply::Take).await;
    let url = format!("http://{}/mine", hooks.addr());
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let run =
            async |args: &[&str]| cli.run(&[&["task", "push-config"], args, &["--transport", binding]].concat()).await;
        let id = cli.run(&["send", "slow 60", "--async"]).await.exits(0).text().field("Task").to_owned();
        let done = run(&["create", &id, &url, "--id", "mine", "--token", "t0ken", "-o", "json"]).await;
        let _: TaskPushNotificationConfig = done.exits(0).message();
        let made = done.json();
        // What goes over the wire is shown without what the receiver is told by (§12.1).
        let loud = run(&["create", &id, &url, "--id", "mine", "--token", "t0ken", "--debug"]).await;
        assert!(loud.exits(0).stderr.contains(&url) && !loud.all().contains("t0ken"), "{}", loud.told());
        assert_eq!((&made["taskId"], &made["id"], &made["url"]), (&json!(id), &json!("mine"), &json!(url)));
        let done = run(&["get", &id, "mine", "-o", "json"]).await;
        let _: TaskPushNotificationConfig = done.exits(0).message();
        assert_eq!(done.json()["url"], json!(url));
        let done = run(&["list", &id, "-o", "json"]).await;
        let _: ListTaskPushNotificationConfigsResponse = done.exits(0).message();
        assert_eq!(done.json()["configs"].as_array().map(Vec::len), Some(1), "{}", done.told());
        let text = run(&["get", &id, "mine"]).await;
        assert!(text.exits(0).stdout.contains(&url) && !text.stdout.contains("t0ken"), "{}", text.told());
        run(&["delete", &id, "mine"]).await.exits(0);
        assert_ne!(run(&["get", &id, "mine", "-o", "json"]).await.code, 0);
        let done = run(&["list", &id, "-o", "json"]).await;
        assert_eq!(done.exits(0).json()["configs"].as_array().map_or(0, Vec::len), 0);
        run(&["create", "no-such-task", &url, "-o", "json"]).await.fails(1, "TaskNotFoundError");
    }
}

#[tokio::test]
async fn a2acli_push_001_what_was_created_is_pushed_to() {
    let launch = Launch {
        args: vec!["--push-allow".into(), "127.0.0.1".into(), "--push-allow-http".into()],
        ..Launch::new(Store::Memory)
    };
    let server = Server::launch(launch).await;
    let cli = Cli::of(&format!("http://{}", server.addr()));
    let hooks = HookReceiver::start(|_, _, _| Reply::Take).await;
    let url = format!("http://{}/mine", hooks.addr());
    let id = cli.run(&["send", "slow 1", "--async"]).await.exits(0).text().field("Task").to_owned();
    cli.run(&["task", "push-config", "create", &id, &url, "--token", "t0ken"]).await.exits(0);
    let came = until(PATIENCE, "a push", async || hooks.came("mine").pop()).await;
    assert!(came.body.to_string().contains(&id), "{came:?}");
    assert_eq!(came.headers.get("x-a2a-notification-token").and_then(|token| token.to_str().ok()), Some("t0ken"));
}
