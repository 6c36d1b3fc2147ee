use longhaul_protocol::{TaskId, TaskState, Timestamp};

use super::{BYTES_MAX, ROWS_MAX, Sized, purge, remove, sizes, steps, sweep};
use crate::reader::Reader;
use crate::testing::{Fixture, PATIENCE};

const TABLES: [&str; 6] = ["task", "task_status", "task_checkpoint", "event", "message", "task_removed"];

fn sized(rows: i64, log_bytes: Option<i64>, other_bytes: i64) -> Sized {
    Sized { shard: 0, id: String::new(), scope_shard: 0, context_shard: 0, rows, log_bytes, other_bytes, pushes: false }
}

fn lengths(tasks: &[Sized]) -> Vec<usize> {
    steps(tasks).iter().map(|step| step.len()).collect()
}

#[test]
fn a_transaction_removes_some_rows_and_bytes() {
    assert_eq!(lengths(&[]), [0; 0]);
    assert_eq!(lengths(&vec![sized(5, Some(100), 0); 100]), [100]);
    assert_eq!(lengths(&vec![sized(200, Some(100), 0); 5]), [2, 2, 1]);
    assert_eq!(lengths(&vec![sized(5, Some(BYTES_MAX / 2), 0); 5]), [2, 2, 1]);
    assert_eq!(lengths(&vec![sized(5, Some(100), BYTES_MAX * 2); 3]), [1, 1, 1], "alone, but at all");
}

#[test]
fn a_long_log_is_left_and_its_task_is_not() {
    for long in [sized(ROWS_MAX + 1, None, 10), sized(5, Some(BYTES_MAX + 1), 10)] {
        assert!(!long.is_whole());
        assert_eq!(long.cost(), (0, 10));
    }
    assert!(sized(ROWS_MAX, Some(BYTES_MAX), 0).is_whole());
    assert_eq!(lengths(&vec![sized(100_000, None, 10); 50]), [50]);
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

#[tokio::test]
async fn instances_that_remove_at_once_remove_each_task_once() {
    let fixture = Fixture::new().await;
    for owner in ["one", "two", "three"] {
        fixture.put_tasks(owner, 150, 4, 100).await;
    }
    let remover = || {
        let pool = fixture.other_pool();
        fixture.database.tracker().spawn(async move {
            let (reader, mut removed) = (Reader::new(pool.clone()), 0);
            for _ in 0..20 {
                removed += purge(&pool, &reader, TaskState::Completed, at(100), 50).await.unwrap();
            }
            removed
        })
    };
    let mut removed = 0;
    for remover in [remover(), remover(), remover()] {
        removed += remover.await.unwrap();
    }
    assert_eq!(removed, 3 * 99);
    assert_eq!(fixture.rows(TABLES).await, [3 * 51, 3 * 51, 3 * 51, 3 * 51 * 4, 3 * 51 * 2, 0]);
    for owner in ["one", "two", "three"] {
        for context in ["", "context"] {
            let counted = "SELECT sum(n3)::bigint FROM task_count_delta WHERE owner";
            assert_eq!(fixture.number(&format!("{counted} = '{owner}' AND context_id = '{context}'")).await, -99);
        }
    }
}

#[tokio::test]
async fn a_task_that_somebody_has_is_left_and_not_waited_for() {
    let fixture = Fixture::new().await;
    let ids = fixture.put_tasks("o", 3, 4, 100).await;
    let other = fixture.database.connect().await.unwrap();
    let lock = format!("BEGIN; SELECT 1 FROM task WHERE id = '{}' FOR NO KEY UPDATE", ids[1]);
    other.client().batch_execute(&lock).await.unwrap();
    let reader = fixture.reader();
    let removed = purge(&fixture.pool, &reader, TaskState::Completed, at(100), 50);
    assert_eq!(tokio::time::timeout(PATIENCE / 4, removed).await.unwrap().unwrap(), 2);
    assert_eq!(fixture.rows(TABLES).await, [1, 1, 1, 4, 2, 0]);
    other.client().batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(purge(&fixture.pool, &reader, TaskState::Completed, at(100), 50).await.unwrap(), 1);
}

#[tokio::test]
async fn a_task_that_is_not_what_was_found_is_kept() {
    let fixture = Fixture::new().await;
    let ids: Vec<TaskId> =
        fixture.put_tasks("o", 3, 4, 100).await.into_iter().map(|id| TaskId::new(id).unwrap()).collect();
    let found = sizes(&fixture.pool, &ids).await.unwrap();
    assert_eq!(found.iter().map(|task| (task.rows, task.log_bytes)).collect::<Vec<_>>(), [(6, Some(410)); 3]);
    fixture
        .execute("UPDATE task SET status_time = 50 WHERE id = 'o-0'; UPDATE task SET state = 2 WHERE id = 'o-1'")
        .await;
    assert_eq!(remove(&fixture.pool, &found, TaskState::Completed, at(50)).await.unwrap(), 1);
    assert_eq!(remove(&fixture.pool, &found, TaskState::Completed, at(50)).await.unwrap(), 0, "no task goes twice");
    assert_eq!(fixture.rows(TABLES).await, [2, 2, 2, 8, 4, 0]);
    assert_eq!(
        fixture.number("SELECT sum(n3)::bigint FROM task_count_delta").await,
        -2,
        "of the scope and the context"
    );
}

#[tokio::test]
async fn a_long_log_goes_in_slices() {
    let fixture = Fixture::new().await;
    let many = fixture.put_tasks("many", 1, 2 * ROWS_MAX + 100, 10).await;
    let large = fixture.put_tasks("large", 1, 6, i32::try_from(BYTES_MAX / 2).unwrap()).await;
    let ids: Vec<TaskId> = many.iter().chain(&large).map(|id| TaskId::new(id).unwrap()).collect();
    let found = sizes(&fixture.pool, &ids).await.unwrap();
    assert_eq!(remove(&fixture.pool, &found, TaskState::Completed, at(100)).await.unwrap(), 2);
    assert_eq!(fixture.rows(TABLES).await, [0, 0, 0, 2 * ROWS_MAX + 106, 4, 2], "gone at once, but for the logs");
    let (mut steps, mut before) = (0, fixture.rows(["event", "message"]).await);
    while sweep(&fixture.pool).await.unwrap() {
        let after = fixture.rows(["event", "message"]).await;
        let removed: i64 = before.iter().sum::<i64>() - after.iter().sum::<i64>();
        assert!((1..=ROWS_MAX).contains(&removed), "{removed} rows at once");
        (steps, before) = (steps + 1, after);
    }
    // By rows; and two large events at once, with nothing more.
    assert_eq!(steps, 3 + 4);
    assert_eq!(fixture.rows(TABLES).await, [0; 6]);
}

#[tokio::test]
async fn what_another_has_left_is_removed_too() {
    let fixture = Fixture::new().await;
    let ids: Vec<TaskId> =
        fixture.put_tasks("o", 1, ROWS_MAX * 2, 10).await.into_iter().map(|id| TaskId::new(id).unwrap()).collect();
    let found = sizes(&fixture.pool, &ids).await.unwrap();
    assert_eq!(remove(&fixture.pool, &found, TaskState::Completed, at(100)).await.unwrap(), 1);
    // Here its process ended.
    assert_eq!(purge(&fixture.pool, &fixture.reader(), TaskState::Failed, at(100), 50).await.unwrap(), 0);
    assert_eq!(fixture.rows(TABLES).await, [0; 6]);
}
