use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_lifecycle::Command;
use longhaul_protocol::{TaskState, Timestamp, wire};

use super::TestStore;
use super::commits::everything;
use super::life::{Life, agent_message, ask, at, complete, context_id, piece, progress, reply, scope, start};
use crate::{HistoryLimit, ListQuery, Scope, Store};

fn ids(tasks: &[wire::Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// What a list ought to be: every life looked at, filtered and sorted.
fn expected<'a>(lives: &'a [Life], query: &ListQuery) -> Vec<&'a str> {
    let mut matching: Vec<_> = lives
        .iter()
        .filter(|life| life.scope == query.scope)
        .filter(|life| query.context_id.as_ref().is_none_or(|context| *context == life.head.context_id))
        .filter(|life| query.state.is_none_or(|state| state == life.head.state))
        .filter(|life| query.status_timestamp_after.is_none_or(|after| life.head.status_timestamp >= after))
        .map(|life| (life.head.status_timestamp, life.head.id.as_str()))
        .collect();
    matching.sort_unstable();
    matching.into_iter().rev().map(|(_, id)| id).collect()
}

async fn check(store: &dyn Store, lives: &[Life], query: ListQuery) {
    let expected = expected(lives, &query);
    let page = store.list(query.clone()).await.expect("a page");
    assert_eq!(ids(&page.tasks), expected, "{query:?}");
    assert_eq!((page.total, page.next), (expected.len() as u64, None), "{query:?}");
}

/// The newest status first; of the same time the greatest id first.
pub async fn lists_are_newest_first_then_by_id(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for (id, millis) in [("b", 10), ("a", 30), ("d", 10), ("c", 10), ("e", 20), ("Z", 10), ("é", 10)] {
        lives.push(Life::begin(test.store(), &Scope::default(), id, "context", millis).await);
    }
    let page = test.store().list(everything(&Scope::default())).await.expect("a page");
    assert_eq!(ids(&page.tasks), ["a", "e", "é", "d", "c", "b", "Z"]);
    lives[3].at(40).start().await;
    lives[3].at(99).add(piece("x", "x", false)).await;
    lives[4].at(15).give(Command::Cancel).await;
    check(&**test.store(), &lives, everything(&Scope::default())).await;
    let page = test.store().list(everything(&Scope::default())).await.expect("a page");
    assert_eq!(ids(&page.tasks), ["c", "a", "e", "é", "d", "b", "Z"], "a status moves a task, a chunk does not");
}

/// Tasks of two scopes and three contexts, in every state, some with the same status time.
async fn many_lives(test: &TestStore) -> Vec<Life> {
    let mut lives = Vec::new();
    for n in 0..36_u8 {
        let scope = scope(if n % 4 == 3 { "other" } else { "" }, "");
        let (id, context) = (format!("task-{n:02}"), format!("context-{}", n % 3));
        let mut life = Life::begin(test.store(), &scope, &id, &context, i64::from(n) * 10).await;
        life.at(1000 + i64::from(n / 4));
        bring_into(&mut life, TaskState::ALL[usize::from(n) % 8]).await;
        lives.push(life);
    }
    lives
}

async fn bring_into(life: &mut Life, state: TaskState) {
    let reason = Some(agent_message("reason", "because"));
    let command = match state {
        TaskState::Submitted => return,
        TaskState::Working => start(),
        TaskState::Completed => complete(),
        TaskState::Failed => Command::Fail { message: reason },
        TaskState::Canceled => Command::Cancel,
        TaskState::InputRequired => ask("question"),
        TaskState::Rejected => Command::Reject { message: reason },
        TaskState::AuthRequired => Command::RequireAuth {
            message: agent_message("question", "who?"),
            resume_after: Some(Duration::from_secs(1)),
        },
    };
    if matches!(state, TaskState::Completed | TaskState::InputRequired) {
        life.start().await;
        life.work(command).await;
    } else {
        life.give(command).await;
    }
}

/// Context, state and time filter alone and together, and never across scopes.
pub async fn filters_of_lists_hold_alone_and_together(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let lives = many_lives(&test).await;
    let states: Vec<_> = TaskState::ALL.into_iter().map(Some).chain([None]).collect();
    for scope in [scope("", ""), scope("other", ""), scope("", "other")] {
        for context in [None, Some("context-0"), Some("context-2"), Some("nothing")] {
            for state in &states {
                for after in [None, Some(at(100)), Some(at(1003)), Some(at(5000))] {
                    let query = ListQuery {
                        context_id: context.map(context_id),
                        state: *state,
                        status_timestamp_after: after,
                        ..everything(&scope)
                    };
                    check(&**test.store(), &lives, query).await;
                }
            }
        }
    }
}

/// A task whose status is of just that time is in the list, and parts of a millisecond count.
pub async fn status_timestamp_after_is_inclusive(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for millis in 0..4 {
        lives.push(Life::begin(test.store(), &Scope::default(), &format!("at-{millis}"), "context", millis).await);
    }
    let nanos_later = |millis: i64, nanos: u32| {
        let base = at(millis);
        format!("{}.{:09}Z", &base.to_string()[..19], base.nanos() + nanos).parse::<Timestamp>().expect("a time")
    };
    let cases = [
        (Timestamp::MIN, 4),
        (at(-1), 4),
        (nanos_later(-1, 999_999), 4),
        (at(0), 4),
        (nanos_later(0, 1), 3),
        (at(1), 3),
        (nanos_later(1, 500_000), 2),
        (nanos_later(2, 999_999), 1),
        (at(3), 1),
        (nanos_later(3, 1), 0),
        (Timestamp::MAX, 0),
    ];
    for (after, count) in cases {
        for state in [None, Some(TaskState::Submitted)] {
            let query = ListQuery { status_timestamp_after: Some(after), state, ..everything(&Scope::default()) };
            check(&**test.store(), &lives, query.clone()).await;
            assert_eq!(test.store().list(query).await.expect("a page").total, count, "after {after}");
        }
    }
}

/// A walk shows every task that does not change just once and in order, whatever others do meanwhile.
pub async fn walks_see_unchanged_tasks_once(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    for n in 0..16 {
        // Pairs share a status time; a busy task stands between the quiet ones.
        quiet.push(Life::begin(test.store(), &Scope::default(), &format!("quiet-{n:02}"), "context", n / 2 * 10).await);
        if n % 3 == 0 {
            let mut life =
                Life::begin(test.store(), &Scope::default(), &format!("busy-{n:02}"), "context", n / 2 * 10).await;
            life.at(n / 2 * 10).start().await;
            busy.push(life);
        }
    }
    let mut moment = 1000;
    for page_size in 1..=7 {
        let mut query = ListQuery { page_size, ..everything(&Scope::default()) };
        let (mut seen, mut pages) = (Vec::new(), 0);
        loop {
            let page = test.store().list(query.clone()).await.expect("a page");
            assert!(page.tasks.len() == page_size || page.next.is_none(), "only the last page is short");
            seen.extend(page.tasks.into_iter().map(|task| task.id));
            moment += 1;
            let turn = pages % busy.len();
            busy[turn].at(moment).work(progress(&format!("progress-{moment}"))).await;
            if pages % 4 == 0 {
                Life::begin(test.store(), &Scope::default(), &format!("new-{moment}"), "context", pages as i64 * 9)
                    .await;
            }
            pages += 1;
            assert!(pages < 200, "the walk does not end");
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let quiet_seen: Vec<_> = seen.iter().filter(|id| id.starts_with("quiet")).map(String::as_str).collect();
        assert_eq!(quiet_seen, expected(&quiet, &everything(&Scope::default())), "pages of {page_size}");
    }
}

/// The total is exact for every filter after every change.
pub async fn totals_are_exact_after_many_transitions(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = many_lives(&test).await;
    for round in 0..6_i64 {
        for (n, life) in lives.iter_mut().enumerate() {
            life.at(2000 + round * 10 + n as i64 % 3);
            if let Some(command) = next_command(life, round + n as i64) {
                life.give(command).await;
            }
        }
        check_totals(&**test.store(), &lives).await;
    }
}

/// Something that the state allows; nothing for a task that has ended.
fn next_command(life: &Life, turn: i64) -> Option<Command> {
    let message = || agent_message(&format!("agent-{turn}"), "so");
    match life.head.state {
        TaskState::Submitted => Some(start()),
        TaskState::Working => Some(match turn % 5 {
            0 => Command::RequireInput { message: message() },
            1 => Command::RequireAuth { message: message(), resume_after: None },
            2 => reply(&format!("user-{turn}")),
            3 => progress(&format!("progress-{turn}")),
            _ => Command::Complete { message: Some(message()) },
        }),
        TaskState::InputRequired | TaskState::AuthRequired => {
            Some(if turn % 7 == 0 { Command::Cancel } else { reply(&format!("user-{turn}")) })
        }
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => None,
    }
}

async fn check_totals(store: &dyn Store, lives: &[Life]) {
    let mut totals: BTreeMap<_, u64> = BTreeMap::new();
    for life in lives {
        for context in [None, Some(life.head.context_id.clone())] {
            for state in [None, Some(life.head.state.number())] {
                *totals.entry((life.scope.clone(), context.clone(), state)).or_default() += 1;
            }
        }
    }
    for scope in [scope("", ""), scope("other", "")] {
        for context in
            [None, Some("context-0"), Some("context-1"), Some("context-2")].map(|context| context.map(context_id))
        {
            for state in TaskState::ALL.into_iter().map(Some).chain([None]) {
                let query = ListQuery { context_id: context.clone(), state, page_size: 1, ..everything(&scope) };
                let key = (scope.clone(), context.clone(), state.map(TaskState::number));
                let total = totals.get(&key).copied().unwrap_or_default();
                assert_eq!(store.list(query.clone()).await.expect("a page").total, total, "{query:?}");
            }
        }
    }
}

/// Each task comes with as much history as asked for, and with artifacts only when asked for.
pub async fn lists_bring_what_is_asked_for(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for n in 0..5 {
        let mut life = Life::begin(test.store(), &Scope::default(), &format!("task-{n}"), "context", n).await;
        life.at(10 + n).start().await;
        for step in 0..n {
            life.work(progress(&format!("progress-{step}"))).await;
            life.add(piece("a", "x", step > 0)).await;
        }
        lives.push(life);
    }
    for history in [HistoryLimit::All, HistoryLimit::Latest(0), HistoryLimit::Latest(2)] {
        for artifacts in [false, true] {
            let query = ListQuery { history, artifacts, ..everything(&Scope::default()) };
            let page = test.store().list(query).await.expect("a page");
            let expected = lives.iter().rev().map(|life| life.model.task(life.head.last_sequence, history, artifacts));
            assert_eq!(page.tasks, expected.collect::<Vec<_>>(), "{history:?}, {artifacts}");
        }
    }
}
