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

    find_task = "SELECT number, scope, context, state, version, epoch, leased, last_sequence, history, status, due_at
        FROM task WHERE id = ?1";
    insert_task = "INSERT INTO task (number, id, scope, context, state, status_time, version, last_sequence, epoch,
            attempt, leased, due_at, cancel_requested, messages, turn_message, history, status, waiting,
            failures, worker, compaction)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
        ON CONFLICT (id) DO NOTHING";
    update_task = "UPDATE task SET state = ?2, status_time = ?3, version = ?4, last_sequence = ?5, epoch = ?6,
            attempt = ?7, leased = ?8, due_at = ?9, cancel_requested = ?10, messages = ?11, turn_message = ?12,
            history = ?13, status = ?14, waiting = ?15, failures = ?16, worker = ?17, compaction = ?18
        WHERE number = ?1";
    /// Touches no index.
    extend_task = "UPDATE task SET last_sequence = ?2, history = ?3 WHERE number = ?1";
    renew_task = "UPDATE task SET last_sequence = ?2, history = ?3, due_at = ?4 WHERE number = ?1";
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

    ended_task = "SELECT id, scope, context FROM task WHERE number = ?1 AND state = ?2 AND status_time < ?3";
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
