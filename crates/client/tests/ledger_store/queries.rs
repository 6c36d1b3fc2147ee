//! What is found again.

use longhaul_client::ledger::{
    Entry, EntryId, Filter, Ledger, LedgerError, ListQuery, News, Order, PAGE_MAX, StateKind,
};
use longhaul_protocol::TaskState;

use super::support::*;

/// One entry in each of seven ways, oldest first.
async fn varied(ledger: &Ledger) -> Vec<Entry> {
    let mut entries = Vec::new();
    let news = [
        None,
        Some(told("t1", TaskState::Working, "")),
        Some(told("t2", TaskState::InputRequired, "which?")),
        Some(told("t3", TaskState::AuthRequired, "log in")),
        Some(News::Unresolved { why: "lost".to_owned() }),
        Some(told("t1", TaskState::Completed, "")),
        Some(News::Refused { error: "no".to_owned() }),
    ];
    for (news, seconds) in news.into_iter().zip(0..) {
        let held = ledger.prepare(new("m"), &follower("first"), at(seconds)).await.unwrap();
        entries.push(match news {
            None => held.entry,
            Some(news) => ledger.record(&held.claim, news, at(seconds)).await.unwrap(),
        });
    }
    entries
}

#[tokio::test]
async fn each_filter_finds_its_entries() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let entries = varied(&ledger).await;
    for (filter, wanted) in [
        (Filter::All, &[0, 1, 2, 3, 4, 5, 6][..]),
        (Filter::Open, &[0, 1, 2, 3]),
        (Filter::NeedsPerson, &[2, 3, 4]),
        (Filter::Unsettled, &[0, 1, 2, 3, 4]),
        (Filter::Settled, &[5, 6]),
        (Filter::State(StateKind::Question), &[2]),
        (Filter::State(StateKind::Lost), &[]),
    ] {
        let page = ledger.list(ListQuery { filter, limit: 100, ..ListQuery::default() }).await.unwrap();
        let wanted: Vec<_> = wanted.iter().map(|place: &usize| entries[*place].clone()).collect();
        assert_eq!(page.entries, wanted, "{filter:?}");
        assert_eq!((page.unreadable.len(), page.next), (0, None));
    }
    let counts: Vec<_> = ledger.counts().await.unwrap().into_iter().map(|count| (count.state, count.entries)).collect();
    let states = [
        StateKind::Prepared,
        StateKind::Accepted,
        StateKind::Question,
        StateKind::Authorization,
        StateKind::Uncertain,
        StateKind::Completed,
        StateKind::Refused,
    ];
    assert_eq!(counts, states.map(|state| (state, 1)));
    let of_task = ledger.find_by_task("t1").await.unwrap();
    assert_eq!(of_task.entries, [entries[5].clone(), entries[1].clone()]);
    assert!(ledger.find_by_task("t").await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn pages_meet_without_a_gap_in_both_orders() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let mut wanted: Vec<EntryId> = varied(&ledger).await.iter().map(|entry| entry.id).collect();
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = ledger.list(ListQuery { order, after, limit: 3, filter: Filter::All }).await.unwrap();
            assert!(page.entries.len() <= 3);
            found.extend(page.entries.iter().map(|entry| entry.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted, "{order:?}");
        wanted.reverse();
    }
    // A limit is moved into its range.
    for (limit, wanted) in [(0, 1), (PAGE_MAX + 1, 7)] {
        let page = ledger.list(ListQuery { limit, ..ListQuery::default() }).await.unwrap();
        assert_eq!(page.entries.len(), wanted);
    }
}

#[tokio::test]
async fn only_settled_entries_are_removed_with_all_that_belongs_to_them() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let entries = varied(&ledger).await;
    assert_eq!(ledger.prune(at(5)).await.unwrap(), 0, "settled at that moment");
    assert_eq!(ledger.prune(at(6)).await.unwrap(), 1);
    assert!(matches!(ledger.get(entries[5].id).await, Err(LedgerError::NotFound { .. })));
    ledger.remove(entries[6].id).await.unwrap();
    assert!(matches!(ledger.remove(entries[6].id).await, Err(LedgerError::NotFound { .. })));
    for entry in &entries[..5] {
        assert!(matches!(ledger.remove(entry.id).await, Err(LedgerError::NotSettled { .. })));
    }
    assert_eq!(ledger.prune(at(10_000)).await.unwrap(), 0);
    let raw = folder.raw();
    let orphans = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table} WHERE entry NOT IN (SELECT number FROM entry)");
        raw.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(["request", "told", "history"].map(orphans), [0, 0, 0]);
}

#[tokio::test]
async fn a_damaged_entry_is_named_and_holds_nothing_up() {
    for (damage, what) in [
        ("state = 99", "state: there is no 99"),
        ("state = 2", "task_id: accepted has one"),
        ("attempts = -1", "attempts: -1 is out of range"),
        ("claimed_by = NULL", "claimed_by, claim_until: only one of them is set"),
        ("deadline_at = 1, quiet_max = 1", "deadline_at, quiet_max: both are set"),
        ("kept = 3", "kept: there is no 3"),
        ("purpose = CAST(X'ff' AS TEXT)", "purpose: "),
    ] {
        let folder = Folder::new();
        let ledger = folder.open().await;
        let damaged = prepare(&ledger, "m1").await.entry.id;
        let good = prepare(&ledger, "m2").await.entry.id;
        let sql = format!("UPDATE entry SET {damage} WHERE id = ?1");
        let id = u128::from_str_radix(&damaged.to_string().replace('-', ""), 16).unwrap().to_be_bytes();
        assert_eq!(folder.raw().execute(&sql, [id]).unwrap(), 1);
        let error = ledger.get(damaged).await.unwrap_err();
        assert!(
            matches!(&error, LedgerError::Corrupt { entry, problem } if *entry == damaged && problem.starts_with(what)),
            "{error}"
        );
        let page = ledger.list(ListQuery { limit: 10, ..ListQuery::default() }).await.unwrap();
        assert_eq!((page.entries.len(), page.entries[0].id, page.unreadable.len()), (1, good, 1));
        let page = ledger.claim_open(&follower("second"), None, 10, at(1000)).await.unwrap();
        assert_eq!(page.entries.iter().map(|held| held.entry.id).collect::<Vec<_>>(), [good]);
    }
}

#[tokio::test]
async fn a_damaged_request_or_outcome_is_an_error_that_names_the_entry() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    ledger.record(&held.claim, told("t", TaskState::Completed, ""), at(1)).await.unwrap();
    folder.raw().execute_batch("UPDATE request SET json = X'7b'; UPDATE told SET json = X'7b';").unwrap();
    let id = held.entry.id;
    assert!(matches!(ledger.request(id).await, Err(LedgerError::Corrupt { entry, .. }) if entry == id));
    assert!(matches!(ledger.outcome(id).await, Err(LedgerError::Corrupt { entry, .. }) if entry == id));
    folder.raw().execute_batch("DELETE FROM request; DELETE FROM told; UPDATE history SET state = 77").unwrap();
    assert!(matches!(ledger.request(id).await, Err(LedgerError::Corrupt { entry, .. }) if entry == id));
    assert!(matches!(ledger.outcome(id).await, Err(LedgerError::Corrupt { entry, .. }) if entry == id));
    assert!(matches!(ledger.history(id, 0, 10).await, Err(LedgerError::Corrupt { entry, .. }) if entry == id));
}
