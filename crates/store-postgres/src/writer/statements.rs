//! What the writers say.

pub(super) const BEGIN: &str = "BEGIN";
pub(super) const COMMIT: &str = "COMMIT";

/// Takes the tasks of a batch in the order of the places given, waiting for whoever has them.
pub(super) const LOCK_TASKS: &str =
    "SELECT u.place, t.tenant, t.owner, t.context_id, t.state, t.version, t.last_sequence,
        t.epoch, t.leased, t.due_at, t.history, t.status
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    JOIN task AS t ON t.shard = u.shard AND t.id = u.id
    ORDER BY u.place FOR NO KEY UPDATE OF t";
/// The same for tasks that are to be begun: one that somebody has is being begun, or changed, by another.
pub(super) const CLAIM_TASKS: &str =
    "SELECT u.place, t.tenant, t.owner, t.context_id, t.state, t.version, t.last_sequence,
        t.epoch, t.leased, t.due_at, t.history, t.status
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    JOIN task AS t ON t.shard = u.shard AND t.id = u.id
    ORDER BY u.place FOR NO KEY UPDATE OF t SKIP LOCKED";
pub(super) const TASKS_THERE: &str =
    "SELECT u.place FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    JOIN task AS t ON t.shard = u.shard AND t.id = u.id";

/// The renewed leases of tasks that were taken: asked when they are, so that none is older. Taken as well, for whoever acts because
/// a lease is over: it may be renewed at this moment.
pub(super) const LOCK_LEASES: &str = "SELECT u.place, l.epoch, l.until
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    JOIN lease AS l ON l.shard = u.shard AND l.task_id = u.id
    ORDER BY u.place FOR NO KEY UPDATE OF l";
pub(super) const READ_LEASES: &str = "SELECT u.place, l.epoch, l.until
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    JOIN lease AS l ON l.shard = u.shard AND l.task_id = u.id";

pub(super) const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Messages that were accepted before, with whether their tasks are still there.
pub(super) const FIND_ACCEPTED: &str = "SELECT u.place, a.task_id, a.digest, a.expires_at,
        EXISTS (SELECT 1 FROM task AS t WHERE t.shard = a.task_shard AND t.id = a.task_id)
    FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS u (shard, tenant, owner, message_id, place)
    JOIN accepted AS a
        ON a.shard = u.shard AND a.tenant = u.tenant AND a.owner = u.owner AND a.message_id = u.message_id
    ORDER BY u.place FOR UPDATE OF a";
pub(super) const REMOVE_ACCEPTED: &str = "DELETE FROM accepted AS a
    USING unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (shard, tenant, owner, message_id)
    WHERE a.shard = u.shard AND a.tenant = u.tenant AND a.owner = u.owner AND a.message_id = u.message_id";
pub(super) const INSERT_ACCEPTED: &str = "INSERT INTO accepted
        (shard, tenant, owner, message_id, task_id, task_shard, digest, expires_at)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bytea[], $8::bigint[])";

pub(super) const INSERT_TASKS: &str = "INSERT INTO task (shard, id, tenant, owner, context_id, state, status_time, version,
        last_sequence, epoch, attempt, leased, due_at, cancel_requested, messages, turn_message, history, status, compaction,
        waiting, failures, worker)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bool[], $13::bigint[], $14::bool[], $15::bigint[],
        $16::bigint[], $17::bigint[], $18::bool[], $19::smallint[], $20::text[], $21::text[], $22::text[])";
pub(super) const UPDATE_TASKS: &str = "UPDATE task AS t SET state = u.state, status_time = u.status_time, version = u.version,
        last_sequence = u.last_sequence, epoch = u.epoch, attempt = u.attempt, leased = u.leased, due_at = u.due_at,
        cancel_requested = u.cancel_requested, messages = u.messages, turn_message = u.turn_message, history = u.history,
        status = u.status, compaction = u.compaction, waiting = u.waiting, failures = u.failures, worker = u.worker
    FROM unnest($1::smallint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bool[], $10::bigint[], $11::bool[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bool[], $16::smallint[],
        $17::text[], $18::text[], $19::text[])
        AS u (shard, id, state, status_time, version, last_sequence, epoch, attempt, leased, due_at, cancel_requested, messages,
            turn_message, history, status, compaction, waiting, failures, worker)
    WHERE t.shard = u.shard AND t.id = u.id";
/// Touches no index.
pub(super) const EXTEND_TASKS: &str = "UPDATE task AS t SET last_sequence = u.last_sequence, history = u.history
    FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[]) AS u (shard, id, last_sequence, history)
    WHERE t.shard = u.shard AND t.id = u.id";

pub(super) const INSERT_EVENTS: &str = "INSERT INTO event (shard, task_id, sequence, kind, time, payload)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bytea[])";
pub(super) const INSERT_MESSAGES: &str = "INSERT INTO message (shard, task_id, ordinal, sequence, payload, request)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])";
pub(super) const PUT_STATUSES: &str = "INSERT INTO task_status (shard, task_id, message)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])
    ON CONFLICT (shard, task_id) DO UPDATE SET message = excluded.message";
pub(super) const REMOVE_STATUSES: &str =
    "DELETE FROM task_status AS s USING unnest($1::smallint[], $2::text[]) AS u (shard, id)
    WHERE s.shard = u.shard AND s.task_id = u.id";
pub(super) const PUT_METADATA: &str = "INSERT INTO task_metadata (shard, task_id, metadata)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])";
pub(super) const PUT_CHECKPOINTS: &str = "INSERT INTO task_checkpoint (shard, task_id, data)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])
    ON CONFLICT (shard, task_id) DO UPDATE SET data = excluded.data";
pub(super) const REMOVE_LEASES: &str =
    "DELETE FROM lease AS l USING unnest($1::smallint[], $2::text[]) AS u (shard, id)
    WHERE l.shard = u.shard AND l.task_id = u.id";
pub(super) const INSERT_COUNTS: &str = "INSERT INTO task_count_delta
        (shard, tenant, owner, context_id, batch, n1, n2, n3, n4, n5, n6, n7, n8)
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])";

/// Moves the ends of leases that were renewed before, as far as they are alive. Touches no index.
pub(super) const RENEW_LEASES: &str = "UPDATE lease AS l SET until = $5::bigint + u.now_millis
    FROM (SELECT u.*, CASE WHEN $4::bigint IS NULL THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint
            ELSE $4 END AS now_millis
        FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS u (shard, id, epoch, place)) AS u
    WHERE l.shard = u.shard AND l.task_id = u.id AND l.epoch = u.epoch AND l.until > u.now_millis
    RETURNING u.place";
/// Renews leases for the first time: from now on they have rows of their own.
pub(super) const MOVE_LEASES: &str = "WITH moved AS (
        UPDATE task AS t SET due_at = NULL
        FROM (SELECT u.*, CASE WHEN $4::bigint IS NULL THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint
                ELSE $4 END AS now_millis
            FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS u (shard, id, epoch, place)) AS u
        WHERE t.shard = u.shard AND t.id = u.id AND t.leased AND t.epoch = u.epoch AND t.due_at > u.now_millis
        RETURNING u.place, t.shard, t.id, t.epoch, u.now_millis),
    put AS (
        INSERT INTO lease (shard, task_id, epoch, until)
        SELECT shard, id, epoch, $5::bigint + now_millis FROM moved
        ON CONFLICT (shard, task_id) DO UPDATE SET epoch = excluded.epoch, until = excluded.until)
    SELECT place FROM moved";
pub(super) const EXPIRE_RENEWED: &str = "WITH expired AS (
        UPDATE lease SET until = $1 WHERE until > $1 RETURNING shard, task_id, epoch)
    UPDATE task AS t SET version = t.version + 1 FROM expired AS e
    WHERE t.shard = e.shard AND t.id = e.task_id AND t.epoch = e.epoch AND t.leased RETURNING 1";
pub(super) const EXPIRE_FRESH: &str = "UPDATE task SET version = version + 1, due_at = $1
    WHERE due_at > $1 AND due_at IS NOT NULL AND (leased OR state = 8) AND leased RETURNING 1";

pub(super) const CHECK: &str = "UPDATE meta SET value = value + 1 WHERE name = 'checks'";
