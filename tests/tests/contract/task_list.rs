//! `task list` and `task download` (§7.1).

use std::collections::BTreeSet;

use longhaul_protocol::wire::{ListTasksResponse, Task};
use longhaul_tests::hostile::{TASK_ID, reply};
use longhaul_tests::{Hostile, Peer, peers};
use serde_json::{Value, json};

use crate::agents::{operations, params, task_with, with_task};
use crate::cli::{Cli, demo, message};

fn ids(page: &Value) -> Vec<String> {
    let tasks = page["tasks"].as_array().unwrap_or_else(|| panic!("no tasks: {page}"));
    tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a2acli_task_list_001_pages_follow_each_other_by_their_cursor() {
    let (_server, cli) = demo().await;
    for number in 0..5 {
        cli.run(&["send", &format!("echo {number}")]).await.exits(0);
    }
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let base = ["task", "list", "--page-size", "2", "-o", "json", "--transport", binding];
        let (mut seen, mut token) = (Vec::new(), String::new());
        for _ in 0..3 {
            let mut args = base.to_vec();
            if !token.is_empty() {
                args.extend(["--page-token", &token]);
            }
            let done = cli.run(&args).await;
            let _: ListTasksResponse = done.exits(0).message();
            let page = done.json();
            assert_eq!(page["totalSize"], 5);
            seen.extend(ids(&page));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        }
        assert!(token.is_empty(), "there is no page more");
        assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (5, 5));
        let all = cli.run(&["task", "list", "--all", "--page-size", "2", "-o", "json"]).await;
        let _: ListTasksResponse = all.exits(0).message();
        assert_eq!(ids(&all.json()), seen);
        let lines = cli.run(&["task", "list", "--all", "--page-size", "2", "-o", "json", "--stream"]).await;
        let lines = lines.exits(0).json_lines();
        lines.iter().for_each(|line| {
            message::<Task>(line);
        });
        assert_eq!(lines.iter().map(|line| line["id"].as_str().unwrap()).collect::<Vec<_>>(), seen);
    }
    // For people there is a way to the next page too.
    let done = cli.run(&["task", "list", "--page-size", "2"]).await;
    assert_eq!(done.exits(0).text().all("Task").len(), 2);
    assert!(done.all().contains("page"), "{}", done.told());
}

#[tokio::test]
async fn a2acli_task_list_001_is_filtered_by_state_and_context() {
    let (_server, cli) = demo().await;
    let (done_id, context, _) = cli.run(&["send", "echo x"]).await.exits(0).text().standing();
    let (waiting, ..) = cli.run(&["send", "input", "--context-id", &context]).await.exits(0).text().standing();
    let (other, ..) = cli.run(&["send", "input"]).await.exits(0).text().standing();
    let list = async |args: &[&str]| {
        let done = cli.run(&[&["task", "list", "-o", "json"], args].concat()).await;
        ids(&done.exits(0).json()).into_iter().collect::<BTreeSet<_>>()
    };
    let set = |ids: &[&String]| ids.iter().map(|id| (*id).clone()).collect::<BTreeSet<_>>();
    assert_eq!(list(&[]).await, set(&[&done_id, &waiting, &other]));
    assert_eq!(list(&["--context-id", &context]).await, set(&[&done_id, &waiting]));
    for state in ["input-required", "INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED"] {
        assert_eq!(list(&["--status", state]).await, set(&[&waiting, &other]));
    }
    assert_eq!(list(&["--status", "completed", "--context-id", &context]).await, set(&[&done_id]));
    cli.run(&["task", "list", "--status", "resting", "-o", "json"]).await.fails(2, "A2ACLI_ERR_USAGE");
}

#[tokio::test]
async fn a2acli_task_list_001_asks_in_the_words_of_the_protocol() {
    let agent =
        Hostile::agent(|asked| reply(asked, &json!({"tasks": [], "nextPageToken": "", "pageSize": 7, "totalSize": 0})))
            .await;
    let args = ["task", "list", "--status", "working", "--context-id", "c", "--page-size", "7", "--page-token", "p"];
    let done = Cli::of(&agent.url()).run(&args).await;
    done.exits(0).text();
    let params = params(&operations(&agent)[0]);
    for (name, value) in [
        ("status", json!("TASK_STATE_WORKING")),
        ("contextId", json!("c")),
        ("pageSize", json!(7)),
        ("pageToken", json!("p")),
    ] {
        assert_eq!(params[name], value, "{params}");
    }
}

#[tokio::test]
async fn a2acli_download_001_artifacts_are_saved_as_they_are() {
    let peer = Peer::python().await;
    let cli = Cli::of(&peer.card_url());
    let id = cli.run(&["send", "data file chunks 3"]).await.exits(0).text().field("Task").to_owned();
    let done = cli.run(&["task", "download", &id, "--dir", "out"]).await;
    let files: Vec<Vec<u8>> = cli.files().iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(files.len(), 3, "{}", done.told());
    assert!(files.contains(&peers::FILE.to_vec()), "the bytes are the same");
    assert!(files.contains(&b"chunk 1\nchunk 2\nchunk 3\n".to_vec()));
    assert!(
        files.iter().any(|file| serde_json::from_slice::<Value>(file).is_ok_and(|data| data["list"][2] == "three"))
    );
    for path in cli.files() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(done.exits(0).stdout.contains(name), "{name}\n{}", done.told());
        assert!(path.starts_with(cli.work().join("out")));
    }
}

#[tokio::test]
async fn a2acli_download_001_an_agent_chooses_no_place_outside_the_folder() {
    let names = ["../evil", "/tmp/longhaul-evil", "a/../../evil", "..", "", "CON\u{0}", ".env", "x\u{1b}[2J"];
    let agent = Hostile::agent(move |asked| {
        let part = |name: &&str| json!({"raw": "AAEC", "filename": name, "mediaType": "a/b"});
        let artifact =
            json!({"artifactId": "../../evil", "name": "../evil", "parts": names.iter().map(part).collect::<Vec<_>>()});
        with_task(asked, &task_with("TASK_STATE_COMPLETED", &json!({"artifacts": [artifact]})))
    })
    .await;
    let cli = Cli::of(&agent.url());
    cli.file("out/kept.txt", "kept");
    for _ in 0..2 {
        cli.run(&["task", "download", TASK_ID, "--dir", "out"]).await.exits(0);
    }
    let files = cli.files();
    assert!(files.iter().all(|path| path.parent() == Some(&cli.work().join("out"))), "{files:?}");
    assert_eq!(files.len(), 2 * names.len() + 1, "nothing is written over: {files:?}");
    assert!(!std::path::Path::new("/tmp/longhaul-evil").exists());
    assert!(files.iter().all(|path| path.file_name().is_some_and(|name| name != ".env")), "{files:?}");
    let done = cli.run(&["task", "download", "no-such-task", "--dir", "out", "-o", "json"]).await;
    done.fails(1, "InvalidAgentResponseError");
}
