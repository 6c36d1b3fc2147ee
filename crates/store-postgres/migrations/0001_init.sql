-- What the instances know of the store: one value a name.
-- schema: the newest migration that was made; readable_by: the oldest one that a release must know to work on this schema.
CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO meta (name, value) VALUES ('payload_format', 1), ('schema', 1), ('readable_by', 1), ('checks', 0);

-- The head of a task, narrow: an artifact chunk rewrites this row, so whatever may be large stands apart. `shard` can be read
-- from the id. Times are milliseconds since 1970. `history` counts the rows in `message`; `status` says whether there is one in
-- `task_status`; `waiting` holds ordinals, separated by spaces; `failures` is JSON. While a task is leased, `due_at` is when the
-- lease runs out, until it is renewed: then the lease has a row in `lease`, and `due_at` is null.
-- A chunk moves no indexed column, and finds room for its row on the same page: fillfactor.
CREATE TABLE task (
    shard            smallint NOT NULL,
    id               text COLLATE "C" NOT NULL,
    tenant           text COLLATE "C" NOT NULL,
    owner            text COLLATE "C" NOT NULL,
    context_id       text COLLATE "C" NOT NULL,
    state            smallint NOT NULL,
    status_time      bigint NOT NULL,
    version          bigint NOT NULL,
    last_sequence    bigint NOT NULL,
    epoch            bigint NOT NULL,
    attempt          bigint NOT NULL,
    leased           boolean NOT NULL,
    due_at           bigint,
    cancel_requested boolean NOT NULL,
    messages         bigint NOT NULL,
    turn_message     bigint NOT NULL,
    history          bigint NOT NULL,
    status           boolean NOT NULL,
    -- 0: nothing to compact; 1: the log has deltas that may be merged once the task has ended for long enough; 2: merged.
    compaction       smallint NOT NULL DEFAULT 0,
    -- Whether there are, or were, rows in `push_config`.
    pushes           boolean NOT NULL DEFAULT false,
    waiting          text,
    failures         text,
    worker           text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX task_by_scope ON task (tenant, owner, state, status_time, id);
CREATE INDEX task_by_context ON task (tenant, owner, context_id, state, status_time, id);
-- Leases that were not renewed yet, by when they run out, and tasks that go on by themselves after a time.
CREATE INDEX task_lease ON task (due_at, id) WHERE due_at IS NOT NULL AND (leased OR state = 8);
-- The tasks in line for a worker, for fair turns; and when the first of them is due, be it for another attempt.
CREATE INDEX task_line ON task (tenant, owner, context_id, due_at, id)
    WHERE due_at IS NOT NULL AND NOT leased AND state IN (1, 2);
CREATE INDEX task_wait ON task (due_at) WHERE due_at IS NOT NULL AND NOT leased AND state IN (1, 2);
CREATE INDEX task_compaction ON task (status_time, id) WHERE compaction = 1;
-- The last one: of indexes that are all as good as any because the table is empty, a planner takes the newest, and a task is mostly
-- looked for by its id, which others of them hold as well.
ALTER TABLE task ADD PRIMARY KEY (shard, id);

-- Leases that were renewed at least once: a heartbeat rewrites one of these rows and touches no index.
CREATE TABLE lease (
    shard   smallint NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    epoch   bigint NOT NULL,
    until   bigint NOT NULL,
    PRIMARY KEY (shard, task_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);

-- The message of the current status, for tasks that have one.
CREATE TABLE task_status (
    shard   smallint NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    message bytea NOT NULL,
    PRIMARY KEY (shard, task_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- The task's metadata, for tasks that have some.
CREATE TABLE task_metadata (
    shard    smallint NOT NULL,
    task_id  text COLLATE "C" NOT NULL,
    metadata bytea NOT NULL,
    PRIMARY KEY (shard, task_id)
);

-- What the agent stored for its task, for tasks of which it did.
CREATE TABLE task_checkpoint (
    shard   smallint NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    data    bytea NOT NULL,
    PRIMARY KEY (shard, task_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The logs: only ever added to. `kind` as EventKind::code makes it.
CREATE TABLE event (
    shard    smallint NOT NULL,
    task_id  text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    kind     smallint NOT NULL,
    time     bigint NOT NULL,
    payload  bytea NOT NULL,
    PRIMARY KEY (shard, task_id, sequence)
);

-- The histories.
CREATE TABLE message (
    shard    smallint NOT NULL,
    task_id  text COLLATE "C" NOT NULL,
    ordinal  bigint NOT NULL,
    sequence bigint NOT NULL,
    payload  bytea NOT NULL,
    request  bytea,
    PRIMARY KEY (shard, task_id, ordinal)
);

-- Messages whose repetition is recognized; the shard is that of tenant and message id. A row stays when its task is removed, and
-- then means nothing.
CREATE TABLE accepted (
    shard      smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    task_id    text COLLATE "C" NOT NULL,
    task_shard smallint NOT NULL,
    digest     bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (shard, tenant, owner, message_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX accepted_by_expiry ON accepted (expires_at);

-- How many tasks of a context are in each state, by the protocol's number of the state; without a context: of the whole scope.
-- The count is a row here and the rows of `task_count_delta` that were not added to it yet: each commit adds rows and none
-- changes one, so that no two commits wait for each other.
CREATE TABLE task_count (
    shard      smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    n1 bigint NOT NULL, n2 bigint NOT NULL, n3 bigint NOT NULL, n4 bigint NOT NULL,
    n5 bigint NOT NULL, n6 bigint NOT NULL, n7 bigint NOT NULL, n8 bigint NOT NULL,
    PRIMARY KEY (shard, tenant, owner, context_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- `batch` is a random number of the transaction that added the row.
CREATE TABLE task_count_delta (
    shard      smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    batch      bigint NOT NULL,
    n1 bigint NOT NULL, n2 bigint NOT NULL, n3 bigint NOT NULL, n4 bigint NOT NULL,
    n5 bigint NOT NULL, n6 bigint NOT NULL, n7 bigint NOT NULL, n8 bigint NOT NULL,
    PRIMARY KEY (shard, tenant, owner, context_id, batch)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Tasks that are gone, but not all of their events and messages yet: a long log is removed in slices.
CREATE TABLE task_removed (
    shard   smallint NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, task_id)
);

-- The push configs, each with its place in its task's log: `cursor` is the last event that was delivered or given up, and
-- `last_sequence` the newest one as of the task's last commit, so that nobody has to look at the task. `due_at` is when the next
-- event is to be tried, and the end of the claim while it is claimed; null when there is no next event.
-- A commit finds what waits already and moves no indexed column; claims and settlements do.
CREATE TABLE push_config (
    shard            smallint NOT NULL,
    task_id          text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    tenant           text COLLATE "C" NOT NULL,
    owner            text COLLATE "C" NOT NULL,
    cursor           bigint NOT NULL,
    last_sequence    bigint NOT NULL,
    due_at           bigint,
    epoch            bigint NOT NULL,
    attempts         bigint NOT NULL,
    first_attempt_at bigint,
    created_at       bigint NOT NULL,
    host             text COLLATE "C" NOT NULL,
    url              text NOT NULL,
    scheme           text,
    version          text NOT NULL,
    secrets          bytea
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- The lines of the hosts.
CREATE INDEX push_due ON push_config (host, due_at, task_id, id) WHERE due_at IS NOT NULL;
ALTER TABLE push_config ADD PRIMARY KEY (shard, task_id, id);

-- Deliveries that were given up. `due_at` as above, for those that are to be tried again.
CREATE TABLE push_dead (
    shard     smallint NOT NULL,
    task_id   text COLLATE "C" NOT NULL,
    config_id text COLLATE "C" NOT NULL,
    sequence  bigint NOT NULL,
    host      text COLLATE "C" NOT NULL,
    attempts  bigint NOT NULL,
    died_at   bigint NOT NULL,
    due_at    bigint,
    epoch     bigint NOT NULL,
    error     text NOT NULL
);
CREATE INDEX push_dead_due ON push_dead (host, due_at, task_id, config_id, sequence) WHERE due_at IS NOT NULL;
CREATE INDEX push_dead_listed ON push_dead (task_id, config_id, sequence);
ALTER TABLE push_dead ADD PRIMARY KEY (shard, task_id, config_id, sequence);

-- The hosts that failed lately.
CREATE TABLE push_host (
    host       text COLLATE "C" PRIMARY KEY,
    failures   bigint NOT NULL,
    open_until bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);

-- By this instances make sure that they have the key to the secrets of push configs: one row, or none.
CREATE TABLE push_key (
    number smallint PRIMARY KEY DEFAULT 1 CHECK (number = 1),
    value  bytea NOT NULL
);
