use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{TaskState, Tenant, Timestamp};
use longhaul_store::Scope;
use longhaul_store::fill::{FilledTask, Patched, filled_ids};
use rusqlite::{Connection, params};

use crate::lock::DirectoryLock;
use crate::{OpenError, SqliteConfig, connection, layout};

/// How many tasks one transaction writes.
const CHUNK: u64 = 50_000;

/// Fills the store with `tasks` finished tasks of nobody in particular, for benchmarks: each with one message, one
/// artifact and four events, in a context of its own. The newest ended at `now`, each other one a second before the next.
///
/// # Errors
///
/// [`OpenError`] when the store can't be opened, or not be written: a part of the tasks may then be there.
pub fn fill(config: &SqliteConfig, tasks: u64, now: Timestamp) -> Result<(), OpenError> {
    let _lock = DirectoryLock::take(&config.directory)?;
    let connection = connection::open_writer(config, now)?;
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| OpenError::Database {
        action: "fill",
        path: connection::path(config),
        source,
    };
    let template = FilledTask::new(now).map_err(|error| failed(error.into()))?;
    // Only the end counts: the last checkpoint syncs the file.
    connection.execute_batch("PRAGMA synchronous = OFF").map_err(|error| failed(error.into()))?;
    write(&connection, &template, tasks, now).map_err(|error| failed(error.into()))?;
    connection.execute_batch("PRAGMA synchronous = FULL").map_err(|error| failed(error.into()))?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(|error| failed(error.into()))?;
    Ok(())
}

fn write(connection: &Connection, template: &FilledTask, tasks: u64, now: Timestamp) -> rusqlite::Result<()> {
    let scope = scope(connection, &Scope::default())?;
    let first = connection::meta(connection, "task_number_reserved")?;
    let last_context: Option<i64> = connection.query_row("SELECT max(number) FROM context", [], |row| row.get(0))?;
    let context_offset = last_context.unwrap_or(0) + 1 - first;
    let newest = now.unix_millis();
    let mut done = 0;
    while done < tasks {
        let chunk = CHUNK.min(tasks - done);
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut filler = Filler::new(connection, template, scope, context_offset)?;
        for index in done..done + chunk {
            let ended = newest - layout::int(tasks - 1 - index) * 1000;
            filler.task(first + layout::int(index), ended)?;
        }
        drop(filler);
        connection.execute("UPDATE scope SET n3 = n3 + ?2 WHERE number = ?1", params![scope, layout::int(chunk)])?;
        done += chunk;
        let reserved = first + layout::int(done);
        connection.execute("UPDATE meta SET value = ?1 WHERE name = 'task_number_reserved'", [reserved])?;
        connection.execute_batch("COMMIT")?;
    }
    Ok(())
}

fn scope(connection: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
    let names = params![scope.tenant.as_str(), scope.owner.as_str()];
    connection.execute("INSERT INTO scope (tenant, owner) VALUES (?1, ?2) ON CONFLICT DO NOTHING", names)?;
    connection.query_row("SELECT number FROM scope WHERE tenant = ?1 AND owner = ?2", names, |row| row.get(0))
}

/// Writes tasks within one transaction.
struct Filler<'c, 't> {
    context: rusqlite::Statement<'c>,
    task: rusqlite::Statement<'c>,
    event: rusqlite::Statement<'c>,
    message: rusqlite::Statement<'c>,
    head: &'t TaskHead,
    events: Vec<(i64, Patched)>,
    text: Patched,
    scope: i64,
    context_offset: i64,
}

impl<'c, 't> Filler<'c, 't> {
    fn new(
        connection: &'c Connection,
        template: &'t FilledTask,
        scope: i64,
        context_offset: i64,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            context: connection.prepare("INSERT INTO context (number, scope, id, n3) VALUES (?1, ?2, ?3, 1)")?,
            task: connection.prepare(
                "INSERT INTO task (number, id, scope, context, state, status_time, version, last_sequence, epoch, attempt, leased,
                    due_at, cancel_requested, messages, turn_message, history, status, waiting)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, NULL, 0, 1, 0, 1, 0, NULL)",
            )?,
            event: connection.prepare("INSERT INTO event (key, kind, time, payload) VALUES (?1, ?2, ?3, ?4)")?,
            message: connection.prepare("INSERT INTO message (key, sequence, payload, request) VALUES (?1, 2, ?2, NULL)")?,
            head: &template.head,
            events: template.events.iter().map(|(kind, payload)| (kind.code(), payload.clone())).collect(),
            text: template.message.clone(),
            scope,
            context_offset,
        })
    }

    fn task(&mut self, number: i64, ended: i64) -> rusqlite::Result<()> {
        let (task_id, context_id) = filled_ids(&Tenant::default(), ended, number)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let context = number + self.context_offset;
        self.context.execute(params![context, self.scope, context_id.as_str()])?;
        let head = self.head;
        self.task.execute(params![
            number,
            task_id.as_str(),
            self.scope,
            context,
            TaskState::Completed.number(),
            ended,
            layout::int(head.version),
            self.events.len() as i64,
            layout::int(head.epoch),
            head.attempt
        ])?;
        for ((kind, payload), sequence) in self.events.iter_mut().zip(1..) {
            self.event.execute(params![
                layout::key(number, sequence),
                *kind,
                ended,
                payload.patch(&task_id, &context_id)
            ])?;
        }
        self.message.execute(params![layout::key(number, 0), self.text.patch(&task_id, &context_id)])?;
        Ok(())
    }
}
