//! Settlements: those that wait are made in one transaction.

use std::collections::HashSet;

use longhaul_protocol::Timestamp;
use longhaul_store::columns::int;
use longhaul_store::{DueDelivery, Next, Settlement, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;

use super::statements;
use crate::fault::{Fault, Remedy};
use crate::pool::Pool;
use crate::session::Param;
use crate::shards;

/// How many settlements may wait before who sends one has to wait for a place.
pub(crate) const QUEUE_MAX: usize = 1024;
/// How many settlements one transaction makes at the most.
const BATCH_MAX: usize = 256;

pub(super) const SETTLE: &str = "settle a delivery";

/// A settlement on its way, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) told: Told,
    pub(super) answer: oneshot::Sender<Result<Next, StoreError>>,
}

/// What became of a delivery, as it is written.
#[derive(Debug)]
pub(super) struct Told {
    shard: i16,
    task_id: String,
    config_id: String,
    sequence: u64,
    epoch: u64,
    is_dead: bool,
    /// Whether the event is done with, one way or the other.
    advances: bool,
    /// Whether it was an attempt that failed.
    counts: bool,
    /// Why it was given up, or stays so.
    error: Option<String>,
    /// When it, or what comes next, is to be tried.
    at: Option<i64>,
    holds: bool,
    now: i64,
    host: String,
    attempts: i64,
}

impl Told {
    /// `None` for what removes the config: that takes more than a row of it.
    pub(super) fn new(
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let next = hold.unwrap_or(now);
        let (advances, counts, error, at) = match settlement {
            Settlement::Delivered => (true, false, None, Some(next)),
            Settlement::Dead { error } => {
                (!delivery.is_dead, true, Some(error), Some(next).filter(|_| !delivery.is_dead))
            }
            Settlement::Retry { error, counts: true, .. } if delivery.is_dead => (false, true, Some(error), None),
            Settlement::Retry { at, counts, .. } => (false, counts, None, Some(at)),
            Settlement::Gone => return None,
        };
        Some(Self {
            shard: shards::of_task(&delivery.task_id),
            task_id: delivery.task_id.as_str().to_owned(),
            config_id: delivery.config.id.as_str().to_owned(),
            sequence: delivery.sequence,
            epoch: delivery.epoch,
            is_dead: delivery.is_dead,
            advances,
            counts,
            // What a receiver has sent may be in it, and the database takes no U+0000.
            error: error.map(|error| error.replace('\0', "\u{fffd}")),
            at: at.map(Timestamp::unix_millis),
            holds: hold.is_some() && !delivery.is_dead,
            now: now.unix_millis(),
            host: delivery.config.host.clone(),
            attempts: i64::from(delivery.attempts),
        })
    }

    /// Which row it is written to; rows are taken in this order.
    fn key(&self) -> (bool, i16, &str, &str, u64) {
        let sequence = if self.is_dead { self.sequence } else { 0 };
        (self.is_dead, self.shard, &self.task_id, &self.config_id, sequence)
    }

    fn next(&self, has_more: bool) -> Next {
        match self.holds && self.advances && has_more {
            true => Next::Held { sequence: self.sequence + 1 },
            false => Next::Released,
        }
    }
}

/// Makes settlements until nobody is left who could send one.
pub(crate) async fn run(pool: Pool, mut queue: mpsc::Receiver<Job>) {
    let mut left_over: Vec<Job> = Vec::new();
    loop {
        if left_over.is_empty() {
            let Some(first) = queue.recv().await else { return };
            left_over.push(first);
        }
        // What came in while the last batch was made is the next one: no delay is ever added.
        while left_over.len() < BATCH_MAX
            && let Ok(job) = queue.try_recv()
        {
            left_over.push(job);
        }
        let batch = take_batch(&mut left_over);
        let (dead, configs) = batch.into_iter().partition(|job: &Job| job.told.is_dead);
        settle(&pool, configs).await;
        settle(&pool, dead).await;
    }
}

/// Takes what one transaction can make, in the order of the rows: two settlements of one row are made one after the other.
fn take_batch(waiting: &mut Vec<Job>) -> Vec<Job> {
    let mut taken = HashSet::new();
    let is_first: Vec<bool> = waiting.iter().map(|job| taken.insert(job.told.key())).collect();
    drop(taken);
    let (mut batch, mut later) = (Vec::with_capacity(waiting.len()), Vec::new());
    for (job, is_first) in std::mem::take(waiting).into_iter().zip(is_first) {
        if is_first { batch.push(job) } else { later.push(job) }
    }
    *waiting = later;
    batch.sort_by(|one, other| one.told.key().cmp(&other.told.key()));
    batch
}

/// Makes settlements of one kind, and answers; what may be the fault of one of them is then tried one by one.
async fn settle(pool: &Pool, batch: Vec<Job>) {
    let fault = match settle_together(pool, &batch).await {
        Ok(answers) => return batch.into_iter().zip(answers).for_each(|(job, next)| answer(job, Ok(next))),
        Err(fault) => fault,
    };
    if fault.remedy() != Remedy::Alone || batch.len() == 1 {
        let error = &fault as &dyn std::error::Error;
        tracing::error!(error, settlements = batch.len(), "cannot settle deliveries");
        return batch.into_iter().for_each(|job| answer(job, Err(StoreError::unavailable(SETTLE, fault.told()))));
    }
    for job in batch {
        Box::pin(settle(pool, vec![job])).await;
    }
}

fn answer(job: Job, outcome: Result<Next, StoreError>) {
    // Who waited may have gone.
    drop(job.answer.send(outcome));
}

async fn settle_together(pool: &Pool, batch: &[Job]) -> Result<Vec<Next>, Fault> {
    let Some(first) = batch.first() else { return Ok(Vec::new()) };
    let told: Vec<&Told> = batch.iter().map(|job| &job.told).collect();
    let rows = if first.told.is_dead { settle_dead(pool, &told).await? } else { settle_configs(pool, &told).await? };
    let mut answers = vec![Next::Lost; batch.len()];
    for row in &rows {
        let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        if let (Some(answer), Some(told)) = (answers.get_mut(place), told.get(place)) {
            *answer = told.next(row.try_get(1)?);
        }
    }
    Ok(answers)
}

async fn settle_configs(pool: &Pool, told: &[&Told]) -> Result<Vec<Row>, Fault> {
    let Keys { shards, tasks, configs, sequences, epochs } = Keys::of(told);
    let advances: Vec<bool> = told.iter().map(|told| told.advances).collect();
    let counts: Vec<bool> = told.iter().map(|told| told.counts).collect();
    let at: Vec<Option<i64>> = told.iter().map(|told| told.at).collect();
    let now: Vec<i64> = told.iter().map(|told| told.now).collect();
    let errors: Vec<Option<&str>> = told.iter().map(|told| told.error.as_deref()).collect();
    let hosts: Vec<&str> = told.iter().map(|told| told.host.as_str()).collect();
    // Of the one that was given up.
    let attempts: Vec<i64> = told.iter().map(|told| told.attempts + 1).collect();
    let taken: [Param<'_>; 3] = [&shards, &tasks, &configs];
    let settled: [Param<'_>; 12] =
        [&shards, &tasks, &configs, &sequences, &epochs, &advances, &counts, &at, &now, &errors, &hosts, &attempts];
    pool.transact(&[(statements::TAKE_CONFIGS, &taken), (statements::SETTLE, &settled)]).await
}

async fn settle_dead(pool: &Pool, told: &[&Told]) -> Result<Vec<Row>, Fault> {
    let Keys { shards, tasks, configs, sequences, epochs } = Keys::of(told);
    let delivered: Vec<bool> = told.iter().map(|told| told.advances).collect();
    let at: Vec<Option<i64>> = told.iter().map(|told| told.at).collect();
    let errors: Vec<Option<&str>> = told.iter().map(|told| told.error.as_deref()).collect();
    let taken: [Param<'_>; 4] = [&shards, &tasks, &configs, &sequences];
    let settled: [Param<'_>; 8] = [&shards, &tasks, &configs, &sequences, &epochs, &delivered, &at, &errors];
    pool.transact(&[(statements::TAKE_DEAD, &taken), (statements::SETTLE_DEAD, &settled)]).await
}

/// The columns that both kinds have.
struct Keys<'t> {
    shards: Vec<i16>,
    tasks: Vec<&'t str>,
    configs: Vec<&'t str>,
    sequences: Vec<i64>,
    epochs: Vec<i64>,
}

impl<'t> Keys<'t> {
    fn of(told: &[&'t Told]) -> Self {
        Self {
            shards: told.iter().map(|told| told.shard).collect(),
            tasks: told.iter().map(|told| told.task_id.as_str()).collect(),
            configs: told.iter().map(|told| told.config_id.as_str()).collect(),
            sequences: told.iter().map(|told| int(told.sequence)).collect(),
            epochs: told.iter().map(|told| int(told.epoch)).collect(),
        }
    }
}
