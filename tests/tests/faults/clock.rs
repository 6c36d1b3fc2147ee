//! The machine's clock is set while the server runs, and while it does not. `libfaketime` (Debian's `faketime`) stands for
//! the machine.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_protocol::Timestamp;
use longhaul_tests::server::Folder;
use longhaul_tests::steps::{client, count, reaches, send, task, whole_log};
use longhaul_tests::task::{id_of, is_terminal, say, state_of};
use longhaul_tests::{Client, Launch, Operation, Server, until};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);
const JUMP_SECONDS: i64 = 600;

/// A clock that can be set.
struct MachineClock {
    folder: Folder,
}

impl MachineClock {
    fn new() -> Self {
        let clock = Self { folder: Folder::new() };
        clock.set(0);
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Sets it so many seconds before or after the real one.
    fn set(&self, offset: i64) {
        // In one step: nobody reads half of it.
        let next = self.folder.path().join("next");
        std::fs::write(&next, format!("{offset:+}\n")).expect("a file can be written");
        std::fs::rename(next, self.file()).expect("a file can be renamed");
    }

    /// What makes a process believe it. The monotonic clock goes on, as it does on a machine whose clock is set.
    fn env(&self) -> Vec<(String, String)> {
        let found = std::fs::read_dir("/usr/lib").expect("there is /usr/lib").filter_map(Result::ok);
        let mut libraries = found.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
        let library = libraries.find(|path| path.is_file()).expect("libfaketime is needed: apt-get install faketime");
        let text = |path: PathBuf| path.display().to_string();
        let env = [
            ("LD_PRELOAD", text(library)),
            ("FAKETIME_TIMESTAMP_FILE", text(self.file())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        env.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

/// The real time plus so many seconds.
#[expect(clippy::disallowed_methods, reason = "the server's time is held against the real one")]
fn moment(offset: i64) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let millis = i64::try_from(since.as_millis()).expect("it is before the end of time");
    Timestamp::from_unix_millis(millis + offset * 1000).to_string()
}

fn time_of(status: &Value) -> String {
    status["timestamp"].as_str().expect("a status has a time").to_owned()
}

/// The times of a task's statuses never go back.
async fn assert_in_order(reader: &mut Client, task: &Value) {
    let log = whole_log(reader, task).await;
    let statuses = log.iter().filter_map(|event| event.data.get("task").or(event.data.get("statusUpdate")));
    let times: Vec<String> = statuses.map(|inner| time_of(&inner["status"])).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn clock_that_is_set_moves_nothing_while_the_server_runs() {
    let clock = MachineClock::new();
    let config = "[agent]\nlease_duration = \"1s\"\nturn_duration_max = \"1m\"\ninactivity_max = \"30s\"\n";
    let server = Server::launch(Launch { env: clock.env(), ..Launch::sqlite(config) }).await;
    let mut reader = client(server.addr());
    let mut ids = Vec::new();
    for text in ["slow 4 chunks 5", "slow 3 burst 3", "auth chunks 3", "input"] {
        for _ in 0..4 {
            ids.push(send(&mut reader, text).await);
        }
    }
    let before = moment(-1);
    until(PATIENCE, "the slow are at work", async || (count(&mut reader, "WORKING").await >= 8).then_some(())).await;
    for offset in [JUMP_SECONDS, -JUMP_SECONDS, JUMP_SECONDS, 0] {
        clock.set(offset);
        tokio::time::sleep(Duration::from_millis(600)).await;
        let answer = reader.ask(Operation::SendMessage, say("echo")).await;
        let time = time_of(&answer["task"]["status"]);
        assert!(before <= time && time <= moment(2), "the time in the store follows the clock: {time}");
    }
    for id in &ids[..12] {
        let done = reaches(&mut reader, id, "COMPLETED", PATIENCE).await;
        assert_in_order(&mut reader, &done).await;
    }
    for id in &ids[12..] {
        assert_eq!(state_of(&task(&mut reader, id).await), "INPUT_REQUIRED");
    }
    assert!(!server.log().contains("attempt=2"), "a lease was taken from a live turn:\n{}", server.log_tail());
}

#[tokio::test]
async fn clock_that_is_set_between_two_runs_loses_nothing_and_turns_no_time_back() {
    let clock = MachineClock::new();
    let config = "[agent]\nlease_duration = \"2s\"\n";
    let mut server = Server::launch(Launch { env: clock.env(), ..Launch::sqlite(config) }).await;
    let mut latest = moment(-1);
    let mut all = Vec::new();
    for offset in [0, JUMP_SECONDS, -JUMP_SECONDS, JUMP_SECONDS / 2, 0] {
        clock.set(offset);
        server.kill().await;
        server.run().await;
        let mut reader = client(server.addr());
        let echoed = reader.ask(Operation::SendMessage, say("echo")).await;
        let time = time_of(&echoed["task"]["status"]);
        assert!(time >= latest, "a new task is older than an old one: {time} < {latest}");
        if offset == JUMP_SECONDS {
            assert!(time > moment(offset - 30), "the clock was not set: {time}");
        }
        latest = time;
        all.push(id_of(&echoed));
        // What is at work, waits for its time, and waits for its caller when the next run begins.
        for text in ["slow 1 chunks 5", "auth chunks 2", "input"] {
            all.push(send(&mut reader, text).await);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let mut reader = client(server.addr());
    for id in &all {
        let rests = until(PATIENCE, "all come to rest", async || {
            let task = task(&mut reader, id).await;
            (is_terminal(state_of(&task)) || state_of(&task) == "INPUT_REQUIRED").then_some(task)
        })
        .await;
        if state_of(&rests) != "INPUT_REQUIRED" {
            assert_eq!(state_of(&rests), "COMPLETED", "{rests}");
            assert_in_order(&mut reader, &rests).await;
        }
    }
}
