use longhaul_lifecycle::{Command, CommandKind};

use crate::support::{agent, command, ids, joins, start, step, submitted, user};

#[test]
fn a_status_message_joins_the_history_when_the_next_status_replaces_it() {
    let mut head = submitted();
    let mut history = Vec::from([joins(user("first"), 0)]);
    let steps = [
        (CommandKind::Start, ""),
        (CommandKind::Progress, "progress-1"),
        (CommandKind::Progress, "progress-2"),
        (CommandKind::Message, "queued"),
        (CommandKind::RequireInput, "question-1"),
        (CommandKind::Start, ""),
        (CommandKind::RequireAuth, "question-2"),
        (CommandKind::Resume, ""),
        (CommandKind::Start, ""),
        (CommandKind::Complete, "closing"),
    ];
    for (n, (kind, id)) in (1..).zip(steps) {
        let id = if id.is_empty() { "unused" } else { id };
        let transition = step(&head, command(kind, id, n), n);
        history.extend(transition.history);
        head = transition.head;
        assert_eq!(head.messages, history.len() as u64);
        let current = head.status_message.as_ref().map(|message| message.id().as_str());
        assert!(
            !ids(&history).iter().any(|id| Some(*id) == current),
            "{current:?} is in the status and in the history"
        );
    }
    assert_eq!(ids(&history), ["first", "progress-1", "queued", "progress-2", "question-1", "question-2"]);
    assert_eq!(head.status_message, Some(agent("closing")));
}

#[test]
fn a_status_without_a_message_leaves_none_behind() {
    let head = step(&submitted(), start(1), 1).head;
    let head = step(&head, command(CommandKind::Progress, "progress", 2), 2).head;
    let silent = step(&head, Command::Progress { message: None, metadata: None }, 3);
    assert_eq!(ids(&silent.history), ["progress"]);
    assert_eq!(silent.head.status_message, None);
    let again = step(&silent.head, Command::Progress { message: None, metadata: None }, 4);
    assert!(again.history.is_empty());
}
