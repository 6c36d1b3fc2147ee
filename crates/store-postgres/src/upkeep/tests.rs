use tokio_util::sync::CancellationToken;

use super::{start, statements};
use crate::testing::{Fixture, PATIENCE, check_plan, plan};

#[tokio::test]
async fn counts_are_added_up_in_the_background_until_the_store_is_closed() {
    let fixture = Fixture::new().await;
    let closing = CancellationToken::new();
    start(fixture.database.clone(), fixture.pool.clone(), closing.clone());
    fixture.execute("INSERT INTO task_count_delta VALUES (1, '', '', 'c', 7, 1, 2, 3, 4, 5, 6, 7, 8)").await;
    let added = async {
        while fixture.rows(["task_count_delta"]).await != [0] {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, added).await.unwrap();
    assert_eq!(fixture.number("SELECT n1 + 10 * n8 FROM task_count WHERE context_id = 'c'").await, 81);
    closing.cancel();
    let tracker = fixture.database.tracker().clone();
    // Its connections are on the tracker as well.
    fixture.pool.close();
    drop(fixture);
    tracker.close();
    tokio::time::timeout(PATIENCE, tracker.wait()).await.unwrap();
}

#[tokio::test]
async fn no_step_walks_over_all_rows() {
    let fixture = Fixture::new().await;
    let all = [
        statements::SIZES,
        statements::REMOVE_TASKS,
        statements::REMOVE_PUSHES,
        statements::REMOVE_DEAD,
        statements::SWEEP,
        statements::NEXT_LOG,
        statements::HAS_LOG,
        statements::READ_LOG,
        statements::REMOVE_RANGES,
        statements::REWRITE_EVENT,
        statements::END_COMPACTION,
        statements::FOLD_COUNTS,
        statements::REMOVE_COUNTS,
        statements::FORGET_ACCEPTED,
    ];
    // Plans for tables without statistics, and with those of empty ones: either may serve for long.
    for statistics in ["", "VACUUM ANALYZE"] {
        fixture.execute(statistics).await;
        for sql in all {
            check_plan(&plan(&fixture, sql).await);
        }
    }
}
