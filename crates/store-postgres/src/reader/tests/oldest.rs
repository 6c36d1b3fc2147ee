use longhaul_protocol::TaskState;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Fixture, TaskRow, at};
use crate::shards;

async fn ids(fixture: &Fixture, wanted: &str) -> Vec<String> {
    let asked = format!("SELECT id FROM task WHERE {wanted} ORDER BY status_time, id LIMIT 50");
    fixture.session.client().query(&asked, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_oldest_tasks_are_found_in_any_number_of_scopes() {
    let fixture = Fixture::new().await;
    let mut random = StdRng::seed_from_u64(1);
    let names: Vec<(String, String)> = (0..6000).map(|n| (format!("t{n}"), format!("o{}", n % 2500))).collect();
    let rows = names.iter().map(|(id, owner)| {
        let (state, status_time) = ([2, 3, 6][random.random_range(0..3)], random.random_range(0..100_000));
        let leased = state == 2 && random.random_range(0..2) == 0;
        let due_at = leased.then(|| random.random_range(0..200_000));
        TaskRow { id, owner, state, status_time, leased, due_at, ..TaskRow::default() }
    });
    fixture.put(rows).await;
    for before in [100, 5000, 1_000_000] {
        let ended = fixture.reader.ended(TaskState::Completed, at(before), 50).await.unwrap();
        let ended: Vec<_> = ended.iter().map(|id| id.as_str().to_owned()).collect();
        assert_eq!(ended, ids(&fixture, &format!("state = 3 AND status_time < {before}")).await);

        let states = [TaskState::Working, TaskState::InputRequired];
        let stale = fixture.reader.stale(&states, at(before), at(100_000), 50).await.unwrap();
        let stale: Vec<_> = stale.iter().map(|claim| claim.head.id.as_str().to_owned()).collect();
        let wanted = format!("state IN (2, 6) AND status_time < {before} AND (NOT leased OR due_at <= 100000)");
        assert_eq!(stale, ids(&fixture, &wanted).await);
    }
    // One scope alone, and no limit that matters.
    let few = fixture.reader.ended(TaskState::Completed, at(100), 10_000).await.unwrap();
    assert_eq!(few.len(), ids(&fixture, "state = 3 AND status_time < 100").await.len());
    assert_eq!(fixture.reader.ended(TaskState::Failed, at(1_000_000), 50).await.unwrap(), []);
}

#[tokio::test]
async fn whoever_has_a_renewed_lease_is_not_stale() {
    let fixture = Fixture::new().await;
    let row = TaskRow { state: 2, leased: true, epoch: 3, ..TaskRow::default() };
    fixture.put([TaskRow { id: "alive", ..row }, TaskRow { id: "over", ..row }]).await;
    for (id, until) in [("alive", 200), ("over", 100)] {
        let shard = shards::of_task(&super::task_id(id));
        fixture.execute(&format!("INSERT INTO lease VALUES ({shard}, '{id}', 3, {until})")).await;
    }
    let stale = fixture.reader.stale(&[TaskState::Working], at(50), at(100), 10).await.unwrap();
    let stale: Vec<_> = stale.iter().map(|claim| (claim.head.id.as_str(), claim.head.due_at)).collect();
    assert_eq!(stale, [("over", Some(at(100)))]);
}
