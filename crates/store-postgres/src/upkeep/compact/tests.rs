use longhaul_protocol::{Artifact, ContextId, TaskId, Timestamp, json, wire};

use super::compact;
use crate::testing::{Fixture, shard_of};

const EVENTS: i64 = 20;

/// A chunk of the only artifact.
fn chunk(append: bool) -> String {
    let artifact = wire::Artifact {
        artifact_id: "a".to_owned(),
        parts: vec![wire::Part { content: Some(wire::PartContent::Text("x".to_owned())), ..wire::Part::default() }],
        ..wire::Artifact::default()
    };
    let artifact = Artifact::new(artifact).unwrap();
    let update = longhaul_lifecycle::ArtifactUpdate { artifact, append, last_chunk: false, metadata: None };
    let update = update.into_wire(&TaskId::new("t").unwrap(), &ContextId::new("c").unwrap());
    String::from_utf8(json::to_json(&update).to_vec()).unwrap()
}

async fn put_logs(fixture: &Fixture, owner: &str, count: usize) -> Vec<String> {
    let ids = fixture.put_tasks(owner, count, EVENTS, 1).await;
    let write =
        "UPDATE event SET payload = convert_to($1, 'UTF8') WHERE task_id LIKE $3 || '-%' AND (sequence > 1) = $2";
    for append in [false, true] {
        fixture.session.execute(write, &[&chunk(append), &append, &owner]).await.unwrap();
    }
    ids
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

#[tokio::test]
async fn instances_that_merge_at_once_deal_with_each_log_once() {
    let fixture = Fixture::new().await;
    put_logs(&fixture, "o", 40).await;
    let merger = || {
        let (database, pool) = (fixture.database.clone(), fixture.other_pool());
        fixture.database.tracker().spawn(async move { compact(&database, &pool, at(31), 100).await.unwrap() })
    };
    let mut merged = 0;
    for merger in [merger(), merger(), merger()] {
        merged += merger.await.unwrap();
    }
    assert_eq!(merged, 30);
    assert_eq!(fixture.number("SELECT count(*) FROM task WHERE compaction = 2").await, 30);
    assert_eq!(fixture.rows(["event"]).await, [30 + 10 * EVENTS]);
    let parts = "SELECT ((length(t) - length(replace(t, '\"text\"', ''))) / 6)::bigint
        FROM (SELECT convert_from(payload, 'UTF8') AS t FROM event WHERE task_id = 'o-0' AND sequence = 20) AS e";
    assert_eq!(fixture.number(parts).await, EVENTS);
    assert_eq!(compact(&fixture.database, &fixture.pool, at(31), 100).await.unwrap(), 0);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_stays_and_is_in_nobodys_way() {
    let fixture = Fixture::new().await;
    let ids = put_logs(&fixture, "o", 3).await;
    let broken = "UPDATE event SET payload = 'broken' WHERE shard = $1 AND task_id = $2 AND sequence = 5";
    fixture.session.execute(broken, &[&shard_of(&ids[0]), &ids[0]]).await.unwrap();
    assert_eq!(compact(&fixture.database, &fixture.pool, at(100), 100).await.unwrap(), 3);
    assert_eq!(fixture.rows(["event"]).await, [EVENTS + 2]);
    assert_eq!(fixture.number("SELECT compaction::bigint FROM task WHERE id = 'o-0'").await, 0);
}

#[tokio::test]
async fn a_log_whose_task_somebody_has_is_left_for_later() {
    let fixture = Fixture::new().await;
    put_logs(&fixture, "o", 3).await;
    let other = fixture.database.connect().await.unwrap();
    other.client().batch_execute("BEGIN; SELECT 1 FROM task WHERE id = 'o-0' FOR NO KEY UPDATE").await.unwrap();
    assert_eq!(compact(&fixture.database, &fixture.pool, at(100), 100).await.unwrap(), 2);
    other.client().batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(compact(&fixture.database, &fixture.pool, at(100), 100).await.unwrap(), 1);
}
