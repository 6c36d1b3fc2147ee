use std::time::Duration;

use longhaul_lifecycle::{Command, CommandKind, Lease, Rejection, TaskHead, WorkerId, Writer, decide};
use longhaul_protocol::{JsonObject, TaskState, Timestamp};

use crate::support::{
    LEASE, after, agent, asking, at, command, head_in, joins, retry, start, step, submitted, told, user, working,
};
use crate::table::COMMANDS;

fn reply(id: &str) -> Command {
    Command::Message { message: user(id) }
}

#[test]
fn a_first_start_takes_the_lease_and_tells_working() {
    let start = step(&submitted(), start(5), 5);
    assert_eq!(told(&start), [TaskState::Working]);
    assert_eq!(start.lease, Lease::Take);
    let expected = TaskHead {
        state: TaskState::Working,
        status_timestamp: at(5),
        version: 2,
        epoch: 1,
        attempt: 1,
        leased: true,
        worker: WorkerId::new("host/1"),
        due_at: Some(at(5 + LEASE)),
        ..submitted()
    };
    assert_eq!(start.head, expected);
}

#[test]
fn progress_is_told_with_its_message_and_metadata() {
    let mut metadata = JsonObject::default();
    metadata.insert("percent".to_owned(), 80.into());
    let progress = Command::Progress { message: Some(agent("progress")), metadata: Some(metadata.clone()) };
    let transition = step(&working(), progress, 7);
    assert_eq!(told(&transition), [TaskState::Working]);
    let update = &transition.updates[0];
    assert_eq!(
        (&update.message, &update.metadata, update.timestamp, update.rests),
        (&Some(agent("progress")), &Some(metadata), at(7), false)
    );
    assert_eq!(transition.lease, Lease::Keep);
    assert_eq!(transition.head.status_message, Some(agent("progress")));
}

#[test]
fn asking_ends_the_turn_and_stores_the_question() {
    for state in [TaskState::InputRequired, TaskState::AuthRequired] {
        let kind = if state == TaskState::InputRequired { CommandKind::RequireInput } else { CommandKind::RequireAuth };
        let ask = step(&working(), command(kind, "question", 4), 4);
        assert_eq!(told(&ask), [state]);
        assert!(ask.updates[0].rests);
        assert_eq!(ask.updates[0].message, Some(agent("question")));
        assert_eq!(ask.lease, Lease::End);
        assert!(ask.history.is_empty(), "the current status message is not in the history");
        let expected = TaskHead {
            state,
            status_message: Some(agent("question")),
            status_timestamp: at(4),
            version: 3,
            attempt: 0,
            leased: false,
            worker: WorkerId::default(),
            due_at: None,
            ..working()
        };
        assert_eq!(ask.head, expected);
    }
}

#[test]
fn a_question_that_a_waiting_message_answers_commits_both_updates() {
    let head = after(&after(&working(), reply("one"), 2), reply("two"), 3);
    let ask = step(&head, Command::RequireInput { message: agent("question") }, 4);
    assert_eq!(told(&ask), [TaskState::InputRequired, TaskState::Working]);
    assert_eq!(ask.updates.iter().map(|update| update.rests).collect::<Vec<_>>(), [false, false]);
    assert_eq!((&ask.updates[0].message, &ask.updates[1].message), (&Some(agent("question")), &None));
    assert_eq!(
        ask.history,
        [joins(agent("question"), 2)],
        "the question is asked in the first update and over in the second"
    );
    assert_eq!(ask.lease, Lease::End);
    let next = &ask.head;
    assert_eq!((next.state, next.turn_message, &next.waiting), (TaskState::Working, 1, &vec![2]));
    assert_eq!((next.due_at, next.attempt, next.leased, next.version), (Some(at(4)), 0, false, head.version + 1));
    assert_eq!(next.messages, 4, "the first, the two that waited, and the question");
}

#[test]
fn asking_for_authorization_may_set_when_the_task_goes_on() {
    let resume_after = Some(Duration::from_secs(60));
    let head = after(&working(), Command::RequireAuth { message: agent("who"), resume_after }, 1000);
    assert_eq!(head.due_at, Some(at(61_000)));
    let far = Command::RequireAuth { message: agent("who"), resume_after: Some(Duration::MAX) };
    assert_eq!(after(&working(), far, 1000).due_at.map(|due| due.unix_millis()), Some(Timestamp::MAX.unix_millis()));
    let resumed = step(&head, Command::Resume, 61_000);
    assert_eq!(told(&resumed), [TaskState::Working]);
    assert_eq!((resumed.head.due_at, resumed.head.turn_message), (Some(at(61_000)), head.turn_message));
}

#[test]
fn authorization_may_be_asked_for_before_the_work_begins() {
    let ask = step(&submitted(), Command::RequireAuth { message: agent("who"), resume_after: None }, 0);
    assert_eq!(told(&ask), [TaskState::AuthRequired]);
    assert_eq!((ask.head.epoch, ask.head.due_at), (0, None));
    let head = after(&ask.head, reply("password"), 5);
    assert_eq!(
        (head.state, head.due_at, head.turn_message),
        (TaskState::Working, Some(at(5)), 2),
        "behind the first and the question"
    );
}

#[test]
fn attempts_are_counted_by_turn_and_epochs_for_life() {
    let mut head = after(&after(&working(), retry("try again", 2), 2), start(2), 2);
    assert_eq!((head.epoch, head.attempt), (2, 2));
    head = after(&head, Command::RequireInput { message: agent("question") }, 3);
    assert_eq!((head.epoch, head.attempt), (2, 0));
    head = after(&head, reply("answer"), 4);
    assert_eq!((head.epoch, head.attempt), (2, 0));
    head = after(&head, start(5), 5);
    assert_eq!((head.epoch, head.attempt), (3, 1));
    head = after(&head, Command::RequireAuth { message: agent("who"), resume_after: None }, 6);
    head = after(&after(&head, Command::Resume, 7), start(8), 8);
    assert_eq!((head.epoch, head.attempt), (4, 1));
}

#[test]
fn input_and_authorization_may_be_asked_for_any_number_of_times() {
    let mut head = submitted();
    for n in 0..50 {
        head = after(&head, start(n), n);
        let kind = if n % 2 == 0 { CommandKind::RequireInput } else { CommandKind::RequireAuth };
        head = after(&head, command(kind, &format!("question-{n}"), n), n);
        assert!(head.state.is_interrupted());
        head = after(&head, reply(&format!("answer-{n}")), n);
    }
    assert_eq!((head.epoch, head.messages), (50, 101));
}

#[test]
fn a_message_during_a_turn_waits_and_changes_no_status() {
    for head in [submitted(), working()] {
        let queued = step(&head, reply("more"), 9);
        assert!(queued.updates.is_empty());
        assert_eq!(queued.history, [joins(user("more"), 0)]);
        assert_eq!(queued.lease, Lease::Keep);
        assert_eq!(queued.head, TaskHead { version: head.version + 1, messages: 2, waiting: vec![1], ..head });
    }
}

#[test]
fn an_answer_becomes_the_next_turns_message() {
    let answer = step(&asking(), reply("answer"), 9);
    assert_eq!(told(&answer), [TaskState::Working]);
    assert_eq!(answer.updates[0].message, None);
    assert_eq!(
        answer.history,
        [joins(agent("question"), 1), joins(user("answer"), 1)],
        "the question was asked before the answer came"
    );
    let next = answer.head;
    assert_eq!((next.turn_message, next.messages, next.due_at, next.leased), (2, 3, Some(at(9)), false));
    assert!(next.waiting.is_empty());
}

#[test]
fn an_agent_of_another_epoch_is_refused_in_every_state() {
    for state in TaskState::ALL {
        let head = head_in(state);
        for epoch in [head.epoch + 1, head.epoch.wrapping_sub(1), 77] {
            for kind in COMMANDS {
                let answer = decide(&head, command(kind, "late", 9), Writer::Agent { epoch }, at(9));
                assert_eq!(
                    answer,
                    Err(Rejection::LeaseLost { held: epoch, current: head.epoch }),
                    "{kind} in {state:?}"
                );
            }
        }
    }
}

#[test]
fn an_agent_whose_turn_has_ended_is_refused() {
    let asked = asking();
    let answered = after(&asked, reply("answer"), 3);
    for head in [submitted(), asked, answered] {
        for kind in COMMANDS {
            let answer = decide(&head, command(kind, "late", 9), Writer::Agent { epoch: head.epoch }, at(9));
            assert_eq!(
                answer,
                Err(Rejection::LeaseLost { held: head.epoch, current: head.epoch }),
                "{kind} in {:?}",
                head.state
            );
        }
    }
}

#[test]
fn the_same_end_again_by_the_same_attempt_changes_nothing() {
    for (state, kind) in [
        (TaskState::Completed, CommandKind::Complete),
        (TaskState::Failed, CommandKind::Fail),
        (TaskState::Rejected, CommandKind::Reject),
        (TaskState::Canceled, CommandKind::FinishCancel),
    ] {
        let head = head_in(state);
        let again = decide(&head, command(kind, "again", 99), Writer::Agent { epoch: head.epoch }, at(99))
            .expect("a retried write");
        assert!(again.is_empty(&head) && again.updates.is_empty() && again.history.is_empty());
        assert_eq!((again.head, again.lease, again.tell_agent), (head.clone(), Lease::Keep, false));
        for other in COMMANDS.into_iter().filter(|other| *other != kind) {
            decide(&head, command(other, "late", 99), Writer::Agent { epoch: head.epoch }, at(99))
                .expect_err("another write");
        }
        for writer in [Writer::Engine, Writer::Caller, Writer::Agent { epoch: head.epoch + 1 }] {
            decide(&head, command(kind, "again", 99), writer, at(99)).expect_err("another writer");
        }
    }
}

#[test]
fn an_end_is_told_once_and_clears_what_was_to_be_done() {
    let head = after(&after(&working(), reply("waiting"), 2), Command::Cancel, 3);
    assert!(head.cancel_requested);
    for kind in [CommandKind::Complete, CommandKind::Fail, CommandKind::Reject, CommandKind::FinishCancel] {
        let end = step(&head, command(kind, "closing", 4), 4);
        assert_eq!(end.updates.len(), 1);
        assert!(end.updates[0].rests && end.updates[0].state.is_terminal());
        assert_eq!(end.lease, Lease::End);
        let next = end.head;
        assert_eq!((next.leased, next.due_at, next.cancel_requested), (false, None, false));
        assert_eq!(
            (next.waiting.len(), next.messages, next.version),
            (0, 2, head.version + 1),
            "the message stays in the history"
        );
    }
}

#[test]
fn a_task_that_nobody_works_on_is_canceled_at_once() {
    let between_turns = after(&asking(), reply("answer"), 3);
    for head in [submitted(), asking(), head_in(TaskState::AuthRequired), between_turns] {
        let cancel = decide(&head, Command::Cancel, Writer::Caller, at(9)).expect("a cancel");
        assert_eq!(told(&cancel), [TaskState::Canceled]);
        assert!(!cancel.tell_agent);
        assert_eq!(
            (cancel.head.state, cancel.head.due_at, cancel.head.version),
            (TaskState::Canceled, None, head.version + 1)
        );
    }
}

#[test]
fn the_cancel_of_a_running_turn_is_only_asked_for() {
    let head = working();
    let cancel = decide(&head, Command::Cancel, Writer::Caller, at(9)).expect("a cancel");
    assert!(cancel.updates.is_empty() && cancel.tell_agent);
    assert_eq!(cancel.lease, Lease::Keep);
    assert_eq!(cancel.head, TaskHead { version: head.version + 1, cancel_requested: true, ..head });
    let again = decide(&cancel.head, Command::Cancel, Writer::Caller, at(10)).expect("a cancel is safe to repeat");
    assert!(again.is_empty(&cancel.head) && again.tell_agent);
    assert_eq!(again.head, cancel.head);
}

#[test]
fn a_canceled_turn_may_still_end_as_it_likes() {
    let head = after(&working(), Command::Cancel, 3);
    let writer = Writer::Agent { epoch: head.epoch };
    let completed = decide(&head, command(CommandKind::Complete, "closing", 4), writer, at(4)).expect("in time");
    assert_eq!(completed.head.state, TaskState::Completed);
    let canceled =
        decide(&head, Command::FinishCancel { message: None }, Writer::Engine, at(4)).expect("the grace is over");
    assert_eq!(canceled.head.state, TaskState::Canceled);
    let late = decide(&canceled.head, command(CommandKind::Complete, "closing", 5), writer, at(5));
    late.expect_err("a canceled task stays canceled");
}

#[test]
fn a_wish_to_cancel_outlives_the_turn_that_asks() {
    let head = after(&working(), Command::Cancel, 3);
    let asked = after(&head, Command::RequireInput { message: agent("question") }, 4);
    assert_eq!((asked.state, asked.cancel_requested), (TaskState::InputRequired, true));
    assert_eq!(after(&asked, Command::FinishCancel { message: None }, 5).state, TaskState::Canceled);
}

#[test]
fn rejections_say_what_was_asked_of_what() {
    let told =
        |head: &TaskHead, command, writer| decide(head, command, writer, at(9)).expect_err("a refusal").to_string();
    let complete = Command::Complete { message: None };
    assert_eq!(
        told(&submitted(), complete.clone(), Writer::Engine),
        "cannot complete a task in state TASK_STATE_SUBMITTED"
    );
    assert_eq!(
        told(&head_in(TaskState::Failed), Command::Cancel, Writer::Caller),
        "the task has ended in state TASK_STATE_FAILED"
    );
    let leased = told(&working(), start(9), Writer::Engine);
    assert_eq!(leased, "the task is leased until 2023-11-14T22:13:21.001Z");
    let zombie = told(&working(), complete, Writer::Agent { epoch: 0 });
    assert_eq!(zombie, "the lease of epoch 0 is over, the task is at epoch 1");
}
