//! What becomes of a folder when a store is opened in it, and of commits that come together.
#![expect(clippy::unwrap_used, reason = "the ids of tests are valid")]

use longhaul_protocol::{ContextId, TaskId, Timestamp};
use longhaul_store::{Commit, Expect, NewTask, Rotation, Scope, Store, StoreError, created_event};
use longhaul_store_sqlite::{OpenError, SqliteConfig, SqliteStore};

use self::folder::{Folder, now, open};

mod folder;

fn creation(id: &str) -> Commit {
    let head = longhaul_lifecycle::TaskHead::submitted(
        TaskId::new(id).unwrap(),
        ContextId::new(format!("of {id}")).unwrap(),
        now(),
    );
    Commit {
        task_id: head.id.clone(),
        expect: Expect::New(NewTask::default()),
        events: vec![created_event(&head, None)],
        head: Some(head),
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now: now(),
    }
}

#[tokio::test]
async fn a_second_instance_is_told_who_holds_the_folder() {
    let folder = Folder::new();
    let store = open(&folder.config());
    let refused = SqliteStore::open(&folder.config(), now()).unwrap_err();
    let OpenError::Held { pid, path } = &refused else { panic!("{refused:?}") };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(path.starts_with(folder.path()));
    assert!(refused.to_string().contains(&format!("process {}", std::process::id())));
    store.close().await.unwrap();
    open(&folder.config()).close().await.unwrap();
}

#[test]
fn a_file_of_something_else_is_refused_untouched() {
    let folder = Folder::new();
    let text =
        b"notes, and not a database at all; long enough to be one, though, if one only counts the bytes of a header"
            .to_vec();
    std::fs::write(folder.file(), &text).unwrap();
    assert!(matches!(SqliteStore::open(&folder.config(), now()), Err(OpenError::NotOurs { .. })));
    assert_eq!(std::fs::read(folder.file()).unwrap(), text);
}

#[test]
fn a_database_of_something_else_is_refused_untouched() {
    let folder = Folder::new();
    rusqlite::Connection::open(folder.file())
        .unwrap()
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        .unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    assert!(matches!(SqliteStore::open(&folder.config(), now()), Err(OpenError::NotOurs { .. })));
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);
    assert!(!folder.path().join("longhaul.db-wal").exists());
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let folder = Folder::new();
    open(&folder.config()).close().await.unwrap();
    rusqlite::Connection::open(folder.file())
        .unwrap()
        .execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    let refused = SqliteStore::open(&folder.config(), now()).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 99, known: 1, .. }), "{refused:?}");
    assert!(refused.to_string().contains("99") && refused.to_string().contains('1'));
}

#[tokio::test]
async fn the_folder_is_made_and_one_file_remains_when_closed() {
    let folder = Folder::new();
    let config = SqliteConfig { directory: folder.path().join("deep").join("down"), ..SqliteConfig::default() };
    let store = open(&config);
    store.commit(creation("t")).await.unwrap();
    store.check().await.unwrap();
    store.close().await.unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&config.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["longhaul.db", "longhaul.lock"]);
}

#[tokio::test]
async fn a_new_file_has_the_form_that_was_decided() {
    let folder = Folder::new();
    open(&folder.config()).close().await.unwrap();
    let connection = rusqlite::Connection::open(folder.file()).unwrap();
    let pragma =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    assert_eq!(pragma("page_size"), 4096.into());
    assert_eq!(pragma("auto_vacuum"), 2.into());
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("application_id"), 0x4C48_554C.into());
    assert_eq!(pragma("user_version"), 1.into());
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_drop_without_close() {
    let folder = Folder::new();
    let store = open(&folder.config());
    store.commit(creation("t")).await.unwrap();
    drop(store);
    let store = loop {
        match SqliteStore::open(&folder.config(), now()) {
            Ok(store) => break store,
            // The old threads are on their way out.
            Err(OpenError::Held { .. }) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(store.load(&Scope::default(), &TaskId::new("t").unwrap()).await.unwrap().is_some());
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_was_answered_is_in_the_files_already() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let store = open(&folder.config());
    for number in 0..20 {
        store.commit(creation(&format!("t{number}"))).await.unwrap();
    }
    // What a crash would leave behind.
    for name in ["longhaul.db", "longhaul.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let found = open(&copy.config());
    assert_eq!(found.due(now(), 100, Rotation::default()).await.unwrap().claims.len(), 20);
    found.commit(creation("t20")).await.unwrap();
    found.close().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_store_is_closed_once() {
    let folder = Folder::new();
    let store = open(&folder.config());
    store.close().await.unwrap();
    assert!(matches!(store.close().await, Err(StoreError::Unavailable { .. })));
    assert!(matches!(store.check().await, Err(StoreError::Unavailable { .. })));
    assert!(matches!(store.next_due().await, Err(StoreError::Unavailable { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_wait_share_transactions() {
    let folder = Folder::new();
    let store = std::sync::Arc::new(open(&folder.config()));
    let mut commits = tokio::task::JoinSet::new();
    for number in 0..500 {
        let store = std::sync::Arc::clone(&store);
        commits.spawn(async move { store.commit(creation(&format!("t{number}"))).await });
    }
    while let Some(committed) = commits.join_next().await {
        committed.unwrap().unwrap();
    }
    let stats = store.writer_stats();
    assert_eq!(stats.commits, 500);
    assert!(stats.batches < 400, "{stats:?}");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_are_refused_fail_alone() {
    let folder = Folder::new();
    let store = open(&folder.config());
    for number in 0..10 {
        store.commit(creation(&format!("t{number}"))).await.unwrap();
    }
    store.close().await.unwrap();
    // Opened again, the writer remembers none of them.
    let store = std::sync::Arc::new(open(&folder.config()));
    let mut commits = tokio::task::JoinSet::new();
    for number in 0..100 {
        let store = std::sync::Arc::clone(&store);
        commits.spawn(async move { (number, store.commit(creation(&format!("t{number}"))).await) });
    }
    while let Some(committed) = commits.join_next().await {
        let (number, outcome) = committed.unwrap();
        assert_eq!(outcome.is_ok(), number >= 10, "{number}: {outcome:?}");
        assert!(matches!(outcome, Ok(_) | Err(StoreError::Conflict { .. })));
    }
    let due = store.due(now(), 1000, Rotation::default()).await.unwrap();
    assert_eq!(due.claims.len(), 100);
    assert_eq!(store.backlog().await.unwrap(), 100);
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_latest_time_in_the_file_is_known_when_it_is_opened() {
    let folder = Folder::new();
    let store = open(&folder.config());
    assert_eq!(store.latest_time(), Timestamp::from_unix_millis(0));
    for (id, millis) in [("first", 70), ("second", 20)] {
        let mut commit = creation(id);
        commit.head.as_mut().unwrap().status_timestamp = Timestamp::from_unix_millis(millis);
        store.commit(commit).await.unwrap();
    }
    store.close().await.unwrap();
    let store = open(&folder.config());
    assert_eq!(store.latest_time(), Timestamp::from_unix_millis(70));
}
