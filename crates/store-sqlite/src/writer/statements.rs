use crate::statements::statements;

statements! {
    begin = "BEGIN IMMEDIATE";
    commit = "COMMIT";
    rollback = "ROLLBACK";

    check = "UPDATE meta SET value = value + 1 WHERE name = 'checks'";
    reserved_numbers = "SELECT value FROM meta WHERE name = 'task_number_reserved'";
    reserve_numbers = "UPDATE meta SET value = ?1 WHERE name = 'task_number_reserved'";

    find_scope = "SELECT number FROM scope WHERE tenant = ?1 AND owner = ?2";
    insert_scope = "INSERT INTO scope (tenant, owner) VALUES (?1, ?2)";
    count_in_scope = "UPDATE scope SET n1 = n1 + ?2, n2 = n2 + ?3, n3 = n3 + ?4, n4 = n4 + ?5,
        n5 = n5 + ?6, n6 = n6 + ?7, n7 = n7 + ?8, n8 = n8 + ?9 WHERE number = ?1";

    /// Makes a context that is new, or counts in one that is not: which of the two need not be known.
    count_in_named_context = "INSERT INTO context (scope, id, n1, n2, n3, n4, n5, n6, n7, n8)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT (scope, id) DO UPDATE SET
            n1 = n1 + excluded.n1, n2 = n2 + excluded.n2, n3 = n3 + excluded.n3, n4 = n4 + excluded.n4,
            n5 = n5 + excluded.n5, n6 = n6 + excluded.n6, n7 = n7 + excluded.n7, n8 = n8 + excluded.n8
        RETURNING number";
    count_in_context = "UPDATE context SET n1 = n1 + ?2, n2 = n2 + ?3, n3 = n3 + ?4, n4 = n4 + ?5,
        n5 = n5 + ?6, n6 = n6 + ?7, n7 = n7 + ?8, n8 = n8 + ?9 WHERE number = ?1";

    find_task = "SELECT number, scope, context, state, version, epoch, leased, last_sequence, history, status, due_at, pushes
        FROM task WHERE id = ?1";
    insert_task = "INSERT INTO task (number, id, scope, context, state, status_time, version, last_sequence, epoch,
            attempt, leased, due_at, cancel_requested, messages, turn_message, history, status, waiting,
            failures, worker, compaction, pushes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
        ON CONFLICT (id) DO NOTHING";
    update_task = "UPDATE task SET state = ?2, status_time = ?3, version = ?4, last_sequence = ?5, epoch = ?6,
            attempt = ?7, leased = ?8, due_at = ?9, cancel_requested = ?10, messages = ?11, turn_message = ?12,
            history = ?13, status = ?14, waiting = ?15, failures = ?16, worker = ?17, compaction = ?18
        WHERE number = ?1";
    /// Touches no index.
    extend_task = "UPDATE task SET last_sequence = ?2, history = ?3 WHERE number = ?1";
    renew_task = "UPDATE task SET last_sequence = ?2, history = ?3, due_at = ?4 WHERE number = ?1";
    set_pushes = "UPDATE task SET pushes = ?2 WHERE number = ?1";
    expire_leases = "UPDATE task INDEXED BY task_lease SET version = version + 1, due_at = ?1
        WHERE due_at > ?1 AND (leased = 1 OR state = 8) AND leased = 1";
    count_line = "SELECT count(*) FROM task INDEXED BY task_line
        WHERE scope > -1 AND due_at IS NOT NULL AND leased = 0 AND state IN (1, 2)";

    put_status = "INSERT INTO task_status (number, message) VALUES (?1, ?2)
        ON CONFLICT (number) DO UPDATE SET message = excluded.message";
    remove_status = "DELETE FROM task_status WHERE number = ?1";
    put_metadata = "INSERT INTO task_metadata (number, metadata) VALUES (?1, ?2)";

    put_checkpoint = "INSERT INTO task_checkpoint (number, data) VALUES (?1, ?2)
        ON CONFLICT (number) DO UPDATE SET data = excluded.data";

    ended_task = "SELECT id, scope, context, pushes FROM task WHERE number = ?1 AND state = ?2 AND status_time < ?3";
    remove_task = "DELETE FROM task WHERE number = ?1";
    remove_metadata = "DELETE FROM task_metadata WHERE number = ?1";
    remove_checkpoint = "DELETE FROM task_checkpoint WHERE number = ?1";
    remove_empty_context = "DELETE FROM context WHERE number = ?1 AND n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 = 0";
    put_removed = "INSERT INTO task_removed (number) VALUES (?1)";
    next_removed = "SELECT number FROM task_removed WHERE number > 0 ORDER BY number LIMIT 1";
    forget_removed = "DELETE FROM task_removed WHERE number = ?1";
    /// How long the payloads are, which is known without reading them.
    event_sizes = "SELECT key, length(payload) FROM event WHERE key >= ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
    message_sizes = "SELECT key, length(payload) FROM message WHERE key >= ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
    remove_events = "DELETE FROM event WHERE key >= ?1 AND key <= ?2";
    remove_messages = "DELETE FROM message WHERE key >= ?1 AND key <= ?2";

    /// Nobody else has dealt with it, and it is still there.
    end_compaction = "UPDATE task SET compaction = ?2 WHERE number = ?1 AND compaction = 1";
    rewrite_event = "UPDATE event SET payload = ?2 WHERE key = ?1";

    insert_event = "INSERT INTO event (key, kind, time, payload) VALUES (?1, ?2, ?3, ?4)";
    insert_message = "INSERT INTO message (key, sequence, payload, request) VALUES (?1, ?2, ?3, ?4)";

    find_accepted = "SELECT task, digest FROM accepted WHERE scope = ?1 AND message_id = ?2 AND expires_at > ?3";
    put_accepted = "INSERT INTO accepted (scope, message_id, task, digest, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (scope, message_id) DO UPDATE
            SET task = excluded.task, digest = excluded.digest, expires_at = excluded.expires_at";
    forget_accepted = "DELETE FROM accepted WHERE number IN
        (SELECT number FROM accepted WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

    find_scope_name = "SELECT tenant, owner FROM scope WHERE number = ?1";
    count_push_configs = "SELECT count(*) FROM push_config WHERE task_id = ?1";
    insert_push_config = "INSERT INTO push_config (task_id, id, url, host, scheme, secrets, version, created_at, scope, cursor,
            last_sequence, due_at, epoch, attempts, first_attempt_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, NULL, 0, 0, NULL)";
    replace_push_config = "UPDATE push_config SET url = ?3, host = ?4, scheme = ?5, secrets = ?6, version = ?7, created_at = ?8,
            epoch = epoch + 1, attempts = 0, first_attempt_at = NULL,
            due_at = CASE WHEN cursor < last_sequence THEN ?9 END
        WHERE task_id = ?1 AND id = ?2";
    remove_push_config = "DELETE FROM push_config WHERE task_id = ?1 AND id = ?2";
    remove_push_configs = "DELETE FROM push_config WHERE task_id = ?1";
    reseal_push_config = "UPDATE push_config SET secrets = ?4 WHERE task_id = ?1 AND id = ?2 AND secrets = ?3";
    /// After a commit. What waits, or is claimed, is due when it was.
    push_appended = "UPDATE push_config SET last_sequence = ?2, due_at = coalesce(due_at, ?3)
        WHERE task_id = ?1 AND last_sequence < ?2";
    /// The hosts one by one, each with its first delivery.
    next_push_host = "SELECT host, due_at FROM push_config INDEXED BY push_due
        WHERE host > ?1 AND due_at IS NOT NULL ORDER BY host, due_at LIMIT 1";
    first_push = "SELECT due_at, number FROM push_config INDEXED BY push_due
        WHERE host = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT 1";
    claim_push = "UPDATE push_config SET due_at = ?2, epoch = epoch + 1 WHERE number = ?1
        RETURNING task_id, id, url, host, scheme, secrets, version, created_at, scope, last_sequence, cursor + 1, epoch,
            attempts, first_attempt_at";
    /// The settlements of a claim that is still the newest one; of no other.
    advance_push = "UPDATE push_config SET cursor = cursor + 1, attempts = 0, first_attempt_at = NULL,
            due_at = CASE WHEN cursor + 1 < last_sequence THEN ?5 END
        WHERE task_id = ?1 AND id = ?2 AND epoch = ?3 AND cursor = ?4 RETURNING cursor < last_sequence";
    retry_push = "UPDATE push_config SET due_at = ?5, epoch = epoch + 1 WHERE task_id = ?1 AND id = ?2 AND epoch = ?3 AND cursor = ?4";
    retry_push_that_failed = "UPDATE push_config SET due_at = ?5, epoch = epoch + 1, attempts = attempts + 1,
            first_attempt_at = coalesce(first_attempt_at, ?6)
        WHERE task_id = ?1 AND id = ?2 AND epoch = ?3 AND cursor = ?4";
    holds_push = "SELECT 1 FROM push_config WHERE task_id = ?1 AND id = ?2 AND epoch = ?3 AND cursor = ?4";

    insert_dead = "INSERT INTO push_dead (task_id, config_id, sequence, host, attempts, died_at, due_at, epoch, error)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, 0, ?7)";
    /// Its config was replaced.
    move_dead = "UPDATE push_dead SET host = ?3, epoch = epoch + 1, due_at = CASE WHEN due_at IS NOT NULL THEN ?4 END
        WHERE task_id = ?1 AND config_id = ?2";
    remove_dead_of_config = "DELETE FROM push_dead WHERE task_id = ?1 AND config_id = ?2";
    remove_dead_of_task = "DELETE FROM push_dead WHERE task_id = ?1";
    next_dead_host = "SELECT host, due_at FROM push_dead INDEXED BY push_dead_due
        WHERE host > ?1 AND due_at IS NOT NULL ORDER BY host, due_at LIMIT 1";
    first_dead = "SELECT due_at, task_id, config_id, sequence FROM push_dead INDEXED BY push_dead_due
        WHERE host = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT 1";
    claim_dead = "UPDATE push_dead SET due_at = ?4, epoch = epoch + 1 WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3
        RETURNING epoch, attempts";
    config_of_dead = "SELECT task_id, id, url, host, scheme, secrets, version, created_at, scope, last_sequence
        FROM push_config WHERE task_id = ?1 AND id = ?2";
    holds_dead = "SELECT 1 FROM push_dead WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3 AND epoch = ?4";
    remove_dead = "DELETE FROM push_dead WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3 AND epoch = ?4";
    retry_claimed_dead = "UPDATE push_dead SET due_at = ?5, epoch = epoch + 1
        WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3 AND epoch = ?4";
    fail_dead = "UPDATE push_dead SET due_at = NULL, epoch = epoch + 1, attempts = attempts + 1, error = ?5
        WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3 AND epoch = ?4";
    dead_behind = "SELECT task_id, config_id, sequence FROM push_dead
        WHERE (task_id, config_id, sequence) > (?1, ?2, ?3) ORDER BY task_id, config_id, sequence LIMIT ?4";
    wake_dead = "UPDATE push_dead SET due_at = coalesce(due_at, ?4) WHERE task_id = ?1 AND config_id = ?2 AND sequence = ?3";

    push_host = "SELECT failures, open_until FROM push_host WHERE host = ?1";
    put_push_host = "INSERT INTO push_host (host, failures, open_until) VALUES (?1, ?2, ?3)
        ON CONFLICT (host) DO UPDATE SET failures = excluded.failures, open_until = excluded.open_until";
    remove_push_host = "DELETE FROM push_host WHERE host = ?1";

    push_key_check = "SELECT value FROM meta WHERE name = 'push_key_check'";
    set_push_key_check = "INSERT INTO meta (name, value) VALUES ('push_key_check', ?1)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
}

#[cfg(test)]
mod tests {
    use super::Statements;
    use crate::migrations;

    #[test]
    fn no_write_walks_over_all_rows() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        migrations::migrate(&connection).unwrap();
        for (name, plan) in migrations::plans(&connection, &Statements::texts()) {
            let walks = plan.contains("SCAN");
            assert!(!walks && !plan.contains("TEMP B-TREE"), "{name}: {plan}");
        }
    }
}
