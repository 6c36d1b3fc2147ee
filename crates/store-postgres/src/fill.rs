use std::pin::pin;

use longhaul_protocol::{ContextId, TaskId, Timestamp};
use longhaul_store::columns::int;
use longhaul_store::fill::{FilledTask, Patched, filled_ids};
use longhaul_store::{EventKind, Scope};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_util::task::TaskTracker;

use crate::connect::Connector;
use crate::counts::{self, Counts};
use crate::fault::Fault;
use crate::session::{Database, Param, Session};
use crate::shards;
use crate::{OpenError, PostgresConfig, migrations};

/// How many tasks are written at once.
const CHUNK: u64 = 20_000;
/// How many numbers one fill may give out: so many lie between the numbers with which two of them begin.
const NUMBERS: i64 = 1 << 32;

/// Fills the store with `tasks` finished tasks of nobody in particular, for benchmarks: each with one message, one artifact and four
/// events, in a context of its own. The newest ended at `now`, each other one a second before the next. The tables are made when
/// they are absent, and the database's planner gets to know them.
///
/// # Errors
///
/// [`OpenError`] when the store can't be opened, or not be written: a part of the tasks may then be there.
pub async fn fill(config: &PostgresConfig, tasks: u64, now: Timestamp) -> Result<(), OpenError> {
    let database = Database::new(config.clone(), Connector::new(config)?, TaskTracker::new());
    migrations::prepare(&database, true).await?;
    write_all(&database, tasks, now).await.map_err(|fault| OpenError::Database { action: "fill", source: fault.into() })
}

async fn write_all(database: &Database, tasks: u64, now: Timestamp) -> Result<(), Fault> {
    let template = FilledTask::new(now)?;
    let sessions = [connect(database).await?, connect(database).await?];
    let first = i64::from(rand::random::<u16>()) * NUMBERS;
    let mut done = 0;
    while done < tasks {
        let numbers = done..tasks.min(done + CHUNK);
        let written = numbers.clone().map(|n| {
            let ended = now.unix_millis() - int(tasks - 1 - n) * 1000;
            let (id, context) = filled_ids(&Scope::default().tenant, ended, first + int(n))?;
            Ok(Written { shard: shards::of_task(&id), id, context, ended })
        });
        let written = written.collect::<Result<Vec<_>, Fault>>()?;
        // The logs are the half of it. A task is there only when its log is.
        let [logs, others] = &sessions;
        let (logs, others) =
            tokio::join!(write_logs(logs, &template, &written), write_others(others, &template, &written));
        logs.and(others)?;
        done = numbers.end;
    }
    let [session, _] = &sessions;
    for table in ["task", "event", "message", "task_count", "task_count_delta"] {
        session.client().batch_execute(&format!("VACUUM (ANALYZE) {table}")).await?;
    }
    Ok(())
}

async fn connect(database: &Database) -> Result<Session, Fault> {
    let session = database.connect().await?;
    // The flush that counts is the server's own, at its next checkpoint.
    session.client().batch_execute("SET statement_timeout = 0; SET synchronous_commit = off").await?;
    Ok(session)
}

/// A task as it is written.
struct Written {
    shard: i16,
    id: TaskId,
    context: ContextId,
    ended: i64,
}

async fn write_logs(session: &Session, template: &FilledTask, tasks: &[Written]) -> Result<(), Fault> {
    const INTO: &str = "COPY event (shard, task_id, sequence, kind, time, payload) FROM STDIN BINARY";
    let types = [Type::INT2, Type::TEXT, Type::INT8, Type::INT2, Type::INT8, Type::BYTEA];
    let mut events: Vec<(i16, Patched)> =
        template.events.iter().map(|(kind, payload)| (code(*kind), payload.clone())).collect();
    let mut rows = pin!(copy(session, INTO, &types).await?);
    for task in tasks {
        for ((kind, payload), sequence) in events.iter_mut().zip(1_i64..) {
            let payload = payload.patch(&task.id, &task.context);
            let row: [Param<'_>; 6] = [&task.shard, &task.id.as_str(), &sequence, &*kind, &task.ended, &payload];
            rows.as_mut().write(&row).await?;
        }
    }
    rows.finish().await?;
    Ok(())
}

fn code(kind: EventKind) -> i16 {
    i16::try_from(kind.code()).unwrap_or(i16::MAX)
}

async fn write_others(session: &Session, template: &FilledTask, tasks: &[Written]) -> Result<(), Fault> {
    write_messages(session, template, tasks).await?;
    write_counts(session, template, tasks).await?;
    write_tasks(session, template, tasks).await
}

async fn write_messages(session: &Session, template: &FilledTask, tasks: &[Written]) -> Result<(), Fault> {
    const INTO: &str = "COPY message (shard, task_id, ordinal, sequence, payload, request) FROM STDIN BINARY";
    let types = [Type::INT2, Type::TEXT, Type::INT8, Type::INT8, Type::BYTEA, Type::BYTEA];
    let mut message = template.message.clone();
    let mut rows = pin!(copy(session, INTO, &types).await?);
    for task in tasks {
        let payload = message.patch(&task.id, &task.context);
        let row: [Param<'_>; 6] = [&task.shard, &task.id.as_str(), &0_i64, &2_i64, &payload, &None::<&[u8]>];
        rows.as_mut().write(&row).await?;
    }
    rows.finish().await?;
    Ok(())
}

/// The contexts' counts as they are when they were added up; that of all tasks as one more commit leaves it.
async fn write_counts(session: &Session, template: &FilledTask, tasks: &[Written]) -> Result<(), Fault> {
    const COLUMNS: &str = "n1, n2, n3, n4, n5, n6, n7, n8";
    let scope = Scope::default();
    let (tenant, owner) = (scope.tenant.as_str(), scope.owner.as_str());
    let mut types = vec![Type::INT2, Type::TEXT, Type::TEXT, Type::TEXT];
    types.extend([Type::INT8; 8]);
    let of = |tasks: usize| {
        let mut counts = Counts::default();
        counts::add(&mut counts, template.head.state, int(tasks as u64));
        counts
    };
    let into = format!("COPY task_count (shard, tenant, owner, context_id, {COLUMNS}) FROM STDIN BINARY");
    let counts = of(1);
    let mut rows = pin!(copy(session, &into, &types).await?);
    for task in tasks {
        let shard = shards::of_counts(&scope, Some(&task.context));
        let context = task.context.as_str();
        let mut row: Vec<Param<'_>> = vec![&shard, &tenant, &owner, &context];
        row.extend(counts.iter().map(|count| count as Param<'_>));
        rows.as_mut().write(&row).await?;
    }
    rows.finish().await?;
    let delta = format!(
        "INSERT INTO task_count_delta (shard, tenant, owner, context_id, batch, {COLUMNS})
         VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    );
    let (shard, batch, counts) = (shards::of_counts(&scope, None), rand::random::<i64>(), of(tasks.len()));
    let mut row: Vec<Param<'_>> = vec![&shard, &tenant, &owner, &batch];
    row.extend(counts.iter().map(|count| count as Param<'_>));
    session.client().execute(&delta, &row).await?;
    Ok(())
}

async fn write_tasks(session: &Session, template: &FilledTask, tasks: &[Written]) -> Result<(), Fault> {
    const INTO: &str =
        "COPY task (shard, id, tenant, owner, context_id, state, status_time, version, last_sequence, epoch, attempt,
        leased, cancel_requested, messages, turn_message, history, status) FROM STDIN BINARY";
    let mut types = vec![Type::INT2, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::INT2];
    types.extend([Type::INT8; 5]);
    types.extend([Type::BOOL, Type::BOOL, Type::INT8, Type::INT8, Type::INT8, Type::BOOL]);
    let (scope, head) = (Scope::default(), &template.head);
    let (tenant, owner) = (scope.tenant.as_str(), scope.owner.as_str());
    let state = i16::try_from(head.state.number()).unwrap_or(i16::MAX);
    let (version, sequence) = (int(head.version), int(template.events.len() as u64));
    let (epoch, attempt) = (int(head.epoch), i64::from(head.attempt));
    let (messages, turn_message) = (int(head.messages), int(head.turn_message));
    let mut rows = pin!(copy(session, INTO, &types).await?);
    for task in tasks {
        let (id, context) = (task.id.as_str(), task.context.as_str());
        let row: [Param<'_>; 17] = [
            &task.shard,
            &id,
            &tenant,
            &owner,
            &context,
            &state,
            &task.ended,
            &version,
            &sequence,
            &epoch,
            &attempt,
            &head.leased,
            &head.cancel_requested,
            &messages,
            &turn_message,
            // As many messages are in the history, and none in the status.
            &messages,
            &false,
        ];
        rows.as_mut().write(&row).await?;
    }
    rows.finish().await?;
    Ok(())
}

async fn copy(session: &Session, into: &str, types: &[Type]) -> Result<BinaryCopyInWriter, Fault> {
    Ok(BinaryCopyInWriter::new(session.client().copy_in(into).await?, types))
}
