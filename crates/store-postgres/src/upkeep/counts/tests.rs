use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{PAGE, Place, fold, fold_page};
use crate::testing::Fixture;

/// All that is counted, at one moment.
const SUM: &str = "SELECT coalesce(sum(n1), 0)::bigint FROM (SELECT n1 FROM task_count UNION ALL SELECT n1 FROM task_count_delta) AS n";

/// Deltas of `$2` counts, in which nothing is gained: what one wins another loses.
const EXCHANGE: &str = "INSERT INTO task_count_delta
    SELECT n % 16, '', 'owner', 'context-' || n % $2::bigint, $1::bigint * 100000 + n, CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END,
        n, 0, 0, 0, 0, 0, 0
    FROM generate_series(1, 1000) AS n";

#[tokio::test]
async fn counts_are_exact_at_every_moment_while_several_add_them_up() {
    let fixture = Fixture::new().await;
    let done = Arc::new(AtomicBool::new(false));
    let folders: Vec<_> = (0..3)
        .map(|_| {
            let (pool, done) = (fixture.other_pool(), Arc::clone(&done));
            fixture.database.tracker().spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    fold(&pool).await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for batch in 0..20_i64 {
        fixture.session.execute(EXCHANGE, &[&batch, &48_i64]).await.unwrap();
        for _ in 0..5 {
            assert_eq!(fixture.number(SUM).await, 0);
        }
    }
    done.store(true, Ordering::Relaxed);
    for folder in folders {
        folder.await.unwrap();
    }
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.rows(["task_count_delta", "task_count"]).await, [0, 48]);
    assert_eq!(fixture.number("SELECT sum(n2)::bigint FROM task_count").await, 20 * 500_500);
    // Of each count every delta came once.
    let wrong =
        "SELECT count(*) FROM task_count AS c WHERE n2 <> 20 * (SELECT sum(n) FROM generate_series(1, 1000) AS n
        WHERE 'context-' || n % 48 = c.context_id)";
    assert_eq!(fixture.number(wrong).await, 0);
}

#[tokio::test]
async fn pages_go_on_behind_each_other() {
    let fixture = Fixture::new().await;
    fixture.session.execute(EXCHANGE, &[&0_i64, &1000_i64]).await.unwrap();
    let mut place = Place::first();
    for page in 1..=2 {
        let next = fold_page(&fixture.pool, &place, 400).await.unwrap().unwrap();
        assert!(next > place);
        place = next;
        assert_eq!(fixture.rows(["task_count_delta"]).await, [1000 - page * 400]);
    }
    assert_eq!(fold_page(&fixture.pool, &place, 400).await.unwrap(), None);
    assert_eq!(fixture.rows(["task_count_delta", "task_count"]).await, [0, 1000]);
    for batch in 1..=(PAGE / 1000 + 1) {
        fixture.session.execute(EXCHANGE, &[&batch, &10_i64]).await.unwrap();
    }
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.rows(["task_count_delta"]).await, [0], "however many pages it takes");
}

#[tokio::test]
async fn counts_that_come_to_nothing_are_removed() {
    let fixture = Fixture::new().await;
    let delta = |context: &str, batch: i64, n1: i64, n3: i64| {
        format!("INSERT INTO task_count_delta VALUES (1, '', '', '{context}', {batch}, {n1}, 0, {n3}, 0, 0, 0, 0, 0);")
    };
    fixture
        .execute(
            &(delta("gone", 1, 1, 0) + &delta("kept", 1, 2, 0) + &delta("never", 1, 1, 0) + &delta("never", 2, -1, 0)),
        )
        .await;
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.rows(["task_count"]).await, [2]);
    fixture.execute(&(delta("gone", 3, -1, 1) + &delta("kept", 3, -1, 1))).await;
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.rows(["task_count"]).await, [2]);
    fixture.execute(&(delta("gone", 4, 0, -1) + &delta("kept", 4, 0, -1))).await;
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.number("SELECT n1 FROM task_count WHERE context_id = 'kept'").await, 1);
    assert_eq!(fixture.rows(["task_count", "task_count_delta"]).await, [1, 0]);
    fixture.execute(&delta("gone", 5, 1, 0)).await;
    fold(&fixture.pool).await.unwrap();
    assert_eq!(fixture.number("SELECT n1 FROM task_count WHERE context_id = 'gone'").await, 1, "it can come again");
}
