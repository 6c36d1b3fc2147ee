-- What the server knows of itself: one value a name.
-- task_number_reserved: task numbers below it may have been given out, and are never given out again.
-- push_key_check, a blob: by it instances make sure that they have the key to the secrets of push configs.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES
    ('payload_format', 1),
    ('task_number_reserved', 1),
    ('checks', 0),
    ('opened_at', 0);

-- Whose tasks. n1 to n8 count its tasks by state, with the protocol's number of the state.
CREATE TABLE scope (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    owner  TEXT NOT NULL,
    n1 INTEGER NOT NULL DEFAULT 0,
    n2 INTEGER NOT NULL DEFAULT 0,
    n3 INTEGER NOT NULL DEFAULT 0,
    n4 INTEGER NOT NULL DEFAULT 0,
    n5 INTEGER NOT NULL DEFAULT 0,
    n6 INTEGER NOT NULL DEFAULT 0,
    n7 INTEGER NOT NULL DEFAULT 0,
    n8 INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, owner)
);

CREATE TABLE context (
    number INTEGER PRIMARY KEY,
    scope  INTEGER NOT NULL,
    id     TEXT NOT NULL,
    n1 INTEGER NOT NULL DEFAULT 0,
    n2 INTEGER NOT NULL DEFAULT 0,
    n3 INTEGER NOT NULL DEFAULT 0,
    n4 INTEGER NOT NULL DEFAULT 0,
    n5 INTEGER NOT NULL DEFAULT 0,
    n6 INTEGER NOT NULL DEFAULT 0,
    n7 INTEGER NOT NULL DEFAULT 0,
    n8 INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope, id)
);

-- The head of a task, narrow: an artifact chunk rewrites this row, so whatever may be large stands apart.
-- Times are milliseconds since 1970. `history` counts the rows in `message`; `status` says whether there is one
-- in `task_status`; `waiting` holds ordinals, separated by spaces; `failures` is JSON. While a task is leased, `due_at` is
-- when the lease runs out. `compaction`: 0, the log is whole; 1, it is whole, and to be merged one day; 2, it was merged.
-- `pushes`: whether there are rows in `push_config`.
CREATE TABLE task (
    number           INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    scope            INTEGER NOT NULL,
    context          INTEGER NOT NULL,
    state            INTEGER NOT NULL,
    status_time      INTEGER NOT NULL,
    version          INTEGER NOT NULL,
    last_sequence    INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    leased           INTEGER NOT NULL,
    due_at           INTEGER,
    cancel_requested INTEGER NOT NULL,
    messages         INTEGER NOT NULL,
    turn_message     INTEGER NOT NULL,
    history          INTEGER NOT NULL,
    status           INTEGER NOT NULL,
    waiting          TEXT,
    failures         TEXT,
    worker           TEXT,
    compaction       INTEGER NOT NULL DEFAULT 0,
    pushes           INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX task_by_scope ON task (scope, state, status_time);
CREATE INDEX task_by_context ON task (context, state, status_time);
-- Leases, by when they run out, and tasks that go on by themselves after a time. A task that is made with its lease and then
-- ends touches none of the two indexes below.
CREATE INDEX task_lease ON task (due_at) WHERE due_at IS NOT NULL AND (leased = 1 OR state = 8);
-- The tasks in line for a worker, for fair turns; and when the first of them is due, be it for another attempt.
CREATE INDEX task_line ON task (scope, context, due_at) WHERE due_at IS NOT NULL AND leased = 0 AND state IN (1, 2);
CREATE INDEX task_wait ON task (due_at) WHERE due_at IS NOT NULL AND leased = 0 AND state IN (1, 2);

-- The tasks whose logs are to be merged, by their end.
CREATE INDEX task_compaction ON task (status_time) WHERE compaction = 1;

-- The message of the current status, for tasks that have one.
CREATE TABLE task_status (
    number  INTEGER PRIMARY KEY,
    message BLOB NOT NULL
);

-- The task's metadata, for tasks that have some.
CREATE TABLE task_metadata (
    number   INTEGER PRIMARY KEY,
    metadata BLOB NOT NULL
);

-- What the agent stored for its task, for tasks of which it did.
CREATE TABLE task_checkpoint (
    number INTEGER PRIMARY KEY,
    data   BLOB NOT NULL
);

-- Tasks that are gone, but not all of their events and messages yet: a long log is removed in slices.
CREATE TABLE task_removed (
    number INTEGER PRIMARY KEY
);

-- The logs: key = task number * 2^26 + sequence. `kind` as EventKind::code makes it.
CREATE TABLE event (
    key     INTEGER PRIMARY KEY,
    kind    INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    payload BLOB NOT NULL
);

-- The histories: key = task number * 2^26 + ordinal.
CREATE TABLE message (
    key      INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    payload  BLOB NOT NULL,
    request  BLOB
);

-- Messages whose repetition is recognized. A row stays when its task is removed, and then means nothing.
CREATE TABLE accepted (
    number     INTEGER PRIMARY KEY,
    scope      INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    task       TEXT NOT NULL,
    digest     BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (scope, message_id)
);
CREATE INDEX accepted_by_expiry ON accepted (expires_at);

-- The push configs, each with its place in its task's log: `cursor` is the last event that was delivered or given up, and
-- `last_sequence` the newest one as of the task's last commit, so that nobody has to look at the task. `due_at` is when the next
-- event is to be tried, and the end of the claim while it is claimed; NULL when there is no next event.
CREATE TABLE push_config (
    number           INTEGER PRIMARY KEY,
    task_id          TEXT NOT NULL,
    id               TEXT NOT NULL,
    scope            INTEGER NOT NULL,
    cursor           INTEGER NOT NULL,
    last_sequence    INTEGER NOT NULL,
    due_at           INTEGER,
    epoch            INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,
    first_attempt_at INTEGER,
    created_at       INTEGER NOT NULL,
    host             TEXT NOT NULL,
    url              TEXT NOT NULL,
    scheme           TEXT,
    version          TEXT NOT NULL,
    secrets          BLOB,
    UNIQUE (task_id, id)
);
-- The lines of the hosts.
CREATE INDEX push_due ON push_config (host, due_at) WHERE due_at IS NOT NULL;

-- Deliveries that were given up. `due_at` as above, for those that are to be tried again.
CREATE TABLE push_dead (
    task_id   TEXT NOT NULL,
    config_id TEXT NOT NULL,
    sequence  INTEGER NOT NULL,
    host      TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    died_at   INTEGER NOT NULL,
    due_at    INTEGER,
    epoch     INTEGER NOT NULL,
    error     TEXT NOT NULL,
    PRIMARY KEY (task_id, config_id, sequence)
) WITHOUT ROWID;
CREATE INDEX push_dead_due ON push_dead (host, due_at) WHERE due_at IS NOT NULL;

-- The hosts that failed lately.
CREATE TABLE push_host (
    host       TEXT PRIMARY KEY NOT NULL,
    failures   INTEGER NOT NULL,
    open_until INTEGER
) WITHOUT ROWID;
