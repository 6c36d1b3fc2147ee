//! What the reader says. Every statement goes along indexes, in steps whose number the caller bounds; `tests/plans.rs` holds them
//! to it. A planner that knows nothing of a table yet takes one index for as good as another, so a condition that is only to be
//! checked is written as no index can serve it: `IS NOT DISTINCT FROM` for `=`, and `IS TRUE` behind others.

/// What `row::head` reads, of a task `t`. The end of a lease that was renewed stands apart.
macro_rules! head {
    () => {
        "t.id, t.context_id, t.state, t.status_time, t.version, t.last_sequence, t.epoch, t.attempt, t.leased,
        CASE WHEN t.leased AND t.due_at IS NULL
            THEN (SELECT l.until FROM lease AS l WHERE l.shard = t.shard AND l.task_id = t.id AND l.epoch = t.epoch)
            ELSE t.due_at END,
        t.cancel_requested, t.messages, t.turn_message, t.waiting, t.failures, t.worker,
        CASE WHEN t.status
            THEN (SELECT s.message FROM task_status AS s WHERE s.shard = t.shard AND s.task_id = t.id) END"
    };
}

/// What `row::view` reads, of a task `t` with the artifacts `a`: the latest messages that were known at a sequence, the last one
/// first, as far as the condition holds.
macro_rules! view {
    ($until:literal, $limit:literal, $wanted:literal) => {
        concat!(
            "(SELECT d.metadata FROM task_metadata AS d WHERE d.shard = t.shard AND d.task_id = t.id),
            ARRAY(SELECT m.payload FROM message AS m
                WHERE ",
            $wanted,
            " AND m.shard = t.shard AND m.task_id = t.id AND m.sequence <= ",
            $until,
            "
                ORDER BY m.ordinal DESC LIMIT ",
            $limit,
            "),
            a.sequences, a.payloads"
        )
    };
}

/// The artifact updates of a task `t` up to a sequence, in their order, as far as the condition holds.
macro_rules! artifacts {
    ($until:literal, $wanted:literal) => {
        concat!(
            "LEFT JOIN LATERAL (SELECT array_agg(e.sequence) AS sequences, array_agg(e.payload) AS payloads
                FROM (SELECT e.sequence, e.payload FROM event AS e
                    WHERE ",
            $wanted,
            " AND e.shard = t.shard AND e.task_id = t.id AND e.kind = 1
                        AND e.sequence <= ",
            $until,
            "
                    ORDER BY e.sequence) AS e) AS a ON true"
        )
    };
}

/// A task that is in line at `$1`.
macro_rules! in_line {
    () => {
        "NOT t.leased AND t.state IN (1, 2) AND t.due_at IS NOT NULL AND t.due_at <= $1"
    };
}

pub(super) const LOAD: &str = concat!(
    "/* load */ SELECT ",
    head!(),
    " FROM task AS t WHERE t.shard = $1 AND t.id = $2 AND t.tenant IS NOT DISTINCT FROM $3 AND t.owner IS NOT DISTINCT FROM $4"
);

pub(super) const SCOPE_OF: &str =
    "/* scope_of */ SELECT t.tenant, t.owner FROM task AS t WHERE t.shard = $1 AND t.id = $2";

/// With the newest event that told a status, for a moment of the past.
pub(super) const SNAPSHOT: &str = concat!(
    "/* snapshot */ SELECT ",
    head!(),
    ", ",
    view!("COALESCE($5, t.last_sequence)", "$6", "true"),
    ",
        p.sequence, p.kind, p.time, p.payload
    FROM task AS t ",
    artifacts!("COALESCE($5, t.last_sequence)", "$7"),
    "
    LEFT JOIN LATERAL (SELECT e.sequence, e.kind, e.time, e.payload FROM event AS e
        WHERE $5 IS NOT NULL AND e.shard = t.shard AND e.task_id = t.id AND e.kind <> 1 AND e.sequence <= $5
        ORDER BY e.sequence DESC LIMIT 1) AS p ON true
    WHERE t.shard = $1 AND t.id = $2 AND t.tenant IS NOT DISTINCT FROM $3 AND t.owner IS NOT DISTINCT FROM $4
        AND ($5::bigint IS NULL OR $5 = t.last_sequence
            OR $5 > 0 AND $5 < t.last_sequence AND t.compaction <> 2)"
);

pub(super) const EVENTS_AFTER: &str = "/* events_after */ SELECT e.sequence, e.kind, e.time, e.payload FROM event AS e
    WHERE e.shard = $1 AND e.task_id = $2 AND e.sequence > $3
        AND EXISTS (SELECT 1 FROM task AS t WHERE t.shard = $1 AND t.id = $2 AND t.compaction <> 2)
    ORDER BY e.sequence LIMIT $4";

pub(super) const MESSAGES: &str = "/* messages */ SELECT m.ordinal, m.sequence, m.payload, m.request
    FROM unnest($3::bigint[]) WITH ORDINALITY AS u (ordinal, place)
    CROSS JOIN LATERAL (SELECT m.ordinal, m.sequence, m.payload, m.request FROM message AS m
        WHERE m.shard = $1 AND m.task_id = $2 AND m.ordinal = u.ordinal LIMIT 1) AS m
    WHERE EXISTS (SELECT 1 FROM task AS t WHERE t.shard = $1 AND t.id = $2)
    ORDER BY u.place";

pub(super) const ACCEPTED: &str = "/* accepted */ SELECT a.task_id, a.digest FROM accepted AS a
    WHERE a.shard = $1 AND a.tenant = $2 AND a.owner = $3 AND a.message_id = $4 AND (a.expires_at > $5) IS TRUE
        AND (SELECT true FROM task AS t WHERE t.shard = a.task_shard AND t.id = a.task_id)";

/// Artifact updates alone.
pub(super) const ARTIFACT_EVENTS: &str = "/* versions */ SELECT e.sequence, e.kind, e.time, e.payload FROM event AS e
    WHERE e.shard = $1 AND e.task_id = $2 AND e.kind = 1
        AND EXISTS (SELECT 1 FROM task AS t WHERE t.shard = $1 AND t.id = $2 AND t.tenant IS NOT DISTINCT FROM $3 AND t.owner IS NOT DISTINCT FROM $4)
    ORDER BY e.sequence";

pub(super) const CHECKPOINT: &str = "/* checkpoint */ SELECT c.data FROM task_checkpoint AS c
    WHERE c.shard = $1 AND c.task_id = $2";

pub(super) const MARKS: &str = "/* marks */ SELECT t.id, t.version, t.last_sequence
    FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place)
    CROSS JOIN LATERAL (SELECT t.id, t.version, t.last_sequence FROM task AS t
        WHERE t.shard = u.shard AND t.id = u.id LIMIT 1) AS t
    ORDER BY u.place";

/// The total, and beside it the page and one task more: of each state a range of the index, merged.
macro_rules! list {
    ($name:literal, $context:literal) => {
        concat!(
            "/* ",
            $name,
            " */ SELECT n.total, t.* FROM (SELECT CASE WHEN $12 THEN
                (SELECT COALESCE(sum((ARRAY[c.n1, c.n2, c.n3, c.n4, c.n5, c.n6, c.n7, c.n8])[s.state]), 0)::bigint
                    FROM (SELECT c.* FROM (SELECT n1, n2, n3, n4, n5, n6, n7, n8 FROM task_count
                            WHERE shard = $13 AND tenant = $1 AND owner = $2 AND context_id = $3
                        UNION ALL SELECT n1, n2, n3, n4, n5, n6, n7, n8 FROM task_count_delta
                            WHERE shard = $13 AND tenant = $1 AND owner = $2 AND context_id = $3) AS c) AS c
                    CROSS JOIN unnest($4::smallint[]) AS s (state))
                ELSE (SELECT COALESCE(sum(c.n), 0)::bigint FROM unnest($4::smallint[]) AS s (state)
                    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM task AS t
                        WHERE t.tenant = $1 AND t.owner = $2",
            $context,
            " AND t.state = s.state AND t.status_time >= $5
                        ORDER BY t.status_time DESC, t.id DESC) AS t) AS c)
                END AS total) AS n
            LEFT JOIN (SELECT ",
            head!(),
            ", ",
            view!("t.last_sequence", "$10", "t.place <= $9"),
            "
                FROM (SELECT t.*, row_number() OVER (ORDER BY t.status_time DESC, t.id DESC) AS place
                    FROM (SELECT t.* FROM unnest($4::smallint[]) AS s (state)
                        CROSS JOIN LATERAL (SELECT t.* FROM task AS t
                            WHERE t.tenant = $1 AND t.owner = $2",
            $context,
            " AND t.state = s.state AND t.status_time >= $5
                                AND (t.status_time, t.id) < ($6, $7)
                            ORDER BY t.status_time DESC, t.id DESC LIMIT $8) AS t
                        ORDER BY t.status_time DESC, t.id DESC LIMIT $8) AS t) AS t ",
            artifacts!("t.last_sequence", "$11 AND t.place <= $9"),
            "
                ORDER BY t.status_time DESC, t.id DESC) AS t ON true"
        )
    };
}
pub(super) const LIST_SCOPE: &str = list!("list", "");
pub(super) const LIST_CONTEXT: &str = list!("list of a context", " AND t.context_id = $3");

/// When leases and waits are over: at `$1`, but not before the database's clock says so, where that decides about them (`$8`).
/// Whoever is ahead of it would be shown leases that it can't take, instead of the line.
macro_rules! over {
    () => {
        "LEAST($1, CASE WHEN $8::bool THEN (extract(epoch FROM now()) * 1000)::bigint END)"
    };
}

/// Leases that ran out and waits that are over; and, of the line, the first scopes in the circle that begins at `$3` and `$4`, of
/// each the first contexts in the circle behind its last one, and of each of those the first tasks. With `$7` = 1 these are about
/// as many as are wanted if scopes have as many contexts and contexts as many tasks as each other; else more.
pub(super) const DUE: &str = concat!(
    "/* due */ WITH RECURSIVE behind AS (
        (SELECT t.tenant, t.owner FROM task AS t WHERE ", in_line!(), " AND (t.tenant, t.owner) >= ($3, $4)
            ORDER BY t.tenant, t.owner LIMIT 1)
        UNION ALL
        SELECT n.tenant, n.owner FROM behind AS b CROSS JOIN LATERAL (
            SELECT t.tenant, t.owner FROM task AS t WHERE ", in_line!(), " AND (t.tenant, t.owner) > (b.tenant, b.owner)
            ORDER BY t.tenant, t.owner LIMIT 1) AS n),
    before AS (
        (SELECT f.tenant, f.owner FROM (
            SELECT t.tenant, t.owner FROM task AS t WHERE ", in_line!(), " AND (t.tenant, t.owner) >= ('', '')
            ORDER BY t.tenant, t.owner LIMIT 1) AS f WHERE (f.tenant, f.owner) < ($3, $4))
        UNION ALL
        SELECT n.tenant, n.owner FROM before AS b CROSS JOIN LATERAL (
            SELECT t.tenant, t.owner FROM task AS t WHERE ", in_line!(), " AND (t.tenant, t.owner) > (b.tenant, b.owner)
            ORDER BY t.tenant, t.owner LIMIT 1) AS n
        WHERE (n.tenant, n.owner) < ($3, $4)),
    scopes AS MATERIALIZED (
        SELECT c.tenant, c.owner,
            COALESCE((SELECT jsonb_object($5::text[], $6::text[])) ->> (c.tenant || E'\\x1f' || c.owner), '') AS last
        FROM (SELECT b.tenant, b.owner FROM behind AS b UNION ALL SELECT b.tenant, b.owner FROM before AS b) AS c LIMIT $2),
    width AS MATERIALIZED (SELECT LEAST($2, $7 * (($2 + n - 1) / n)) AS contexts FROM (
        SELECT GREATEST(count(*), 1) AS n FROM scopes) AS s),
    turns AS (
        SELECT s.tenant, s.owner, c.ids, cardinality(c.ids)::bigint AS contexts FROM scopes AS s CROSS JOIN LATERAL (
            SELECT array_agg(c.context_id) AS ids FROM (
                WITH RECURSIVE behind AS (
                    (SELECT t.context_id FROM task AS t
                        WHERE ", in_line!(), " AND t.tenant = s.tenant AND t.owner = s.owner AND t.context_id > s.last
                        ORDER BY t.context_id LIMIT 1)
                    UNION ALL
                    SELECT n.context_id FROM behind AS b CROSS JOIN LATERAL (SELECT t.context_id FROM task AS t
                        WHERE ", in_line!(), " AND t.tenant = s.tenant AND t.owner = s.owner AND t.context_id > b.context_id
                        ORDER BY t.context_id LIMIT 1) AS n),
                before AS (
                    (SELECT f.context_id FROM (SELECT t.context_id FROM task AS t
                        WHERE ", in_line!(), " AND t.tenant = s.tenant AND t.owner = s.owner
                        ORDER BY t.context_id LIMIT 1) AS f WHERE f.context_id <= s.last)
                    UNION ALL
                    SELECT n.context_id FROM before AS b CROSS JOIN LATERAL (SELECT t.context_id FROM task AS t
                        WHERE ", in_line!(), " AND t.tenant = s.tenant AND t.owner = s.owner AND t.context_id > b.context_id
                        ORDER BY t.context_id LIMIT 1) AS n
                    WHERE n.context_id <= s.last)
                SELECT b.context_id FROM behind AS b UNION ALL SELECT b.context_id FROM before AS b
                LIMIT (SELECT w.contexts FROM width AS w)) AS c) AS c
        WHERE c.ids IS NOT NULL)
    SELECT t.contexts_max, t.contexts, t.tasks_max, t.tenant, t.owner, ", head!(), " FROM (
        (SELECT 0::bigint AS contexts_max, 0::bigint AS contexts, 0::bigint AS tasks_max, t.* FROM (
            SELECT t.* FROM (
                (SELECT t.due_at AS ended, t.shard, t.id FROM task AS t
                    WHERE t.due_at IS NOT NULL AND (t.leased OR t.state = 8) AND t.due_at <= ", over!(), "
                    ORDER BY t.due_at, t.id LIMIT $2)
                UNION ALL
                (SELECT l.until, l.shard, l.task_id FROM lease AS l CROSS JOIN LATERAL (SELECT 1 FROM task AS t
                        WHERE t.shard = l.shard AND t.id = l.task_id AND t.epoch = l.epoch AND t.leased AND t.due_at IS NULL
                        LIMIT 1) AS t
                    WHERE l.shard >= 0 AND l.until <= ", over!(), " ORDER BY l.until, l.task_id LIMIT $2)
                ORDER BY ended, id LIMIT $2) AS o
            CROSS JOIN LATERAL (SELECT t.* FROM task AS t WHERE t.shard = o.shard AND t.id = o.id LIMIT 1) AS t) AS t)
        UNION ALL
        SELECT w.contexts, u.contexts, LEAST(w.contexts, $7 * ((w.contexts + u.contexts - 1) / u.contexts)), t.*
        FROM width AS w CROSS JOIN turns AS u CROSS JOIN unnest(u.ids) AS c (context_id)
        CROSS JOIN LATERAL (SELECT t.* FROM task AS t
            WHERE ", in_line!(), " AND t.tenant = u.tenant AND t.owner = u.owner AND t.context_id = c.context_id
            ORDER BY t.due_at, t.id
            LIMIT LEAST(w.contexts, $7 * ((w.contexts + u.contexts - 1) / u.contexts))) AS t) AS t"
);

pub(super) const NEXT_DUE: &str = "/* next_due */ SELECT LEAST(
    (SELECT t.due_at FROM task AS t WHERE t.due_at IS NOT NULL AND (t.leased OR t.state = 8) ORDER BY t.due_at, t.id LIMIT 1),
    (SELECT t.due_at FROM task AS t WHERE t.due_at IS NOT NULL AND NOT t.leased AND t.state IN (1, 2)
        ORDER BY t.due_at LIMIT 1),
    (SELECT min(l.until) FROM lease AS l CROSS JOIN LATERAL (SELECT 1 FROM task AS t
        WHERE t.shard = l.shard AND t.id = l.task_id AND t.epoch = l.epoch AND t.leased AND t.due_at IS NULL
        LIMIT 1) AS t WHERE l.shard >= 0))";

pub(super) const COUNT_LINE: &str = "/* count_line */ SELECT count(*) FROM task AS t
    WHERE t.due_at IS NOT NULL AND NOT t.leased AND t.state IN (1, 2)";

/// The oldest tasks in the states `$4` with a status before `$5`, at most `$6`, in at most `$3` scopes from (`$1`, `$2`) on; with
/// the last of those scopes and their number. A task among the oldest is in a scope whose oldest is among the oldest of all
/// scopes, and none is newer than those.
macro_rules! oldest {
    ($name:literal, $columns:expr, $wanted:literal) => {
        concat!(
            "/* ", $name, " */ WITH RECURSIVE scopes AS (
                (SELECT t.tenant, t.owner FROM task AS t WHERE (t.tenant, t.owner) >= ($1, $2)
                    ORDER BY t.tenant, t.owner LIMIT 1)
                UNION ALL
                SELECT n.tenant, n.owner FROM scopes AS s CROSS JOIN LATERAL (
                    SELECT t.tenant, t.owner FROM task AS t WHERE (t.tenant, t.owner) > (s.tenant, s.owner)
                    ORDER BY t.tenant, t.owner LIMIT 1) AS n),
            looked AS MATERIALIZED (SELECT s.tenant, s.owner FROM scopes AS s LIMIT $3),
            firsts AS MATERIALIZED (
                SELECT s.tenant, s.owner, f.status_time FROM looked AS s CROSS JOIN LATERAL (
                    SELECT min(t.status_time) AS status_time FROM unnest($4::smallint[]) AS w (state) CROSS JOIN LATERAL (
                        SELECT t.status_time FROM task AS t
                        WHERE t.tenant = s.tenant AND t.owner = s.owner AND t.state = w.state AND t.status_time < $5
                            AND ", $wanted, "
                        ORDER BY t.status_time, t.id LIMIT 1) AS t) AS f
                WHERE f.status_time IS NOT NULL ORDER BY f.status_time LIMIT $6),
            bound AS MATERIALIZED (
                SELECT LEAST($5, CASE WHEN count(*) = $6 THEN max(f.status_time) + 1 END) AS before FROM firsts AS f)
            SELECT l.tenant, l.owner, l.scopes, o.* FROM (
                SELECT s.tenant, s.owner, (SELECT count(*) FROM looked) AS scopes FROM looked AS s
                ORDER BY s.tenant DESC, s.owner DESC LIMIT 1) AS l
            LEFT JOIN (SELECT t.tenant, t.owner, t.status_time, ", $columns, " FROM (
                SELECT t.* FROM firsts AS f CROSS JOIN unnest($4::smallint[]) AS w (state) CROSS JOIN LATERAL (
                    SELECT t.* FROM task AS t
                    WHERE t.tenant = f.tenant AND t.owner = f.owner AND t.state = w.state
                        AND t.status_time < (SELECT b.before FROM bound AS b) AND ", $wanted, "
                    ORDER BY t.status_time, t.id LIMIT $6) AS t
                ORDER BY t.status_time, t.id LIMIT $6) AS t) AS o ON true"
        )
    };
}
/// Of whose events none has yet to be delivered or given up.
pub(super) const ENDED: &str = oldest!(
    "ended",
    "t.id",
    "$7::bigint IS NOT NULL AND (NOT t.pushes OR (SELECT true FROM push_config AS p
        WHERE p.shard = t.shard AND p.task_id = t.id AND p.cursor < p.last_sequence LIMIT 1) IS NULL)"
);
/// Whoever has no lease, or one that is over at `$7`.
pub(super) const STALE: &str = oldest!(
    "stale",
    head!(),
    "(NOT t.leased OR t.due_at <= $7 OR t.due_at IS NULL AND COALESCE((SELECT l.until <= $7 FROM lease AS l
        WHERE l.shard = t.shard AND l.task_id = t.id AND l.epoch = t.epoch), false))"
);

/// All of them, by name.
#[cfg(test)]
pub(super) const ALL: &[(&str, &str)] = &[
    ("load", LOAD),
    ("scope_of", SCOPE_OF),
    ("snapshot", SNAPSHOT),
    ("events_after", EVENTS_AFTER),
    ("messages", MESSAGES),
    ("accepted", ACCEPTED),
    ("artifact_events", ARTIFACT_EVENTS),
    ("checkpoint", CHECKPOINT),
    ("marks", MARKS),
    ("list_scope", LIST_SCOPE),
    ("list_context", LIST_CONTEXT),
    ("due", DUE),
    ("next_due", NEXT_DUE),
    ("count_line", COUNT_LINE),
    ("ended", ENDED),
    ("stale", STALE),
];
