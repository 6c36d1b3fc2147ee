//! What becomes of an entry.

use std::time::Duration;

use longhaul_client::Outcome;
use longhaul_client::ledger::{
    Deadline, Decision, End, Filter, Kept, Ledger, LedgerError, ListQuery, NewEntry, News, NotAllowed, State, StateKind,
};
use longhaul_protocol::{TaskState, wire};

use super::support::*;

async fn lines(ledger: &Ledger, id: longhaul_client::ledger::EntryId) -> Vec<(String, StateKind, String)> {
    let happenings = ledger.history(id, 0, 100).await.unwrap();
    assert!(happenings.iter().zip(1..).all(|(happening, wanted)| happening.sequence == wanted));
    happenings.into_iter().map(|happening| (happening.what, happening.state, happening.detail)).collect()
}

fn line(what: &str, state: StateKind, detail: &str) -> (String, StateKind, String) {
    (what.to_owned(), state, detail.to_owned())
}

#[tokio::test]
async fn what_was_prepared_is_there_when_the_file_is_opened_again() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let deadline = Some(Deadline::Quiet(Duration::from_secs(60)));
    let held = ledger.prepare(NewEntry { deadline, ..new("m1") }, &follower("first"), at(0)).await.unwrap();
    assert_eq!(held.entry.state, State::Prepared { task_id: None });
    assert_eq!((held.entry.message_id.as_str(), held.entry.attempts, held.entry.version), ("m1", 0, 1));
    assert_eq!(held.entry.alarm_at, Some(at(60)));
    ledger.close().await.unwrap();
    let ledger = folder.open().await;
    assert_eq!(ledger.get(held.entry.id).await.unwrap(), held.entry);
    assert_eq!(ledger.request(held.entry.id).await.unwrap(), request("m1", ""));
    assert_eq!(ledger.outcome(held.entry.id).await.unwrap(), None);
    assert_eq!(lines(&ledger, held.entry.id).await, [line("prepared", StateKind::Prepared, "")]);
}

#[tokio::test]
async fn a_delegation_with_a_question_is_told_from_its_start_to_its_end() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let (id, claim) = (held.entry.id, held.claim);
    let record = |news, seconds| {
        let (ledger, claim) = (ledger.clone(), claim.clone());
        async move { ledger.record(&claim, news, at(seconds)).await.unwrap() }
    };
    assert_eq!(record(News::Sending, 1).await.attempts, 1);
    assert_eq!(record(News::Sending, 2).await.attempts, 2);
    let entry = record(told("t", TaskState::Working, ""), 3).await;
    assert_eq!((entry.state.kind(), entry.since, entry.last_heard_at), (StateKind::Accepted, at(3), Some(at(3))));
    assert_eq!((entry.context_id.as_deref(), entry.kept), (Some("of the agent"), Kept::Nothing));
    let entry = record(News::Heard { last_event_id: Some("7".to_owned()) }, 4).await;
    assert_eq!((entry.since, entry.last_heard_at, entry.last_event_id.as_deref()), (at(3), Some(at(4)), Some("7")));
    let entry = record(told("t", TaskState::InputRequired, "which airport?"), 5).await;
    assert!(entry.needs_person() && entry.kept == Kept::Whole);
    assert_eq!(ledger.outcome(id).await.unwrap(), Some(outcome("t", TaskState::InputRequired, "which airport?")));
    let entry = ledger.reply(&claim, &request("m2", "t"), at(6)).await.unwrap();
    assert_eq!(entry.state, State::Prepared { task_id: Some("t".to_owned()) });
    assert_eq!((entry.message_id.as_str(), entry.attempts, entry.needs_person()), ("m2", 0, false));
    assert_eq!(ledger.request(id).await.unwrap(), request("m2", "t"));
    assert_eq!(ledger.outcome(id).await.unwrap(), None);
    record(News::Sending, 7).await;
    let entry = record(told("t", TaskState::Completed, "booked"), 8).await;
    assert_eq!(entry.state.kind().end(), Some(End::Completed));
    assert_eq!((entry.claimed, entry.state.text(), entry.state.task_id()), (None, "booked", Some("t")));
    assert_eq!(ledger.outcome(id).await.unwrap(), Some(outcome("t", TaskState::Completed, "booked")));
    let wanted = [
        line("prepared", StateKind::Prepared, ""),
        line("sending", StateKind::Prepared, "attempt 1"),
        line("sending", StateKind::Prepared, "attempt 2"),
        line("accepted", StateKind::Accepted, ""),
        line("question", StateKind::Question, "which airport?"),
        line("reply", StateKind::Prepared, ""),
        line("sending", StateKind::Prepared, "attempt 1"),
        line("completed", StateKind::Completed, "booked"),
    ];
    assert_eq!(lines(&ledger, id).await, wanted);
}

#[tokio::test]
async fn what_is_settled_never_changes() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let settled = ledger.record(&held.claim, told("t", TaskState::Failed, "no seats"), at(1)).await.unwrap();
    // The same end again comes from a stream and a question at once.
    let again = ledger.record(&held.claim, told("t", TaskState::Failed, "none at all"), at(2)).await.unwrap();
    assert_eq!(again, settled);
    for news in [
        told("t", TaskState::Completed, ""),
        told("t", TaskState::Working, ""),
        News::Sending,
        News::Heard { last_event_id: None },
        News::NotFound { error: "gone".to_owned() },
    ] {
        let refused = ledger.record(&held.claim, news, at(3)).await.unwrap_err();
        assert!(matches!(refused, LedgerError::NotAllowed { source: NotAllowed::Settled(StateKind::Failed), .. }));
    }
    let (id, version) = (settled.id, settled.version);
    for decision in [Decision::SendAgain, Decision::Alarm { why: String::new() }] {
        let refused = ledger.decide(id, version, decision, at(3)).await.unwrap_err();
        assert!(matches!(refused, LedgerError::NotAllowed { .. }));
    }
    assert_eq!(ledger.get(id).await.unwrap(), settled);
    assert_eq!(ledger.outcome(id).await.unwrap(), Some(outcome("t", TaskState::Failed, "no seats")));
    assert_eq!(lines(&ledger, id).await.len(), 2);
}

#[tokio::test]
async fn an_answer_without_a_task_and_a_refusal_settle_it() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let message =
        wire::Message { message_id: "a".to_owned(), parts: vec![wire::Part::text("42")], ..wire::Message::default() };
    let answered = Outcome::Answered(Box::new(message));
    let news = News::Told { outcome: Box::new(answered.clone()), last_event_id: None };
    let entry = ledger.record(&held.claim, news, at(1)).await.unwrap();
    assert_eq!((entry.state.kind(), entry.state.text()), (StateKind::Answered, "42"));
    assert_eq!(ledger.outcome(entry.id).await.unwrap(), Some(answered));
    let held = prepare(&ledger, "m2").await;
    let refusal = News::Refused { error: "InvalidParamsError: no".to_owned() };
    let entry = ledger.record(&held.claim, refusal, at(1)).await.unwrap();
    assert_eq!((entry.state.kind(), entry.state.text()), (StateKind::Refused, "InvalidParamsError: no"));
    assert_eq!(ledger.outcome(entry.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_refused_reply_leaves_the_task_and_its_error_in_the_history() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    ledger.record(&held.claim, told("t", TaskState::InputRequired, "which?"), at(1)).await.unwrap();
    ledger.reply(&held.claim, &request("m2", "t"), at(2)).await.unwrap();
    let entry = ledger.record(&held.claim, News::Refused { error: "bad".to_owned() }, at(3)).await.unwrap();
    assert_eq!(entry.state, State::Accepted { task_id: "t".to_owned() });
    assert_eq!(lines(&ledger, entry.id).await.pop(), Some(line("refused", StateKind::Accepted, "bad")));
}

#[tokio::test]
async fn a_reply_names_the_task_that_it_goes_on_with() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let refused = ledger.reply(&held.claim, &request("m2", "t"), at(1)).await.unwrap_err();
    assert_eq!(refused.to_string(), "the reply has no task that it could go on with");
    ledger.record(&held.claim, told("t", TaskState::InputRequired, "which?"), at(1)).await.unwrap();
    for task_id in ["", "other"] {
        let refused = ledger.reply(&held.claim, &request("m2", task_id), at(2)).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Invalid { field: "the reply", .. }), "{refused}");
    }
    assert_eq!(ledger.request(held.entry.id).await.unwrap(), request("m1", ""));
}

#[tokio::test]
async fn an_attempt_that_was_not_sent_counts_no_more() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m").await;
    let not_sent = || News::NotSent { error: "connection refused".to_owned() };
    let early = ledger.record(&held.claim, not_sent(), at(1)).await.unwrap_err();
    assert!(matches!(early, LedgerError::NotAllowed { source: NotAllowed::NotNow { .. }, .. }), "{early}");
    for (news, attempts) in
        [(News::Sending, 1), (not_sent(), 0), (News::Sending, 1), (News::Sending, 2), (not_sent(), 1)]
    {
        assert_eq!(ledger.record(&held.claim, news, at(2)).await.unwrap().attempts, attempts);
    }
    let entry = ledger.record(&held.claim, told("t", TaskState::Working, ""), at(3)).await.unwrap();
    assert_eq!((entry.attempts, entry.last_heard_at), (1, Some(at(3))), "what was not sent was not heard either");
    assert!(ledger.record(&held.claim, not_sent(), at(4)).await.is_err());
    let lines = ledger.history(entry.id, 0, 100).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.what == "not sent").count(), 2);
}

#[tokio::test]
async fn a_lost_answer_is_for_a_person_to_decide() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let mut ends = Vec::new();
    for decision in [
        Decision::SendAgain,
        Decision::Adopt { task_id: "t".to_owned() },
        Decision::Abandon { why: "not worth it".to_owned() },
    ] {
        let held = prepare(&ledger, "m").await;
        let news = News::Unresolved { why: "no task has message m".to_owned() };
        let entry = ledger.record(&held.claim, news, at(1)).await.unwrap();
        assert!(entry.needs_person() && !entry.state.is_open());
        let stale = ledger.decide(entry.id, entry.version - 1, decision.clone(), at(2)).await.unwrap_err();
        assert!(matches!(stale, LedgerError::Conflict { expected: 1, found: 2, .. }), "{stale}");
        let entry = ledger.decide(entry.id, entry.version, decision, at(2)).await.unwrap();
        assert!(!entry.needs_person());
        ends.push((entry.state.kind(), entry.state.text().to_owned()));
    }
    let wanted = [(StateKind::Prepared, ""), (StateKind::Accepted, ""), (StateKind::Abandoned, "not worth it")];
    assert_eq!(ends, wanted.map(|(kind, text)| (kind, text.to_owned())));
}

#[tokio::test]
async fn a_task_that_the_agent_forgot_is_not_forgotten_here() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m").await;
    ledger.record(&held.claim, told("t", TaskState::Working, ""), at(1)).await.unwrap();
    let lost =
        ledger.record(&held.claim, News::NotFound { error: "TaskNotFoundError".to_owned() }, at(2)).await.unwrap();
    assert_eq!(
        lost.state,
        State::Lost { task_id: "t".to_owned(), why: longhaul_client::ledger::Note::new("TaskNotFoundError") }
    );
    let listed =
        ledger.list(ListQuery { filter: Filter::NeedsPerson, limit: 10, ..ListQuery::default() }).await.unwrap();
    assert_eq!(listed.entries, [lost]);
    assert!(matches!(ledger.remove(held.entry.id).await, Err(LedgerError::NotSettled { .. })));
    // And it may be found again.
    let entry = ledger.record(&held.claim, told("t", TaskState::Completed, ""), at(3)).await.unwrap();
    assert_eq!(entry.state.kind(), StateKind::Completed);
}

#[tokio::test]
async fn a_moment_that_passes_raises_one_alarm_until_someone_has_seen_it() {
    let folder = Folder::new();
    let (one, other) = (folder.open().await, folder.open().await);
    let due = NewEntry { deadline: Some(Deadline::At(at(100))), ..new("m1") };
    let held = one.prepare(due, &follower("first"), at(0)).await.unwrap();
    let settled = NewEntry { deadline: Some(Deadline::At(at(100))), ..new("m2") };
    let settled = one.prepare(settled, &follower("first"), at(0)).await.unwrap();
    one.record(&settled.claim, told("t2", TaskState::Completed, ""), at(1)).await.unwrap();
    one.record(&held.claim, told("t1", TaskState::Working, ""), at(99)).await.unwrap();
    assert!(one.due_alarms(at(99), 10).await.unwrap().entries.is_empty());
    assert_eq!(one.due_alarms(at(100), 10).await.unwrap().entries.len(), 1);
    let (first, second) = tokio::join!(one.raise_alarms(at(100), 10), other.raise_alarms(at(100), 10));
    let raised: Vec<_> = [first, second].into_iter().flat_map(|page| page.unwrap().entries).collect();
    let [entry] = &raised[..] else { panic!("{raised:?}") };
    assert_eq!((entry.id, entry.alarmed_at, entry.needs_person()), (held.entry.id, Some(at(100)), true));
    let seen = one.decide(entry.id, entry.version, Decision::Acknowledge, at(101)).await.unwrap();
    assert!(!seen.needs_person() && seen.acknowledged_at == Some(at(101)));
    one.record(&held.claim, News::Heard { last_event_id: None }, at(102)).await.unwrap();
    assert!(one.raise_alarms(at(1000), 10).await.unwrap().entries.is_empty());
    let texts: Vec<_> =
        lines(&one, entry.id).await.into_iter().skip(2).map(|(what, _, detail)| (what, detail)).collect();
    let why = format!("not settled by {}", at(100));
    assert_eq!(texts, [("alarm".to_owned(), why), ("acknowledged".to_owned(), String::new())]);
}

#[tokio::test]
async fn silence_raises_an_alarm_each_time_that_it_lasts_too_long() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let quiet = NewEntry { deadline: Some(Deadline::Quiet(Duration::from_secs(10))), ..new("m1") };
    let held = ledger.prepare(quiet, &follower("first"), at(0)).await.unwrap();
    let raised = async |seconds| ledger.raise_alarms(at(seconds), 10).await.unwrap().entries.len();
    assert_eq!((raised(9).await, raised(10).await, raised(11).await), (0, 1, 0));
    let entry = ledger.record(&held.claim, told("t", TaskState::Working, ""), at(20)).await.unwrap();
    assert!(!entry.needs_person(), "it is heard again");
    assert_eq!((raised(29).await, raised(30).await), (0, 1));
    ledger.record(&held.claim, told("t", TaskState::InputRequired, "which?"), at(40)).await.unwrap();
    assert_eq!(raised(10_000).await, 0, "the silence is the caller's");
    ledger.reply(&held.claim, &request("m2", "t"), at(20_000)).await.unwrap();
    assert_eq!((raised(20_009).await, raised(20_010).await), (0, 1));
}

#[tokio::test]
async fn an_alarm_can_be_raised_for_any_reason() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let entry = ledger.record(&held.claim, told("t", TaskState::Working, ""), at(1)).await.unwrap();
    let why = "its state has been unknown for an hour".to_owned();
    let entry = ledger.decide(entry.id, entry.version, Decision::Alarm { why: why.clone() }, at(2)).await.unwrap();
    assert!(entry.needs_person());
    assert_eq!(lines(&ledger, entry.id).await.pop(), Some(line("alarm", StateKind::Accepted, &why)));
}

#[tokio::test]
async fn what_was_seen_counts_until_it_stands_otherwise() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let asked = ledger.record(&held.claim, told("t", TaskState::InputRequired, "which?"), at(1)).await.unwrap();
    ledger.decide(asked.id, asked.version, Decision::Acknowledge, at(2)).await.unwrap();
    let same = ledger.record(&held.claim, told("t", TaskState::InputRequired, "which?"), at(3)).await.unwrap();
    assert_eq!((same.acknowledged_at, same.needs_person()), (Some(at(2)), true), "it still waits for an answer");
    let other = ledger.record(&held.claim, told("t", TaskState::InputRequired, "how many?"), at(4)).await.unwrap();
    assert_eq!(other.acknowledged_at, None);
}

#[tokio::test]
async fn what_is_too_long_or_missing_is_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let too_long = NewEntry { purpose: "x".repeat(NewEntry::PURPOSE_BYTES_MAX + 1), ..new("m") };
    let mut no_card = new("m");
    no_card.route.card = String::new();
    let no_message = NewEntry { request: wire::SendMessageRequest::default(), ..new("m") };
    let mut huge = new("m");
    let part = wire::Part::text("x".repeat(NewEntry::REQUEST_BYTES_MAX));
    huge.request.message.as_mut().unwrap().parts.push(part);
    for (entry, field) in [
        (too_long, "the purpose"),
        (no_card, "the card's URL"),
        (no_message, "the request"),
        (new(""), "the message's id"),
        (huge, "the request"),
    ] {
        let refused = ledger.prepare(entry, &follower("first"), at(0)).await.unwrap_err();
        let LedgerError::Invalid { field: found, .. } = refused else { panic!("{refused}") };
        assert_eq!(found, field);
    }
    assert!(ledger.counts().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_history_keeps_its_first_and_its_newest_lines() {
    let folder = Folder::new();
    let ledger = folder.open().await;
    let held = prepare(&ledger, "m1").await;
    let most = longhaul_client::ledger::HISTORY_MAX;
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {most})
         INSERT INTO history SELECT number, i, 0, 'x', 1, '' FROM entry, n; UPDATE entry SET happenings = {most};"
    );
    folder.raw().execute_batch(&fill).unwrap();
    for attempt in 0..3 {
        ledger.record(&held.claim, News::Sending, at(attempt)).await.unwrap();
    }
    let kept: Vec<i64> = {
        let raw = folder.raw();
        let mut rows = raw.prepare("SELECT sequence FROM history ORDER BY sequence").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let wanted: Vec<i64> = (1..=100).chain(104..=most + 3).collect();
    assert_eq!(kept, wanted);
}
