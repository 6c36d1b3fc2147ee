use crate::statements::statements;

/// What `row::head` reads, in its order.
macro_rules! head {
    ($rest:literal) => {
        concat!(
            "SELECT t.number, t.id, c.id, t.state, t.status_time, t.version, t.last_sequence, t.epoch, t.attempt, t.leased,
                t.due_at, t.cancel_requested, t.messages, t.turn_message, t.waiting, t.failures,
                s.message, t.worker ",
            $rest
        )
    };
}

statements! {
    begin = "BEGIN";
    commit = "COMMIT";

    head_by_id = head!("FROM task AS t CROSS JOIN context AS c ON c.number = t.context
        LEFT JOIN task_status AS s ON s.number = t.number
        WHERE t.id = ?1 AND t.scope = (SELECT number FROM scope WHERE tenant = ?2 AND owner = ?3)");
    head_by_number = head!("FROM task AS t CROSS JOIN context AS c ON c.number = t.context
        LEFT JOIN task_status AS s ON s.number = t.number
        WHERE t.number = ?1");
    claim_by_number = head!(", o.tenant, o.owner FROM task AS t CROSS JOIN context AS c ON c.number = t.context
        CROSS JOIN scope AS o ON o.number = t.scope LEFT JOIN task_status AS s ON s.number = t.number
        WHERE t.number = ?1");
    /// Leases that ran out, and waits that are over.
    timed = "SELECT number FROM task INDEXED BY task_lease
        WHERE (leased = 1 OR state = 8) AND due_at <= ?1 ORDER BY due_at, number LIMIT ?2";
    next_timed = "SELECT due_at FROM task INDEXED BY task_lease
        WHERE (leased = 1 OR state = 8) AND due_at > ?1 ORDER BY due_at LIMIT 1";
    next_in_line = "SELECT due_at FROM task INDEXED BY task_wait
        WHERE leased = 0 AND state IN (1, 2) AND due_at > ?1 ORDER BY due_at LIMIT 1";
    /// The three steps of [`longhaul_store::Line`], each along the index.
    scope_in_line = "SELECT scope FROM task INDEXED BY task_line
        WHERE leased = 0 AND state IN (1, 2) AND scope > ?1 AND due_at <= ?2 ORDER BY scope LIMIT 1";
    context_in_line = "SELECT context FROM task INDEXED BY task_line
        WHERE leased = 0 AND state IN (1, 2) AND scope = ?1 AND context > ?2 AND due_at <= ?3 ORDER BY context LIMIT 1";
    task_in_line = "SELECT number FROM task INDEXED BY task_line
        WHERE leased = 0 AND state IN (1, 2) AND scope = ?1 AND context = ?2 AND due_at <= ?3
        ORDER BY due_at, number LIMIT 1 OFFSET ?4";
    scope_of = "SELECT o.tenant, o.owner FROM task AS t CROSS JOIN scope AS o ON o.number = t.scope WHERE t.id = ?1";
    scope_number = "SELECT number FROM scope WHERE tenant = ?1 AND owner = ?2";
    scope_name = "SELECT tenant, owner FROM scope WHERE number = ?1";
    context_number = "SELECT number FROM context WHERE scope = ?1 AND id = ?2";
    context_name = "SELECT id FROM context WHERE number = ?1";

    scopes = "SELECT number, n1, n2, n3, n4, n5, n6, n7, n8 FROM scope WHERE number >= ?1 ORDER BY number";
    /// Whoever has no lease, or one that is over.
    oldest = "SELECT status_time, number FROM task INDEXED BY task_by_scope
        WHERE scope = ?1 AND state = ?2 AND status_time < ?3 AND NOT (leased = 1 AND due_at > ?4)
        ORDER BY status_time LIMIT ?5";
    /// Whose events are all delivered or given up.
    ended = "SELECT status_time, number FROM task INDEXED BY task_by_scope
        WHERE scope = ?1 AND state = ?2 AND status_time < ?3 AND NOT (pushes = 1 AND EXISTS (
            SELECT 1 FROM push_config AS p WHERE p.task_id = task.id AND p.cursor < p.last_sequence))
        ORDER BY status_time LIMIT ?4";
    /// Tasks whose logs are to be merged, as nothing of them may still be sent.
    compactable = "SELECT number FROM task INDEXED BY task_compaction
        WHERE compaction = 1 AND status_time < ?1 AND NOT (pushes = 1 AND (
            EXISTS (SELECT 1 FROM push_config AS p WHERE p.task_id = task.id AND p.cursor < p.last_sequence)
            OR EXISTS (SELECT 1 FROM push_dead AS d WHERE d.task_id = task.id)))
        ORDER BY status_time, number LIMIT ?2";
    leftovers = "SELECT number FROM task_removed WHERE number > 0 ORDER BY number LIMIT 1";
    checkpoint = "SELECT data FROM task_checkpoint WHERE number = (SELECT number FROM task WHERE id = ?1)";

    number = "SELECT number FROM task WHERE id = ?1";
    /// Whose log is whole.
    log_number = "SELECT number FROM task WHERE id = ?1 AND compaction <> 2";
    is_merged = "SELECT compaction = 2 FROM task WHERE number = ?1";
    number_in_scope = "SELECT number FROM task
        WHERE id = ?1 AND scope = (SELECT number FROM scope WHERE tenant = ?2 AND owner = ?3)";
    mark = "SELECT version, last_sequence FROM task WHERE id = ?1";
    metadata = "SELECT metadata FROM task_metadata WHERE number = ?1";

    events = "SELECT key, kind, time, payload FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
    /// Artifact updates alone.
    artifact_events = "SELECT key, kind, time, payload FROM event WHERE key > ?1 AND key <= ?2 AND kind = 1 ORDER BY key";
    /// The newest event that told a status.
    status_event = "SELECT key, kind, time, payload FROM event
        WHERE key > ?1 AND key <= ?2 AND kind <> 1 ORDER BY key DESC LIMIT 1";
    message = "SELECT key, sequence, payload, request FROM message WHERE key = ?1";
    /// The latest messages that were known at a sequence, the last one first.
    history = "SELECT payload FROM message WHERE key >= ?1 AND key <= ?2 AND sequence <= ?3 ORDER BY key DESC LIMIT ?4";

    scope_counts = "SELECT number, n1, n2, n3, n4, n5, n6, n7, n8 FROM scope WHERE tenant = ?1 AND owner = ?2";
    context_counts = "SELECT number, n1, n2, n3, n4, n5, n6, n7, n8 FROM context
        WHERE scope = (SELECT number FROM scope WHERE tenant = ?1 AND owner = ?2) AND id = ?3";
    page_of_scope = "SELECT status_time, id, number FROM task
        WHERE scope = ?1 AND state = ?2 AND status_time >= ?3 AND status_time <= ?4 AND (status_time < ?4 OR id < ?5)
        ORDER BY status_time DESC, id DESC LIMIT ?6";
    page_of_context = "SELECT status_time, id, number FROM task
        WHERE context = ?1 AND state = ?2 AND status_time >= ?3 AND status_time <= ?4 AND (status_time < ?4 OR id < ?5)
        ORDER BY status_time DESC, id DESC LIMIT ?6";
    total_of_scope = "SELECT count(*) FROM task WHERE scope = ?1 AND state = ?2 AND status_time >= ?3";
    total_of_context = "SELECT count(*) FROM task WHERE context = ?1 AND state = ?2 AND status_time >= ?3";
    accepted = "SELECT task, digest FROM accepted
        WHERE scope = (SELECT number FROM scope WHERE tenant = ?1 AND owner = ?2) AND message_id = ?3 AND expires_at > ?4
            AND EXISTS (SELECT 1 FROM task WHERE task.id = accepted.task)";
    is_task_of = "SELECT 1 FROM task
        WHERE id = ?1 AND scope = (SELECT number FROM scope WHERE tenant = ?2 AND owner = ?3)";
    push_configs = "SELECT task_id, id, url, host, scheme, secrets, version, created_at FROM push_config
        WHERE task_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    push_config = "SELECT task_id, id, url, host, scheme, secrets, version, created_at FROM push_config
        WHERE task_id = ?1 AND id = ?2";
    sealed_configs = "SELECT task_id, id, secrets FROM push_config
        WHERE (task_id, id) > (?1, ?2) AND secrets IS NOT NULL ORDER BY task_id, id LIMIT ?3";
    /// The hosts one by one, each with its first delivery.
    next_push = "SELECT host, due_at FROM push_config INDEXED BY push_due
        WHERE host > ?1 AND due_at IS NOT NULL ORDER BY host, due_at LIMIT 1";
    next_dead = "SELECT host, due_at FROM push_dead INDEXED BY push_dead_due
        WHERE host > ?1 AND due_at IS NOT NULL ORDER BY host, due_at LIMIT 1";
    count_pushes = "SELECT count(*) FROM push_config INDEXED BY push_due WHERE host > '' AND due_at IS NOT NULL";
    count_dead = "SELECT count(*) FROM push_dead WHERE task_id > ''";
    dead = "SELECT o.tenant, o.owner, d.task_id, d.config_id, p.url, d.sequence, d.attempts, d.died_at, d.error
        FROM push_dead AS d CROSS JOIN push_config AS p ON p.task_id = d.task_id AND p.id = d.config_id
            CROSS JOIN scope AS o ON o.number = p.scope
        WHERE (d.task_id, d.config_id, d.sequence) > (?1, ?2, ?3)
        ORDER BY d.task_id, d.config_id, d.sequence LIMIT ?4";
    push_host = "SELECT failures, open_until FROM push_host WHERE host = ?1";
    checks = "SELECT value FROM meta WHERE name = 'checks'";
}

#[cfg(test)]
mod tests {
    use super::Statements;
    use crate::migrations;

    #[test]
    fn no_read_walks_over_all_rows() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        migrations::migrate(&connection).unwrap();
        for (name, plan) in migrations::plans(&connection, &Statements::texts()) {
            let walks = plan.contains("SCAN");
            let sorts = plan.contains("TEMP B-TREE") && plan != "USE TEMP B-TREE FOR LAST TERM OF ORDER BY";
            assert!(!walks && !sorts, "{name}: {plan}");
        }
    }

    #[test]
    fn pages_are_ranges_of_the_indexes_by_status_time() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        migrations::migrate(&connection).unwrap();
        let plans = migrations::plans(&connection, &Statements::texts());
        for (name, index) in [("page_of_scope", "task_by_scope"), ("page_of_context", "task_by_context")] {
            let expected = format!(
                "SEARCH task USING INDEX {index} ({}=? AND state=? AND status_time>? AND status_time<?)",
                &name[8..]
            );
            assert!(plans.iter().any(|(of, plan)| *of == name && *plan == expected), "{name}: {plans:?}");
        }
        for (name, index) in [("total_of_scope", "task_by_scope"), ("total_of_context", "task_by_context")] {
            let expected =
                format!("SEARCH task USING COVERING INDEX {index} ({}=? AND state=? AND status_time>?)", &name[9..]);
            assert!(plans.iter().any(|(of, plan)| *of == name && *plan == expected), "{name}: {plans:?}");
        }
    }
}
