//! Connections to the database, each set up as this store needs it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Notification, Row, Statement};
use tokio_util::task::TaskTracker;

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::fault::Fault;

/// What the statements' parameters are given as.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// The database, and how a connection to it is made.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) config: PostgresConfig,
    connector: Connector,
    tracker: TaskTracker,
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Database").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn new(config: PostgresConfig, connector: Connector, tracker: TaskTracker) -> Self {
        Self { config, connector, tracker }
    }

    /// Where the database is, without secrets.
    pub(crate) fn place(&self) -> String {
        self.connector.place()
    }

    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Opens a connection and sets it up.
    pub(crate) async fn connect(&self) -> Result<Session, Fault> {
        self.connect_hearing(|_| {}).await
    }

    /// As [`Database::connect`], with what is to be done for each notification that comes on it; it is dropped when the
    /// connection has ended.
    pub(crate) async fn connect_hearing(
        &self,
        hear: impl FnMut(Notification) + Send + 'static,
    ) -> Result<Session, Fault> {
        let limit = self.config.connect_timeout;
        // Apart from the stack of whoever reads or writes: the steps of a new connection take a lot of room.
        let connecting = Box::pin(async {
            let client = self.connector.connect(&self.tracker, hear).await?;
            client.batch_execute(&settings(&self.config)).await?;
            Ok(Session { client, statements: Mutex::default() })
        });
        within(limit, connecting).await
    }
}

/// How long a transaction may stand still.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// What is said first on each connection. Every statement of this store goes along an index, whatever the planner may think of
/// tables that it has not looked at yet; and a plan that is made once serves for ever.
fn settings(config: &PostgresConfig) -> String {
    let timeout = config.statement_timeout.as_millis();
    // An instance that is paused in the middle of a transaction keeps the others from its tasks.
    let idle = timeout.min(IDLE_MAX.as_millis());
    format!(
        "SET search_path = {schema};
         SET statement_timeout = {timeout};
         SET lock_timeout = {timeout};
         SET idle_in_transaction_session_timeout = {idle};
         SET idle_session_timeout = 0;
         SET default_transaction_isolation = 'read committed';
         SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
         SET plan_cache_mode = force_generic_plan; SET jit = off; SET client_min_messages = warning;
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        schema = quoted(&config.schema),
    )
}

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// One connection, with the statements that were said on it.
pub(crate) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Prepares a statement, once for each connection.
    pub(crate) async fn prepare(&self, sql: &'static str) -> Result<Statement, Fault> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }

    pub(crate) async fn query(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        Ok(self.client.query(&self.prepare(sql).await?, params).await?)
    }

    pub(crate) async fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, Fault> {
        Ok(self.client.execute(&self.prepare(sql).await?, params).await?)
    }
}

/// Waits for a step in the database, but not for ever: a network that swallows what it is given says nothing.
pub(crate) async fn within<T>(limit: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(limit, step).await.unwrap_or(Err(Fault::TooLong(limit)))
}
