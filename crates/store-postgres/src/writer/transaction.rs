//! One transaction: takes the tasks of its commits, decides, and writes.

use futures_util::future::{join_all, try_join_all};
use longhaul_protocol::TaskId;
use longhaul_store::{Committed, EncodedCommit, StoreError};
use tokio_postgres::{Row, Statement};

use super::batch::{AcceptedBefore, Batch, Existence, Facts, MessageKey, Needs, Told, Written};
use super::known::{Key, Known};
use super::statements;
use crate::fault::{Fault, Remedy};
use crate::session::{Param, Session, within};
use crate::{LeaseClock, PostgresConfig};

/// Why a transaction failed, and whether it may have been made all the same.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) fault: Fault,
    pub(super) may_be_made: bool,
}

impl Failure {
    /// Before anything was to be kept.
    pub(super) fn before(fault: Fault) -> Self {
        Self { fault, may_be_made: false }
    }
}

type Outcomes = Vec<Result<Committed, StoreError>>;

/// Makes all commits that may be made, or none of them. Two trips to the database: what is asked, and what is written; one, if
/// nothing has to be asked.
pub(super) async fn transact(
    session: &Session,
    config: &PostgresConfig,
    commits: &[&EncodedCommit],
    existence: Existence,
) -> Result<(Outcomes, Told), Failure> {
    let limit = config.statement_timeout;
    let needs = Needs::of(commits, existence);
    let begun = !needs.is_nothing();
    let facts = match begun {
        true => within(limit, ask(session, config, &needs)).await,
        false => Ok(Facts::default()),
    };
    let facts = match facts {
        Ok(facts) => facts,
        Err(fault) => {
            return Err(undone(session, config, fault).await);
        }
    };
    let mut batch = Batch::new(config.lease_clock, facts);
    let outcomes: Outcomes = commits.iter().map(|commit| batch.add(commit)).collect();
    let (written, told) = batch.finish(rand::random());
    let prepared = match within(limit, prepare(session, &written)).await {
        Ok(prepared) => prepared,
        Err(fault) => {
            return Err(undone(session, config, fault).await);
        }
    };
    match within(limit, write(session, prepared, begun)).await {
        Ok(()) => Ok((outcomes, told)),
        Err(fault) => Err(Failure { may_be_made: fault.leaves_open(), fault }),
    }
}

/// Nothing of a transaction is to be kept that failed before its end was sent. A session that is of no use any more ends it by
/// ending itself.
async fn undone(session: &Session, config: &PostgresConfig, fault: Fault) -> Failure {
    if fault.remedy() != Remedy::Reconnect {
        roll_back(session, config).await;
    }
    Failure::before(fault)
}

/// Ends a transaction of which nothing is to be kept. Where that fails the session is closed, which ends it as well.
async fn roll_back(session: &Session, config: &PostgresConfig) {
    let rolled_back = within(config.statement_timeout, async { Ok(session.client().batch_execute("ROLLBACK").await?) });
    if let Err(fault) = rolled_back.await {
        tracing::debug!(error = &fault as &dyn std::error::Error, "cannot roll back");
    }
}

/// A statement with its parameters.
type Said<'p> = (Statement, Vec<Param<'p>>);

/// The keys of tasks as two columns.
struct TaskKeys<'b> {
    shards: Vec<i16>,
    ids: Vec<&'b str>,
}

impl<'b> TaskKeys<'b> {
    fn new(keys: impl IntoIterator<Item = Key<'b>>) -> Self {
        let (shards, ids) = keys.into_iter().map(|key| (key.shard, key.id)).unzip();
        Self { shards, ids }
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![&self.shards, &self.ids]
    }

    /// The task that stands at a place counted from 1, as rows name it.
    fn at(&self, row: &Row) -> Result<&'b str, Fault> {
        let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).ok();
        let id = place.and_then(|place| self.ids.get(place)).copied();
        id.ok_or_else(|| StoreError::corrupt("a row stands at a place that was not asked for").into())
    }
}

/// Takes the tasks, and reads what else decides.
async fn ask<'b>(session: &Session, config: &PostgresConfig, needs: &Needs<'b>) -> Result<Facts<'b>, Fault> {
    let waits = TaskKeys::new(needs.waits.iter().copied());
    let claims = TaskKeys::new(needs.claims.iter().copied());
    let free = TaskKeys::new(needs.free.iter().copied());
    let held = TaskKeys::new(needs.tasks().into_iter().filter(|key| !needs.free.contains(key)));
    let messages: Vec<MessageKey<'b>> = needs.messages.iter().copied().collect();
    let message_shards: Vec<i16> = messages.iter().map(|key| key.0).collect();
    let [tenants, owners, ids]: [Vec<&str>; 3] = [
        messages.iter().map(|key| key.1).collect(),
        messages.iter().map(|key| key.2).collect(),
        messages.iter().map(|key| key.3).collect(),
    ];
    let asked = [
        (statements::LOCK_TASKS, waits.params(), !waits.ids.is_empty()),
        (statements::CLAIM_TASKS, claims.params(), !claims.ids.is_empty()),
        (statements::LOCK_LEASES, free.params(), !free.ids.is_empty()),
        (statements::READ_LEASES, held.params(), !held.ids.is_empty()),
        (statements::FIND_ACCEPTED, vec![&message_shards as Param<'_>, &tenants, &owners, &ids], !messages.is_empty()),
        (statements::NOW, Vec::new(), config.lease_clock == LeaseClock::Database),
    ];
    let mut prepared: Vec<Option<Said<'_>>> = Vec::with_capacity(asked.len());
    for (sql, params, wanted) in asked {
        prepared.push(if wanted { Some((session.prepare(sql).await?, params)) } else { None });
    }
    let begin = session.prepare(statements::BEGIN).await?;
    // One after the other in the database, without waiting for an answer in between.
    let answers = prepared.iter().map(|said| async move {
        match said {
            Some((statement, params)) => session.client().query(statement, params).await,
            None => Ok(Vec::new()),
        }
    });
    let (begun, answers) = futures_util::future::join(session.client().execute(&begin, &[]), join_all(answers)).await;
    begun?;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let [locked, claimed, free_leases, held_leases, accepted, now] =
        <[Vec<Row>; 6]>::try_from(answers).map_err(|_| StoreError::corrupt("an answer is missing"))?;
    let mut facts = Facts::default();
    for (keys, rows) in [(&waits, &locked), (&claims, &claimed)] {
        for row in rows {
            facts.tasks.insert(keys.at(row)?, Known::read(row)?);
        }
    }
    for (keys, rows) in [(&free, &free_leases), (&held, &held_leases)] {
        for row in rows {
            let epoch = longhaul_store::columns::count(row.try_get(1)?, "the epoch of a lease")?;
            if let Some(known) = facts.tasks.get_mut(keys.at(row)?) {
                known.renewed_until(epoch, row.try_get(2)?);
            }
        }
    }
    for row in &accepted {
        let (key, before) = accepted_before(&messages, row)?;
        facts.accepted.insert(key, before);
    }
    facts.now = now.first().map(|row| row.try_get(0)).transpose()?;
    facts.busy = busy(session, &claims, &facts).await?;
    Ok(facts)
}

fn accepted_before<'b>(messages: &[MessageKey<'b>], row: &Row) -> Result<(MessageKey<'b>, AcceptedBefore), Fault> {
    let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).ok();
    let key = place.and_then(|place| messages.get(place)).copied();
    let key = key.ok_or_else(|| StoreError::corrupt("a row stands at a place that was not asked for"))?;
    let task = TaskId::new(row.try_get::<_, &str>(1)?);
    let task = task.map_err(|error| StoreError::corrupt(format!("the task of a message: {error}")))?;
    let digest = row.try_get::<_, &[u8]>(2)?.try_into();
    let digest = digest.map_err(|_| StoreError::corrupt("the digest of a message has another length"))?;
    Ok((key, AcceptedBefore { task, digest, expires_at: row.try_get(3)?, task_is_there: row.try_get(4)? }))
}

/// Of the tasks that were to be claimed and were not had, those that are there.
async fn busy<'b>(
    session: &Session,
    claims: &TaskKeys<'b>,
    facts: &Facts<'b>,
) -> Result<std::collections::BTreeSet<&'b str>, Fault> {
    let missing = claims.shards.iter().zip(&claims.ids).filter(|(_, id)| !facts.tasks.contains_key(*id));
    let missing = TaskKeys::new(missing.map(|(shard, id)| Key { shard: *shard, id }));
    if missing.ids.is_empty() {
        return Ok(std::collections::BTreeSet::new());
    }
    let rows = session.query(statements::TASKS_THERE, &missing.params()).await?;
    rows.iter().map(|row| missing.at(row)).collect()
}

/// Prepares what is to be said, so that it can be said without a pause.
async fn prepare<'w>(session: &Session, written: &'w Written<'_>) -> Result<Vec<Said<'w>>, Fault> {
    let mut prepared = Vec::new();
    for columns in written.columns() {
        prepared.push((session.prepare(columns.sql()).await?, columns.params()));
    }
    Ok(prepared)
}

/// Writes everything and ends the transaction, in one trip.
async fn write(session: &Session, rows: Vec<Said<'_>>, begun: bool) -> Result<(), Fault> {
    let (begin, commit) = (session.prepare(statements::BEGIN).await?, session.prepare(statements::COMMIT).await?);
    let client = session.client();
    let begin = (!begun).then_some((begin, Vec::new()));
    let all: Vec<Said<'_>> = begin.into_iter().chain(rows).chain([(commit, Vec::new())]).collect();
    // If one is refused so are those behind it, and the end of the transaction undoes it.
    try_join_all(all.iter().map(|(statement, params)| client.execute(statement, params))).await?;
    Ok(())
}
