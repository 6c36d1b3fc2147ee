//! Databases and settings that are refused, each with what is wrong and the next step.

use longhaul_pgtest::{Cluster, Database, Options};

use crate::support::{end_of, ended, longhaul, toml};

fn database() -> Database {
    Database::fresh().expect("there is PostgreSQL")
}

/// Makes the tables of a store.
fn migrated() -> Database {
    let database = database();
    assert_eq!(ended(&["migrate", "--store", database.url()]).0, 0);
    database
}

const SERVE: [&str; 5] = ["serve", "--exec", "cat", "--listen", "127.0.0.1:0"];

/// Says which text a server and an operator's command must end with on a database.
fn refused(url: &str, wrong: &str, hint: &str) {
    let wanted = format!("longhaul: cannot open the store in {url}: {wrong}\nhint: {hint}\n");
    for command in [&SERVE[..], &["purge", "--older-than", "1h"]] {
        let ended = ended(&[command, &["--store", url]].concat());
        assert_eq!(ended, (1, String::new(), wanted.clone()), "{command:?}");
    }
}

#[test]
fn an_empty_database_when_tables_may_not_be_made() {
    let database = database();
    let config = toml("store.postgres.migrate = false");
    let wanted = format!(
        "longhaul: cannot open the store in {}: the database has schema version 0, and this release needs 1\n\
         hint: run longhaul migrate, or leave store.postgres.migrate = false out\n",
        database.url()
    );
    let serve = [&SERVE[..], &["--store", database.url(), "--config", &config]].concat();
    assert_eq!(ended(&serve), (1, String::new(), wanted.clone()));
    // A command makes no tables in any case.
    let purge = ended(&["purge", "--older-than", "1h", "--store", database.url()]);
    assert_eq!(purge, (1, String::new(), wanted));
    let schemas = database.query("SELECT 1 FROM pg_namespace WHERE nspname = 'longhaul'").expect("it is answered");
    assert!(schemas.is_empty());
}

#[test]
fn tables_that_are_not_ours() {
    let database = database();
    database.execute("CREATE SCHEMA longhaul; CREATE TABLE longhaul.invoice (id int)").expect("it is made");
    refused(
        database.url(),
        "schema longhaul of the database holds tables that are not Longhaul's",
        "choose another schema with store.postgres.schema, or another database with --store",
    );
    let migrate = ended(&["migrate", "--store", database.url()]);
    let wanted = format!(
        "longhaul: cannot make or update the tables in {}: schema longhaul of the database holds tables that are not Longhaul's\n\
         hint: choose another schema with store.postgres.schema, or another database with --store\n",
        database.url()
    );
    assert_eq!(migrate, (1, String::new(), wanted));
    assert!(database.query("SELECT 1 FROM longhaul.invoice").is_ok(), "it is left as it was");
}

#[test]
fn tables_of_a_newer_release() {
    let database = migrated();
    let newer = "use the newer release of longhaul, or another database with --store";
    database
        .execute("UPDATE longhaul.meta SET value = 99 WHERE name IN ('schema', 'readable_by')")
        .expect("it is changed");
    let wrong = "the database has schema version 99, which needs a release that knows version 99; this one knows 1";
    refused(database.url(), wrong, newer);
    database
        .execute(
            "UPDATE longhaul.meta SET value = 1 WHERE name = 'readable_by';
             UPDATE longhaul.meta SET value = 7 WHERE name = 'payload_format'",
        )
        .expect("it is changed");
    refused(database.url(), "the database holds payloads of format 7, and this release knows format 1", newer);
}

#[test]
fn a_later_schema_that_this_release_can_work_on_is_no_hindrance() {
    let database = migrated();
    database.execute("UPDATE longhaul.meta SET value = 99 WHERE name = 'schema'").expect("it is changed");
    assert_eq!(ended(&["purge", "--older-than", "1h", "--store", database.url()]).0, 0);
}

const READ_ONLY: &str = "the database takes no writes: it is a standby or set to read only";
const PRIMARY: &str =
    "name the primary with --store; of several hosts (postgres://ONE,TWO/DATABASE) it is found by itself";

#[test]
fn a_database_that_is_set_to_read_only() {
    let database = migrated();
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name());
    database.execute(&set).expect("it is set");
    refused(database.url(), READ_ONLY, PRIMARY);
}

#[test]
fn a_standby() {
    let primary = Cluster::start(Options::default()).expect("there is PostgreSQL");
    let url = primary.create_database("tasks").expect("it is made");
    assert_eq!(ended(&["migrate", "--store", &url]).0, 0);
    let standby = primary.standby().expect("it follows");
    standby.catch_up(&primary).expect("it follows");
    refused(&standby.url("tasks"), READ_ONLY, PRIMARY);
    // Of both, the one that takes writes is taken.
    let both = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/tasks", standby.port(), primary.port());
    assert_eq!(ended(&["purge", "--older-than", "1h", "--store", &both]).0, 0);
}

#[test]
fn a_database_that_does_not_keep_its_text_as_utf8() {
    let database = database();
    let name = format!("{}_ascii", database.name());
    let make = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    database.server().execute("postgres", &make).expect("it is made");
    refused(
        &database.server().url(&name),
        "the database keeps its text as SQL_ASCII, and UTF8 is needed",
        "name a database with --store that was made with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
    );
    database.server().drop_database(&name).expect("it goes");
}

#[test]
fn a_database_that_does_not_exist() {
    let database = database();
    let url = database.server().url("no_such_database");
    let address = url.split('@').nth(1).and_then(|rest| rest.split('/').next()).expect("it has one");
    refused(
        &url,
        &format!(
            "the server of the database no_such_database at {address} refuses the connection: db error: \
             FATAL: database \"no_such_database\" does not exist"
        ),
        "check user and database in --store, and the password in PGPASSWORD or store.postgres.password_file; \
         docs/operations.md says how to make a role and a database",
    );
}

#[test]
fn a_role_that_may_not_make_the_schema() {
    let database = database();
    let role = format!("{}_poor", database.name());
    database.server().execute("postgres", &format!("CREATE ROLE {role} LOGIN")).expect("it is made");
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let (code, stdout, stderr) = ended(&["migrate", "--store", &url]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("permission denied for database"), "{stderr}");
    assert!(stderr.contains("hint: the role must own the schema or be allowed to make it"), "{stderr}");
    database.server().execute("postgres", &format!("DROP ROLE {role}")).expect("it goes");
}

#[test]
fn a_command_does_not_wait_for_a_database_that_is_not_there() {
    // Nothing listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("one is free").port();
    let url = format!("postgres://ada@127.0.0.1:{port}/tasks");
    let (code, stdout, stderr) = ended(&["purge", "--older-than", "1h", "--store", &url]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let start =
        format!("longhaul: cannot open the store in {url}: the database tasks at 127.0.0.1:{port} cannot be reached: ");
    assert!(stderr.starts_with(&start) && stderr.contains("refused"), "{stderr}");
    assert!(stderr.ends_with("\nhint: start the database, or name where it is with --store\n"), "{stderr}");
}

#[test]
fn settings_that_do_not_go_together() {
    let url = "postgres://ada@db/tasks";
    let normal = toml("store.synchronous = 'normal'");
    let data = toml("store.data = 'x'");
    let password = toml("store.postgres.password_file = '/no/such/file'");
    let none = toml("");
    #[rustfmt::skip]
    let cases: &[(&[&str], &str, &str)] = &[
        (&["--store", url, "--data", "x"], "--data: names the folder of a SQLite file, but tasks are kept in PostgreSQL", "leave it out, or keep tasks in that folder with --store sqlite"),
        (&["--store", url, "--config", &data], "settings.toml: store.data: names the folder of a SQLite file", "leave it out"),
        (&["--store", url, "--config", &normal], "store.synchronous: is \"normal\", which is for SQLite", "leave it out"),
        (&["--store", url, "--config", &password], "store.postgres.password_file: /no/such/file cannot be read: ", "name a file that holds the password"),
        (&["--store", "postgres://ada:x@db/tasks", "--config", &password], "store.postgres.password_file: is set although the address", "leave one of them out"),
        (&["--store", "mysql://ada:hunter2@db/tasks"], "--store: names no store that is known here", "the address of a PostgreSQL database"),
        (&["--store", "postgres://ada:hun@ter2@db/tasks"], "--store: is not the address of a database", "write @ as %40"),
        (&["--store", "postgres://db?sslmode=maybe"], "cannot open the store in postgres://db: ", "hint: check sslmode"),
        (&["--store", "postgres://db?unknown=1"], "the database's address cannot be read: ", "hint: write the address as postgres://"),
        (&["--worker-name", "a b"], "--worker-name: is \"a b\", and must be 1 to 64 letters", "change --worker-name"),
    ];
    for (arguments, message, hint) in cases {
        let config: &[&str] = if arguments.contains(&"--config") { &[] } else { &["--config", &none] };
        let (code, stdout, stderr) = ended(&[&["demo-server"], *arguments, config].concat());
        assert!(code != 0 && stdout.is_empty(), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.contains(hint), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("hunter2") && !stderr.contains("ter2"), "{stderr}");
    }
    let variable = end_of(longhaul(&["demo-server", "--store", url]).env("LONGHAUL_DATA", "x"));
    assert!(variable.0 == 2 && variable.2.contains("LONGHAUL_DATA: names the folder of a SQLite file"), "{variable:?}");
}
