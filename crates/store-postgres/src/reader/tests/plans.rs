use super::Fixture;
use crate::reader::statements;
use crate::testing::plan;

/// Indexes by their columns.
const INDEXES: &[(&str, &[&str])] = &[
    ("task_pkey", &["shard", "id"]),
    ("task_by_scope", &["tenant", "owner", "state", "status_time", "id"]),
    ("task_by_context", &["tenant", "owner", "context_id", "state", "status_time", "id"]),
    ("task_lease", &["due_at", "id"]),
    ("task_line", &["tenant", "owner", "context_id", "due_at", "id"]),
    ("task_wait", &["due_at"]),
    ("push_config_pkey", &["shard", "task_id", "id"]),
    ("lease_pkey", &["shard", "task_id"]),
    ("task_status_pkey", &["shard", "task_id"]),
    ("task_metadata_pkey", &["shard", "task_id"]),
    ("task_checkpoint_pkey", &["shard", "task_id"]),
    ("event_pkey", &["shard", "task_id", "sequence"]),
    ("message_pkey", &["shard", "task_id", "ordinal"]),
    ("accepted_pkey", &["shard", "tenant", "owner", "message_id"]),
    ("task_count_pkey", &["shard", "tenant", "owner", "context_id"]),
    ("task_count_delta_pkey", &["shard", "tenant", "owner", "context_id", "batch"]),
];
/// Statements that look at the first entry of an index, or count all of a small one.
const FROM_THE_START: &[&str] = &["next_due", "count_line"];
/// Statements that bring together what several ranges, each of them bounded, have given.
const SORTING: &[&str] = &["list_scope", "list_context", "due", "ended", "stale"];

/// The columns that a condition on an index compares.
fn compared(condition: &str) -> Vec<String> {
    let terms = condition.split(" AND ").map(|term| term.trim_start_matches('('));
    let columns = terms.flat_map(|term| match term.strip_prefix("ROW(") {
        Some(row) => row.split(')').next().unwrap().split(", ").map(str::to_owned).collect(),
        None => vec![term.split(' ').next().unwrap().to_owned()],
    });
    columns.collect()
}

fn check(name: &str, plan: &[String]) {
    let whole = plan.join("\n");
    for refused in ["Seq Scan", "Bitmap", "Hash", "Merge Join", "Gather"] {
        assert!(!whole.contains(refused), "{name}: {whole}");
    }
    assert!(SORTING.contains(&name) || !whole.contains("Sort Key"), "{name}: {whole}");
    for (line, next) in plan.iter().zip(plan.iter().skip(1).map(String::as_str).chain([""])) {
        let Some((_, scan)) = line.split_once(" using ") else { continue };
        let index = scan.split(' ').next().unwrap();
        let Some((_, columns)) = INDEXES.iter().find(|(known, _)| *known == index) else {
            panic!("{name} goes along {index}: {whole}");
        };
        let Some((_, condition)) = next.split_once("Index Cond: ") else {
            assert!(FROM_THE_START.contains(&name), "{name} walks along {index}: {whole}");
            continue;
        };
        let compared = compared(condition);
        let leading = columns.iter().take_while(|column| compared.iter().any(|known| known == *column)).count();
        let behind_a_gap = compared.iter().any(|known| columns[leading..].contains(&known.as_str()));
        // Tasks in line that are not due yet are passed over.
        let is_line = index == "task_line" && leading >= 2 && !compared.iter().any(|known| known == "id");
        assert!(leading > 0 && (is_line || !behind_a_gap), "{name} walks along {index}, {condition}: {whole}");
    }
}

async fn check_all(fixture: &Fixture) {
    for (name, sql) in statements::ALL {
        let plan = plan(fixture, sql).await;
        assert!(plan.iter().any(|line| line.contains(" using ")), "{name} has no plan: {plan:?}");
        check(name, &plan);
    }
}

#[tokio::test]
async fn no_read_walks_over_all_rows() {
    let fixture = Fixture::new().await;
    // A plan that is made for tables without statistics, or with those of empty ones, may serve for long.
    check_all(&fixture).await;
    fixture.execute("VACUUM ANALYZE").await;
    check_all(&fixture).await;
    // Nine tenths in one scope, most of them ended.
    fixture
        .execute(
            "INSERT INTO task (shard, id, tenant, owner, context_id, state, status_time, version, last_sequence, epoch, attempt,
                leased, due_at, cancel_requested, messages, turn_message, history, status)
            SELECT n % 1024, 't' || n, '', CASE WHEN n % 10 = 0 THEN 'o' || n % 97 ELSE '' END, 'c' || n / 3,
                CASE n % 20 WHEN 0 THEN 1 WHEN 1 THEN 2 WHEN 2 THEN 8 ELSE 3 END, n, 1, 3, 1, 1,
                n % 20 = 1, CASE WHEN n % 20 < 3 THEN n END, false, 1, 0, 1, true
            FROM generate_series(1, 20000) AS n;
            INSERT INTO lease SELECT shard, id, epoch, 5 FROM task WHERE leased;
            INSERT INTO event SELECT shard, id, s, 1, 0, '' FROM task, generate_series(1, 3) AS s;
            INSERT INTO message SELECT shard, id, 0, 1, '' FROM task;
            INSERT INTO task_status SELECT shard, id, '' FROM task;
            INSERT INTO task_count_delta SELECT 1, '', '', '', n, 1, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 1000) AS n;
            ANALYZE",
        )
        .await;
    check_all(&fixture).await;
}

#[test]
fn a_walk_behind_a_gap_is_found() {
    let found = std::panic::catch_unwind(|| {
        check(
            "load",
            &[
                "Index Scan using task_by_context on task t".to_owned(),
                "  Index Cond: ((tenant = $3) AND (owner = $4) AND (id = $2))".to_owned(),
            ],
        );
    });
    assert!(found.is_err());
    assert_eq!(compared("((tenant = $1) AND (ROW(status_time, id) < ROW($6, $7)))"), ["tenant", "status_time", "id"]);
}
