use longhaul_lifecycle::{CommandKind, Rejection, TaskHead, Writer, decide};
use longhaul_protocol::TaskState::{
    self, AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working,
};

use crate::support::{at, command, head_in};

/// The columns of the table.
pub const COMMANDS: [CommandKind; 11] = [
    CommandKind::Start,
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
/// it is. WORKING is meant with a running turn, and no message waiting.
#[rustfmt::skip]
pub fn row(state: TaskState) -> [Option<TaskState>; 11] {
    match state {
        //               Start          Progress       RequireInput         RequireAuth         Complete         Fail          Reject          Message          Resume         Cancel          FinishCancel
        Submitted     => [Some(Working), None,          None,                Some(AuthRequired), None,            Some(Failed), Some(Rejected), Some(Submitted), None,          Some(Canceled), Some(Canceled)],
        Working       => [Some(Working), Some(Working), Some(InputRequired), Some(AuthRequired), Some(Completed), Some(Failed), Some(Rejected), Some(Working),   None,          Some(Working),  Some(Canceled)],
        InputRequired => [None,          None,          None,                None,               None,            Some(Failed), Some(Rejected), Some(Working),   None,          Some(Canceled), Some(Canceled)],
        AuthRequired  => [None,          None,          None,                None,               None,            Some(Failed), Some(Rejected), Some(Working),   Some(Working), Some(Canceled), Some(Canceled)],
        Completed     => [None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Failed        => [None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Canceled      => [None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
        Rejected      => [None,          None,          None,                None,               None,            None,         None,           None,            None,          None,           None],
    }
}

#[test]
fn every_command_does_to_every_state_what_the_table_says() {
    for state in TaskState::ALL {
        let head = head_in(state);
        assert_eq!(head.state, state);
        for (kind, expected) in COMMANDS.into_iter().zip(row(state)) {
            check(&head, kind, expected);
        }
    }
}

fn check(head: &TaskHead, kind: CommandKind, expected: Option<TaskState>) {
    let state = head.state;
    for writer in [Writer::Engine, Writer::Caller] {
        let answer = decide(head, command(kind, "message"), writer, at(9));
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
fn an_agent_with_the_lease_is_judged_by_the_same_table() {
    let head = head_in(Working);
    for (kind, expected) in COMMANDS.into_iter().zip(row(Working)) {
        let answer = decide(&head, command(kind, "message"), Writer::Agent { epoch: head.epoch }, at(9));
        assert_eq!(answer.ok().map(|transition| transition.head.state), expected, "{kind}");
    }
}
