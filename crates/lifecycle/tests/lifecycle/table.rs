use longhaul_lifecycle::{CommandKind, Rejection, TaskHead, Writer, decide};
use longhaul_protocol::TaskState::{
    self, AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working,
};

use crate::support::{LEASE, after, at, command, head_in};

/// The columns of the table.
pub const COMMANDS: [CommandKind; 13] = [
    CommandKind::Start,
    CommandKind::Retry,
    CommandKind::HandBack,
    CommandKind::Progress,
    CommandKind::RequireInput,
    CommandKind::RequireAuth,
    CommandKind::Complete,
    CommandKind::Fail,
    CommandKind::Reject,
    CommandKind::Message,
    CommandKind::Resume,
    CommandKind::Cancel,
    CommandKind::FinishCancel,
];

/// The state that each command leads to; `None` where it is refused. A queued message and a wish to cancel leave the state as
/// it is. WORKING is meant with a running turn, no message waiting and no wish to cancel; only a start needs a lease that is
/// free or has run out.
#[rustfmt::skip]
pub fn row(state: TaskState) -> [Option<TaskState>; 13] {
    match state {
        //               Start          Retry          HandBack       Progress       RequireInput         RequireAuth         Complete         Fail          Reject          Message          Resume         Cancel          FinishCancel
        Submitted     => [Some(Working), None,          None,          None,          None,                Some(AuthRequired), None,            Some(Failed), Some(Rejected), Some(Submitted), None,          Some(Canceled), Some(Canceled)],
        Working       => [Some(Working), Some(Working), Some(Working), Some(Working), Some(InputRequired), Some(AuthRequired), Some(Completed), Some(Failed), Some(Rejected), Some(Working),   None,          Some(Working),  Some(Canceled)],
        InputRequired => [None,          None,          None,          None,          None,                None,               None,            Some(Failed), Some(Rejected), Some(Working),   None,          Some(Canceled), Some(Canceled)],
        AuthRequired  => [None,          None,          None,          None,          None,                None,               None,            Some(Failed), Some(Rejected), Some(Working),   Some(Working), Some(Canceled), Some(Canceled)],
        Completed     => [None,          None,          None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Failed        => [None,          None,          None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Canceled      => [None,          None,          None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Rejected      => [None,          None,          None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
    }
}

#[test]
fn every_command_does_to_every_state_what_the_table_says() {
    for state in TaskState::ALL {
        let head = head_in(state);
        assert_eq!(head.state, state);
        for (kind, expected) in COMMANDS.into_iter().zip(row(state)) {
            let millis = if kind == CommandKind::Start { RUN_OUT } else { 9 };
            check(&head, kind, expected, millis);
        }
    }
}

/// When the lease of a task that [`head_in`] made is over.
const RUN_OUT: i64 = 1 + LEASE;

fn check(head: &TaskHead, kind: CommandKind, expected: Option<TaskState>, millis: i64) {
    let state = head.state;
    for writer in [Writer::Engine, Writer::Caller] {
        let answer = decide(head, command(kind, "message", millis), writer, at(millis));
        match (answer, expected) {
            (Ok(transition), Some(next)) => assert_eq!(transition.head.state, next, "{kind} a task in {state:?}"),
            (Err(Rejection::Ended(told)), None) => {
                assert!(state.is_terminal() && told == state, "{kind} a task in {state:?}")
            }
            (Err(rejection), None) => {
                assert!(!state.is_terminal());
                assert_eq!(rejection, Rejection::NotApplicable { state, command: kind });
            }
            (answer, expected) => panic!("{kind} a task in {state:?}: {answer:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_start_is_refused_while_a_lease_is_alive_and_for_no_other_reason() {
    let head = head_in(Working);
    for writer in [Writer::Engine, Writer::Caller, Writer::Agent { epoch: head.epoch }] {
        let answer = decide(&head, command(CommandKind::Start, "", RUN_OUT - 1), writer, at(RUN_OUT - 1));
        assert_eq!(answer, Err(Rejection::Leased { until: at(RUN_OUT) }));
    }
    let free = after(&head, command(CommandKind::HandBack, "", 9), 9);
    for (head, millis) in [(head, RUN_OUT), (free, 9)] {
        check(&head, CommandKind::Start, Some(Working), millis);
    }
}

#[test]
fn an_attempt_ends_only_if_there_is_one() {
    let free = after(&head_in(Working), command(CommandKind::HandBack, "", 9), 9);
    for kind in [CommandKind::Retry, CommandKind::HandBack] {
        check(&free, kind, None, 9);
    }
}

#[test]
fn an_agent_with_the_lease_is_judged_by_the_same_table() {
    let head = head_in(Working);
    for (kind, expected) in COMMANDS.into_iter().zip(row(Working)).filter(|(kind, _)| *kind != CommandKind::Start) {
        let answer = decide(&head, command(kind, "message", 9), Writer::Agent { epoch: head.epoch }, at(9));
        assert_eq!(answer.ok().map(|transition| transition.head.state), expected, "{kind}");
    }
}
