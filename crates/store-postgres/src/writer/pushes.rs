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
