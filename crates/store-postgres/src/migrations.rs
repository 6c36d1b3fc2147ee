//! The tables, and how they are brought up to date.

use tokio_postgres::Client;

use crate::OpenError;
use crate::fault::Fault;
use crate::session::{Database, Session, quoted};
use longhaul_store::columns::PAYLOAD_FORMAT;

/// The migrations in their order; the number of the last one is the version of the schema. They only go forward, and the
/// previous release must run on the new schema: one that it can't run on raises `readable_by` in the table `meta`.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_init.sql")];

/// The oldest server that has all that is used.
const SERVER_VERSION_MIN: u32 = 15;
/// Held while the tables are changed, so that instances that start together do it one after the other: "LHUL".
const MIGRATION_LOCK: i64 = 0x4C48_554C;

/// What the database says of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SchemaState {
    /// The version of the tables before; 0 when there were none.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// The newest schema that this release knows.
pub(crate) fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

/// Looks whether the database can be worked on, and makes or changes the tables if `migrate` says so.
pub(crate) async fn prepare(database: &Database, migrate: bool) -> Result<SchemaState, OpenError> {
    look_and_migrate(database, migrate).await.map_err(|error| unless_lost(error, database))
}

/// A connection that is lost in the middle is as one that can't be had: the server may be going down to come up again.
fn unless_lost(error: OpenError, database: &Database) -> OpenError {
    let OpenError::Database { action, source } = error else { return error };
    match source.downcast::<tokio_postgres::Error>().map(|error| Fault::Database(*error)) {
        Ok(fault) if fault.leaves_open() => OpenError::Unreachable { place: database.place(), source: fault.into() },
        Ok(fault) => OpenError::Database { action, source: fault.into() },
        Err(source) => OpenError::Database { action, source },
    }
}

async fn look_and_migrate(database: &Database, migrate: bool) -> Result<SchemaState, OpenError> {
    let outside = |fault: Fault| match (fault.is_refusal(), database.place()) {
        (true, place) => OpenError::Refused { place, source: fault.into() },
        (false, place) => OpenError::Unreachable { place, source: fault.into() },
    };
    let session = database.connect().await.map_err(outside)?;
    check_server(&session).await?;
    let schema = &database.config.schema;
    let client = session.client();
    refuse_read_only(client).await?;
    let from = match version(client, schema).await? {
        Some(found) => found,
        None if migrate => 0,
        None => return Err(OpenError::Older { found: 0, needed: newest() }),
    };
    if from < newest() {
        if !migrate {
            return Err(OpenError::Older { found: from, needed: newest() });
        }
        self::migrate(client, schema).await?;
    }
    check_form(client).await?;
    let to = version(client, schema).await?.unwrap_or(0);
    Ok(SchemaState { from, to })
}

fn failed(action: &'static str) -> impl Fn(tokio_postgres::Error) -> OpenError {
    move |error| OpenError::Database { action, source: error.into() }
}

async fn check_server(session: &Session) -> Result<(), OpenError> {
    let asked = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), current_setting('server_encoding')";
    let row =
        session.client().query_one(asked, &[]).await.map_err(failed("read the version of the database's server"))?;
    let number: i64 = row.get(0);
    if number / 10_000 < i64::from(SERVER_VERSION_MIN) {
        return Err(OpenError::ServerTooOld { found: row.get(1), needed: SERVER_VERSION_MIN });
    }
    let encoding: String = row.get(2);
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { found: encoding });
    }
    Ok(())
}

/// A standby would be found out by the first write.
async fn refuse_read_only(client: &Client) -> Result<(), OpenError> {
    let asked = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";
    let row = client.query_one(asked, &[]).await.map_err(failed("ask whether the database takes writes"))?;
    if row.get(0) { Err(OpenError::ReadOnly) } else { Ok(()) }
}

/// The version of the tables; `None` when there are none.
async fn version(client: &Client, schema: &str) -> Result<Option<i64>, OpenError> {
    let tables = "SELECT count(*) FILTER (WHERE c.relname = 'meta' AND EXISTS (SELECT 1 FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.attname = 'value' AND a.atttypid = 'bigint'::regtype)), count(*)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm')";
    let row = client.query_one(tables, &[&schema]).await.map_err(failed("look for the tables"))?;
    let (ours, all): (i64, i64) = (row.get(0), row.get(1));
    if all == 0 {
        return Ok(None);
    }
    let not_ours = || OpenError::NotOurs { schema: schema.to_owned() };
    if ours == 0 {
        return Err(not_ours());
    }
    let asked = format!("SELECT value FROM {}.meta WHERE name = 'schema'", quoted(schema));
    let row = client.query_opt(&asked, &[]).await.map_err(failed("read the schema version"))?;
    row.map(|row| Some(row.get(0))).ok_or_else(not_ours)
}

async fn migrate(client: &Client, schema: &str) -> Result<(), OpenError> {
    let making = failed("make the tables, or bring them up to date");
    // Of the session, as each migration is a transaction of its own. It may wait for as long as another instance takes.
    client.batch_execute("SET lock_timeout = 0; SET statement_timeout = 0").await.map_err(&making)?;
    client.execute("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await.map_err(&making)?;
    let exists = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    // Not `IF NOT EXISTS`, which asks for the right to make schemas even where there is one.
    if client.query_opt(exists, &[&schema]).await.map_err(&making)?.is_none() {
        client.batch_execute(&format!("CREATE SCHEMA {}", quoted(schema))).await.map_err(&making)?;
    }
    // Another instance may have been first.
    let from = version(client, schema).await?.unwrap_or(0);
    for (migration, version) in MIGRATIONS.iter().zip(1..) {
        if version > from {
            let step =
                format!("BEGIN;\n{migration}\nUPDATE meta SET value = {version} WHERE name = 'schema';\nCOMMIT;");
            client.batch_execute(&step).await.map_err(&making)?;
            tracing::info!(version, "the database's tables were brought to a new schema version");
        }
    }
    client.execute("SELECT pg_advisory_unlock($1)", &[&MIGRATION_LOCK]).await.map_err(&making)?;
    Ok(())
}

/// Refuses tables that this release can't work on.
async fn check_form(client: &Client) -> Result<(), OpenError> {
    let asked = "SELECT name, value FROM meta WHERE name IN ('schema', 'readable_by', 'payload_format')";
    let rows = client.query(asked, &[]).await.map_err(failed("read the schema version"))?;
    let value =
        |name: &str| rows.iter().find(|row| row.get::<_, &str>(0) == name).map_or(0, |row| row.get::<_, i64>(1));
    let (found, readable_by) = (value("schema"), value("readable_by"));
    if readable_by > newest() {
        return Err(OpenError::Newer { found, readable_by, known: newest() });
    }
    let format = value("payload_format");
    if format != PAYLOAD_FORMAT {
        return Err(OpenError::PayloadFormat { found: format, known: PAYLOAD_FORMAT });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longhaul_pgtest::Database as Fresh;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::PostgresConfig;
    use crate::connect::Connector;
    use crate::testing::PATIENCE;

    #[tokio::test]
    async fn a_connection_that_is_lost_in_the_middle_is_worth_another_try() {
        let fresh = Fresh::fresh().unwrap();
        let config = PostgresConfig { url: fresh.url().to_owned(), ..PostgresConfig::default() };
        let database = Database::new(config.clone(), Connector::new(&config).unwrap(), TaskTracker::new());
        // Another instance has the lock, and the server cuts off who waits for it.
        let other = database.connect().await.unwrap();
        other.client().execute("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await.unwrap();
        let cut = async {
            let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            while other.client().query_one(cut, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
        };
        let both = futures_util::future::join(prepare(&database, true), cut);
        let (failed, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
        assert!(matches!(failed, Err(OpenError::Unreachable { .. })), "{failed:?}");
        drop(other);
        assert_eq!(prepare(&database, true).await.unwrap(), SchemaState { from: 0, to: newest() });
    }
}
