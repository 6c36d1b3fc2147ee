//! Connections that read, shared by whoever reads.

use deadpool::managed::{self, Manager, Metrics, Object, PoolError, RecycleError, RecycleResult};
use futures_util::future::{join3, try_join_all};
use tokio_postgres::Row;

use crate::fault::{Fault, Remedy};
use crate::session::{Database, Param, Session, within};

/// How many connections are tried, of which the first may have died unnoticed.
const TRIES: usize = 3;

#[derive(Debug)]
struct Sessions(Database);

impl Manager for Sessions {
    type Type = Session;
    type Error = Fault;

    async fn create(&self) -> Result<Session, Fault> {
        self.0.connect().await
    }

    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<Fault> {
        match session.is_closed() {
            true => Err(RecycleError::message("the connection has ended")),
            false => Ok(()),
        }
    }
}

/// The connections that read.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    sessions: managed::Pool<Sessions>,
    limit: std::time::Duration,
    /// Whether a connection is given back on which somebody did not wait for the answer.
    keeps_abandoned: bool,
}

/// A connection on loan, which may not be worth giving back.
struct Lent {
    session: Option<Object<Sessions>>,
    is_spoilt: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.is_spoilt {
            drop(self.session.take().map(Object::take));
        }
    }
}

impl Pool {
    pub(crate) fn new(database: &Database) -> Result<Self, Fault> {
        let readers = database.config.readers.clamp(1, crate::PostgresConfig::READERS_MAX);
        Self::sized(database, readers, true)
    }

    /// Of one connection; another takes its place as soon as somebody is tired of waiting for an answer on it.
    pub(crate) fn single(database: &Database) -> Result<Self, Fault> {
        Self::sized(database, 1, false)
    }

    fn sized(database: &Database, connections: usize, keeps_abandoned: bool) -> Result<Self, Fault> {
        let sessions = managed::Pool::builder(Sessions(database.clone())).max_size(connections).build();
        let sessions = sessions.map_err(|error| Fault::NoConnection(error.to_string()))?;
        Ok(Self { sessions, limit: database.config.statement_timeout, keeps_abandoned })
    }

    async fn session(&self) -> Result<Object<Sessions>, Fault> {
        self.sessions.get().await.map_err(|error| match error {
            PoolError::Backend(fault) => fault,
            other => Fault::NoConnection(other.to_string()),
        })
    }

    /// Says one statement: what it reads is of one moment. It is said again on another connection when the first had died, so it
    /// must change nothing when it comes twice.
    pub(crate) async fn query(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        self.transact(&[(sql, params)]).await
    }

    /// Says several statements in one transaction, without waiting in between, and answers the rows of the last one; again as
    /// [`Pool::query`].
    pub(crate) async fn transact(&self, steps: &[Step<'_>]) -> Result<Vec<Row>, Fault> {
        Ok(self.transact_all(steps).await?.pop().unwrap_or_default())
    }

    /// As [`Pool::transact`], and answers the rows of each.
    pub(crate) async fn transact_all(&self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        let mut tries = 1;
        loop {
            let session = within(self.limit, self.session()).await?;
            let mut lent = Lent { session: Some(session), is_spoilt: !self.keeps_abandoned };
            let Some(session) = &lent.session else { continue };
            let said = async {
                match steps {
                    [(sql, params)] => Ok(vec![session.query(sql, params).await?]),
                    steps => transaction(session, steps).await,
                }
            };
            let done = within(self.limit, said).await;
            let remedy = done.as_ref().err().map(Fault::remedy);
            // Not given back then: what is still to come on it would be another's answer.
            lent.is_spoilt = remedy == Some(Remedy::Reconnect);
            drop(lent);
            let (Err(fault), Some(remedy)) = (&done, remedy) else { return done };
            let again = matches!(remedy, Remedy::Reconnect | Remedy::Again) && !matches!(fault, Fault::TooLong(_));
            if tries == TRIES || !again {
                return done;
            }
            tries += 1;
        }
    }

    /// As [`Pool::query`], for at most one row.
    pub(crate) async fn query_opt(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Option<Row>, Fault> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    pub(crate) fn close(&self) {
        self.sessions.close();
    }
}

/// A statement and its parameters.
pub(crate) type Step<'p> = (&'static str, &'p [Param<'p>]);

/// If one step is refused so are those behind it, and the end of the transaction undoes it.
async fn transaction(session: &Session, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
    let ends = (session.prepare("BEGIN").await?, session.prepare("COMMIT").await?);
    let mut prepared = Vec::with_capacity(steps.len());
    for (sql, params) in steps {
        prepared.push((session.prepare(sql).await?, *params));
    }
    let client = session.client();
    let said = try_join_all(prepared.iter().map(|(statement, params)| client.query(statement, params)));
    let (begun, said, ended) = join3(client.execute(&ends.0, &[]), said, client.execute(&ends.1, &[])).await;
    begun?;
    let rows = said?;
    ended?;
    Ok(rows)
}
