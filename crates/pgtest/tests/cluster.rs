//! What the package promises of a cluster, on real ones.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what a test cannot read or find is its failure")]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use longhaul_pgtest::{Cluster, Database, Durability, Error, Mode, Options, Server};

const WAIT_MAX: Duration = Duration::from_secs(30);

fn cluster() -> Cluster {
    Cluster::start(Options::default()).unwrap()
}

/// The one value that a query answers.
fn value(server: &Server, database: &str, sql: &str) -> String {
    let rows = server.query(database, sql).unwrap();
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
    rows[0][0].clone().unwrap()
}

fn numbers(server: &Server) -> Vec<String> {
    server.query("postgres", "SELECT n FROM numbers ORDER BY n").unwrap().into_iter().flatten().flatten().collect()
}

#[expect(clippy::disallowed_methods, reason = "the end of a foreign process can only be waited for in real time")]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < WAIT_MAX, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[test]
fn a_cluster_answers_with_the_settings_it_was_given() {
    let options = Options::new(Durability::Synced).setting("max_connections", "20");
    let cluster = Cluster::start(options).unwrap();
    for (name, expected) in [
        ("fsync", "on"),
        ("max_connections", "20"),
        ("listen_addresses", "127.0.0.1"),
        ("autovacuum", "on"),
        ("server_encoding", "UTF8"),
    ] {
        assert_eq!(value(&cluster, "postgres", &format!("SHOW {name}")), expected, "{name}");
    }
    assert_eq!(value(&cluster, "postgres", "SHOW port"), cluster.port().to_string());
    assert_eq!(value(&cluster, "postgres", "SELECT current_user"), "postgres");
}

#[test]
fn a_restart_keeps_port_and_data_in_every_mode() {
    let mut cluster = cluster();
    cluster.execute("postgres", "CREATE TABLE numbers (n int)").unwrap();
    let port = cluster.port();
    for (n, mode) in [Mode::Smart, Mode::Fast, Mode::Immediate].into_iter().enumerate() {
        cluster.execute("postgres", &format!("INSERT INTO numbers VALUES ({n})")).unwrap();
        let pid = cluster.pid().unwrap();
        cluster.stop(mode).unwrap();
        assert_eq!(cluster.pid(), None);
        assert!(!listens(port));
        assert!(matches!(cluster.query("postgres", "SELECT 1"), Err(Error::Statement { .. })));
        cluster.restart().unwrap();
        assert_ne!(cluster.pid(), Some(pid));
    }
    assert_eq!(cluster.port(), port);
    assert_eq!(numbers(&cluster), ["0", "1", "2"]);
}

#[test]
fn a_restart_of_a_running_cluster_stops_it_first() {
    let mut cluster = cluster();
    let pid = cluster.pid();
    cluster.restart().unwrap();
    assert_ne!(cluster.pid(), pid);
    assert_eq!(value(&cluster, "postgres", "SELECT 1"), "1");
}

#[test]
fn a_killed_cluster_recovers_what_was_committed() {
    let mut cluster = cluster();
    cluster.execute("postgres", "CREATE TABLE numbers (n int)").unwrap();
    cluster.execute("postgres", "CHECKPOINT").unwrap();
    cluster.execute("postgres", "INSERT INTO numbers VALUES (1)").unwrap();
    let data = value(&cluster, "postgres", "SHOW data_directory");
    let server = fs::read_link(format!("/proc/{}/exe", cluster.pid().unwrap())).unwrap();
    cluster.kill().unwrap();
    assert_eq!(cluster.pid(), None);
    assert!(!listens(cluster.port()));
    assert_eq!(
        control(server.parent().unwrap(), &data, "Database cluster state"),
        "in production",
        "it ended in order"
    );
    cluster.restart().unwrap();
    assert_eq!(numbers(&cluster), ["1"]);
    assert!(cluster.log_tail().contains("automatic recovery in progress"), "{}", cluster.log_tail());
}

/// A field of the data folder's control file, which only a shutdown in order changes to `shut down`.
fn control(programs: &Path, data: &str, field: &str) -> String {
    let output = Command::new(programs.join("pg_controldata")).arg(data).env("LC_ALL", "C").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn a_standby_follows_and_takes_writes_once_it_is_promoted() {
    let mut primary = cluster();
    primary.execute("postgres", "CREATE TABLE numbers (n int)").unwrap();
    let standby = primary.standby().unwrap();
    assert_ne!(standby.port(), primary.port());
    primary.execute("postgres", "INSERT INTO numbers VALUES (1)").unwrap();
    standby.catch_up(&primary).unwrap();
    assert_eq!(numbers(&standby), ["1"]);
    assert!(standby.execute("postgres", "INSERT INTO numbers VALUES (2)").is_err());

    primary.kill().unwrap();
    standby.promote().unwrap();
    standby.execute("postgres", "INSERT INTO numbers VALUES (2)").unwrap();
    assert_eq!(numbers(&standby), ["1", "2"]);
    // The old primary comes back with its own truth: nothing joins the two again.
    primary.restart().unwrap();
    assert_eq!(numbers(&primary), ["1"]);
}

#[test]
fn a_primary_cannot_be_promoted() {
    let error = cluster().promote().unwrap_err();
    assert!(format!("{error:?}").contains("recovery is not in progress"), "{error:?}");
}

#[test]
fn databases_are_apart_and_end_with_their_value() {
    let server = Server::shared().unwrap();
    let (one, other) = (Database::fresh().unwrap(), Database::fresh().unwrap());
    one.execute("CREATE TABLE numbers (n int)").unwrap();
    assert!(one.query("SELECT * FROM numbers").unwrap().is_empty());
    assert!(other.query("SELECT * FROM numbers").is_err());
    let name = one.name().to_owned();
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(value(&server, "postgres", &count), "1");
    drop(one);
    assert_eq!(value(&server, "postgres", &count), "0");
    assert!(other.query("SELECT 1").is_ok());
}

#[test]
fn a_database_with_clients_is_dropped_too() {
    let database = Database::fresh().unwrap();
    let (server, name) = (database.server().clone(), database.name().to_owned());
    let sleeper = {
        let (server, name) = (server.clone(), name.clone());
        thread::spawn(move || server.execute(&name, "SELECT pg_sleep(50)"))
    };
    let clients = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
    wait_until("the client never came", || value(&server, "postgres", &clients) == "1");
    drop(database);
    assert!(sleeper.join().unwrap().is_err());
    assert!(server.query(&name, "SELECT 1").is_err());
}

#[tokio::test]
async fn all_of_it_works_inside_a_runtime() {
    let database = Database::fresh().unwrap();
    assert_eq!(value(database.server(), database.name(), "SELECT 1"), "1");
}

#[test]
fn an_error_shows_the_end_of_the_log() {
    let error = Cluster::start(Options::default().setting("shared_buffers", "many")).unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("invalid value for parameter \"shared_buffers\""), "{text}");
    assert!(text.lines().count() > 1, "{text}");
}

/// A process of its own that owns a cluster, and what there is to see of the cluster.
struct Owner {
    process: Child,
    server: Server,
    port: u16,
    postmaster: u32,
    folder: String,
}

impl Owner {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_longhaul-pgtest"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let server: Server = line.trim().parse().unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
        let data = value(&server, "postgres", "SHOW data_directory");
        let postmaster = fs::read_to_string(format!("{data}/postmaster.pid")).unwrap();
        let postmaster = postmaster.lines().next().unwrap().parse().unwrap();
        Self { process, server, port, postmaster, folder: data.strip_suffix("/data").unwrap().to_owned() }
    }

    fn assert_that_nothing_stays(&self) {
        wait_until("its folder stays", || !fs::exists(&self.folder).unwrap());
        assert!(!listens(self.port));
        let left = fs::read_link(format!("/proc/{}/cwd", self.postmaster));
        assert!(left.is_err(), "its server stays in {left:?}");
    }
}

#[test]
fn nothing_of_a_cluster_stays_when_its_owner_is_killed() {
    let mut owner = Owner::start();
    owner.process.kill().unwrap();
    owner.process.wait().unwrap();
    owner.assert_that_nothing_stays();
}

#[test]
fn nothing_of_a_cluster_stays_when_its_owner_ends_with_clients_at_work() {
    let mut owner = Owner::start();
    let server = owner.server.clone();
    let sleeper = thread::spawn(move || server.execute("postgres", "SELECT pg_sleep(50)"));
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
    wait_until("the client never came", || value(&owner.server, "postgres", busy) == "1");
    drop(owner.process.stdin.take());
    assert!(owner.process.wait().unwrap().success());
    owner.assert_that_nothing_stays();
    assert!(sleeper.join().unwrap().is_err());
}

#[test]
fn nothing_of_a_cluster_stays_when_it_was_killed_and_dropped() {
    let mut cluster = cluster();
    let data = value(&cluster, "postgres", "SHOW data_directory");
    let file = fs::read_to_string(format!("{data}/postmaster.pid")).unwrap();
    let segment = file.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let inside = format!("{data}/pg_dynshmem");
    cluster.kill().unwrap();
    assert!(segments().contains(&segment), "a killed server leaves its segment");
    assert!(fs::read_dir(inside).unwrap().count() > 0, "its other memory is outside of the folder");
    drop(cluster);
    assert!(!segments().contains(&segment));
    assert!(!fs::exists(&data).unwrap());
}

/// The ids of all segments of System V memory.
fn segments() -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    table.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

#[test]
fn a_command_is_run_with_the_variable_and_its_exit_code_is_kept() {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul-pgtest"))
        .args(["sh", "-c", "printf %s \"$LONGHAUL_TEST_POSTGRES\"; exit 7"])
        .env_remove(Server::VARIABLE)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let address = String::from_utf8(output.stdout).unwrap();
    assert!(address.starts_with("postgres://postgres@127.0.0.1:"), "{address}");
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    assert!(!listens(port));
}
