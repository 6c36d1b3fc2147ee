//! Who follows what, when several do.

use std::collections::BTreeSet;

use longhaul_client::ledger::{CLAIM_DURATION, ClaimMode, EntryId, LedgerError, News, NotAllowed};
use longhaul_protocol::TaskState;

use super::support::*;

#[tokio::test]
async fn an_entry_is_followed_by_one_until_its_claim_runs_out() {
    let folder = Folder::new();
    let (one, other) = (folder.open().await, folder.open().await);
    let held = prepare(&one, "m1").await;
    let id = held.entry.id;
    let ends = i64::try_from(CLAIM_DURATION.as_secs()).unwrap();
    let refused = other.claim(id, &follower("second"), ClaimMode::IfFree, at(ends - 1)).await.unwrap_err();
    let LedgerError::Claimed { by, until, .. } = refused else { panic!("{refused}") };
    assert_eq!((by.as_str(), until), ("first", at(ends)));
    assert!(one.renew(vec![held.claim.clone()], at(10)).await.unwrap().is_empty());
    assert!(other.claim(id, &follower("second"), ClaimMode::IfFree, at(ends)).await.is_err(), "it was renewed");
    let second = other.claim(id, &follower("second"), ClaimMode::IfFree, at(ends + 10)).await.unwrap();
    let late = one.record(&held.claim, told("t", TaskState::Working, ""), at(ends + 11)).await.unwrap_err();
    assert!(matches!(late, LedgerError::ClaimLost { entry } if entry == id), "{late}");
    assert_eq!(one.renew(vec![held.claim.clone()], at(ends + 11)).await.unwrap(), [id]);
    assert!(one.reply(&held.claim, &request("m2", ""), at(ends + 11)).await.is_err());
    one.release(vec![held.claim]).await.unwrap();
    let entry = other.record(&second.claim, News::Sending, at(ends + 12)).await.unwrap();
    assert_eq!((entry.attempts, entry.claimed.unwrap().by), (1, follower("second")));
}

#[tokio::test]
async fn a_claim_that_ran_out_still_holds_when_nobody_else_took_it() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    assert!(ledger.record(&held.claim, News::Sending, at(10_000)).await.is_ok());
    assert!(ledger.renew(vec![held.claim.clone()], at(10_000)).await.unwrap().is_empty());
    let taken = ledger.claim(held.entry.id, &follower("second"), ClaimMode::IfFree, at(10_001)).await;
    assert!(matches!(taken, Err(LedgerError::Claimed { .. })));
}

#[tokio::test]
async fn a_released_claim_is_free_at_once_and_of_no_more_use() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    ledger.release(vec![held.claim.clone()]).await.unwrap();
    assert_eq!(ledger.get(held.entry.id).await.unwrap().claimed, None);
    assert!(matches!(ledger.record(&held.claim, News::Sending, at(1)).await, Err(LedgerError::ClaimLost { .. })));
    assert!(ledger.claim(held.entry.id, &follower("second"), ClaimMode::IfFree, at(1)).await.is_ok());
}

#[tokio::test]
async fn what_a_person_asks_for_takes_a_claim_over() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let taken = ledger.claim(held.entry.id, &follower("second"), ClaimMode::TakeOver, at(1)).await.unwrap();
    assert!(matches!(ledger.record(&held.claim, News::Sending, at(2)).await, Err(LedgerError::ClaimLost { .. })));
    assert!(ledger.record(&taken.claim, News::Sending, at(2)).await.is_ok());
    let history = ledger.history(held.entry.id, 1, 1).await.unwrap();
    assert_eq!((history[0].what.as_str(), history[0].detail.as_str()), ("taken over", "by second, from first"));
}

#[tokio::test]
async fn a_settled_entry_can_not_be_claimed() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    ledger.record(&held.claim, told("t", TaskState::Completed, ""), at(1)).await.unwrap();
    for mode in [ClaimMode::IfFree, ClaimMode::TakeOver] {
        let refused = ledger.claim(held.entry.id, &follower("second"), mode, at(10_000)).await.unwrap_err();
        assert!(matches!(refused, LedgerError::NotAllowed { source: NotAllowed::Settled(_), .. }), "{refused}");
    }
    assert_eq!(ledger.renew(vec![held.claim], at(2)).await.unwrap(), [held.entry.id], "nothing is left to follow");
}

#[tokio::test]
async fn two_recoveries_share_what_is_open() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let mut open = BTreeSet::new();
    for number in 0..60 {
        let held = prepare(&ledger, &format!("m{number}")).await;
        match number % 3 {
            0 => drop(ledger.record(&held.claim, told("t", TaskState::Completed, ""), at(1)).await.unwrap()),
            1 => drop(ledger.record(&held.claim, News::Unresolved { why: String::new() }, at(1)).await.unwrap()),
            _ => drop(open.insert(held.entry.id)),
        }
    }
    assert_eq!(ledger.claims_run_out_at(at(0)).await.unwrap(), Some(at(30)));
    assert!(ledger.open_unclaimed(None, 100, at(29)).await.unwrap().entries.is_empty());
    assert_eq!(ledger.open_unclaimed(None, 100, at(30)).await.unwrap().entries.len(), open.len());
    let recover = async |name: &str| {
        let (ledger, mut found) = (folder.open().await, Vec::<EntryId>::new());
        loop {
            let page = ledger.claim_open(&follower(name), None, 3, at(30)).await.unwrap();
            if page.entries.is_empty() {
                return found;
            }
            found.extend(page.entries.iter().map(|held| held.entry.id));
        }
    };
    let (first, second) = tokio::join!(recover("second"), recover("third"));
    assert_eq!(first.len() + second.len(), open.len());
    assert_eq!(first.into_iter().chain(second).collect::<BTreeSet<_>>(), open);
    assert_eq!(ledger.claims_run_out_at(at(30)).await.unwrap(), Some(at(60)));
}

#[tokio::test]
async fn the_claims_of_one_who_is_dead_need_not_be_waited_for() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let id = held.entry.id;
    let other = ledger.claim_from(id, &follower("second"), &follower("third"), at(1)).await;
    assert!(matches!(other, Err(LedgerError::Claimed { .. })), "{other:?}");
    let second = ledger.claim_from(id, &follower("second"), &follower("first"), at(1)).await.unwrap();
    assert!(matches!(ledger.record(&held.claim, News::Sending, at(2)).await, Err(LedgerError::ClaimLost { .. })));
    // Who comes second takes it from the dead, and not from who did that before.
    let late = ledger.claim_from(id, &follower("third"), &follower("first"), at(2)).await;
    assert!(matches!(late, Err(LedgerError::Claimed { .. })), "{late:?}");
    ledger.release(vec![second.claim]).await.unwrap();
    assert!(ledger.claim_from(id, &follower("third"), &follower("first"), at(3)).await.is_ok());
}
