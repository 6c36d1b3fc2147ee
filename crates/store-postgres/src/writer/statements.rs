//! What the writers say.
//!
//! Rows are named by arrays, which become a table by `unnest`. A plan may be made while a table is empty and serve for long, so each
//! goes from the few rows that are given into the large table, and never the other way: rows are taken in a `LATERAL` subquery, and
//! changed by their places, which stay while they are taken. Where a table is partitioned each part has rows of the same places, so
//! the key is compared too, by an `IS TRUE` that no index can serve.

pub(super) const BEGIN: &str = "BEGIN";
pub(super) const COMMIT: &str = "COMMIT";

/// Takes the tasks of a batch in the order of the places given, waiting for whoever has them.
pub(super) const LOCK_TASKS: &str =
    "SELECT u.place, t.tenant, t.owner, t.context_id, t.state, t.version, t.last_sequence,
        t.epoch, t.leased, t.due_at, t.history, t.status, t.pushes
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT * FROM task WHERE shard = u.shard AND id = u.id FOR NO KEY UPDATE) AS t";
/// The same for tasks that are to be begun: one that somebody has is being begun, or changed, by another.
pub(super) const CLAIM_TASKS: &str =
    "SELECT u.place, t.tenant, t.owner, t.context_id, t.state, t.version, t.last_sequence,
        t.epoch, t.leased, t.due_at, t.history, t.status, t.pushes
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT * FROM task WHERE shard = u.shard AND id = u.id FOR NO KEY UPDATE SKIP LOCKED) AS t";
pub(super) const TASKS_THERE: &str = "SELECT u.place
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT 1 FROM task WHERE shard = u.shard AND id = u.id OFFSET 0) AS t";

/// The renewed leases of tasks that were taken: asked when they are, so that none is older. Taken as well, for whoever acts because
/// a lease is over: it may be renewed at this moment.
pub(super) const LOCK_LEASES: &str = "SELECT u.place, l.epoch, l.until
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT epoch, until FROM lease WHERE shard = u.shard AND task_id = u.id FOR NO KEY UPDATE) AS l";
pub(super) const READ_LEASES: &str = "SELECT u.place, l.epoch, l.until
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT epoch, until FROM lease WHERE shard = u.shard AND task_id = u.id OFFSET 0) AS l";

pub(super) const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Messages that were accepted before, with whether their tasks are still there.
pub(super) const FIND_ACCEPTED: &str = "SELECT u.place, a.task_id, a.digest, a.expires_at,
        coalesce((SELECT true FROM task WHERE shard = a.task_shard AND id = a.task_id OFFSET 0), false)
    FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS u (shard, tenant, owner, message_id, place)
    CROSS JOIN LATERAL (SELECT * FROM accepted
        WHERE shard = u.shard AND tenant = u.tenant AND owner = u.owner AND message_id = u.message_id FOR UPDATE) AS a";
pub(super) const REMOVE_ACCEPTED: &str = "DELETE FROM accepted AS a
    USING unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (shard, tenant, owner, message_id)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM accepted
        WHERE shard = u.shard AND tenant = u.tenant AND owner = u.owner AND message_id = u.message_id OFFSET 0) AS p
    WHERE a.ctid = p.place AND (a.shard = u.shard AND a.tenant = u.tenant AND a.owner = u.owner AND a.message_id = u.message_id) IS TRUE";
pub(super) const INSERT_ACCEPTED: &str = "INSERT INTO accepted
        (shard, tenant, owner, message_id, task_id, task_shard, digest, expires_at)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bytea[], $8::bigint[])";

pub(super) const INSERT_TASKS: &str = "INSERT INTO task (shard, id, tenant, owner, context_id, state, status_time, version,
        last_sequence, epoch, attempt, leased, due_at, cancel_requested, messages, turn_message, history, status, compaction,
        pushes, waiting, failures, worker)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bool[], $13::bigint[], $14::bool[], $15::bigint[],
        $16::bigint[], $17::bigint[], $18::bool[], $19::smallint[], $20::bool[], $21::text[], $22::text[], $23::text[])";
pub(super) const UPDATE_TASKS: &str = "UPDATE task AS t SET state = u.state, status_time = u.status_time, version = u.version,
        last_sequence = u.last_sequence, epoch = u.epoch, attempt = u.attempt, leased = u.leased, due_at = u.due_at,
        cancel_requested = u.cancel_requested, messages = u.messages, turn_message = u.turn_message, history = u.history,
        status = u.status, compaction = u.compaction, pushes = u.pushes, waiting = u.waiting, failures = u.failures, worker = u.worker
    FROM unnest($1::smallint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bool[], $10::bigint[], $11::bool[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bool[], $16::smallint[],
        $17::bool[], $18::text[], $19::text[], $20::text[])
        AS u (shard, id, state, status_time, version, last_sequence, epoch, attempt, leased, due_at, cancel_requested, messages,
            turn_message, history, status, compaction, pushes, waiting, failures, worker)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM task WHERE shard = u.shard AND id = u.id OFFSET 0) AS p
    WHERE t.ctid = p.place AND (t.shard = u.shard AND t.id = u.id) IS TRUE";
/// Touches no index.
pub(super) const EXTEND_TASKS: &str =
    "UPDATE task AS t SET last_sequence = u.last_sequence, history = u.history, pushes = u.pushes
    FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[])
        AS u (shard, id, last_sequence, history, pushes)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM task WHERE shard = u.shard AND id = u.id OFFSET 0) AS p
    WHERE t.ctid = p.place AND (t.shard = u.shard AND t.id = u.id) IS TRUE";

pub(super) const INSERT_EVENTS: &str = "INSERT INTO event (shard, task_id, sequence, kind, time, payload)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bytea[])";
pub(super) const INSERT_MESSAGES: &str = "INSERT INTO message (shard, task_id, ordinal, sequence, payload, request)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])";
pub(super) const PUT_STATUSES: &str = "INSERT INTO task_status (shard, task_id, message)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])
    ON CONFLICT (shard, task_id) DO UPDATE SET message = excluded.message";
pub(super) const REMOVE_STATUSES: &str =
    "DELETE FROM task_status AS s USING unnest($1::smallint[], $2::text[]) AS u (shard, id)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM task_status WHERE shard = u.shard AND task_id = u.id OFFSET 0) AS p
    WHERE s.ctid = p.place AND (s.shard = u.shard AND s.task_id = u.id) IS TRUE";
pub(super) const PUT_METADATA: &str = "INSERT INTO task_metadata (shard, task_id, metadata)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])";
pub(super) const PUT_CHECKPOINTS: &str = "INSERT INTO task_checkpoint (shard, task_id, data)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])
    ON CONFLICT (shard, task_id) DO UPDATE SET data = excluded.data";
pub(super) const REMOVE_LEASES: &str =
    "DELETE FROM lease AS l USING unnest($1::smallint[], $2::text[]) AS u (shard, id)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM lease WHERE shard = u.shard AND task_id = u.id OFFSET 0) AS p
    WHERE l.ctid = p.place AND (l.shard = u.shard AND l.task_id = u.id) IS TRUE";
pub(super) const INSERT_COUNTS: &str = "INSERT INTO task_count_delta
        (shard, tenant, owner, context_id, batch, n1, n2, n3, n4, n5, n6, n7, n8)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])";

/// Takes the push configs of tasks that are taken, whose claims and settlements take nothing else: what is written about them then
/// is about what they are. Rows of push configs are always taken in the order of their keys, and dead deliveries after them.
pub(super) const LOCK_PUSHES: &str = "SELECT 1 FROM unnest($1::smallint[], $2::text[]) AS u (shard, id)
    CROSS JOIN LATERAL (SELECT 1 FROM push_config WHERE shard = u.shard AND task_id = u.id ORDER BY id FOR NO KEY UPDATE) AS c";
/// Replaces configs, as far as they are there. They go on where they were, at once.
pub(super) const REPLACE_PUSHES: &str = "UPDATE push_config AS c SET created_at = u.created_at, host = u.host, url = u.url,
        scheme = u.scheme, version = u.version, secrets = u.secrets, epoch = c.epoch + 1, attempts = 0, first_attempt_at = NULL,
        due_at = CASE WHEN c.cursor < c.last_sequence THEN u.now END
    FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::bytea[], $10::bigint[])
        AS u (shard, task_id, id, created_at, host, url, scheme, version, secrets, now)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM push_config
        WHERE shard = u.shard AND task_id = u.task_id AND id = u.id OFFSET 0) AS p
    WHERE c.ctid = p.place AND (c.shard = u.shard AND c.task_id = u.task_id AND c.id = u.id) IS TRUE";
/// Adds those that are not there yet.
pub(super) const INSERT_PUSHES: &str = "INSERT INTO push_config (shard, task_id, id, tenant, owner, cursor, last_sequence, due_at,
        created_at, host, url, scheme, version, secrets, epoch, attempts)
    SELECT u.*, 0, 0 FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bytea[]) AS u
    ON CONFLICT (shard, task_id, id) DO NOTHING";
/// Tells the push configs of tasks of new events. What waits, or is claimed, is due when it was: then no index is touched.
pub(super) const APPEND_PUSHES: &str =
    "UPDATE push_config AS c SET last_sequence = u.last_sequence, due_at = coalesce(c.due_at, u.now)
    FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[]) AS u (shard, id, last_sequence, now)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM push_config WHERE shard = u.shard AND task_id = u.id OFFSET 0) AS p
    WHERE c.ctid = p.place AND (c.shard = u.shard AND c.task_id = u.id AND c.last_sequence < u.last_sequence) IS TRUE";
pub(super) const LOCK_DEAD_OF_PUSHES: &str =
    "SELECT 1 FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (shard, task_id, id)
    CROSS JOIN LATERAL (SELECT 1 FROM push_dead WHERE shard = u.shard AND task_id = u.task_id AND config_id = u.id
        ORDER BY sequence FOR NO KEY UPDATE) AS d";
/// What was given up goes to where its config sends now.
pub(super) const MOVE_DEAD: &str = "UPDATE push_dead AS d SET host = u.host, epoch = d.epoch + 1,
        due_at = CASE WHEN d.due_at IS NOT NULL THEN u.now END
    FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u (shard, task_id, id, host, now)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM push_dead
        WHERE shard = u.shard AND task_id = u.task_id AND config_id = u.id OFFSET 0) AS p
    WHERE d.ctid = p.place AND (d.shard = u.shard AND d.task_id = u.task_id AND d.config_id = u.id) IS TRUE";

/// Moves the ends of leases that were renewed before and are taken, as far as they are alive. Touches no index.
pub(super) const RENEW_LEASES: &str = "UPDATE lease AS l SET until = $5::bigint + u.now_millis
    FROM (SELECT u.*, p.place AS tuple, CASE WHEN $4::bigint IS NULL
            THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint ELSE $4 END AS now_millis
        FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS u (shard, id, epoch, place)
        CROSS JOIN LATERAL (SELECT ctid AS place FROM lease WHERE shard = u.shard AND task_id = u.id OFFSET 0) AS p) AS u
    WHERE l.ctid = u.tuple AND (l.shard = u.shard AND l.task_id = u.id AND l.epoch = u.epoch AND l.until > u.now_millis) IS TRUE
    RETURNING u.place";
/// Renews the leases of tasks that are taken for the first time: from now on they have rows of their own.
pub(super) const MOVE_LEASES: &str = "WITH moved AS (
        UPDATE task AS t SET due_at = NULL
        FROM (SELECT u.*, p.place AS tuple, CASE WHEN $4::bigint IS NULL
                THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint ELSE $4 END AS now_millis
            FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS u (shard, id, epoch, place)
            CROSS JOIN LATERAL (SELECT ctid AS place FROM task WHERE shard = u.shard AND id = u.id OFFSET 0) AS p) AS u
        WHERE t.ctid = u.tuple
            AND (t.shard = u.shard AND t.id = u.id AND t.leased AND t.epoch = u.epoch AND t.due_at > u.now_millis) IS TRUE
        RETURNING u.place, t.shard, t.id, t.epoch, u.now_millis),
    put AS (
        INSERT INTO lease (shard, task_id, epoch, until)
        SELECT shard, id, epoch, $5::bigint + now_millis FROM moved
        ON CONFLICT (shard, task_id) DO UPDATE SET epoch = excluded.epoch, until = excluded.until)
    SELECT place FROM moved";
/// Takes tasks whose leases are to be renewed for the first time.
pub(super) const TAKE_TASKS: &str = "SELECT 1 FROM unnest($1::smallint[], $2::text[]) AS u (shard, id)
    CROSS JOIN LATERAL (SELECT 1 FROM task WHERE shard = u.shard AND id = u.id FOR NO KEY UPDATE) AS t";
pub(super) const EXPIRE_RENEWED: &str = "WITH expired AS (
        UPDATE lease SET until = $1 WHERE until > $1 RETURNING shard, task_id, epoch)
    UPDATE task AS t SET version = t.version + 1 FROM expired AS e
    WHERE t.shard = e.shard AND t.id = e.task_id AND t.epoch = e.epoch AND t.leased RETURNING 1";
pub(super) const EXPIRE_FRESH: &str = "UPDATE task SET version = version + 1, due_at = $1
    WHERE due_at > $1 AND due_at IS NOT NULL AND (leased OR state = 8) AND leased RETURNING 1";

pub(super) const CHECK: &str = "UPDATE meta SET value = value + 1 WHERE name = 'checks'";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, check_plan, plan};

    #[tokio::test]
    async fn no_write_walks_over_all_rows() {
        let fixture = Fixture::new().await;
        let all = [
            LOCK_TASKS,
            CLAIM_TASKS,
            TASKS_THERE,
            LOCK_LEASES,
            READ_LEASES,
            FIND_ACCEPTED,
            REMOVE_ACCEPTED,
            UPDATE_TASKS,
            EXTEND_TASKS,
            REMOVE_STATUSES,
            REMOVE_LEASES,
            LOCK_PUSHES,
            REPLACE_PUSHES,
            APPEND_PUSHES,
            LOCK_DEAD_OF_PUSHES,
            MOVE_DEAD,
            RENEW_LEASES,
            MOVE_LEASES,
            TAKE_TASKS,
            CHECK,
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
