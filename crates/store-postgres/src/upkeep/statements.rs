//! What keeps the tables in order.
//!
//! A plan may be made while a table is empty and serve for long. So that it always goes from the few rows that are given into the
//! large table, and never the other way, rows are found by a `LATERAL` subquery that is kept apart by an `OFFSET`, and removed by
//! their places. A row that moved since the statement began is not removed: those of a task move only together with the task's own,
//! which is then not removed either. Where a table is partitioned each part has rows of the same places, so the key is compared
//! too, by an `IS TRUE` that no index can serve.

/// Deletes what a table has of the tasks in `gone`.
macro_rules! delete_of {
    ($table:literal, $whose:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ctid = ANY (ARRAY(SELECT p.place FROM gone AS g CROSS JOIN LATERAL (SELECT ctid AS place FROM ",
            $table,
            " WHERE shard = g.shard AND task_id = g.id OFFSET 0) AS p ",
            $whose,
            ")) AND ((shard, task_id) IN (SELECT shard, id FROM gone)) IS TRUE"
        )
    };
}

/// Whose tasks these are, and what they take: rows and bytes of their logs, and bytes apart from those. A log of very many rows is
/// not measured.
pub(super) const SIZES: &str = "/* purge::sizes */
    SELECT u.place, t.tenant, t.owner, t.context_id, t.rows,
        CASE WHEN t.rows <= $3::bigint THEN
            (SELECT coalesce(sum(octet_length(payload)), 0) FROM event WHERE shard = u.shard AND task_id = u.id)
            + (SELECT coalesce(sum(octet_length(payload) + coalesce(octet_length(request), 0)), 0) FROM message
                WHERE shard = u.shard AND task_id = u.id) END,
        0::bigint + coalesce((SELECT octet_length(data) FROM task_checkpoint WHERE shard = u.shard AND task_id = u.id), 0)
            + coalesce((SELECT octet_length(message) FROM task_status WHERE shard = u.shard AND task_id = u.id), 0)
            + coalesce((SELECT octet_length(metadata) FROM task_metadata WHERE shard = u.shard AND task_id = u.id), 0),
        t.pushes
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT tenant, owner, context_id, last_sequence + history AS rows, pushes FROM task
        WHERE shard = u.shard AND id = u.id OFFSET 0) AS t
    ORDER BY u.place";

/// Removes tasks that are still what they were when they were found and that nobody else has, with their logs or with a note that
/// those are left. Push configs are removed by the next statement, where a task was known to have some.
pub(super) const REMOVE_TASKS: &str = concat!(
    "/* purge::remove */
    WITH wanted AS (
        SELECT * FROM unnest($1::smallint[], $2::text[], $3::smallint[], $4::smallint[], $5::bool[], $9::bool[])
            AS u (shard, id, scope_shard, context_shard, whole, pushes)),
    taken AS MATERIALIZED (
        SELECT t.shard, t.id FROM wanted AS u CROSS JOIN LATERAL (SELECT shard, id FROM task
            WHERE shard = u.shard AND id = u.id AND state = $6 AND status_time < $7 AND pushes = u.pushes
            FOR UPDATE SKIP LOCKED) AS t),
    removed AS (
        DELETE FROM task WHERE ctid = ANY (ARRAY(SELECT p.place FROM taken AS k
            CROSS JOIN LATERAL (SELECT ctid AS place FROM task WHERE shard = k.shard AND id = k.id OFFSET 0) AS p))
            AND ((shard, id) IN (SELECT shard, id FROM taken)) IS TRUE
        RETURNING shard, id, tenant, owner, context_id),
    gone AS MATERIALIZED (
        SELECT r.*, u.scope_shard, u.context_shard, u.whole
        FROM removed AS r JOIN wanted AS u ON u.shard = r.shard AND u.id = r.id),
    statuses AS (",
    delete_of!("task_status", ""),
    "), metadata AS (",
    delete_of!("task_metadata", ""),
    "), checkpoints AS (",
    delete_of!("task_checkpoint", ""),
    "), leases AS (",
    delete_of!("lease", ""),
    "), events AS (",
    delete_of!("event", "WHERE g.whole"),
    "), messages AS (",
    delete_of!("message", "WHERE g.whole"),
    "), left_over AS (
        INSERT INTO task_removed (shard, task_id) SELECT shard, id FROM gone WHERE NOT whole ON CONFLICT DO NOTHING),
    less AS (
        SELECT scope_shard AS shard, tenant, owner, '' AS context_id, count(*) AS n FROM gone GROUP BY 1, 2, 3
        UNION ALL
        SELECT context_shard, tenant, owner, context_id, count(*) FROM gone GROUP BY 1, 2, 3, 4),
    counts AS (
        INSERT INTO task_count_delta (shard, tenant, owner, context_id, batch, n1, n2, n3, n4, n5, n6, n7, n8)
        SELECT shard, tenant, owner, context_id, $8::bigint, -n * ($6 = 1)::int, -n * ($6 = 2)::int, -n * ($6 = 3)::int,
            -n * ($6 = 4)::int, -n * ($6 = 5)::int, -n * ($6 = 6)::int, -n * ($6 = 7)::int, -n * ($6 = 8)::int
        FROM less)
    SELECT count(*) FROM gone"
);

/// Removes the push configs and dead deliveries of a task that is gone, once it was removed. By the key: whoever tries dead
/// deliveries again, or seals secrets, does not take the task, and what they move is removed as well.
pub(super) const REMOVE_PUSHES: &str = "/* purge::remove_pushes */
    DELETE FROM push_config WHERE shard = $1 AND task_id = $2
        AND (SELECT true FROM task WHERE shard = $1 AND id = $2) IS NULL";
pub(super) const REMOVE_DEAD: &str = "/* purge::remove_dead */
    DELETE FROM push_dead WHERE shard = $1 AND task_id = $2
        AND (SELECT true FROM task WHERE shard = $1 AND id = $2) IS NULL";

/// Removes a slice of what one removed task has left, of some rows and bytes, and forgets the task when nothing is left.
pub(super) const SWEEP: &str = "/* purge::sweep */
    WITH next AS MATERIALIZED (
        SELECT shard, task_id FROM task_removed ORDER BY shard, task_id LIMIT 1 FOR UPDATE SKIP LOCKED),
    rows AS MATERIALIZED (
        SELECT r.*, sum(bytes) OVER (ORDER BY kind, number) - bytes AS before, row_number() OVER (ORDER BY kind, number) AS nth
        FROM next AS n CROSS JOIN LATERAL (
            (SELECT 1 AS kind, sequence AS number, ctid AS place, octet_length(payload) AS bytes FROM event
                WHERE shard = n.shard AND task_id = n.task_id ORDER BY sequence LIMIT $1::bigint + 1)
            UNION ALL
            (SELECT 2, ordinal, ctid, octet_length(payload) + coalesce(octet_length(request), 0) FROM message
                WHERE shard = n.shard AND task_id = n.task_id ORDER BY ordinal LIMIT $1::bigint + 1)) AS r),
    slice AS MATERIALIZED (SELECT kind, place FROM rows WHERE nth <= $1::bigint AND before < $2::bigint),
    events AS (DELETE FROM event WHERE ctid = ANY (ARRAY(SELECT place FROM slice WHERE kind = 1))
        AND ((shard, task_id) IN (SELECT shard, task_id FROM next)) IS TRUE),
    messages AS (DELETE FROM message WHERE ctid = ANY (ARRAY(SELECT place FROM slice WHERE kind = 2))
        AND ((shard, task_id) IN (SELECT shard, task_id FROM next)) IS TRUE),
    forgotten AS (
        DELETE FROM task_removed AS t USING next AS n WHERE t.shard = n.shard AND t.task_id = n.task_id
            AND (SELECT count(*) FROM slice) = (SELECT count(*) FROM rows))
    SELECT 1 FROM next";

/// Whether nothing of the log of a task `t` may still be sent.
macro_rules! is_sent {
    () => {
        "(NOT t.pushes OR coalesce(
            (SELECT true FROM push_config AS p
                WHERE p.shard = t.shard AND p.task_id = t.id AND p.cursor < p.last_sequence LIMIT 1),
            (SELECT true FROM push_dead AS d WHERE d.shard = t.shard AND d.task_id = t.id LIMIT 1)) IS NULL)"
    };
}

/// The next log to merge, unless another has it.
pub(super) const NEXT_LOG: &str = concat!(
    "/* compact::next */
    SELECT t.shard, t.id, t.status_time FROM task AS t
    WHERE t.compaction = 1 AND t.status_time < $1 AND t.status_time >= $2 AND ",
    is_sent!(),
    " ORDER BY t.status_time, t.id LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED"
);
/// Whether there is a log to merge.
pub(super) const HAS_LOG: &str = concat!(
    "/* compact::has_log */ SELECT 1 FROM task AS t WHERE t.compaction = 1 AND t.status_time < $1 AND ",
    is_sent!(),
    " ORDER BY t.status_time, t.id LIMIT 1"
);
pub(super) const READ_LOG: &str = "/* compact::read */
    SELECT sequence, kind, time, payload FROM event WHERE shard = $1 AND task_id = $2 AND kind = $3 ORDER BY sequence";
pub(super) const REMOVE_RANGES: &str = "/* compact::remove */
    DELETE FROM event WHERE ctid = ANY (ARRAY(SELECT p.place FROM unnest($3::bigint[], $4::bigint[]) AS u (first, last)
        CROSS JOIN LATERAL (SELECT ctid AS place FROM event
            WHERE shard = $1 AND task_id = $2 AND sequence BETWEEN u.first AND u.last OFFSET 0) AS p))
        AND (shard = $1 AND task_id = $2) IS TRUE";
pub(super) const REWRITE_EVENT: &str = "/* compact::rewrite */
    UPDATE event SET payload = $4 WHERE shard = $1 AND task_id = $2 AND sequence = $3";
pub(super) const END_COMPACTION: &str = "/* compact::end */
    UPDATE task SET compaction = $3 WHERE shard = $1 AND id = $2";

/// Adds a page of deltas to the counts. The first row answers how many there were, and the last of them; each other one names a
/// count that has come to nothing. Counts are taken in one order, so that two who do this never wait for each other in a ring.
pub(super) const FOLD_COUNTS: &str = "/* counts::fold */
    WITH picked AS MATERIALIZED (
        SELECT ctid AS place, shard, tenant, owner, context_id, batch FROM task_count_delta
        WHERE (shard, tenant, owner, context_id, batch) > ($1, $2, $3, $4, $5)
        ORDER BY shard, tenant, owner, context_id, batch LIMIT $6 FOR UPDATE SKIP LOCKED),
    taken AS (DELETE FROM task_count_delta WHERE ctid = ANY (ARRAY(SELECT place FROM picked))
        AND ((shard, tenant, owner, context_id, batch) IN (SELECT shard, tenant, owner, context_id, batch FROM picked)) IS TRUE
        RETURNING *),
    summed AS (
        SELECT shard, tenant, owner, context_id, sum(n1)::bigint AS n1, sum(n2)::bigint AS n2, sum(n3)::bigint AS n3,
            sum(n4)::bigint AS n4, sum(n5)::bigint AS n5, sum(n6)::bigint AS n6, sum(n7)::bigint AS n7, sum(n8)::bigint AS n8
        FROM taken GROUP BY shard, tenant, owner, context_id),
    folded AS (
        INSERT INTO task_count AS c (shard, tenant, owner, context_id, n1, n2, n3, n4, n5, n6, n7, n8)
        SELECT * FROM summed WHERE (n1, n2, n3, n4, n5, n6, n7, n8) <> (0, 0, 0, 0, 0, 0, 0, 0)
        ORDER BY shard, tenant, owner, context_id
        ON CONFLICT (shard, tenant, owner, context_id) DO UPDATE SET n1 = c.n1 + excluded.n1, n2 = c.n2 + excluded.n2,
            n3 = c.n3 + excluded.n3, n4 = c.n4 + excluded.n4, n5 = c.n5 + excluded.n5, n6 = c.n6 + excluded.n6,
            n7 = c.n7 + excluded.n7, n8 = c.n8 + excluded.n8
        RETURNING shard, tenant, owner, context_id,
            (n1, n2, n3, n4, n5, n6, n7, n8) = (0, 0, 0, 0, 0, 0, 0, 0) AS is_nothing)
    (SELECT (SELECT count(*) FROM taken), shard, tenant, owner, context_id, batch FROM picked
        ORDER BY shard DESC, tenant DESC, owner DESC, context_id DESC, batch DESC LIMIT 1)
    UNION ALL
    SELECT NULL, shard, tenant, owner, context_id, NULL FROM folded WHERE is_nothing";
/// Removes counts that are still nothing: of contexts whose tasks are gone. What comes to them at this moment comes as a new row.
pub(super) const REMOVE_COUNTS: &str = "/* counts::remove */
    DELETE FROM task_count WHERE ctid = ANY (ARRAY(
        SELECT c.place FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (shard, tenant, owner, context_id)
        CROSS JOIN LATERAL (SELECT ctid AS place FROM task_count AS t
            WHERE t.shard = u.shard AND t.tenant = u.tenant AND t.owner = u.owner AND t.context_id = u.context_id
                AND (n1, n2, n3, n4, n5, n6, n7, n8) = (0, 0, 0, 0, 0, 0, 0, 0) FOR UPDATE SKIP LOCKED) AS c))
        AND (n1, n2, n3, n4, n5, n6, n7, n8) = (0, 0, 0, 0, 0, 0, 0, 0)
        AND ((shard, tenant, owner, context_id) IN (SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[])))
            IS TRUE";

/// Forgets messages whose time is over by the database's clock.
pub(super) const FORGET_ACCEPTED: &str = "/* accepted::forget */
    WITH picked AS MATERIALIZED (
        SELECT ctid AS place FROM accepted WHERE expires_at <= (extract(epoch FROM now()) * 1000)::bigint
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED),
    forgotten AS (DELETE FROM accepted WHERE ctid = ANY (ARRAY(SELECT place FROM picked))
        AND (expires_at <= (extract(epoch FROM now()) * 1000)::bigint) IS TRUE RETURNING 1)
    SELECT count(*) FROM forgotten";
