-- Times are milliseconds since 1970. `state` is a number of `StateKind`: up to 5 an entry is open, up to 7 it is not settled.
-- `requests` and `happenings` count the rows of the entry in `request` and `history`, those that were dropped too.
-- `kept`: whether what the agent told is in `told`: 0, no; 1, whole; 2, without what was too large.
-- Every claim and release adds one to `claim_epoch`; who has an older one can't write.
CREATE TABLE entry (
    number           INTEGER PRIMARY KEY,
    id               BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    version          INTEGER NOT NULL,
    state            INTEGER NOT NULL,
    task_id          TEXT,
    note             TEXT NOT NULL,
    since            INTEGER NOT NULL,
    card             TEXT NOT NULL,
    interface_url    TEXT NOT NULL,
    binding          TEXT NOT NULL,
    protocol_version TEXT NOT NULL,
    tenant           TEXT NOT NULL,
    purpose          TEXT NOT NULL,
    message_id       TEXT NOT NULL,
    context_id       TEXT,
    created_at       INTEGER NOT NULL,
    deadline_at      INTEGER,
    quiet_max        INTEGER,
    alarm_at         INTEGER,
    alarmed_at       INTEGER,
    acknowledged_at  INTEGER,
    last_heard_at    INTEGER,
    last_event_id    TEXT,
    attempts         INTEGER NOT NULL,
    requests         INTEGER NOT NULL,
    happenings       INTEGER NOT NULL,
    kept             INTEGER NOT NULL,
    claimed_by       TEXT,
    claim_until      INTEGER,
    claim_epoch      INTEGER NOT NULL
) STRICT;

CREATE INDEX entry_state ON entry (state, id);
CREATE INDEX entry_unsettled ON entry (id) WHERE state <= 7;
CREATE INDEX entry_task ON entry (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX entry_alarm ON entry (alarm_at) WHERE alarm_at IS NOT NULL;

-- What was or will be sent, as ProtoJSON: the first message, then each reply.
CREATE TABLE request (
    entry   INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    json    BLOB NOT NULL,
    PRIMARY KEY (entry, ordinal)
) STRICT;

-- The last that the agent told, as ProtoJSON. `kind`: 1, a task; 2, a message.
CREATE TABLE told (
    entry INTEGER PRIMARY KEY,
    kind  INTEGER NOT NULL,
    json  BLOB NOT NULL
) STRICT;

-- What happened, for people. `state` is that of after it.
CREATE TABLE history (
    entry    INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    what     TEXT NOT NULL,
    state    INTEGER NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (entry, sequence)
) STRICT, WITHOUT ROWID;
