use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ContextId, TaskId, Timestamp};
use longhaul_store::{
    Commit, Committed, Compaction, EventKind, Expect, NewEvent, NewTask, Store, StoreError, created_event,
};
use rusqlite::Connection;

use super::batch::{Outcome, Work};
use super::compact::Compact;
use super::purge::{Purge, Purged};
use super::transaction::Writer;
use crate::fault::Fault;
use crate::{SqliteConfig, connection, layout};
use longhaul_store::EncodedCommit;

mod push;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("longhaul-store-sqlite-writer-{}-{name}", std::process::id())))
    }

    fn open(&self) -> Connection {
        std::fs::create_dir_all(&self.0).unwrap();
        let config = SqliteConfig { directory: self.0.clone(), ..SqliteConfig::default() };
        connection::open_writer(&config, now()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000)
}

fn creation(id: &str, padding: usize) -> EncodedCommit {
    let mut head = TaskHead::submitted(TaskId::new(id).unwrap(), ContextId::new("c").unwrap(), now());
    (head.leased, head.due_at) = (true, Some(Timestamp::MAX));
    let padding = NewEvent { kind: EventKind::Artifact, payload: Bytes::from(vec![b' '; padding]) };
    let events = vec![created_event(&head, None), padding];
    let expect = Expect::New(NewTask::default());
    EncodedCommit::new(Commit {
        task_id: head.id.clone(),
        expect,
        head: Some(head),
        events,
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now: now(),
    })
    .unwrap()
}

/// A chunk behind the event with this sequence.
fn chunk(id: &str, last_sequence: u64) -> EncodedCommit {
    let events = vec![NewEvent { kind: EventKind::Artifact, payload: Bytes::from_static(b"{}") }];
    let (task_id, expect) = (TaskId::new(id).unwrap(), Expect::Lease { epoch: 0, last_sequence });
    let messages = Vec::new();
    EncodedCommit::new(Commit {
        task_id,
        expect,
        head: None,
        events,
        messages,
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now: now(),
    })
    .unwrap()
}

fn writer(connection: &Connection) -> Writer<'_> {
    Writer::new(connection, Arc::default()).unwrap()
}

/// Makes the commits in one transaction.
fn commit(writer: &mut Writer<'_>, commits: &[&EncodedCommit]) -> Result<Vec<Result<Committed, StoreError>>, Fault> {
    let work: Vec<_> = commits.iter().map(|commit| Work::Commit(commit)).collect();
    Ok(writer.work(&work)?.into_iter().map(committed).collect())
}

fn committed(outcome: Outcome) -> Result<Committed, StoreError> {
    let Outcome::Committed(outcome) = outcome else { panic!("{outcome:?}") };
    outcome
}

fn rows(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_full_disk_undoes_the_batch_and_the_next_one_goes_on() {
    let folder = Folder::new("full");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    connection.query_row(&format!("PRAGMA max_page_count = {}", pages + 20), [], |_| Ok(())).unwrap();
    let (small, large) = (creation("small", 10), creation("large", 1 << 20));
    let fault = commit(&mut writer, &[&small, &large]).unwrap_err();
    assert!(
        matches!(&fault, Fault::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)),
        "{fault:?}"
    );
    assert!(!fault.may_be_one_commit());
    assert!(matches!(fault.into_store("write"), StoreError::Unavailable { .. }));
    for table in ["task", "event", "context", "scope"] {
        assert_eq!(rows(&connection, table), 0, "{table}");
    }
    connection.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(())).unwrap();
    let outcomes = commit(&mut writer, &[&small, &large]).unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!((rows(&connection, "task"), rows(&connection, "event")), (2, 4));
}

#[test]
fn the_chunks_of_a_batch_share_one_write_of_the_task() {
    let folder = Folder::new("chunks");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let commits: Vec<_> = std::iter::once(creation("t", 1)).chain((2..52).map(|last| chunk("t", last))).collect();
    let outcomes = commit(&mut writer, &commits.iter().collect::<Vec<_>>()).unwrap();
    let sequences: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().last_sequence).collect();
    assert_eq!(sequences, (2..=52).collect::<Vec<_>>());
    let stored: i64 = connection.query_row("SELECT last_sequence FROM task", [], |row| row.get(0)).unwrap();
    assert_eq!((stored, rows(&connection, "event")), (52, 52));
}

#[test]
fn a_log_that_is_full_takes_no_more() {
    let folder = Folder::new("log");
    let connection = folder.open();
    commit(&mut writer(&connection), &[&creation("t", 1)]).unwrap().remove(0).unwrap();
    connection.execute("UPDATE task SET last_sequence = ?1", [layout::int(layout::PLACE_MAX - 1)]).unwrap();
    let mut writer = writer(&connection);
    let (last, beyond) = (chunk("t", layout::PLACE_MAX - 1), chunk("t", layout::PLACE_MAX));
    let outcomes = commit(&mut writer, &[&last, &beyond]).unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap().last_sequence, layout::PLACE_MAX);
    assert!(matches!(outcomes[1], Err(StoreError::LogFull { events_max: layout::PLACE_MAX, .. })));
}

#[test]
fn a_taken_id_fails_its_own_commit_only() {
    let folder = Folder::new("taken");
    let connection = folder.open();
    commit(&mut writer(&connection), &[&creation("taken", 1)]).unwrap().remove(0).unwrap();
    let mut writer = writer(&connection);
    let commits = [creation("one", 1), creation("taken", 1), creation("two", 1)];
    let fault = commit(&mut writer, &commits.iter().collect::<Vec<_>>()).unwrap_err();
    assert!(fault.may_be_one_commit());
    let outcomes: Vec<_> =
        commits.iter().map(|commit| committed(writer.work_alone(Work::Commit(commit)).unwrap())).collect();
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert!(matches!(outcomes[1], Err(StoreError::Conflict { .. })));
    assert_eq!((rows(&connection, "task"), rows(&connection, "event")), (3, 6));
}

#[test]
fn a_number_is_never_given_out_twice() {
    let folder = Folder::new("numbers");
    let connection = folder.open();
    let number = || connection.query_row("SELECT number FROM task", [], |row| row.get::<_, i64>(0)).unwrap();
    commit(&mut writer(&connection), &[&creation("first", 1)]).unwrap().remove(0).unwrap();
    let first = number();
    connection.execute("DELETE FROM task", []).unwrap();
    commit(&mut writer(&connection), &[&creation("second", 1)]).unwrap().remove(0).unwrap();
    assert!(number() > first, "{} after {first}", number());
}

/// A task that ended, with a log of so many chunks.
fn ended(writer: &mut Writer<'_>, id: &str, chunks: usize) -> i64 {
    let mut commits = vec![creation(id, 1)];
    commits.extend((0..chunks as u64).map(|n| chunk(id, 2 + n)));
    for commits in commits.chunks(500) {
        let outcomes = commit(writer, &commits.iter().collect::<Vec<_>>()).unwrap();
        outcomes.into_iter().for_each(|outcome| assert!(outcome.is_ok()));
    }
    let mut end = chunk(id, 0);
    let mut head = TaskHead::submitted(TaskId::new(id).unwrap(), ContextId::new("c").unwrap(), now());
    (head.state, head.version, head.due_at) = (longhaul_protocol::TaskState::Completed, 2, None);
    (end.commit.head, end.commit.expect) = (Some(head), Expect::Version(1));
    commit(writer, &[&end]).unwrap().remove(0).unwrap();
    writer.known(&TaskId::new(id).unwrap()).unwrap().unwrap().number
}

fn purge_of(numbers: &[i64]) -> Purge {
    let (state, before) = (longhaul_protocol::TaskState::Completed, Timestamp::MAX);
    Purge { numbers: numbers.to_vec(), state, before }
}

#[test]
fn a_long_log_that_was_begun_to_be_removed_is_removed_after_a_crash() {
    let folder = Folder::new("removed");
    let connection = folder.open();
    let mut first = writer(&connection);
    let numbers = [ended(&mut first, "long", 1200), ended(&mut first, "short", 1), ended(&mut first, "kept", 1)];
    let purged = first.transact(|writer| writer.purge(&purge_of(&numbers[..2]))).unwrap();
    assert_eq!(purged, Purged { handled: 1, removed: 1, leftovers: true }, "no more than one step");
    assert_eq!(rows(&connection, "event"), 1203 + 2 * 4 - 500);
    drop(first);
    // What the crash has left is not seen, and is found again.
    let mut second = writer(&connection);
    assert!(second.known(&TaskId::new("long").unwrap()).unwrap().is_none());
    assert_eq!((rows(&connection, "task"), rows(&connection, "task_removed")), (2, 1));
    let again = second.transact(|writer| writer.purge(&purge_of(&numbers[..2]))).unwrap();
    assert_eq!(again, Purged { handled: 2, removed: 1, leftovers: false }, "a task that is gone is passed over");
    let mut steps = 1;
    while second.transact(Writer::sweep).unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2);
    assert_eq!((rows(&connection, "event"), rows(&connection, "task_removed")), (4, 0));
    assert_eq!(rows(&connection, "context"), 1, "it has a task left");
    second.transact(|writer| writer.purge(&purge_of(&numbers))).unwrap();
    for table in ["task", "event", "context", "task_removed"] {
        assert_eq!(rows(&connection, table), 0, "{table}");
    }
}

#[test]
fn large_payloads_are_removed_in_smaller_steps() {
    let folder = Folder::new("large");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let mut numbers = Vec::new();
    for id in ["one", "two", "three"] {
        commit(&mut writer, &[&creation(id, 1 << 20)]).unwrap().remove(0).unwrap();
        numbers.push(writer.known(&TaskId::new(id).unwrap()).unwrap().unwrap().number);
    }
    connection.execute("UPDATE task SET state = 3, leased = 0, due_at = NULL", []).unwrap();
    let purged = writer.transact(|writer| writer.purge(&purge_of(&numbers))).unwrap();
    assert_eq!(purged, Purged { handled: 1, removed: 1, leftovers: true });
}

#[test]
fn a_batch_that_fails_does_not_count_in_the_backlog() {
    let folder = Folder::new("backlog");
    let connection = folder.open();
    let counters = Arc::new(super::Counters::default());
    let mut writer = Writer::new(&connection, Arc::clone(&counters)).unwrap();
    let waiting = |id| {
        let mut creation = creation(id, 1);
        creation.commit.head.as_mut().unwrap().leased = false;
        creation
    };
    let one = waiting("one");
    commit(&mut writer, &[&one]).unwrap().remove(0).unwrap();
    assert_eq!(counters.backlog(), 1);
    drop(writer);
    let mut writer = Writer::new(&connection, Arc::clone(&counters)).unwrap();
    commit(&mut writer, &[&waiting("two"), &one]).unwrap_err();
    assert_eq!(counters.backlog(), 1);
    connection.execute("UPDATE task SET leased = 1", []).unwrap();
    drop(Writer::new(&connection, Arc::clone(&counters)).unwrap());
    assert_eq!(counters.backlog(), 0, "counted when the store is opened");
}

#[test]
fn a_renewal_and_the_commits_of_its_batch_go_together() {
    let folder = Folder::new("renewal");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let millis = |by| Timestamp::from_unix_millis(now().unix_millis() + by);
    let mut created = creation("t", 1);
    created.commit.head.as_mut().unwrap().due_at = Some(millis(10));
    let renewal = super::Renewal {
        leases: vec![longhaul_store::HeldLease { task_id: TaskId::new("t").unwrap(), epoch: 0 }],
        now: now(),
        until: millis(20),
    };
    let (before, after) = (chunk("t", 2), chunk("t", 3));
    let work = [Work::Commit(&created), Work::Commit(&before), Work::Renew(&renewal), Work::Commit(&after)];
    let outcomes = writer.work(&work).unwrap();
    assert!(matches!(&outcomes[2], Outcome::Renewed(lost) if lost.is_empty()));
    let stored = || {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        connection.query_row("SELECT due_at, last_sequence FROM task", [], read).unwrap()
    };
    assert_eq!(stored(), (millis(20).unix_millis(), 4));
    let again = super::Renewal { until: millis(30), ..renewal };
    writer.work(&[Work::Renew(&again), Work::Commit(&chunk("t", 4))]).unwrap();
    assert_eq!(stored(), (millis(30).unix_millis(), 5));
}

/// What is left of a task's log, and what its row says of it.
fn log_of(connection: &Connection, number: i64) -> (i64, i64) {
    let (first, last) = (layout::key(number, 0), layout::key(number, layout::PLACE_MAX));
    let sql =
        "SELECT count(*), (SELECT compaction FROM task WHERE number = ?1) FROM event WHERE key >= ?2 AND key <= ?3";
    connection.query_row(sql, [number, first, last], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[test]
fn a_log_is_merged_once_and_never_that_of_another_task() {
    let folder = Folder::new("merged");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let (long, other) = (ended(&mut writer, "long", 20), ended(&mut writer, "other", 20));
    let short = ended(&mut writer, "short", 4);
    assert_eq!([long, other, short].map(|number| log_of(&connection, number)), [(23, 1), (23, 1), (7, 0)]);
    let compact = |number, changes| Compact { number, changes };
    let changes = |removed| Some(Compaction { removed: vec![removed], rewritten: Vec::new() });
    let mut merge = |compact: &Compact| writer.transact(|writer| writer.compact(compact)).unwrap();
    merge(&compact(long, changes(3..=12)));
    assert_eq!((log_of(&connection, long), log_of(&connection, other)), ((13, 2), (23, 1)));
    merge(&compact(long, changes(13..=22)));
    assert_eq!(log_of(&connection, long), (13, 2), "whoever comes second has read another log");
    merge(&compact(short, changes(2..=3)));
    assert_eq!(log_of(&connection, short), (7, 0), "it was never to be merged");
    merge(&compact(other, None));
    merge(&compact(other, changes(3..=12)));
    assert_eq!(log_of(&connection, other), (23, 0), "what was left whole stays so");
    writer.transact(|writer| writer.purge(&purge_of(&[long]))).unwrap();
    let before = rows(&connection, "event");
    writer.transact(|writer| writer.compact(&compact(long, changes(1..=9)))).unwrap();
    assert_eq!((rows(&connection, "event"), rows(&connection, "task")), (before, 2), "its task is gone");
}

#[test]
fn a_log_that_cannot_be_read_stays_whole_and_holds_up_nobody() {
    let folder = Folder::new("unreadable");
    let connection = folder.open();
    // What the events of these tasks hold is no artifact update.
    let numbers = {
        let mut writer = writer(&connection);
        [ended(&mut writer, "one", 20), ended(&mut writer, "two", 20)]
    };
    drop(connection);
    let config = SqliteConfig { directory: folder.0.clone(), ..SqliteConfig::default() };
    let store = crate::SqliteStore::open(&config, now()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert_eq!(store.compact(Timestamp::MAX, 1).await.unwrap(), 1);
        assert_eq!(store.compact(Timestamp::MAX, 10).await.unwrap(), 1);
        assert_eq!(store.compact(Timestamp::MAX, 10).await.unwrap(), 0);
        store.close().await.unwrap();
    });
    let connection = folder.open();
    assert_eq!(numbers.map(|number| log_of(&connection, number)), [(23, 0), (23, 0)]);
}
