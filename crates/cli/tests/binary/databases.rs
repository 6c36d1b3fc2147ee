//! Serving from a PostgreSQL database.

use std::thread;

use longhaul_pgtest::{Cluster, Database, Mode, Options, Server as Postgres};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Server, end_of, ended, longhaul, poll, toml};

const SECRET: &str = "hunter2";

fn database() -> Database {
    Database::fresh().expect("there is PostgreSQL")
}

/// The address with a password in it, which a server that trusts everybody does not look at.
fn with_secret(url: &str) -> String {
    url.replace("://postgres@", &format!("://postgres:{SECRET}@"))
}

fn one(database: &Database, sql: &str) -> Option<String> {
    let rows = database.query(sql).expect("it is answered");
    rows.into_iter().flatten().flatten().next()
}

fn text_of(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]["text"]
}

#[test]
fn ten_servers_started_at_once_on_an_empty_database_all_come_up() {
    let database = database();
    let start = || Server::start(&["serve", "--exec", "tr a-z A-Z", "--store", database.url()]);
    let servers: Vec<Server> = thread::scope(|scope| {
        let starting: Vec<_> = (0..10).map(|_| scope.spawn(start)).collect();
        starting.into_iter().map(|one| one.join().expect("it comes up")).collect()
    });
    for (server, next) in servers.iter().zip(servers.iter().cycle().skip(1)) {
        let task = server.send("hello", &json!({}));
        assert_eq!((text_of(&task), server.status("/readyz")), (&json!("HELLO"), 200));
        let id = task["id"].as_str().expect("it has an id");
        assert_eq!(text_of(&next.task(id)["result"]), "HELLO", "what one has stored, another reads");
    }
    for server in servers {
        server.signal(Signal::TERM);
        assert_eq!(server.end(), 0);
    }
}

#[test]
fn the_log_says_in_which_database_tasks_are_kept() {
    let database = database();
    let mut server = Server::launch(&mut longhaul(&["demo-server", "--store", database.url()]));
    let line = server.line_with("tasks are kept in PostgreSQL");
    for part in [database.name(), "127.0.0.1:", "schema=\"longhaul\"", "schema_version="] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!server.listening().address.is_empty());
}

#[test]
fn tables_are_made_by_hand_and_a_second_time_is_no_harm() {
    let database = database();
    let place = format!("{}, schema longhaul", database.url());
    let (code, stdout, stderr) = ended(&["migrate", "--store", database.url()]);
    let version = one(&database, "SELECT value FROM longhaul.meta WHERE name = 'schema'").expect("it was made");
    let made = format!("{place}: the tables were made, schema version {version}\n");
    assert_eq!((code, stdout, stderr), (0, made, String::new()));
    let nothing = format!("{place}: nothing to do, schema version {version}\n");
    assert_eq!(ended(&["migrate", "--store", database.url()]), (0, nothing, String::new()));
    let versions = format!("{{\"from\":{version},\"to\":{version}}}\n");
    assert_eq!(ended(&["migrate", "--store", database.url(), "--output", "json"]).1, versions);

    let config = toml("[store.postgres]\nmigrate = false");
    let server = Server::start(&["serve", "--exec", "cat", "--store", database.url(), "--config", &config]);
    assert_eq!(text_of(&server.send("hello", &json!({}))), "hello");
}

#[test]
fn stores_that_make_their_own_tables_are_left_alone_by_migrate() {
    let (code, stdout, stderr) = ended(&["migrate"]);
    let nothing = "nothing to do: a SQLite file is brought up to date by the server that opens it\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, nothing, ""));
    let memory = end_of(longhaul(&["migrate", "--output", "json"]).env("LONGHAUL_STORE", "memory"));
    assert_eq!(memory, (0, "null\n".to_owned(), String::new()));
}

#[test]
fn schemas_of_one_database_are_stores_of_their_own() {
    let database = database();
    let serve = |schema: &str| {
        let config = toml(&format!("[store.postgres]\nschema = '{schema}'\nnotify = false\nwriters = 1"));
        Server::start(&["demo-server", "--store", database.url(), "--config", &config])
    };
    let (one, other) = (serve("one"), serve("The \"other\""));
    let task = one.send("hello", &json!({}));
    let unknown = other.task(task["id"].as_str().expect("it has an id"));
    assert_eq!(unknown["error"]["code"], -32001, "{unknown}");
    assert_eq!(text_of(&other.send("there", &json!({}))), "there");
}

#[test]
fn leases_say_which_worker_holds_them() {
    let database = database();
    let arguments = ["demo-server", "--store", database.url(), "--worker-name", "ada-1"];
    let server = Server::start(&arguments);
    let task = server.send("slow 600", &json!({"returnImmediately": true}));
    server.until(task["id"].as_str().expect("it has an id"), "WORKING");
    let worker = one(&database, "SELECT worker FROM longhaul.task").expect("somebody works on it");
    assert!(worker.starts_with("ada-1/"), "{worker}");
}

#[test]
fn a_password_is_shown_nowhere() {
    let database = database();
    let url = with_secret(database.url());
    let (code, stdout, stderr) = ended(&["config", "--exec", "cat", "--store", &url]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("postgres://postgres:***@") && !stdout.contains(SECRET), "{stdout}");

    let file = toml(SECRET);
    let from_file = toml(&format!("store.postgres.password_file = '{file}'"));
    let trace = ["serve", "--exec", "cat", "--log", "trace", "--store"];
    let mut cases = [
        longhaul(&[&trace[..], &[&url]].concat()),
        longhaul(&[&trace[..], &[database.url()]].concat()),
        longhaul(&[&trace[..], &[database.url(), "--config", &from_file]].concat()),
    ];
    for command in &mut cases {
        let mut server = Server::launch(command.env("PGPASSWORD", SECRET));
        let mut log = server.listens();
        assert_eq!(text_of(&server.send("hello", &json!({}))), "hello");
        server.signal(Signal::TERM);
        log.push_str(&server.rest_of_log());
        assert!(log.contains("tasks are kept in PostgreSQL") && !log.contains(SECRET), "{log}");
    }

    // Nor where it is refused or the address is wrong.
    let gone = url.replace(database.name(), "no_such_database");
    for store in
        [&gone, &url.replace("://postgres", ":/postgres"), &url.replace('@', "/"), &url.replace(SECRET, "hun@ter2")]
    {
        let (code, stdout, stderr) = ended(&["serve", "--exec", "cat", "--store", store]);
        assert!(code != 0 && stdout.is_empty(), "{store}: {stderr}");
        assert!(!stderr.contains("hun") && !stderr.contains("ter2"), "{stderr}");
    }
}

#[test]
fn the_command_does_not_see_the_databases_password() {
    let database = database();
    let agent = "printf %s \"${PGPASSWORD-none}\"";
    let on = |store: &str| {
        let mut command = longhaul(&["serve", "--exec", agent, "--store", store]);
        Server::launch(command.env("PGPASSWORD", SECRET)).listening()
    };
    assert_eq!(text_of(&on(database.url()).send("x", &json!({}))), "none");
    assert_eq!(text_of(&on("memory").send("x", &json!({}))), SECRET, "there it is not ours");
}

/// A cluster where `ada` needs the password, and the address of a database of hers without it.
fn cluster_with_passwords() -> (Cluster, String) {
    let cluster = Cluster::start(Options::default()).expect("there is PostgreSQL");
    let access = "host all postgres 127.0.0.1/32 trust\\nhost all all 127.0.0.1/32 scram-sha-256\\n";
    let file = cluster.query("postgres", "SHOW hba_file").expect("it is answered")[0][0].clone().expect("it has one");
    cluster.execute("postgres", &format!("CREATE ROLE ada LOGIN PASSWORD '{SECRET}'")).expect("it is made");
    cluster
        .execute("postgres", &format!("COPY (SELECT E'{access}') TO PROGRAM 'xargs -0 printf > {file}'"))
        .expect("it is written");
    cluster.execute("postgres", "SELECT pg_reload_conf()").expect("it is read");
    cluster.execute("postgres", "CREATE DATABASE tasks OWNER ada").expect("it is made");
    let url = cluster.url("tasks").replace("postgres@", "ada@");
    (cluster, url)
}

#[test]
fn a_password_comes_with_the_address_by_a_file_or_by_a_variable() {
    let (_cluster, url) = cluster_with_passwords();
    let migrate = |store: &str| longhaul(&["migrate", "--store", store]);
    // The server takes the new rules a moment after it was told to.
    poll(|| if end_of(&mut migrate(&url)).0 == 1 { Ok(()) } else { Err("it asks for no password".to_owned()) });
    let in_address = url.replace("ada@", &format!("ada:{SECRET}@"));
    let file = toml(&format!("{SECRET}\n"));
    let config = toml(&format!("store.postgres.password_file = '{file}'"));
    // Each is asked for before the next: a variable that is wrong does no harm.
    let mut by_address = migrate(&in_address);
    let mut by_file = migrate(&url);
    by_file.args(["--config", &config]);
    for command in [by_address.env("PGPASSWORD", "wrong"), by_file.env("PGPASSWORD", "wrong")] {
        assert_eq!(end_of(command).0, 0, "{command:?}");
    }
    assert_eq!(end_of(migrate(&url).env("PGPASSWORD", SECRET)).0, 0);

    let refused = |(code, stdout, stderr): (i32, String, String), cause: &str| {
        assert_eq!((code, stdout.as_str()), (1, ""));
        let place = format!(
            "longhaul: cannot make or update the tables in {url}: the server of the database tasks at 127.0.0.1:"
        );
        assert!(stderr.starts_with(&place) && stderr.contains(cause), "{stderr}");
        assert!(
            stderr.contains("hint: check user and database in --store, and the password in PGPASSWORD"),
            "{stderr}"
        );
    };
    refused(end_of(migrate(&url).env("PGPASSWORD", "wrong")), "password authentication failed for user \"ada\"");
    refused(end_of(&mut migrate(&url)), "password missing");
}

#[test]
fn a_server_waits_for_a_database_that_is_not_there_yet() {
    let mut cluster = Cluster::start(Options::default()).expect("there is PostgreSQL");
    let url = cluster.create_database("late").expect("it is made");
    cluster.stop(Mode::Fast).expect("it stops");
    let mut server = Server::launch(&mut longhaul(&["serve", "--exec", "cat", "--store", &url]));
    let line = server.line_with("the database cannot be reached, trying again");
    assert!(line.contains("late at 127.0.0.1:"), "{line}");
    let mut impatient = Server::launch(&mut longhaul(&["serve", "--exec", "cat", "--store", &url]));
    impatient.line_with("trying again");
    impatient.signal(Signal::TERM);
    assert_eq!(impatient.end(), 0, "a signal ends it all the same");

    cluster.restart().expect("it starts again");
    let server = server.listening();
    assert_eq!(text_of(&server.send("hello", &json!({}))), "hello");
}

#[test]
fn a_server_says_that_it_is_not_ready_while_its_database_is_away() {
    let mut cluster = Cluster::start(Options::default()).expect("there is PostgreSQL");
    let url = cluster.create_database("tasks").expect("it is made");
    let server = Server::start(&["serve", "--exec", "cat", "--store", &url]);
    until_ready(&server, 200);
    cluster.stop(Mode::Fast).expect("it stops");
    until_ready(&server, 503);
    assert_eq!(server.status("/healthz"), 200);
    cluster.restart().expect("it starts again");
    until_ready(&server, 200);
    assert_eq!(text_of(&server.send("hello", &json!({}))), "hello");
}

#[test]
fn a_server_ends_when_it_is_told_to_though_its_database_is_away() {
    let mut cluster = Cluster::start(Options::default()).expect("there is PostgreSQL");
    let url = cluster.create_database("tasks").expect("it is made");
    let config = toml("server.drain_timeout = '1s'");
    let server = Server::start(&["demo-server", "--store", &url, "--config", &config]);
    let task = server.send("slow 600", &json!({"returnImmediately": true}));
    server.until(task["id"].as_str().expect("it has an id"), "WORKING");
    cluster.stop(Mode::Fast).expect("it stops");
    until_ready(&server, 503);
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 0);
}

fn until_ready(server: &Server, status: u16) {
    poll(|| match server.status("/readyz") {
        answered if answered == status => Ok(()),
        other => Err(format!("/readyz answers {other} and not {status}")),
    });
}

#[test]
fn the_shared_server_takes_addresses_as_they_are_written() {
    let database = database();
    let server = Postgres::shared().expect("there is PostgreSQL");
    let address = server.address().trim_start_matches("postgres://");
    let long = format!("postgresql://{address}/{}?application_name=mine&connect_timeout=3", database.name());
    assert_eq!(ended(&["migrate", "--store", &long]).0, 0);
    // Without a database's name it is the one that is called as the user is.
    let (code, _, stderr) = ended(&["purge", "--older-than", "1h", "--store", server.address()]);
    assert!(code == 1 && stderr.contains("schema version 0"), "{stderr}");
}
