//! Push notifications: keys, what is sent, and what operators do about what was not taken.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use longhaul_pgtest::Database;
use longhaul_protocol::Timestamp;
use longhaul_push::sign::{SignedHeaders, verify};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::receiver::{Received, Receiver};
use crate::support::{Server, end_of, folder, longhaul, poll};

const ONE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const TWO: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The code of `PushNotificationNotSupportedError`.
const NOT_SUPPORTED: i64 = -32003;

/// Where tasks are kept, and which key is given.
struct Place {
    /// `--data` or `--store`, and what it says.
    store: (&'static str, String),
    /// `LONGHAUL_PUSH_KEY`, if it is set.
    key: Option<&'static str>,
    _database: Option<Database>,
}

impl Place {
    fn folder() -> Self {
        Self { store: ("--data", folder().to_str().expect("it is text").to_owned()), key: None, _database: None }
    }

    fn database() -> Self {
        let database = Database::fresh().expect("there is PostgreSQL");
        Self { store: ("--store", database.url().to_owned()), key: Some(ONE), _database: Some(database) }
    }

    fn key_file(&self) -> PathBuf {
        Path::new(&self.store.1).join("push.key")
    }

    fn longhaul(&self, arguments: &[&str]) -> Command {
        let mut command = longhaul(&[arguments, &[self.store.0, &self.store.1]].concat());
        command.env("LONGHAUL_PUSH_ALLOW", "127.0.0.0/8").env("LONGHAUL_PUSH_ALLOW_HTTP", "true");
        command.env("LONGHAUL_PUSH_SIGNING_SECRET", SIGNING);
        if let Some(key) = self.key {
            command.env("LONGHAUL_PUSH_KEY", key);
        }
        command
    }

    fn serve(&self) -> Server {
        Server::launch(&mut self.longhaul(&["demo-server"])).listening()
    }

    /// Starts a server that is expected to end by itself.
    fn refused(&self) -> String {
        let (code, stdout, stderr) = end_of(&mut self.longhaul(&["demo-server", "--listen", "127.0.0.1:0"]));
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        stderr
    }

    fn command(&self, arguments: &[&str]) -> (i32, String, String) {
        end_of(&mut self.longhaul(arguments))
    }

    fn dead(&self, arguments: &[&str]) -> Vec<Value> {
        let (code, stdout, stderr) = self.command(&[&["push", "dead", "-o", "json"], arguments].concat());
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str(&stdout).expect("it is a list")
    }

    fn until_dead(&self, count: usize) -> Vec<Value> {
        poll(|| {
            let dead = self.dead(&[]);
            if dead.len() == count { Ok(dead) } else { Err(format!("there are not {count}: {dead:?}")) }
        })
    }
}

fn end(server: Server) {
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 0);
}

fn offers_push(server: &Server) -> bool {
    let card = server.ask("GET /.well-known/agent-card.json", "");
    card["capabilities"]["pushNotifications"].as_bool().expect("it says")
}

/// Sends a message with a push config, and answers with the id of its task.
fn send(server: &Server, text: &str, receiver: &Receiver) -> String {
    let config = json!({
        "id": "c-1", "url": receiver.url(), "token": "hunter1",
        "authentication": {"scheme": "bearer", "credentials": "hunter2"},
    });
    let task = server.send(text, &json!({"returnImmediately": true, "taskPushNotificationConfig": config}));
    task["id"].as_str().unwrap_or_else(|| panic!("it has an id: {task}")).to_owned()
}

/// Answers a task that asks.
fn go_on(server: &Server, task_id: &str) {
    let message = json!({"messageId": "m-2", "taskId": task_id, "role": "ROLE_USER", "parts": [{"text": "echo"}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let answer = server.ask("POST /", &body.to_string());
    assert!(answer.get("error").is_none(), "{answer}");
}

fn create(server: &Server, task_id: &str, url: &str) -> Value {
    let params = json!({"taskId": task_id, "url": url});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": params});
    server.ask("POST /", &body.to_string())
}

fn ids(received: &[Received]) -> Vec<String> {
    received.iter().map(|one| one.header("webhook-id").expect("it has an id").to_owned()).collect()
}

#[test]
fn a_key_is_made_beside_the_file_and_read_again() {
    let place = Place::folder();
    let server = place.serve();
    assert!(offers_push(&server));
    let made = std::fs::read_to_string(place.key_file()).expect("it is there");
    let mode = std::fs::metadata(place.key_file()).expect("it is there").permissions().mode();
    assert_eq!((mode & 0o777, made.trim().len()), (0o600, 44));
    end(server);
    end(place.serve());
    assert_eq!(std::fs::read_to_string(place.key_file()).expect("it is there"), made);
}

#[test]
fn another_key_than_the_stores_is_refused() {
    let mut place = Place::folder();
    end(place.serve());
    std::fs::write(place.key_file(), format!("{TWO}\n")).expect("it can be written");
    let stderr = place.refused();
    let wrong = "longhaul: cannot send push notifications: the secrets of push configs in this store were sealed with another key";
    assert!(stderr.contains(wrong), "{stderr}");
    let file = place.key_file();
    assert!(stderr.contains(&format!("hint: put the key with which they were sealed back into {}", file.display())));
    assert!(!stderr.contains(TWO), "{stderr}");
    place.key = Some(TWO);
    let stderr = place.refused();
    assert!(stderr.contains(wrong) && stderr.contains("hint: give the key with which they were sealed"), "{stderr}");
    assert!(!stderr.contains(TWO), "{stderr}");
    // Whoever has no need of it can serve all the same.
    let server = Server::launch(place.longhaul(&["demo-server"]).env("LONGHAUL_PUSH_ENABLED", "false")).listening();
    assert!(!offers_push(&server));
    end(server);
}

#[test]
fn another_key_than_the_databases_is_refused() {
    let mut place = Place::database();
    end(place.serve());
    place.key = Some(TWO);
    let stderr = place.refused();
    assert!(stderr.contains("were sealed with another key") && stderr.contains("longhaul push rotate-key"), "{stderr}");
}

#[test]
fn a_key_file_that_others_may_read_is_refused() {
    let place = Place::folder();
    std::fs::write(place.key_file(), format!("{ONE}\n")).expect("it can be written");
    std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o644)).expect("it can be set");
    let stderr = place.refused();
    assert!(stderr.contains("can be read by others (hint: chmod 600"), "{stderr}");
}

#[test]
fn on_a_database_push_is_off_without_a_key_and_the_log_says_why() {
    let mut place = Place::database();
    place.key = None;
    let mut server = Server::launch(&mut place.longhaul(&["demo-server"]));
    let log = server.listens();
    assert!(log.contains("push notifications are off: there is no key that seals their secrets"), "{log}");
    assert!(log.contains("LONGHAUL_PUSH_KEY"), "{log}");
    assert!(!offers_push(&server));
    let id = server.send("echo", &json!({}))["id"].as_str().expect("it has an id").to_owned();
    assert_eq!(create(&server, &id, "https://hooks.example/")["error"]["code"], NOT_SUPPORTED);
    end(server);
    place.key = Some(ONE);
    let server = place.serve();
    assert!(offers_push(&server));
    assert_eq!(create(&server, &id, "https://hooks.example/")["result"]["url"], "https://hooks.example/");
    end(server);
}

#[test]
fn receivers_inside_are_refused_unless_they_are_listed() {
    let server = Server::start(&["demo-server", "--store", "memory"]);
    assert!(offers_push(&server));
    let id = server.send("echo", &json!({}))["id"].as_str().expect("it has an id").to_owned();
    for url in ["http://hooks.example/", "https://127.0.0.1/", "https://169.254.169.254/", "https://[::1]/"] {
        let refused = create(&server, &id, url);
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
    }
    let flags = ["demo-server", "--store", "memory", "--push-allow", "127.0.0.0/8", "--push-allow-http"];
    let server = Server::start(&flags);
    let id = server.send("echo", &json!({}))["id"].as_str().expect("it has an id").to_owned();
    assert_eq!(create(&server, &id, "http://127.0.0.1:8080/")["result"]["url"], "http://127.0.0.1:8080/");
    assert_eq!(create(&server, &id, "http://10.0.0.1:8080/")["error"]["code"], -32602);
}

#[test]
fn what_is_given_up_is_listed_and_sent_again() {
    given_up(&Place::folder());
}

#[test]
fn what_is_given_up_in_a_database_is_listed_and_sent_again() {
    given_up(&Place::database());
}

fn given_up(place: &Place) {
    let (server, receiver) = (place.serve(), Receiver::answering(404));
    let (first, second) = (send(&server, "echo", &receiver), send(&server, "input", &receiver));
    receiver.until("COMPLETED");
    let refused = receiver.until("INPUT_REQUIRED");
    let dead = place.until_dead(refused.len());
    let (of_first, of_second) = (place.dead(&["--task", &first]), place.dead(&["--task", &second]));
    assert_eq!(of_first.len() + of_second.len(), dead.len());
    for (task_id, rows) in [(&first, &of_first), (&second, &of_second)] {
        for (row, sequence) in rows.iter().zip(1..) {
            let wanted = json!({
                "tenant": "", "taskId": task_id, "configId": "c-1", "sequence": sequence, "url": receiver.url(), "attempts": 1,
                "diedAt": row["diedAt"], "why": "the receiver answered with status 404",
            });
            assert_eq!(row, &wanted);
        }
    }
    assert!(place.dead(&["--task", "nobody"]).is_empty());
    let (code, stdout, stderr) = place.command(&["push", "dead"]);
    assert_eq!((code, stderr), (0, format!("longhaul: {} deliveries given up\n", dead.len())));
    assert!(stdout.starts_with("TASK ") && stdout.contains("the receiver answered with status 404"), "{stdout}");
    let backlog = place.command(&["push", "backlog", "-o", "json"]);
    assert_eq!(backlog.1, format!("{{\"configs\":0,\"dead\":{}}}\n", dead.len()));

    receiver.answer(204);
    let none = place.command(&["push", "retry", &first, "no-such-config"]);
    assert_eq!(none, (0, String::new(), "longhaul: 0 deliveries are sent again\n".to_owned()));
    let (code, stdout, stderr) = place.command(&["push", "retry", &first, "c-1", "--output", "json"]);
    assert_eq!((code, stdout), (0, format!("{{\"retried\":{}}}\n", of_first.len())), "{stderr}");
    place.until_dead(of_second.len());
    assert_eq!(place.command(&["push", "retry", "--all"]).0, 0);
    place.until_dead(0);
    let mut again = ids(&receiver.received()).split_off(refused.len());
    let mut before = ids(&refused);
    again.sort();
    before.sort();
    assert_eq!(again, before, "each is sent again once, under the id that it had");
    end(server);
}

#[test]
fn what_is_given_up_is_sent_again_by_the_next_server() {
    let (place, receiver) = (Place::folder(), Receiver::answering(404));
    let server = place.serve();
    send(&server, "echo", &receiver);
    let refused = receiver.until("COMPLETED").len();
    place.until_dead(refused);
    end(server);
    assert_eq!(place.dead(&[]).len(), refused, "it is read without a server");
    receiver.answer(200);
    let retried = place.command(&["push", "retry", "--all"]);
    assert_eq!(retried.2, format!("longhaul: {refused} deliveries are sent again when a server is started\n"));
    let server = place.serve();
    place.until_dead(0);
    end(server);
}

#[test]
fn a_server_that_sends_nothing_says_what_waits_and_the_next_one_sends_it() {
    let (place, receiver) = (Place::folder(), Receiver::answering(500));
    let server = place.serve();
    send(&server, "echo", &receiver);
    poll(|| if receiver.received().is_empty() { Err("nothing came".to_owned()) } else { Ok(()) });
    end(server);
    let mut off = Server::launch(place.longhaul(&["demo-server"]).env("LONGHAUL_PUSH_ENABLED", "false"));
    let log = off.listens();
    assert!(log.contains("push notifications are off: push.enabled is false"), "{log}");
    assert!(log.contains("their tasks are kept until they are configs=1"), "{log}");
    receiver.answer(200);
    end(off);
    let server = place.serve();
    receiver.until("COMPLETED");
    end(server);
}

#[test]
fn a_request_carries_what_its_receiver_knows_it_by_and_no_log_does() {
    let (place, receiver) = (Place::folder(), Receiver::answering(200));
    let server = Server::launch(place.longhaul(&["demo-server"]).env("LONGHAUL_LOG", "trace")).listening();
    let task_id = send(&server, "echo", &receiver);
    let received = receiver.until("COMPLETED");
    for one in &received {
        let header = |name| one.header(name).unwrap_or_else(|| panic!("there is no {name}: {one:?}"));
        assert_eq!((header("authorization"), header("x-a2a-notification-token")), ("Bearer hunter2", "hunter1"));
        assert_eq!((header("content-type"), header("a2a-version")), ("application/a2a+json", "1.0"));
        let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
        let signed = SignedHeaders { id, timestamp, signature: header("webhook-signature") };
        let now = Timestamp::from_unix_millis(timestamp.parse::<i64>().expect("seconds") * 1000);
        let secrets = [SIGNING.parse().expect("it is one")];
        verify(&secrets, signed, one.body.as_bytes(), now, Duration::from_secs(1)).expect("it is signed");
        assert!(one.body.contains(&task_id));
    }
    assert!(received[0].json()["task"].is_object(), "{received:?}");
    server.signal(Signal::TERM);
    let log = server.rest_of_log();
    for secret in ["hunter1", "hunter2", "in-the-url", SIGNING] {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[test]
fn secrets_are_sealed_anew_through_a_server() {
    let (place, receiver) = (Place::folder(), Receiver::answering(200));
    let keys = |text: String| std::fs::write(place.key_file(), text).expect("it can be written");
    let server = place.serve();
    let task_id = send(&server, "input", &receiver);
    receiver.until("INPUT_REQUIRED");
    let old = std::fs::read_to_string(place.key_file()).expect("it is there");
    end(server);

    keys(format!("# the new one first\n{TWO}\n{old}"));
    let server = place.serve();
    let rotated = place.command(&["push", "rotate-key"]);
    assert_eq!(rotated, (0, String::new(), "longhaul: the secrets of 1 push config were sealed anew\n".to_owned()));
    let again = place.command(&["push", "rotate-key", "-o", "json"]);
    assert_eq!((again.0, again.1.as_str()), (0, "{\"resealed\":0}\n"));
    end(server);

    keys(format!("{TWO}\n"));
    let server = place.serve();
    go_on(&server, &task_id);
    let received = receiver.until("COMPLETED");
    assert!(received.iter().all(|one| one.header("authorization") == Some("Bearer hunter2")), "{received:?}");
    end(server);
    keys(old);
    assert!(place.refused().contains("were sealed with another key"));
}

#[test]
fn secrets_are_sealed_anew_on_a_folder_and_none_is_lost_for_want_of_the_old_key() {
    let place = Place::folder();
    rotates_without_a_server(place, |place, keys| {
        std::fs::write(place.key_file(), keys.replace(',', "\n")).expect("it can be written");
    });
}

#[test]
fn secrets_in_a_database_are_sealed_anew_and_none_is_lost_for_want_of_the_old_key() {
    rotates_without_a_server(Place::database(), |place, keys| place.key = Some(keys));
}

fn rotates_without_a_server(mut place: Place, set: impl Fn(&mut Place, &'static str)) {
    const BOTH: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=,AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    assert_eq!(BOTH, format!("{TWO},{ONE}"));
    let receiver = Receiver::answering(200);
    if place.store.0 == "--data" {
        std::fs::write(place.key_file(), ONE).expect("it can be written");
        std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o600)).expect("it can be set");
    }
    let server = place.serve();
    send(&server, "input", &receiver);
    receiver.until("INPUT_REQUIRED");
    end(server);

    set(&mut place, TWO);
    let (code, stdout, stderr) = place.command(&["push", "rotate-key"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let wrong =
        "longhaul: the secrets of 1 push configs were sealed with a key that is not at hand, and are as they were";
    assert!(stderr.starts_with(wrong) && stderr.contains("\nhint: list that key behind the new one"), "{stderr}");
    assert!(place.refused().contains("were sealed with another key"));

    set(&mut place, BOTH);
    let rotated = place.command(&["push", "rotate-key"]);
    assert_eq!(rotated, (0, String::new(), "longhaul: the secrets of 1 push config were sealed anew\n".to_owned()));
    set(&mut place, TWO);
    end(place.serve());
    set(&mut place, ONE);
    assert!(place.refused().contains("were sealed with another key"));
}

#[test]
fn a_key_is_not_sealed_with_that_is_not_there() {
    let mut place = Place::database();
    end(place.serve());
    place.key = None;
    let (code, stdout, stderr) = place.command(&["push", "rotate-key"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("push.key_file: is not set, and there is no key\nhint: "), "{stderr}");
}

#[test]
fn secrets_are_not_in_the_printed_configuration() {
    let mut command = Place::database().longhaul(&["config"]);
    let (code, stdout, stderr) = end_of(&mut command);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("allow = [\"127.0.0.0/8\"]") && stdout.contains("allow_http = true"), "{stdout}");
    assert!(!stdout.contains(ONE) && !stdout.contains(SIGNING) && !stdout.contains("whsec_"), "{stdout}");
    let wrong = end_of(longhaul(&["config"]).env("LONGHAUL_PUSH_KEY", "hunter2"));
    assert!(wrong.0 == 2 && wrong.2.contains("LONGHAUL_PUSH_KEY: holds what is no key"), "{wrong:?}");
    assert!(!wrong.2.contains("hunter2"), "{wrong:?}");
}

#[test]
fn wrong_commands_about_pushes_are_told_so() {
    #[rustfmt::skip]
    let cases: &[(&[&str], &str)] = &[
        (&["push"], "Usage: longhaul push <COMMAND>"),
        (&["push", "retry"], "<TASK>"),
        (&["push", "retry", "t", "--all"], "cannot be used with"),
        (&["push", "retry", "--all", "--store", "memory"], "only its own server can reach"),
    ];
    for (arguments, wanted) in cases {
        let (code, stdout, stderr) = end_of(&mut longhaul(arguments));
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
}
