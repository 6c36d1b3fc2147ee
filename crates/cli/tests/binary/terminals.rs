//! The client's commands on a terminal: progress while they wait, and questions that are answered there.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

use crate::support::{Server, folder, poll};

const ROWS: NonZero<u16> = NonZero::new(30).expect("it is more");
const COLUMNS: NonZero<u16> = NonZero::new(120).expect("it is more");

/// A command on a terminal of its own, killed when dropped.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    input: Box<dyn std::io::Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// All that was written, as it came.
    raw: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn run(server: &Server, arguments: &[&str]) -> Self {
        let size = PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("there is a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_longhaul"));
        command.args(arguments);
        command.args(["-a", &format!("http://{}", server.address)]);
        command.cwd(folder());
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("it can be read");
        let input = pair.master.take_writer().expect("it can be written to");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (shown, written, master) = (Arc::clone(&screen), Arc::clone(&raw), pair.master);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let bytes = bytes.get(..read).unwrap_or_default();
                shown.lock().unwrap_or_else(PoisonError::into_inner).process(bytes);
                written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            }
            drop(master);
        });
        Self { child, input, screen, raw }
    }

    fn shows(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    fn until(&self, text: &str) {
        poll(
            || if self.shows().contains(text) { Ok(()) } else { Err(format!("{text:?} is not on:\n{}", self.shows())) },
        );
    }

    fn type_line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\r").as_bytes()).expect("it is read");
    }

    fn end(mut self) -> (u32, String, String) {
        let code = self.child.wait().expect("it ends").exit_code();
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        (code, self.shows(), String::from_utf8_lossy(&raw).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn demo() -> Server {
    Server::start(&["demo-server", "--store", "memory"])
}

#[test]
fn progress_is_drawn_while_a_task_runs_and_taken_away_afterwards() {
    let server = demo();
    let terminal = Terminal::run(&server, &["send", "slow 2"]);
    terminal.until("working");
    terminal.until("State: TASK_STATE_COMPLETED");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0);
    assert!(!shown.contains("working"), "{shown}");
}

#[test]
fn nothing_is_drawn_for_programs() {
    let server = demo();
    let terminal = Terminal::run(&server, &["send", "slow 1", "-o", "json"]);
    terminal.until("\"TASK_STATE_COMPLETED\"");
    let (code, _, raw) = terminal.end();
    assert_eq!(code, 0);
    assert!(!raw.contains('\u{1b}'), "{raw:?}");
}

#[test]
fn a_question_is_answered_on_the_terminal_when_that_was_asked_for() {
    let server = demo();
    let mut terminal = Terminal::run(&server, &["send", "input", "--interactive"]);
    terminal.until("what else?");
    terminal.until("> ");
    terminal.type_line("echo that is all");
    terminal.until("State: TASK_STATE_COMPLETED");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0);
    assert!(shown.contains("  echo that is all"), "{shown}");
}

#[test]
fn an_empty_answer_leaves_the_question_open() {
    let server = demo();
    let mut terminal = Terminal::run(&server, &["send", "input", "--interactive"]);
    terminal.until("> ");
    terminal.type_line("");
    terminal.until("State: TASK_STATE_INPUT_REQUIRED");
    terminal.until("Resume: longhaul send --task-id");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn nobody_is_asked_unless_that_was_asked_for() {
    let server = demo();
    let terminal = Terminal::run(&server, &["send", "input"]);
    terminal.until("Resume: longhaul send --task-id");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_conversation_goes_from_turn_to_turn() {
    let server = demo();
    let mut terminal = Terminal::run(&server, &["chat"]);
    terminal.until("> ");
    terminal.type_line("input");
    terminal.until("what else?");
    terminal.until("INPUT_REQUIRED]");
    terminal.type_line("echo first");
    terminal.until("[echo]");
    terminal.until("COMPLETED]");
    terminal.type_line("msg");
    terminal.until("a direct answer");
    terminal.type_line("/quit");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let listed = server.ask("POST /", r#"{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}"#);
    assert_eq!(listed["result"]["totalSize"], 1, "{listed}");
}

#[test]
fn tasks_that_are_watched_have_a_line_each() {
    let server = demo();
    let [slow, quick] = ["slow 2", "echo"].map(|words| {
        let task = server.send(words, &serde_json::json!({"returnImmediately": true}));
        task["id"].as_str().expect("it has one").to_owned()
    });
    let terminal = Terminal::run(&server, &["watch", &slow, &quick]);
    terminal.until(&format!("{quick} completed"));
    terminal.until(&format!("{slow} completed"));
    let (code, shown, _) = terminal.end();
    assert_eq!((code, shown.matches("completed").count()), (0, 2), "{shown}");
}

#[test]
fn the_ledger_is_drawn_while_it_is_followed() {
    let server = demo();
    let ledger = format!("--ledger={}", folder().join("ledger.db").display());
    let agent = format!("http://{}", server.address);
    for (words, purpose) in [("slow 2", "the slow one"), ("input", "the one that asks")] {
        let line = ["send", words, "--async", "--purpose", purpose, &ledger, "-a", &agent];
        assert_eq!(crate::support::ended(&line).0, 0);
    }
    let terminal = Terminal::run(&server, &["watch", &ledger]);
    terminal.until("accepted, the slow one");
    terminal.until("question, the one that asks");
    terminal.until("completed, the slow one");
    let (code, shown, _) = terminal.end();
    assert_eq!((code, shown.matches("the slow one").count()), (6, 1), "{shown}");
}

#[test]
fn a_question_of_a_delegation_is_answered_on_the_terminal() {
    let server = demo();
    let ledger = format!("--ledger={}", folder().join("ledger.db").display());
    let mut terminal = Terminal::run(&server, &["send", "input", "--interactive", &ledger]);
    terminal.until("> ");
    terminal.type_line("echo that is all");
    terminal.until("State: TASK_STATE_COMPLETED");
    assert_eq!(terminal.end().0, 0);
    let path = ledger.trim_start_matches("--ledger=");
    let (code, stdout, _) = crate::support::ended(&["ledger", "list", "--which", "settled", "--ledger", path]);
    assert!(code == 0 && stdout.contains("1 completed"), "{stdout}");
}
