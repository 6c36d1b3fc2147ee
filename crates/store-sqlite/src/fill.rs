use bytes::Bytes;
use longhaul_lifecycle::{Command, TaskHead, WorkerId, Writer, decide};
use longhaul_protocol::{Artifact, ContextId, Message, TaskId, TaskState, Timestamp, json, wire};
use longhaul_store::{EventKind, Scope, StoreError, created_event};
use rusqlite::{Connection, params};

use crate::lock::DirectoryLock;
use crate::{OpenError, SqliteConfig, connection, layout};

/// How many tasks one transaction writes.
const CHUNK: u64 = 50_000;
/// What stands for the ids where they will be; as long as they are.
const TASK_ID: &str = "00000000-0000-7000-8000-00000000000a";
const CONTEXT_ID: &str = "00000000-0000-7000-8000-00000000000b";

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
    let template = Template::new(now).map_err(|error| failed(error.into()))?;
    // Only the end counts: the last checkpoint syncs the file.
    connection.execute_batch("PRAGMA synchronous = OFF").map_err(|error| failed(error.into()))?;
    write(&connection, &template, tasks, now).map_err(|error| failed(error.into()))?;
    connection.execute_batch("PRAGMA synchronous = FULL").map_err(|error| failed(error.into()))?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(|error| failed(error.into()))?;
    Ok(())
}

fn write(connection: &Connection, template: &Template, tasks: u64, now: Timestamp) -> rusqlite::Result<()> {
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

/// Bytes with ids in them, and where.
struct Patched {
    bytes: Vec<u8>,
    tasks: Vec<usize>,
    contexts: Vec<usize>,
}

impl Patched {
    fn new(payload: &Bytes) -> Self {
        let places = |id: &str| {
            let found = payload.windows(id.len()).enumerate().filter(|(_, window)| *window == id.as_bytes());
            found.map(|(place, _)| place).collect()
        };
        Self { bytes: payload.to_vec(), tasks: places(TASK_ID), contexts: places(CONTEXT_ID) }
    }

    fn patch(&mut self, task: &str, context: &str) -> &[u8] {
        for (places, id) in [(&self.tasks, task), (&self.contexts, context)] {
            for place in places {
                if let Some(target) = self.bytes.get_mut(*place..*place + id.len()) {
                    target.copy_from_slice(id.as_bytes());
                }
            }
        }
        &self.bytes
    }
}

/// One life, written out once.
struct Template {
    head: TaskHead,
    events: Vec<(EventKind, Bytes)>,
    message: Bytes,
}

impl Template {
    fn new(now: Timestamp) -> Result<Self, StoreError> {
        let broken = |what: &dyn std::fmt::Display| StoreError::corrupt(format!("the task to fill with: {what}"));
        let task_id = TaskId::new(TASK_ID).map_err(|error| broken(&error))?;
        let context_id = ContextId::new(CONTEXT_ID).map_err(|error| broken(&error))?;
        let submitted = TaskHead::submitted(task_id.clone(), context_id.clone(), now);
        let mut events =
            vec![created_event(&submitted, None)].into_iter().map(|new| (new.kind, new.payload)).collect::<Vec<_>>();
        let start = Command::Start { lease_until: Timestamp::MAX, worker: WorkerId::default() };
        let started = decide(&submitted, start, Writer::Engine, now).map_err(|error| broken(&error))?;
        let agent = Writer::Agent { epoch: started.head.epoch };
        let completed =
            decide(&started.head, Command::Complete { message: None }, agent, now).map_err(|error| broken(&error))?;
        let status = |update: &longhaul_lifecycle::StatusUpdate| {
            let kind = EventKind::Status { state: update.state, rests: update.rests };
            (kind, json::to_json(&update.to_wire(&task_id, &context_id)))
        };
        events.extend(started.updates.iter().map(status));
        let text = |text: &str| wire::Part {
            content: Some(wire::PartContent::Text(text.to_owned())),
            ..wire::Part::default()
        };
        let artifact = wire::Artifact {
            artifact_id: "output".to_owned(),
            parts: vec![text("The answer to the question, of about the length that an answer has.")],
            ..wire::Artifact::default()
        };
        let artifact = Artifact::new(artifact).map_err(|violations| broken(&violations.len()))?;
        let update = longhaul_lifecycle::ArtifactUpdate { artifact, append: false, last_chunk: false, metadata: None };
        events.push((EventKind::Artifact, json::to_json(&update.into_wire(&task_id, &context_id))));
        events.extend(completed.updates.iter().map(status));
        let message = wire::Message {
            message_id: TASK_ID.to_owned(),
            context_id: CONTEXT_ID.to_owned(),
            task_id: TASK_ID.to_owned(),
            role: longhaul_protocol::Role::User.into(),
            parts: vec![text("A question, of about the length that a question has.")],
            ..wire::Message::default()
        };
        let message = Message::new(message).map_err(|violations| broken(&violations.len()))?;
        Ok(Self { head: completed.head, events, message: json::to_json(message.as_wire()) })
    }
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
        template: &'t Template,
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
            events: template.events.iter().map(|(kind, payload)| (kind.code(), Patched::new(payload))).collect(),
            text: Patched::new(&template.message),
            scope,
            context_offset,
        })
    }

    fn task(&mut self, number: i64, ended: i64) -> rusqlite::Result<()> {
        let (task_id, context_id) = (id(ended, 0xa, number), id(ended, 0xb, number));
        let context = number + self.context_offset;
        self.context.execute(params![context, self.scope, context_id])?;
        let head = self.head;
        self.task.execute(params![
            number,
            task_id,
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

/// An id of the form that the server makes, but not by chance.
fn id(time: i64, kind: u8, number: i64) -> String {
    let time = time & 0xffff_ffff_ffff;
    format!(
        "{:08x}-{:04x}-7{:03x}-8{kind:03x}-{:012x}",
        time >> 16,
        time & 0xffff,
        number & 0xfff,
        number & 0xffff_ffff_ffff
    )
}
