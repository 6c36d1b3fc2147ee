//! A script for `pgbench` that writes the rows of one blocking send: those that the server wrote for one.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use longhaul_pgtest::Server;

/// How the script's statements go to the database.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trips {
    /// Each statement waits for the answer to the one before.
    Each,
    /// All of a transaction at once.
    One,
}

/// Whether the transactions ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ringing {
    /// They don't.
    No,
    /// Each says NOTIFY before it commits.
    Inside,
}

/// What the server wrote for one send.
#[derive(Debug)]
pub struct Sent {
    events: Vec<Event>,
    message: String,
    worker: String,
}

#[derive(Debug)]
struct Event {
    sequence: i64,
    kind: i64,
    payload: String,
    /// The transaction that wrote it.
    transaction: String,
}

/// As long as a real id, and another one for each run of the script.
const TASK: &str = "'01a22d12-387d-7459-':id";
const CONTEXT: &str = "'01a22d12-387d-7080-':id";
/// As the server's times.
const NOW: &str = "(extract(epoch FROM now()) * 1000)::bigint";

const HEAD: &str = "\\set id random(10000000000000000, 99999999999999999)\n\
                    \\set shard random(0, 1023)\n\
                    \\set batch random(1, 9000000000000000000)\n";

impl Sent {
    /// Reads what a database has of the newest task, of a blocking send.
    pub fn read(server: &Server, database: &str) -> Result<Self> {
        let rows = |sql: &str| -> Result<Vec<Vec<String>>> {
            let rows = server.query(database, sql)?;
            Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
        };
        let newest =
            "SELECT shard, id, xmin FROM longhaul.task WHERE NOT leased ORDER BY status_time DESC, id DESC LIMIT 1";
        let newest = rows(newest)?.into_iter().next().context("no task has ended")?;
        let [shard, id, ended] = <[String; 3]>::try_from(newest).ok().context("a task has three columns")?;
        let its = format!("shard = {shard} AND task_id = '{id}'");
        let mut events = Vec::new();
        let sql = "SELECT sequence, kind, encode(payload, 'hex'), xmin FROM longhaul.event";
        for row in rows(&format!("{sql} WHERE {its} ORDER BY sequence"))? {
            let [sequence, kind, payload, transaction] =
                <[String; 4]>::try_from(row).ok().context("an event has four columns")?;
            events.push(Event { sequence: sequence.parse()?, kind: kind.parse()?, payload, transaction });
        }
        let message = rows(&format!("SELECT encode(payload, 'hex') FROM longhaul.message WHERE {its}"))?;
        let message = message.into_iter().flatten().next().context("the task has no message")?;
        let worker = "a-host-of-some-name/01a22d12-387d-7080-bec8-ae7e705d9d50".to_owned();
        let sent = Self { events, message, worker };
        let (first, second) = sent.by_transaction();
        if first.is_empty() || second.is_empty() || second.iter().any(|event| event.transaction != ended) {
            let transactions: Vec<&str> = sent.events.iter().map(|event| event.transaction.as_str()).collect();
            bail!("a send was not two transactions: {transactions:?}, and its end {ended}");
        }
        Ok(sent)
    }

    /// The events of the first transaction, and all others.
    fn by_transaction(&self) -> (Vec<&Event>, Vec<&Event>) {
        let first = self.events.first().map(|event| event.transaction.as_str());
        self.events.iter().partition(|event| Some(event.transaction.as_str()) == first)
    }

    /// The script.
    pub fn script(&self, trips: Trips, ringing: Ringing) -> Result<String> {
        let (first, second) = self.by_transaction();
        let mut text = HEAD.to_owned();
        let begin = [self.insert_task(first.len()), self.insert_message(), insert_events(&first), insert_counts(false)];
        let end = [update_task(self.events.len()), insert_events(&second), insert_counts(true)];
        for statements in [begin.as_slice(), &end] {
            let ring = (ringing == Ringing::Inside).then(|| format!("SELECT pg_notify('bench', {})", concat(TASK)));
            let all = ["BEGIN"].into_iter().chain(statements.iter().map(String::as_str));
            let all = all.chain(ring.as_deref()).chain(["COMMIT"]);
            let body = all.fold(String::new(), |body, statement| body + statement + ";\n");
            match trips {
                Trips::Each => text.push_str(&body),
                Trips::One => write!(text, "\\startpipeline\n{body}\\endpipeline\n")?,
            }
        }
        Ok(text)
    }

    fn insert_task(&self, last_sequence: usize) -> String {
        let (task, context, worker) = (concat(TASK), concat(CONTEXT), &self.worker);
        format!(
            "INSERT INTO longhaul.task (shard, id, tenant, owner, context_id, state, status_time, version, last_sequence, \
             epoch, attempt, leased, due_at, cancel_requested, messages, turn_message, history, status, waiting, failures, \
             worker) VALUES (:shard, {task}, '', '', {context}, 2, {NOW}, 1, {last_sequence}, 1, 1, true, {NOW} + 30000, \
             false, 1, 0, 1, false, NULL, NULL, '{worker}')"
        )
    }

    fn insert_message(&self) -> String {
        format!(
            "INSERT INTO longhaul.message (shard, task_id, ordinal, sequence, payload, request) \
             VALUES (:shard, {}, 0, 1, '\\x{}', NULL)",
            concat(TASK),
            self.message
        )
    }
}

fn update_task(last_sequence: usize) -> String {
    format!(
        "UPDATE longhaul.task SET state = 3, status_time = {NOW}, version = 2, last_sequence = {last_sequence}, epoch = 1, \
         attempt = 1, leased = false, due_at = NULL, cancel_requested = false, messages = 1, turn_message = 0, history = 1, \
         status = false, compaction = 0, waiting = NULL, failures = NULL, worker = NULL WHERE shard = :shard AND id = {}",
        concat(TASK)
    )
}

fn insert_events(events: &[&Event]) -> String {
    let task = concat(TASK);
    let rows = events.iter().map(|Event { sequence, kind, payload, .. }| {
        format!("(:shard, {task}, {sequence}, {kind}, {NOW}, '\\x{payload}'::bytea)")
    });
    let rows = rows.collect::<Vec<_>>().join(", ");
    format!("INSERT INTO longhaul.event (shard, task_id, sequence, kind, time, payload) VALUES {rows}")
}

/// By how much the tasks at work and those that were completed changed, of the scope and of the context.
fn insert_counts(ends: bool) -> String {
    let (working, completed, batch) = if ends { (-1, 1, ":batch::bigint + 1") } else { (1, 0, ":batch") };
    let counts = format!("{batch}, 0, {working}, {completed}, 0, 0, 0, 0, 0");
    format!(
        "INSERT INTO longhaul.task_count_delta VALUES (0, '', '', '', {counts}), (:shard, '', '', {}, {counts})",
        concat(CONTEXT)
    )
}

/// An id as SQL makes it of its beginning and the run's number.
fn concat(id: &str) -> String {
    format!("({} || :id)", id.trim_end_matches(":id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Sent {
        let event = |sequence, transaction: &str| Event {
            sequence,
            kind: 1,
            payload: "7b7d".to_owned(),
            transaction: transaction.to_owned(),
        };
        let events = vec![event(1, "700"), event(2, "700"), event(3, "701"), event(4, "701")];
        Sent { events, message: "7b7d".to_owned(), worker: "w".to_owned() }
    }

    #[test]
    fn each_event_is_in_the_transaction_that_wrote_it() {
        let text = sent().script(Trips::Each, Ringing::No).unwrap();
        let (first, second) = text.split_once("COMMIT;").unwrap();
        assert!(first.contains("|| :id), 2, 1") && !first.contains("|| :id), 3, 1"), "{first}");
        assert!(second.contains("|| :id), 3, 1") && second.contains("|| :id), 4, 1"), "{second}");
    }

    #[test]
    fn a_transaction_goes_and_rings_as_asked() {
        let text = sent().script(Trips::One, Ringing::Inside).unwrap();
        assert_eq!(text.matches("\\startpipeline\nBEGIN;").count(), 2);
        assert_eq!(text.matches("|| :id));\nCOMMIT;\n\\endpipeline").count(), 2, "{text}");
    }
}
