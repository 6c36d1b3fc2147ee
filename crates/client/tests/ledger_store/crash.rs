//! A process that is killed while it writes.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use longhaul_client::ledger::{EntryId, Ledger};
use tokio::task::JoinSet;

use super::support::*;

/// Tells the child where the file is.
const FILE: &str = "LONGHAUL_LEDGER_CRASH_FILE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below, which kills it"]
async fn prepares_until_it_is_killed() {
    let file = PathBuf::from(std::env::var_os(FILE).unwrap());
    let ledger = Ledger::open(file).await.unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let ledger = ledger.clone();
        writers.spawn(async move {
            for number in 0.. {
                let held = prepare(&ledger, &format!("m-{writer}-{number}")).await;
                println!("prepared {} m-{writer}-{number}", held.entry.id);
            }
        });
    }
    writers.join_all().await;
}

/// Has a child write until it has told of so many entries, kills it, and returns all of which it told.
fn killed_after(folder: &Folder, entries: usize) -> Vec<(EntryId, String)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "ledger_store::crash::prepares_until_it_is_killed"])
        .env(FILE, folder.file())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        // The harness may have written the beginning of the line. The last line may be cut short.
        let words = line.split_once("prepared ").and_then(|(_, words)| words.split_once(" m-"));
        if let Some((id, message)) = words.filter(|(_, message)| message.contains('-')) {
            told.push((id.parse().unwrap(), format!("m-{message}")));
        }
        if told.len() == entries {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    told
}

#[tokio::test]
async fn what_prepare_has_answered_outlives_a_kill() {
    let folder = Folder::new();
    let mut told = Vec::new();
    for entries in [1, 60, 200] {
        let more = killed_after(&folder, entries);
        assert!(more.len() >= entries, "the child ended by itself after {} entries", more.len());
        told.extend(more);
        let ledger = folder.open().await;
        for (id, message_id) in &told {
            let entry = ledger.get(*id).await.unwrap();
            let sent = ledger.request(*id).await.unwrap().message.unwrap().message_id;
            assert!(sent.starts_with(message_id.as_str()) && entry.message_id == sent, "{sent}, not {message_id}");
            assert_eq!(ledger.history(*id, 0, 10).await.unwrap().len(), 1);
        }
        // Nobody follows them any more once the dead process's claims have run out.
        let (mut found, mut after) = (0, None);
        loop {
            let page = ledger.open_unclaimed(after, 1000, at(30)).await.unwrap();
            found += page.entries.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(found >= told.len());
        ledger.close().await.unwrap();
    }
}
