//! What goes into a message, and how what comes out of a task is shown (§10.2).

use longhaul_tests::Hostile;
use longhaul_tests::hostile::task;
use serde_json::{Value, json};

use crate::agents::{self, operations, task_with, with_task};
use crate::cli::{Cli, Done};

async fn agent() -> Hostile {
    Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await
}

/// The parts of the message that was sent last.
fn sent(agent: &Hostile) -> Value {
    agents::sent(agent).pop().expect("something was sent")["parts"].clone()
}

/// An agent whose task has one artifact of each kind of part.
async fn with_artifacts() -> Hostile {
    Hostile::agent(|asked| {
        let parts = json!([
            {"text": "first line\nsecond line"},
            {"data": {"answer": {"of": [1, null, "x"]}}},
            {"raw": "AAEC/w==", "filename": "four.bin", "mediaType": "application/octet-stream"},
            {"url": "https://files.example.com/big.iso", "filename": "big.iso", "mediaType": "application/x-iso9660"},
        ]);
        let artifact = json!({"artifactId": "everything", "name": "all kinds", "parts": parts});
        let other = json!({"artifactId": "other", "parts": [{"text": "of another artifact"}]});
        with_task(asked, &task_with("TASK_STATE_COMPLETED", &json!({"artifacts": [artifact, other]})))
    })
    .await
}

fn assert_rendered(done: &Done) {
    let told = done.told();
    let blocks = done.exits(0).text().blocks();
    for text in ["first line\nsecond line", "of another artifact"] {
        assert!(blocks.iter().any(|block| block == text), "{text:?}\n{told}");
    }
    let data = blocks.iter().filter_map(|block| serde_json::from_str::<Value>(block).ok());
    assert!(data.into_iter().any(|data| data == json!({"answer": {"of": [1, null, "x"]}})), "{told}");
    assert!(blocks.iter().any(|block| block.starts_with("{\n")), "data is formatted\n{told}");
    for word in ["four.bin", "application/octet-stream", "big.iso", "application/x-iso9660"] {
        assert!(done.stdout.contains(word), "{word}\n{told}");
    }
    assert!(done.stdout.lines().any(|line| line.starts_with("Size: 4")), "{told}");
    assert!(done.stdout.contains("https://files.example.com/big.iso"), "{told}");
    assert!(!done.stdout.contains("AAEC"), "bytes are not dumped\n{told}");
}

#[tokio::test]
async fn a2acli_send_004_renders_each_part_of_each_artifact() {
    let agent = with_artifacts().await;
    let cli = Cli::of(&agent.url());
    for args in [&["send", "hello"][..], &["send", "hello", "--verbose"], &["send", "hello", "--stream"]] {
        assert_rendered(&cli.run(args).await);
    }
    assert!(cli.files().is_empty(), "nothing is written that nobody asked for");
    let done = cli.run(&["send", "hello", "-o", "json"]).await;
    assert_eq!(done.exits(0).json()["task"]["artifacts"][0]["parts"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a2acli_task_get_001_renders_artifacts_and_strips_none() {
    let agent = with_artifacts().await;
    assert_rendered(&Cli::of(&agent.url()).run(&["task", "get", longhaul_tests::hostile::TASK_ID]).await);
}

#[tokio::test]
async fn a2acli_send_005_media_type_belongs_to_the_part_before_it() {
    let (agent, cli) = (agent().await, Cli::new());
    let cli = cli.with("A2ACLI_AGENT_CARD", &agent.url());
    cli.file("report.bin", [0, 159, 146, 150]);
    cli.file("x.json", "{\"a\": 1}");
    #[rustfmt::skip]
    cli.run(&["send", "--file", "report.bin", "--media-type", "application/pdf", "--text", "# Hi", "--media-type",
        "text/markdown", "--data", "x.json", "--media-type", "application/vnd.x+json", "--text", "plain"]).await.exits(0);
    let parts = sent(&agent);
    let types: Vec<&Value> = parts.as_array().unwrap().iter().map(|part| &part["mediaType"]).collect();
    assert_eq!(types[..3], ["application/pdf", "text/markdown", "application/vnd.x+json"], "{parts}");
    assert!(types[3].is_null() || types[3] == "text/plain", "{parts}");
}

#[tokio::test]
async fn a2acli_send_005_media_type_is_inferred_only_when_none_was_given() {
    let agent = agent().await;
    let cli = Cli::of(&agent.url());
    for (name, media_type) in [("a.png", "image/png"), ("a.PDF", "application/pdf"), ("a.csv", "text/csv")] {
        cli.file(name, "x");
        cli.run(&["send", "--file", name]).await.exits(0);
        assert_eq!(sent(&agent)[0]["mediaType"], media_type);
        assert_eq!(sent(&agent)[0]["filename"], name);
        cli.run(&["send", "--file", name, "--media-type", "application/x-mine"]).await.exits(0);
        assert_eq!(sent(&agent)[0]["mediaType"], "application/x-mine");
    }
}

#[tokio::test]
async fn a2acli_send_005_media_type_without_a_part_is_a_usage_error() {
    let agent = agent().await;
    let cli = Cli::of(&agent.url());
    for args in [
        &["send", "--media-type", "text/plain", "--text", "x"][..],
        &["send", "--text", "x", "--media-type", "text/plain", "--media-type", "text/html"],
    ] {
        cli.run(&[args, &["-o", "json"]].concat()).await.fails(2, "A2ACLI_ERR_USAGE");
    }
    assert_eq!(operations(&agent).len(), 0);
}

#[tokio::test]
async fn a2acli_send_006_parts_keep_the_order_of_the_command_line() {
    let agent = agent().await;
    let cli = Cli::of(&agent.url());
    cli.file("one.bin", [0, 1, 2]);
    cli.file("two.json", "{\"n\": [1.5, null]}");
    #[rustfmt::skip]
    let args = ["send", "--text", "a", "--file", "one.bin", "--data", "two.json", "--text", "b", "--data", "-", "--file",
        "https://files.example.com/three.iso", "--text", "a"];
    cli.run_with(&args, b"[\"from stdin\"]").await.exits(0);
    let parts = sent(&agent);
    let content = |part: &Value| -> (String, Value) {
        let kind = ["text", "raw", "data", "url"].into_iter().find(|kind| part.get(kind).is_some()).unwrap();
        (kind.to_owned(), part[kind].clone())
    };
    let contents: Vec<_> = parts.as_array().unwrap().iter().map(content).collect();
    let wanted = [
        ("text", json!("a")),
        ("raw", json!("AAEC")),
        ("data", json!({"n": [1.5, null]})),
        ("text", json!("b")),
        ("data", json!(["from stdin"])),
        ("url", json!("https://files.example.com/three.iso")),
        ("text", json!("a")),
    ];
    assert_eq!(contents, wanted.map(|(kind, value)| (kind.to_owned(), value)));
}

#[tokio::test]
async fn a2acli_send_006_file_by_url_is_a_reference_that_is_not_fetched() {
    let agent = agent().await;
    let cli = Cli::of(&agent.url());
    let url = format!("{}/files/x.pdf", agent.url());
    cli.run(&["send", "--file", &url]).await.exits(0);
    assert_eq!(sent(&agent)[0]["url"], url);
    assert!(agent.asked().iter().all(|asked| asked.path() != "/files/x.pdf"));
}

#[tokio::test]
async fn a2acli_send_006_what_cannot_be_read_is_a_usage_error_and_nothing_is_sent() {
    let agent = agent().await;
    let cli = Cli::of(&agent.url());
    cli.file("no.json", "not JSON");
    for args in [
        &["send", "--file", "missing.bin"][..],
        &["send", "--data", "missing.json"],
        &["send", "--data", "no.json"],
        &["send", "--text", "x", "--data", "-"],
    ] {
        let done = cli.run_with(&[args, &["-o", "json"]].concat(), b"{ half").await;
        done.fails(2, "A2ACLI_ERR_USAGE");
    }
    assert_eq!(operations(&agent).len(), 0);
}
