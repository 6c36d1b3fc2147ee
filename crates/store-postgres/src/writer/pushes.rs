//! What commits make of the push configs of their tasks.

use std::collections::BTreeMap;

use longhaul_store::columns::int;
use longhaul_store::{Commit, PushConfig};

use super::known::{Key, Known};
use super::rows::{
    Appended, AppendedRow, Columns, LockedDead, LockedDeadRow, LockedPushes, LockedPushesRow, MovedDead, MovedDeadRow,
    NewPushRow, NewPushes, ReplacedPushRow, ReplacedPushes,
};

/// A config that came with a commit.
#[derive(Debug)]
struct Added<'b> {
    config: &'b PushConfig,
    /// It is given what comes behind this, unless it takes the place of another.
    cursor: u64,
    now: i64,
}

/// The configs that came with the commits of a batch: each once, however often it came.
#[derive(Debug, Default)]
pub(super) struct Pushes<'b> {
    added: BTreeMap<(Key<'b>, &'b str), Added<'b>>,
}

impl<'b> Pushes<'b> {
    /// Takes note of the configs of a commit: what it appends is the first that they are given.
    pub(super) fn add(&mut self, commit: &'b Commit, before: &Known, after: &mut Known) {
        let now = commit.now.unix_millis();
        for config in &commit.pushes {
            let place = (Key::of(&commit.task_id), config.id.as_str());
            let added = self.added.entry(place).or_insert(Added { config, cursor: before.last_sequence, now });
            (added.config, added.now) = (config, now);
        }
        after.pushes |= !commit.pushes.is_empty();
    }
}

/// How a batch has left a task.
pub(super) struct Left<'k> {
    pub(super) known: &'k Known,
    /// Whether it may have had configs before.
    pub(super) had_pushes: bool,
    /// When its log grew.
    pub(super) grown_at: Option<i64>,
}

/// The rows of push configs, in the order in which they are taken.
#[derive(Default)]
pub(super) struct PushRows<'b> {
    locked: LockedPushes<'b>,
    replaced: ReplacedPushes<'b>,
    new: NewPushes<'b>,
    appended: Appended<'b>,
    locked_dead: LockedDead<'b>,
    moved_dead: MovedDead<'b>,
}

impl<'b> PushRows<'b> {
    /// Adds the rows of a task. Those of a task without configs cost nothing.
    pub(super) fn task(&mut self, key: Key<'b>, left: &Left<'_>, pushes: &Pushes<'b>) {
        if !left.known.pushes {
            return;
        }
        let Key { shard, id } = key;
        let first = (key, "");
        let added = pushes.added.range(first..).take_while(|((of, _), _)| *of == key);
        let mut has_added = false;
        for ((_, config_id), added) in added {
            has_added = true;
            if left.had_pushes {
                self.replace(key, config_id, added);
            }
            self.add(key, config_id, added, left.known);
        }
        if left.had_pushes && (has_added || left.grown_at.is_some()) {
            self.locked.push(LockedPushesRow { shard, id });
        }
        if let Some(now) = left.grown_at.filter(|_| left.had_pushes) {
            self.appended.push(AppendedRow { shard, id, last_sequence: int(left.known.last_sequence), now });
        }
    }

    fn replace(&mut self, key: Key<'b>, id: &'b str, added: &Added<'b>) {
        let (Key { shard, id: task_id }, Added { config, now, .. }) = (key, added);
        self.replaced.push(ReplacedPushRow {
            shard,
            task_id,
            id,
            created_at: config.created_at.unix_millis(),
            host: &config.host,
            url: &config.url,
            scheme: config.scheme.as_deref(),
            version: &config.version,
            secrets: config.secrets.as_deref(),
            now: *now,
        });
        self.locked_dead.push(LockedDeadRow { shard, task_id, id });
        self.moved_dead.push(MovedDeadRow { shard, task_id, id, host: &config.host, now: *now });
    }

    fn add(&mut self, key: Key<'b>, id: &'b str, added: &Added<'b>, known: &Known) {
        let (Key { shard, id: task_id }, Added { config, cursor, now }) = (key, added);
        self.new.push(NewPushRow {
            shard,
            task_id,
            id,
            tenant: known.scope.tenant.as_str().to_owned().into(),
            owner: known.scope.owner.as_str().to_owned().into(),
            cursor: int(*cursor),
            last_sequence: int(known.last_sequence),
            due_at: (*cursor < known.last_sequence).then_some(*now),
            created_at: config.created_at.unix_millis(),
            host: &config.host,
            url: &config.url,
            scheme: config.scheme.as_deref(),
            version: &config.version,
            secrets: config.secrets.as_deref(),
        });
    }

    /// In the order in which they are written: dead deliveries are taken after configs.
    pub(super) fn columns(&self) -> [&dyn Columns; 6] {
        [&self.locked, &self.replaced, &self.new, &self.appended, &self.locked_dead, &self.moved_dead]
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use longhaul_lifecycle::TaskHead;
    use longhaul_protocol::{ContextId, PushConfigId, TaskId, Timestamp};
    use longhaul_store::{EncodedCommit, EventKind, Expect, NewEvent, NewTask};

    use super::super::batch::Existence;
    use super::super::transaction::transact;
    use super::*;
    use crate::testing::Fixture;

    /// A commit of the task with so many events; `version` is the one before, 0 for none.
    fn commit(version: u64, events: usize, pushes: &[(&str, &str)], now: i64) -> EncodedCommit {
        let (task_id, now) = (TaskId::new("task").unwrap(), Timestamp::from_unix_millis(now));
        let config = |(id, host): &(&str, &str)| PushConfig {
            id: PushConfigId::new(*id).unwrap(),
            url: format!("https://{host}/"),
            host: (*host).to_owned(),
            scheme: None,
            secrets: None,
            version: "1.0".to_owned(),
            created_at: now,
        };
        let head = TaskHead::submitted(task_id.clone(), ContextId::new("context").unwrap(), now);
        let event = NewEvent { kind: EventKind::Artifact, payload: Bytes::from_static(b"{}") };
        let commit = Commit {
            task_id,
            expect: if version == 0 { Expect::New(NewTask::default()) } else { Expect::Version(version) },
            head: Some(TaskHead { version: version + 1, ..head }),
            events: vec![event; events],
            messages: Vec::new(),
            checkpoint: None,
            dedup: None,
            pushes: pushes.iter().map(config).collect(),
            now,
        };
        EncodedCommit::new(commit).unwrap()
    }

    /// Makes commits in one transaction.
    async fn make(fixture: &Fixture, commits: &[&EncodedCommit]) {
        let made = transact(&fixture.session, &fixture.database.config, commits, Existence::FoundAtTheEnd).await;
        let (outcomes, _) = made.unwrap();
        for outcome in outcomes {
            assert!(outcome.unwrap().has_pushes);
        }
    }

    /// Each config with its host, its place in the log, when it is due, and its epoch.
    async fn configs(fixture: &Fixture) -> Vec<String> {
        let sql = "SELECT concat_ws(' ', id, host, cursor, last_sequence, coalesce(due_at::text, '-'), epoch)
            FROM push_config ORDER BY id";
        let rows = fixture.session.client().query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    #[tokio::test]
    async fn commits_of_one_transaction_do_what_they_would_do_one_by_one() {
        let first = [
            commit(0, 2, &[("a", "one"), ("b", "one")], 10),
            commit(1, 1, &[("b", "two"), ("c", "two"), ("c", "three")], 11),
            commit(2, 0, &[("d", "four")], 12),
        ];
        let then = [
            commit(3, 0, &[("a", "five")], 20),
            commit(4, 1, &[("d", "six"), ("e", "six")], 21),
            commit(5, 1, &[], 22),
        ];
        for together in [false, true] {
            let fixture = Fixture::new().await;
            for commits in [&first, &then] {
                match together {
                    true => make(&fixture, &commits.each_ref()).await,
                    false => {
                        for commit in commits {
                            make(&fixture, &[commit]).await;
                        }
                    }
                }
            }
            let known: Vec<String> = configs(&fixture).await;
            let places: Vec<&str> = known.iter().filter_map(|line| line.rsplitn(3, ' ').nth(2)).collect();
            assert_eq!(places, ["a five 0 5", "b two 0 5", "c three 2 5", "d six 3 5", "e six 3 5"], "{together}");
            assert!(known.iter().all(|line| !line.contains('-')), "all are due: {known:?}");
        }
    }

    #[tokio::test]
    async fn what_waits_keeps_its_time_and_the_rest_is_due_by_the_commit() {
        let fixture = Fixture::new().await;
        make(&fixture, &[&commit(0, 1, &[("a", "host"), ("b", "host")], 10)]).await;
        fixture.execute("UPDATE push_config SET cursor = 1, due_at = NULL WHERE id = 'a'").await;
        fixture.execute("UPDATE push_config SET due_at = 900, epoch = 3 WHERE id = 'b'").await;
        make(&fixture, &[&commit(1, 1, &[], 20)]).await;
        assert_eq!(configs(&fixture).await, ["a host 1 2 20 0", "b host 0 2 900 3"]);
        make(&fixture, &[&commit(2, 0, &[], 30)]).await;
        assert_eq!(configs(&fixture).await, ["a host 1 2 20 0", "b host 0 2 900 3"]);
        make(&fixture, &[&commit(3, 0, &[("b", "moved")], 40)]).await;
        assert_eq!(configs(&fixture).await, ["a host 1 2 20 0", "b moved 0 2 40 4"]);
    }
}
