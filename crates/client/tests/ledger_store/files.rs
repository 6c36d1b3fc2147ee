//! The file among other processes and files.

use std::time::Duration;

use longhaul_client::ledger::{Ledger, LedgerError};

use super::support::*;

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let ledger = folder.open().await;
    let _ = prepare(&ledger, "m1").await;
    assert_eq!(mode(folder.path()), 0o700);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    ledger.close().await.unwrap();
    std::fs::set_permissions(folder.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    folder.open().await;
    assert_eq!(mode(&folder.file()), 0o600);
}

#[tokio::test]
async fn a_folder_is_made_with_those_above_it() {
    let folder = Folder::new();
    let path = folder.path().join("some").join("where").join("ledger.db");
    let ledger = Ledger::open(&path).await.unwrap();
    let _ = prepare(&ledger, "m1").await;
    assert!(path.is_file());
}

#[tokio::test]
async fn a_closed_ledger_leaves_one_file_and_says_that_it_is_closed() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let clone = ledger.clone();
    let _ = prepare(&ledger, "m1").await;
    ledger.close().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(clone.counts().await, Err(LedgerError::Closed)));
    assert!(matches!(clone.close().await, Err(LedgerError::Closed)));
}

#[tokio::test]
async fn what_is_newer_or_something_else_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    folder.open().await.close().await.unwrap();
    folder.raw().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    let refused = Ledger::open(folder.file()).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Newer { found: 99, known: 1, .. }), "{refused}");
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);

    let other = Folder::new();
    std::fs::create_dir_all(other.path()).unwrap();
    other.raw().execute_batch("CREATE TABLE song (name TEXT)").unwrap();
    let before = std::fs::read(other.file()).unwrap();
    assert!(matches!(Ledger::open(other.file()).await.unwrap_err(), LedgerError::NotOurs { .. }));
    assert_eq!(std::fs::read(other.file()).unwrap(), before);

    let text = other.path().join("notes.txt");
    let notes = "these are notes, and not a database\n".repeat(100);
    std::fs::write(&text, &notes).unwrap();
    assert!(matches!(Ledger::open(&text).await.unwrap_err(), LedgerError::NotOurs { .. }));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), notes);

    let under_a_file = text.join("ledger.db");
    assert!(matches!(Ledger::open(&under_a_file).await.unwrap_err(), LedgerError::Files { .. }));
}

#[tokio::test]
async fn many_may_make_the_file_at_once() {
    for _ in 0..5 {
        let folder = Folder::new();
        let opened = futures_util::future::join_all((0..8).map(|_| Ledger::open(folder.file()))).await;
        let ledgers: Vec<_> = opened.into_iter().map(Result::unwrap).collect();
        futures_util::future::join_all(ledgers.iter().map(|ledger| prepare(ledger, "m"))).await;
        let counts = ledgers[0].counts().await.unwrap();
        assert_eq!(counts.iter().map(|count| count.entries).sum::<u64>(), 8);
    }
}

#[tokio::test]
async fn a_file_that_another_keeps_locked_is_an_error_after_a_while_and_works_again() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let other = folder.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = tokio::time::Instant::now();
    let refused = ledger.prepare(new("m1"), &follower("first"), at(0)).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Busy { .. }), "{refused}");
    assert!(began.elapsed() >= Duration::from_secs(4), "it waited");
    assert!(ledger.counts().await.unwrap().is_empty(), "reading goes on");
    other.execute_batch("COMMIT").unwrap();
    let _ = prepare(&ledger, "m2").await;
}

#[tokio::test]
async fn one_that_is_refused_takes_none_of_its_neighbours_with_it() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let lost = prepare(&ledger, "m2").await;
    ledger.release(vec![lost.claim.clone()]).await.unwrap();
    let prepares = (0..50).map(|_| prepare(&ledger, "m"));
    let news = || longhaul_client::ledger::News::Sending;
    let (prepared, refused, sent) = tokio::join!(
        futures_util::future::join_all(prepares),
        ledger.record(&lost.claim, news(), at(1)),
        ledger.record(&held.claim, news(), at(1)),
    );
    assert!(matches!(refused, Err(LedgerError::ClaimLost { .. })));
    assert_eq!(sent.unwrap().attempts, 1);
    for held in prepared {
        assert!(ledger.get(held.entry.id).await.is_ok());
    }
}
