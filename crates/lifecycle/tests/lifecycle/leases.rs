use longhaul_lifecycle::{
    AttemptEnd, AttemptOutcome, Command, CommandKind, Lease, Rejection, TaskHead, WorkerId, Writer, decide,
};
use longhaul_protocol::TaskState;

use crate::support::{BACKOFF, LEASE, after, agent, at, command, failed, retry, start, step, told, user, working};
use crate::table::COMMANDS;

/// The first moment at which the lease of [`working`] is over.
const RUN_OUT: i64 = 1 + LEASE;

fn lost(head: &TaskHead) -> Rejection {
    Rejection::LeaseLost { held: head.epoch, current: head.epoch }
}

#[test]
fn a_start_takes_over_a_lease_that_has_run_out_and_notes_it() {
    let head = after(&working(), command(CommandKind::Progress, "progress", 3), 3);
    let taken = step(&head, start(RUN_OUT), RUN_OUT);
    assert!(taken.updates.is_empty() && taken.history.is_empty(), "the state stays, and nothing is told");
    assert_eq!(taken.lease, Lease::Take);
    let noted = AttemptEnd { attempt: 1, epoch: 1, ended_at: at(RUN_OUT), how: AttemptOutcome::LeaseExpired };
    let expected = TaskHead {
        version: head.version + 1,
        epoch: 2,
        attempt: 2,
        due_at: Some(at(RUN_OUT + LEASE)),
        failures: vec![noted],
        ..head
    };
    assert_eq!(taken.head, expected);
}

#[test]
fn a_lease_is_over_at_the_very_moment_that_it_names() {
    let head = working();
    let writer = Writer::Agent { epoch: head.epoch };
    assert!(!head.lease_is_over(at(RUN_OUT - 1)) && head.lease_is_over(at(RUN_OUT)));
    for (millis, holder_writes) in [(RUN_OUT - 1, true), (RUN_OUT, false)] {
        let progress = decide(&head, command(CommandKind::Progress, "progress", millis), writer, at(millis));
        let other = decide(&head, start(millis), Writer::Engine, at(millis));
        assert_eq!((progress.is_ok(), other.is_ok()), (holder_writes, !holder_writes), "one of them, never both");
    }
}

#[test]
fn an_agent_writes_nothing_after_its_lease_has_run_out_though_nobody_took_over() {
    let head = working();
    for kind in COMMANDS {
        let writer = Writer::Agent { epoch: head.epoch };
        let answer = decide(&head, command(kind, "late", RUN_OUT), writer, at(RUN_OUT));
        assert_eq!(answer, Err(lost(&head)), "{kind}");
    }
}

#[test]
fn an_agent_writes_nothing_after_another_took_over() {
    let head = after(&working(), start(RUN_OUT), RUN_OUT);
    for kind in COMMANDS {
        let answer = decide(&head, command(kind, "late", RUN_OUT), Writer::Agent { epoch: 1 }, at(RUN_OUT));
        assert_eq!(answer, Err(Rejection::LeaseLost { held: 1, current: 2 }), "{kind}");
    }
}

#[test]
fn a_cancel_after_the_lease_has_run_out_ends_the_task_at_once() {
    let asked = after(&working(), Command::Cancel, 3);
    for head in [working(), asked] {
        let cancel = decide(&head, Command::Cancel, Writer::Caller, at(RUN_OUT)).expect("a cancel");
        assert_eq!(told(&cancel), [TaskState::Canceled]);
        assert!(!cancel.tell_agent, "there is nobody to tell");
        assert_eq!((cancel.lease, cancel.head.leased, cancel.head.due_at), (Lease::End, false, None));
    }
}

#[test]
fn an_engine_may_fail_a_task_whose_lease_has_run_out() {
    let end = step(&working(), command(CommandKind::Fail, "given up", RUN_OUT), RUN_OUT);
    assert_eq!((end.head.state, end.head.leased, end.head.due_at), (TaskState::Failed, false, None));
}

#[test]
fn a_retry_keeps_the_state_tells_nothing_and_notes_the_failure() {
    let head = after(&working(), command(CommandKind::Progress, "progress", 3), 3);
    let ended = decide(&head, retry("no network", 9), Writer::Agent { epoch: 1 }, at(9)).expect("a retry");
    assert!(ended.updates.is_empty() && ended.history.is_empty() && !ended.tell_agent);
    assert_eq!(ended.lease, Lease::End);
    let noted = AttemptEnd { attempt: 1, epoch: 1, ended_at: at(9), how: failed("no network") };
    let expected = TaskHead {
        version: head.version + 1,
        leased: false,
        worker: WorkerId::default(),
        due_at: Some(at(9 + BACKOFF)),
        failures: vec![noted.clone()],
        ..head
    };
    assert_eq!(ended.head, expected);
    let again = decide(&ended.head, retry("no network", 10), Writer::Agent { epoch: 1 }, at(10));
    assert_eq!(again, Err(lost(&ended.head)), "the attempt is over");
    let next = after(&ended.head, start(400), 400);
    assert_eq!((next.epoch, next.attempt, next.failures), (2, 2, vec![noted]), "a free lease notes nothing");
}

#[test]
fn a_turn_that_is_handed_back_keeps_its_attempt_but_not_its_epoch() {
    let second = after(&after(&working(), retry("once", 2), 2), start(400), 400);
    let back = decide(&second, Command::HandBack, Writer::Agent { epoch: 2 }, at(500)).expect("in time");
    assert!(back.updates.is_empty() && back.history.is_empty());
    assert_eq!(back.lease, Lease::End);
    let expected = TaskHead {
        version: second.version + 1,
        leased: false,
        worker: WorkerId::default(),
        attempt: 1,
        due_at: Some(at(500)),
        ..second.clone()
    };
    assert_eq!(back.head, expected, "another may begin at once, and no failure was noted");
    let next = after(&back.head, start(500), 500);
    assert_eq!((next.epoch, next.attempt, &next.failures), (3, 2, &second.failures));
    let zombie = decide(&next, command(CommandKind::Complete, "late", 501), Writer::Agent { epoch: 2 }, at(501));
    assert_eq!(zombie, Err(Rejection::LeaseLost { held: 2, current: 3 }));
}

#[test]
fn an_attempt_that_ends_after_a_wish_to_cancel_ends_the_task() {
    let head = after(&working(), Command::Cancel, 3);
    for kind in [CommandKind::Retry, CommandKind::HandBack] {
        let end = step(&head, command(kind, "unused", 4), 4);
        assert_eq!(told(&end), [TaskState::Canceled], "{kind}: nobody waits for an attempt that is not wanted");
        assert_eq!((end.lease, end.head.due_at, end.head.cancel_requested), (Lease::End, None, false));
    }
}

#[test]
fn failures_are_forgotten_when_the_turn_ends() {
    let head = after(&after(&working(), retry("once", 2), 2), start(400), 400);
    assert_eq!(head.failures.len(), 1);
    for kind in [
        CommandKind::RequireInput,
        CommandKind::RequireAuth,
        CommandKind::Complete,
        CommandKind::Fail,
        CommandKind::Reject,
        CommandKind::FinishCancel,
    ] {
        assert!(after(&head, command(kind, "end", 500), 500).failures.is_empty(), "{kind}");
    }
    let queued = after(&head, Command::Message { message: user("more") }, 450);
    assert_eq!(queued.failures, head.failures, "the turn goes on");
    let next = after(&queued, command(CommandKind::RequireInput, "question", 500), 500);
    assert_eq!((next.state, next.attempt, next.failures.len()), (TaskState::Working, 0, 0), "another turn");
}

#[test]
fn a_turn_begins_without_the_failures_of_the_one_before() {
    for (ask, go_on) in [
        (CommandKind::RequireInput, CommandKind::Message),
        (CommandKind::RequireAuth, CommandKind::Message),
        (CommandKind::RequireAuth, CommandKind::Resume),
    ] {
        let mut asked = after(&working(), command(ask, "question", 2), 2);
        asked.failures.push(AttemptEnd { attempt: 1, epoch: 1, ended_at: at(1), how: AttemptOutcome::Inactive });
        let head = after(&asked, command(go_on, "answer", 3), 3);
        assert_eq!((head.attempt, head.failures.len()), (0, 0), "{go_on} after {ask}");
    }
}

#[test]
fn a_message_during_the_wait_for_the_next_attempt_is_queued_and_hastens_nothing() {
    let waiting = after(&working(), retry("once", 2), 2);
    let head = after(&waiting, Command::Message { message: user("more") }, 3);
    assert_eq!((head.due_at, head.attempt, &head.waiting), (waiting.due_at, 1, &vec![1]));
    assert_eq!(head.failures, waiting.failures);
}

#[test]
fn a_task_that_waits_for_its_next_attempt_is_canceled_at_once() {
    let waiting = after(&working(), retry("once", 2), 2);
    let cancel = decide(&waiting, Command::Cancel, Writer::Caller, at(3)).expect("a cancel");
    assert_eq!((told(&cancel), cancel.head.due_at), (vec![TaskState::Canceled], None));
}

#[test]
fn the_end_is_repeated_by_the_same_attempt_however_late() {
    let head = after(&working(), Command::Complete { message: Some(agent("closing")) }, 2);
    let late = RUN_OUT + LEASE;
    let again = decide(&head, command(CommandKind::Complete, "again", late), Writer::Agent { epoch: 1 }, at(late));
    assert!(again.expect("a lost answer").is_empty(&head));
}
