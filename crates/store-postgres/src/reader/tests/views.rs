use longhaul_protocol::{ArtifactId, MessageId, Timestamp};
use longhaul_store::{HistoryLimit, ListQuery, SnapshotQuery};

use super::{Fixture, TaskRow, at, context_id, scope, task_id};
use crate::shards;

fn view(at: Option<u64>) -> SnapshotQuery {
    SnapshotQuery { at, history: HistoryLimit::All, artifacts: true }
}

fn created(id: &str) -> String {
    format!(r#"{{"task":{{"id":"{id}","contextId":"c","status":{{"state":"TASK_STATE_SUBMITTED"}}}}}}"#)
}

fn chunk(id: &str, words: &str) -> String {
    let artifact = format!(r#"{{"artifactId":"a","parts":[{{"text":"{words}"}}]}}"#);
    format!(r#"{{"artifactUpdate":{{"taskId":"{id}","contextId":"c","artifact":{artifact}}}}}"#)
}

/// Three events: the task as created, an artifact, and the same artifact anew.
async fn put_log(fixture: &Fixture, id: &str, compaction: i16) {
    let row = TaskRow { id, state: 3, last_sequence: 3, compaction, ..TaskRow::default() };
    fixture.put([row]).await;
    let shard = shards::of_task(&task_id(id));
    for (sequence, kind, payload) in [(1, 0, created(id)), (2, 1, chunk(id, "one")), (3, 1, chunk(id, "two"))] {
        let values = format!("{shard}, '{id}', {sequence}, {kind}, 5, convert_to('{payload}', 'UTF8')");
        fixture.execute(&format!("INSERT INTO event VALUES ({values})")).await;
    }
}

#[tokio::test]
async fn a_merged_log_tells_only_of_its_end() {
    let fixture = Fixture::new().await;
    let (whole, merged) = (task_id("whole"), task_id("merged"));
    put_log(&fixture, "whole", 1).await;
    put_log(&fixture, "merged", 2).await;
    let found = async |id, at| fixture.reader.snapshot(&scope(""), id, view(at)).await.unwrap();
    for at in [1, 2, 3] {
        assert_eq!(found(&whole, Some(at)).await.unwrap().sequence, at);
        assert_eq!(found(&merged, Some(at)).await.is_some(), at == 3);
    }
    for at in [0, 4] {
        assert_eq!((found(&whole, Some(at)).await, found(&merged, Some(at)).await), (None, None));
    }
    assert_eq!(found(&merged, None).await.unwrap().task.artifacts, found(&whole, None).await.unwrap().task.artifacts);
    for (after, expected) in [(0, 3), (2, 1), (3, 0)] {
        assert_eq!(fixture.reader.events_after(&whole, after, 10).await.unwrap().len(), expected);
        assert_eq!(fixture.reader.events_after(&merged, after, 10).await.unwrap(), []);
    }
    let artifact = ArtifactId::new("a").unwrap();
    let versions = fixture.reader.versions(&scope(""), &merged, &artifact, None).await.unwrap().unwrap();
    assert_eq!(versions.into_versions(None, 10).unwrap().len(), 2);
}

#[tokio::test]
async fn what_a_removed_task_has_left_is_not_seen() {
    let fixture = Fixture::new().await;
    let id = task_id("t");
    put_log(&fixture, "t", 0).await;
    let shard = shards::of_task(&id);
    let accepted = shards::of_message(&scope("").tenant, &MessageId::new("m").unwrap());
    fixture
        .execute(&format!(
            "INSERT INTO message VALUES ({shard}, 't', 0, 1, convert_to('{{\"messageId\":\"m\",\"role\":\"ROLE_USER\",
                \"parts\":[{{\"text\":\"hello\"}}]}}', 'UTF8'));
            INSERT INTO accepted VALUES ({accepted}, '', '', 'm', 't', {shard}, decode(repeat('ab', 32), 'hex'), 100)"
        ))
        .await;
    let message = MessageId::new("m").unwrap();
    let known = async |now: Timestamp| fixture.reader.accepted(&scope(""), &message, now).await.unwrap();
    assert_eq!(known(at(99)).await, Some((id.clone(), [0xab; 32])));
    assert_eq!(known(at(100)).await, None);
    assert_eq!(fixture.reader.messages(&id, &[0, 0, 7]).await.unwrap().len(), 1);
    assert_eq!(fixture.reader.marks(&[task_id("none"), id.clone()]).await.unwrap().len(), 1);

    fixture.execute("DELETE FROM task").await;
    assert_eq!(known(at(99)).await, None);
    assert_eq!(fixture.reader.messages(&id, &[0]).await.unwrap(), []);
    assert_eq!(fixture.reader.events_after(&id, 0, 10).await.unwrap(), []);
    assert_eq!(fixture.reader.marks(std::slice::from_ref(&id)).await.unwrap(), []);
    assert_eq!(fixture.reader.snapshot(&scope(""), &id, view(None)).await.unwrap(), None);
    let artifact = ArtifactId::new("a").unwrap();
    assert!(fixture.reader.versions(&scope(""), &id, &artifact, None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_total_is_the_count_and_what_was_not_added_to_it_yet() {
    let fixture = Fixture::new().await;
    let counted = async |table: &str, context: Option<&str>, batch: &str, counts: &str| {
        let shard = shards::of_counts(&scope(""), context.map(context_id).as_ref());
        let context = context.unwrap_or_default();
        fixture.execute(&format!("INSERT INTO {table} VALUES ({shard}, '', '', '{context}'{batch}, {counts})")).await;
    };
    counted("task_count", None, "", "5, 0, 7, 0, 0, 0, 0, 0").await;
    counted("task_count_delta", None, ", 1", "-1, 1, 0, 0, 0, 0, 0, 0").await;
    counted("task_count_delta", None, ", 2", "0, -1, 1, 0, 0, 0, 0, 0").await;
    counted("task_count_delta", Some("c"), ", 2", "0, 0, 1, 0, 0, 0, 0, 0").await;
    let mut query = ListQuery {
        scope: scope(""),
        context_id: None,
        state: None,
        status_timestamp_after: None,
        after: None,
        page_size: 10,
        history: HistoryLimit::All,
        artifacts: true,
    };
    let total = async |query: &ListQuery| fixture.reader.list(query).await.unwrap().total;
    assert_eq!(total(&query).await, 12);
    query.state = Some(longhaul_protocol::TaskState::Completed);
    assert_eq!(total(&query).await, 8);
    query.context_id = Some(context_id("c"));
    assert_eq!(total(&query).await, 1);
    query.context_id = Some(context_id("none"));
    assert_eq!(total(&query).await, 0);
    // Counts that do not add up are not told as if they did.
    counted("task_count_delta", Some("none"), ", 3", "0, 0, -1, 0, 0, 0, 0, 0").await;
    assert!(fixture.reader.list(&query).await.is_err());
}
