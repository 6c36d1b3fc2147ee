use crate::LeaseClock;
use longhaul_store::{Claim, Rotation};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Fixture, TaskRow, at, scope};
use crate::reader::line::Window;
use crate::shards;

/// Owners and contexts of tasks, uneven in number.
fn rows(random: &mut StdRng) -> Vec<(String, String, String, i64)> {
    let mut rows = Vec::new();
    for owner in 0..random.random_range(1..12) {
        for context in 0..[1, 2, 5, 40][random.random_range(0..4)] {
            for _ in 0..[1, 1, 2, 30][random.random_range(0..4)] {
                let id = format!("t{}", rows.len());
                rows.push((id, format!("o{owner}"), format!("c{context}"), random.random_range(0..1200)));
            }
        }
    }
    rows
}

#[tokio::test]
async fn a_part_of_the_line_gives_what_all_of_it_would() {
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let fixture = Fixture::new().await;
        let rows = rows(&mut random);
        let line = rows.iter().map(|(id, owner, context_id, due_at)| TaskRow {
            id,
            owner,
            context_id,
            due_at: Some(*due_at),
            ..TaskRow::default()
        });
        fixture.put(line).await;
        let whole = whole_line(&fixture).await;
        let mut rotation = Rotation::default();
        for _ in 0..40 {
            let limit = random.random_range(1..70);
            let mut expected_rotation = rotation.clone();
            let mut line = Window::new([]);
            whole.iter().cloned().for_each(|claim| line.add(claim, false, i64::MAX));
            line.sort();
            let expected = expected_rotation.take(&mut line, limit).unwrap();
            let due = fixture.reader.due(LeaseClock::Caller, at(1000), limit, rotation).await.unwrap();
            assert_eq!(due.claims, expected, "seed {seed}, {limit} at once");
            assert_eq!(due.rotation, expected_rotation);
            // Now and then one begins anew.
            rotation = if random.random_range(0..10) == 0 { Rotation::default() } else { due.rotation };
        }
    }
}

/// Everything that is due at 1000, read without any turns.
async fn whole_line(fixture: &Fixture) -> Vec<Claim> {
    let ids = fixture.session.client().query("SELECT owner, id FROM task WHERE due_at <= 1000", &[]).await.unwrap();
    let mut claims = Vec::new();
    for row in ids {
        let (scope, id) = (scope(row.get(0)), super::task_id(row.get(1)));
        let head = fixture.reader.load(&scope, &id).await.unwrap().unwrap();
        claims.push(Claim { scope, head });
    }
    claims
}

#[tokio::test]
async fn a_lease_that_was_renewed_ends_when_its_row_says() {
    let fixture = Fixture::new().await;
    let leased = TaskRow { state: 2, leased: true, epoch: 7, ..TaskRow::default() };
    fixture
        .put([
            TaskRow { id: "fresh", due_at: Some(300), ..leased },
            TaskRow { id: "renewed", ..leased },
            TaskRow { id: "again", due_at: Some(250), epoch: 8, ..leased },
            TaskRow { id: "waits", state: 8, due_at: Some(260), ..TaskRow::default() },
            TaskRow { id: "ended", state: 3, epoch: 7, ..TaskRow::default() },
        ])
        .await;
    // The row of a task that was taken again since, and the row of one that has ended, mean nothing.
    for (id, until) in [("renewed", 200), ("again", 100), ("ended", 100)] {
        let shard = shards::of_task(&super::task_id(id));
        fixture.execute(&format!("INSERT INTO lease VALUES ({shard}, '{id}', 7, {until})")).await;
    }
    let due = async |now, limit| {
        let due = fixture.reader.due(LeaseClock::Caller, at(now), limit, Rotation::default()).await.unwrap();
        let ended = due.claims.into_iter().map(|claim| (claim.head.id.as_str().to_owned(), claim.head.due_at.unwrap()));
        ended.map(|(id, due_at)| (id, due_at.unix_millis())).collect::<Vec<_>>()
    };
    let named = |ended: &[(&str, i64)]| ended.iter().map(|(id, until)| ((*id).to_owned(), *until)).collect::<Vec<_>>();
    assert_eq!(fixture.reader.next_due().await.unwrap(), Some(at(200)));
    assert_eq!(due(199, 10).await, []);
    assert_eq!(due(300, 10).await, named(&[("renewed", 200), ("again", 250), ("waits", 260), ("fresh", 300)]));
    assert_eq!(due(300, 2).await, named(&[("renewed", 200), ("again", 250)]));
    let head = fixture.reader.load(&scope(""), &super::task_id("renewed")).await.unwrap().unwrap();
    assert_eq!(head.due_at, Some(at(200)));
}

#[tokio::test]
async fn what_waits_in_line_is_counted() {
    let fixture = Fixture::new().await;
    fixture
        .put([
            TaskRow { id: "due", due_at: Some(5), ..TaskRow::default() },
            TaskRow { id: "later", state: 2, due_at: Some(50_000), ..TaskRow::default() },
            TaskRow { id: "leased", state: 2, leased: true, due_at: Some(5), ..TaskRow::default() },
            TaskRow { id: "ended", state: 3, ..TaskRow::default() },
        ])
        .await;
    assert_eq!(fixture.reader.count_line().await.unwrap(), 2);
    assert_eq!(fixture.reader.next_due().await.unwrap(), Some(at(5)));
}

/// An instance whose clock is ahead, because the database's was set back, sees the line and not the leases of others.
#[tokio::test]
async fn leases_that_live_by_the_databases_clock_are_not_due() {
    let fixture = Fixture::new().await;
    let asked = "SELECT (extract(epoch FROM now()) * 1000)::bigint";
    let now: i64 = fixture.session.client().query_one(asked, &[]).await.unwrap().get(0);
    let leased = |id, due_at| TaskRow { id, state: 2, leased: true, epoch: 1, due_at, ..TaskRow::default() };
    fixture
        .put([
            leased("over", Some(now - 1)),
            leased("fresh", Some(now + 60_000)),
            leased("renewed", None),
            TaskRow { id: "line", due_at: Some(now + 60_000), ..TaskRow::default() },
        ])
        .await;
    let shard = crate::shards::of_task(&super::task_id("renewed"));
    let until = now + 60_000;
    fixture.execute(&format!("INSERT INTO lease VALUES ({shard}, 'renewed', 1, {until})")).await;
    let due = async |clock, limit| {
        let due = fixture.reader.due(clock, at(now + 120_000), limit, Rotation::default()).await.unwrap();
        due.claims.iter().map(|claim| claim.head.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(due(LeaseClock::Database, 2).await, ["over", "line"]);
    assert_eq!(due(LeaseClock::Caller, 4).await, ["over", "fresh", "renewed", "line"]);
}
