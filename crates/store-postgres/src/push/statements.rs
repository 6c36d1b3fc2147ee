//! What is said about push configs and deliveries, besides what the writers say.
//!
//! What is told of the rows of one config names its key. What is told of many goes from the rows that are given into the tables, as
//! `writer/statements.rs` says; those rows are taken by the statement before, so that they stay in their places meanwhile.

/// A task of a scope.
macro_rules! task {
    () => {
        "shard = $1 AND id = $2 AND tenant IS NOT DISTINCT FROM $3 AND owner IS NOT DISTINCT FROM $4"
    };
}

/// A config of a task.
macro_rules! config {
    () => {
        "shard = $1 AND task_id = $2 AND id = $5"
    };
}

/// What `row::config` reads, of a config `c`.
macro_rules! columns {
    () => {
        "c.id, c.url, c.host, c.scheme, c.secrets, c.version, c.created_at"
    };
}

/// Takes a task, so that no commit appends to its log meanwhile.
pub(super) const TAKE_TASK: &str =
    "/* push::take_task */ SELECT 1 FROM task WHERE shard = $1 AND id = $2 FOR NO KEY UPDATE";
pub(super) const TAKE_CONFIG: &str =
    "/* push::take_config */ SELECT 1 FROM push_config WHERE shard = $1 AND task_id = $2 AND id = $3 FOR UPDATE";

/// A config that is replaced goes on where it was, at once.
pub(super) const REPLACE: &str = concat!(
    "/* push::replace */ UPDATE push_config SET url = $6, host = $7, scheme = $8, secrets = $9, version = $10, created_at = $11,
        epoch = epoch + 1, attempts = 0, first_attempt_at = NULL,
        due_at = CASE WHEN cursor < last_sequence THEN $12::bigint END
    WHERE ",
    config!(),
    " AND (SELECT true FROM task WHERE ",
    task!(),
    ")"
);
pub(super) const MOVE_DEAD: &str = concat!(
    "/* push::move_dead */ UPDATE push_dead SET host = $6, epoch = epoch + 1,
        due_at = CASE WHEN due_at IS NOT NULL THEN $7::bigint END
    WHERE shard = $1 AND task_id = $2 AND config_id = $5 AND (SELECT true FROM task WHERE ",
    task!(),
    ")"
);
/// A new config is given what is appended from now on.
pub(super) const INSERT: &str = concat!(
    "/* push::insert */ INSERT INTO push_config (shard, task_id, tenant, owner, id, url, host, scheme, secrets, version, created_at,
        cursor, last_sequence, epoch, attempts)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, last_sequence, last_sequence, 0, 0 FROM task WHERE ",
    task!(),
    " AND (SELECT count(*) FROM push_config WHERE shard = $1 AND task_id = $2) < $12::bigint
    ON CONFLICT (shard, task_id, id) DO NOTHING"
);
/// Marks the task, and answers whether the config is there. Writes the task in any case: whoever removes tasks at this moment then
/// leaves it alone.
pub(super) const MARK_TASK: &str = concat!(
    "/* push::mark_task */ UPDATE task SET
        pushes = coalesce((SELECT true FROM push_config WHERE shard = $1 AND task_id = $2 LIMIT 1), false)
    WHERE ",
    task!(),
    " RETURNING coalesce((SELECT true FROM push_config WHERE ",
    config!(),
    "), false)"
);

/// Removes a config with its dead deliveries, once task and config are taken, if something holds; says whether it did.
macro_rules! remove_if {
    ($name:literal, $held:expr) => {
        concat!(
            "/* ",
            $name,
            " */ WITH held AS MATERIALIZED (",
            $held,
            "),
            configs AS (DELETE FROM push_config
                WHERE shard = $1 AND task_id = $2 AND id = $3 AND (SELECT true FROM held)),
            dead AS (DELETE FROM push_dead
                WHERE shard = $1 AND task_id = $2 AND config_id = $3 AND (SELECT true FROM held)),
            marked AS (UPDATE task SET pushes = false WHERE shard = $1 AND id = $2 AND (SELECT true FROM held)
                AND (SELECT true FROM push_config WHERE shard = $1 AND task_id = $2 AND id IS DISTINCT FROM $3 LIMIT 1) IS NULL)
            SELECT 1 FROM held"
        )
    };
}
pub(super) const REMOVE: &str = remove_if!(
    "push::remove",
    "SELECT 1 FROM task WHERE shard = $1 AND id = $2 AND tenant IS NOT DISTINCT FROM $4 AND owner IS NOT DISTINCT FROM $5"
);
pub(super) const GONE: &str = remove_if!(
    "push::gone",
    "SELECT 1 FROM push_config WHERE shard = $1 AND task_id = $2 AND id = $3 AND epoch = $4 AND cursor + 1 = $5"
);
pub(super) const GONE_BY_DEAD: &str = remove_if!(
    "push::gone_by_dead",
    "SELECT 1 FROM push_dead WHERE shard = $1 AND task_id = $2 AND config_id = $3 AND sequence = $5 AND epoch = $4 FOR UPDATE"
);

/// Whether there is such a task, and beside it a page of its configs: a row in any case.
pub(super) const CONFIGS: &str = concat!(
    "/* push::configs */ SELECT c.* FROM (SELECT 1 FROM task WHERE ",
    task!(),
    ") AS t LEFT JOIN LATERAL (SELECT ",
    columns!(),
    " FROM push_config AS c WHERE c.shard = $1 AND c.task_id = $2 AND c.id > $5 ORDER BY c.id LIMIT $6) AS c ON true"
);
pub(super) const CONFIG: &str = concat!(
    "/* push::config */ SELECT ",
    columns!(),
    " FROM push_config AS c WHERE c.shard = $1 AND c.task_id = $2 AND c.id = $5 AND (SELECT true FROM task WHERE ",
    task!(),
    ")"
);
pub(super) const SEALED: &str = "/* push::sealed */ SELECT c.task_id, c.id, c.secrets FROM push_config AS c
    WHERE (c.shard, c.task_id, c.id) > ($1, $2, $3) AND c.secrets IS NOT NULL
    ORDER BY c.shard, c.task_id, c.id LIMIT $4";
pub(super) const RESEAL: &str = "/* push::reseal */ UPDATE push_config SET secrets = $5
    WHERE shard = $1 AND task_id = $2 AND id = $3 AND secrets IS NOT DISTINCT FROM $4::bytea RETURNING 1";

/// The next host behind another that has something in line, if only later.
macro_rules! next_host {
    ($behind:literal) => {
        concat!(
            "(SELECT n.host FROM (
                (SELECT c.host FROM push_config AS c WHERE c.due_at IS NOT NULL AND c.host > ",
            $behind,
            " ORDER BY c.host LIMIT 1)
                UNION ALL
                (SELECT d.host FROM push_dead AS d WHERE d.due_at IS NOT NULL AND d.host > ",
            $behind,
            " ORDER BY d.host LIMIT 1)) AS n ORDER BY n.host LIMIT 1)"
        )
    };
}
/// The first hosts in the circle behind `$3` that have something due at `$1` and may be sent to.
pub(super) const HOSTS: &str = concat!(
    "/* push::hosts */ WITH RECURSIVE behind AS (
        SELECT n.host FROM ",
    next_host!("$3"),
    " AS n
        UNION ALL
        SELECT n.host FROM behind AS b CROSS JOIN LATERAL ",
    next_host!("b.host"),
    " AS n),
    before AS (
        SELECT n.host FROM ",
    next_host!("''"),
    " AS n WHERE n.host <= $3
        UNION ALL
        SELECT n.host FROM before AS b CROSS JOIN LATERAL ",
    next_host!("b.host"),
    " AS n WHERE n.host <= $3)
    SELECT h.host, coalesce(s.failures, 0)
    FROM (SELECT b.host FROM behind AS b UNION ALL SELECT b.host FROM before AS b) AS h
    LEFT JOIN LATERAL (SELECT s.failures, s.open_until FROM push_host AS s WHERE s.host = h.host OFFSET 0) AS s ON true
    WHERE h.host <> ALL ($4::text[]) AND (s.open_until > $1) IS NOT TRUE AND coalesce(
        (SELECT true FROM push_config AS c WHERE c.host = h.host AND c.due_at <= $1 LIMIT 1),
        (SELECT true FROM push_dead AS d WHERE d.host = h.host AND d.due_at <= $1 LIMIT 1))
    LIMIT $2"
);

/// Claims what is due longest at `$1`, of each host so many, until `$2`; what another is claiming or settling is passed over.
/// Rows are taken and changed in one statement, or those of the next one would find them due again.
pub(super) const CLAIM: &str = concat!(
    "/* push::claim */ WITH wanted AS MATERIALIZED (
        SELECT u.host, u.quota, u.turn FROM unnest($3::text[], $4::bigint[]) WITH ORDINALITY AS u (host, quota, turn)),
    configs AS MATERIALIZED (
        SELECT w.turn, w.quota, c.* FROM wanted AS w CROSS JOIN LATERAL (
            SELECT ctid AS place, shard, task_id, id, due_at FROM push_config WHERE host = w.host AND due_at <= $1
            ORDER BY due_at, task_id, id LIMIT w.quota FOR NO KEY UPDATE SKIP LOCKED) AS c),
    dead AS MATERIALIZED (
        SELECT w.turn, w.quota, d.* FROM wanted AS w CROSS JOIN LATERAL (
            SELECT ctid AS place, shard, task_id, config_id AS id, sequence, due_at FROM push_dead
            WHERE host = w.host AND due_at <= $1
            ORDER BY due_at, task_id, config_id, sequence LIMIT w.quota FOR NO KEY UPDATE SKIP LOCKED) AS d),
    chosen AS MATERIALIZED (
        SELECT f.* FROM (
            SELECT f.*, row_number() OVER (PARTITION BY f.turn ORDER BY f.due_at, f.task_id, f.id, f.sequence) AS nth FROM (
                SELECT false AS is_dead, c.turn, c.quota, c.place, c.shard, c.task_id, c.id, 0::bigint AS sequence, c.due_at
                FROM configs AS c
                UNION ALL
                SELECT true, d.turn, d.quota, d.place, d.shard, d.task_id, d.id, d.sequence, d.due_at FROM dead AS d) AS f) AS f
        WHERE f.nth <= f.quota),
    claimed AS (
        UPDATE push_config AS c SET due_at = $2, epoch = c.epoch + 1 FROM chosen AS k
        WHERE NOT k.is_dead AND c.ctid = k.place
            AND (c.shard = k.shard AND c.task_id = k.task_id AND c.id = k.id) IS TRUE
        RETURNING k.turn, k.nth, c.*),
    claimed_dead AS (
        UPDATE push_dead AS d SET due_at = $2, epoch = d.epoch + 1 FROM chosen AS k
        WHERE k.is_dead AND d.ctid = k.place
            AND (d.shard = k.shard AND d.task_id = k.task_id AND d.config_id = k.id AND d.sequence = k.sequence) IS TRUE
        RETURNING k.turn, k.nth, d.*)
    SELECT c.turn, c.nth, false, ",
    columns!(),
    ", c.tenant, c.owner, c.task_id, c.last_sequence, c.cursor + 1, c.epoch, c.attempts, c.first_attempt_at FROM claimed AS c
    UNION ALL
    SELECT d.turn, d.nth, true, ",
    columns!(),
    ", c.tenant, c.owner, c.task_id, c.last_sequence, d.sequence, d.epoch, d.attempts, NULL
    FROM claimed_dead AS d CROSS JOIN LATERAL (SELECT * FROM push_config
        WHERE shard = d.shard AND task_id = d.task_id AND id = d.config_id OFFSET 0) AS c"
);

/// When the first of all deliveries is due: the first of each host is the first of its range of the index.
macro_rules! firsts {
    ($table:literal) => {
        concat!(
            "(SELECT t.host, t.due_at FROM ",
            $table,
            " AS t WHERE t.due_at IS NOT NULL AND t.host > '' ORDER BY t.host, t.due_at LIMIT 1)
            UNION ALL
            SELECT n.host, n.due_at FROM ",
            $table,
            "_firsts AS f CROSS JOIN LATERAL (SELECT t.host, t.due_at FROM ",
            $table,
            " AS t WHERE t.due_at IS NOT NULL AND t.host > f.host ORDER BY t.host, t.due_at LIMIT 1) AS n"
        )
    };
}
pub(super) const NEXT: &str = concat!(
    "/* push::next */ WITH RECURSIVE push_config_firsts AS (",
    firsts!("push_config"),
    "), push_dead_firsts AS (",
    firsts!("push_dead"),
    ") SELECT least((SELECT min(due_at) FROM push_config_firsts), (SELECT min(due_at) FROM push_dead_firsts))"
);
pub(super) const BACKLOG: &str = "/* push::backlog */ SELECT
    (SELECT count(*) FROM push_config AS c WHERE c.due_at IS NOT NULL AND c.host > ''),
    (SELECT count(*) FROM push_dead AS d WHERE d.task_id > '')";

/// Takes the configs whose claims are to be settled, in the order of the places given.
pub(super) const TAKE_CONFIGS: &str = "/* push::take_configs */
    SELECT 1 FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (shard, task_id, id)
    CROSS JOIN LATERAL (SELECT 1 FROM push_config
        WHERE shard = u.shard AND task_id = u.task_id AND id = u.id FOR NO KEY UPDATE) AS c";
/// Settles the claims that are still the newest ones; no others. Answers which they were, and whether there is a next event: by the
/// row itself, which commits take as well.
pub(super) const SETTLE: &str = "/* push::settle */ WITH settled AS (
        UPDATE push_config AS c SET
            cursor = c.cursor + u.advances::int, epoch = c.epoch + (NOT u.advances)::int,
            attempts = CASE WHEN u.advances THEN 0 ELSE c.attempts + u.counts::int END,
            first_attempt_at = CASE WHEN u.advances THEN NULL WHEN u.counts THEN coalesce(c.first_attempt_at, u.now)
                ELSE c.first_attempt_at END,
            due_at = CASE WHEN NOT u.advances OR c.cursor + 1 < c.last_sequence THEN u.at END
        FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bool[], $7::bool[], $8::bigint[],
            $9::bigint[], $10::text[], $11::text[], $12::bigint[]) WITH ORDINALITY
            AS u (shard, task_id, id, sequence, epoch, advances, counts, at, now, error, host, attempts, place)
        CROSS JOIN LATERAL (SELECT ctid AS tuple FROM push_config
            WHERE shard = u.shard AND task_id = u.task_id AND id = u.id OFFSET 0) AS p
        WHERE c.ctid = p.tuple AND (c.shard = u.shard AND c.task_id = u.task_id AND c.id = u.id AND c.epoch = u.epoch
            AND c.cursor + 1 = u.sequence) IS TRUE
        RETURNING u.place, u.sequence, u.error, u.host, u.attempts, u.now, c.shard, c.task_id, c.id,
            c.cursor < c.last_sequence AS has_more),
    buried AS (
        INSERT INTO push_dead (shard, task_id, config_id, sequence, host, attempts, died_at, epoch, error)
        SELECT s.shard, s.task_id, s.id, s.sequence, s.host, s.attempts, s.now, 0, s.error FROM settled AS s
        WHERE s.error IS NOT NULL
        ON CONFLICT (shard, task_id, config_id, sequence) DO NOTHING)
    SELECT s.place, s.has_more FROM settled AS s";
pub(super) const TAKE_DEAD: &str = "/* push::take_dead */
    SELECT 1 FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[]) AS u (shard, task_id, id, sequence)
    CROSS JOIN LATERAL (SELECT 1 FROM push_dead WHERE shard = u.shard AND task_id = u.task_id AND config_id = u.id
        AND sequence = u.sequence FOR UPDATE) AS d";
/// The same for dead deliveries that were tried again.
pub(super) const SETTLE_DEAD: &str = "/* push::settle_dead */ WITH told AS MATERIALIZED (
        SELECT u.*, d.tuple
        FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bool[], $7::bigint[], $8::text[])
            WITH ORDINALITY AS u (shard, task_id, id, sequence, epoch, delivered, at, error, place)
        CROSS JOIN LATERAL (SELECT ctid AS tuple FROM push_dead WHERE shard = u.shard AND task_id = u.task_id
            AND config_id = u.id AND sequence = u.sequence AND (epoch = u.epoch) IS TRUE OFFSET 0) AS d),
    removed AS (
        DELETE FROM push_dead AS d USING told AS u WHERE u.delivered AND d.ctid = u.tuple
            AND (d.shard = u.shard AND d.task_id = u.task_id AND d.config_id = u.id AND d.sequence = u.sequence) IS TRUE
        RETURNING u.place),
    kept AS (
        UPDATE push_dead AS d SET due_at = u.at, epoch = d.epoch + 1, attempts = d.attempts + (u.error IS NOT NULL)::int,
            error = coalesce(u.error, d.error)
        FROM told AS u WHERE NOT u.delivered AND d.ctid = u.tuple
            AND (d.shard = u.shard AND d.task_id = u.task_id AND d.config_id = u.id AND d.sequence = u.sequence) IS TRUE
        RETURNING u.place)
    SELECT r.place, false FROM removed AS r UNION ALL SELECT k.place, false FROM kept AS k";

pub(super) const DEAD: &str =
    "/* push::dead */ SELECT c.tenant, c.owner, d.task_id, d.config_id, c.url, d.sequence, d.attempts,
        d.died_at, d.error
    FROM push_dead AS d CROSS JOIN LATERAL (SELECT tenant, owner, url FROM push_config
        WHERE shard = d.shard AND task_id = d.task_id AND id = d.config_id OFFSET 0) AS c
    WHERE (d.task_id, d.config_id, d.sequence) > ($1, $2, $3)
    ORDER BY d.task_id, d.config_id, d.sequence LIMIT $4";
/// A page of the keys of dead deliveries, and of those of one task.
pub(super) const DEAD_KEYS: &str =
    "/* push::dead_keys */ SELECT d.shard, d.task_id, d.config_id, d.sequence FROM push_dead AS d
    WHERE (d.shard, d.task_id, d.config_id, d.sequence) > ($1, $2, $3, $4)
    ORDER BY d.shard, d.task_id, d.config_id, d.sequence LIMIT $5";
pub(super) const DEAD_KEYS_OF: &str =
    "/* push::dead_keys_of */ SELECT d.shard, d.task_id, d.config_id, d.sequence FROM push_dead AS d
    WHERE d.shard = $1 AND d.task_id = $2 AND (d.config_id, d.sequence) > ($3, $4)
    ORDER BY d.config_id, d.sequence LIMIT $5";
pub(super) const WAKE: &str = "/* push::wake */ WITH woken AS (
        UPDATE push_dead AS d SET due_at = coalesce(d.due_at, $5)
        FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[]) AS u (shard, task_id, id, sequence)
        CROSS JOIN LATERAL (SELECT ctid AS tuple FROM push_dead WHERE shard = u.shard AND task_id = u.task_id
            AND config_id = u.id AND sequence = u.sequence OFFSET 0) AS p
        WHERE d.ctid = p.tuple AND (d.shard = u.shard AND d.task_id = u.task_id AND d.config_id = u.id
            AND d.sequence = u.sequence) IS TRUE
        RETURNING 1)
    SELECT count(*) FROM woken";

pub(super) const HOST: &str = "/* push::host */ SELECT failures, open_until FROM push_host WHERE host = $1";
pub(super) const PUT_HOST: &str =
    "/* push::put_host */ INSERT INTO push_host (host, failures, open_until) VALUES ($1, $2, $3)
    ON CONFLICT (host) DO UPDATE SET failures = excluded.failures, open_until = excluded.open_until";
pub(super) const REMOVE_HOST: &str = "/* push::remove_host */ DELETE FROM push_host WHERE host = $1";

pub(super) const OFFER_KEY: &str =
    "/* push::offer_key */ INSERT INTO push_key (value) VALUES ($1) ON CONFLICT (number) DO NOTHING";
pub(super) const KEY: &str = "/* push::key */ SELECT value FROM push_key WHERE number = 1";
pub(super) const SET_KEY: &str = "/* push::set_key */ INSERT INTO push_key (value) VALUES ($1)
    ON CONFLICT (number) DO UPDATE SET value = excluded.value";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, check_plan, plan};

    #[tokio::test]
    async fn no_statement_about_pushes_walks_over_all_rows() {
        let fixture = Fixture::new().await;
        let all = [
            TAKE_TASK,
            TAKE_CONFIG,
            REPLACE,
            MOVE_DEAD,
            INSERT,
            MARK_TASK,
            REMOVE,
            GONE,
            GONE_BY_DEAD,
            CONFIGS,
            CONFIG,
            SEALED,
            RESEAL,
            HOSTS,
            CLAIM,
            NEXT,
            BACKLOG,
            TAKE_CONFIGS,
            SETTLE,
            TAKE_DEAD,
            SETTLE_DEAD,
            DEAD,
            DEAD_KEYS,
            DEAD_KEYS_OF,
            WAKE,
            HOST,
            REMOVE_HOST,
            KEY,
        ];
        // Plans for tables without statistics, and with those of empty ones: either may serve for long.
        for statistics in ["", "VACUUM ANALYZE"] {
            fixture.execute(statistics).await;
            for sql in all {
                check_plan(&plan(&fixture, sql).await);
            }
        }
    }
}
