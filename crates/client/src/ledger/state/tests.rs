use proptest::prelude::*;

use super::*;

fn note(text: &str) -> Note {
    Note::new(text)
}

fn id(id: &str) -> String {
    id.to_owned()
}

fn settled(end: End, task_id: Option<&str>) -> State {
    State::Settled { end, task_id: task_id.map(str::to_owned), text: note("") }
}

/// The states of the table, by the name of their row: `t` is the task that is known.
fn state(name: &str) -> State {
    let task_id = id("t");
    match name {
        "new" => State::Prepared { task_id: None },
        "reply" => State::Prepared { task_id: Some(task_id) },
        "accepted" => State::Accepted { task_id },
        "question" => State::Question { task_id, text: note("") },
        "auth" => State::Authorization { task_id, text: note("") },
        "unknown" => State::Unknown { task_id },
        "unc-new" => State::Uncertain { task_id: None, why: note("") },
        "unc-reply" => State::Uncertain { task_id: Some(task_id), why: note("") },
        "lost" => State::Lost { task_id, why: note("") },
        "completed" => settled(End::Completed, Some("t")),
        "failed" => settled(End::Failed, Some("t")),
        "canceled" => settled(End::Canceled, Some("t")),
        "rejected" => settled(End::Rejected, Some("t")),
        "answered" => settled(End::Answered, None),
        "refused" => settled(End::Refused, None),
        "abandoned" => settled(End::Abandoned, Some("t")),
        "aband-new" => settled(End::Abandoned, None),
        other => panic!("{other}"),
    }
}

fn told(stands: Stands) -> Event {
    Event::Told { task_id: id("t"), stands }
}

/// The columns of the table.
fn events() -> Vec<Event> {
    vec![
        Event::Sending,
        told(Stands::Running),
        told(Stands::Question(note(""))),
        told(Stands::Authorization(note(""))),
        told(Stands::Unknown),
        told(Stands::Ended(TaskEnd::Completed, note(""))),
        told(Stands::Ended(TaskEnd::Rejected, note(""))),
        Event::Answered { text: note("") },
        Event::Refused { error: note("") },
        Event::NotFound { error: note("") },
        Event::Unresolved { why: note("") },
        Event::Reply,
        Event::SendAgain,
        Event::Adopt { task_id: id("t") },
        Event::Abandon { why: note("") },
    ]
}

/// `-` is not allowed, `=` changes nothing.
#[rustfmt::skip]
const TABLE: [(&str, [&str; 15]); 17] = [
    // state      send  run         question    auth    unknown    completed    rejected    answered    refused     notfound unresolved   reply    again    adopt       abandon
    ("new",       ["=", "accepted", "question", "auth", "unknown", "completed", "rejected", "answered", "refused",  "-",     "unc-new",   "-",     "-",     "accepted", "aband-new"]),
    ("reply",     ["=", "accepted", "question", "auth", "unknown", "completed", "rejected", "accepted", "accepted", "lost",  "unc-reply", "-",     "-",     "-",        "abandoned"]),
    ("accepted",  ["-", "=",        "question", "auth", "unknown", "completed", "rejected", "-",        "-",        "lost",  "-",         "reply", "-",     "-",        "abandoned"]),
    ("question",  ["-", "accepted", "=",        "auth", "unknown", "completed", "rejected", "-",        "-",        "lost",  "-",         "reply", "-",     "-",        "abandoned"]),
    ("auth",      ["-", "accepted", "question", "=",    "unknown", "completed", "rejected", "-",        "-",        "lost",  "-",         "reply", "-",     "-",        "abandoned"]),
    ("unknown",   ["-", "accepted", "question", "auth", "=",       "completed", "rejected", "-",        "-",        "lost",  "-",         "-",     "-",     "-",        "abandoned"]),
    ("unc-new",   ["-", "accepted", "question", "auth", "unknown", "completed", "rejected", "answered", "-",        "-",     "=",         "-",     "new",   "accepted", "aband-new"]),
    ("unc-reply", ["-", "accepted", "question", "auth", "unknown", "completed", "rejected", "accepted", "-",        "lost",  "=",         "-",     "reply", "-",        "abandoned"]),
    ("lost",      ["-", "accepted", "question", "auth", "unknown", "completed", "rejected", "-",        "-",        "=",     "-",         "-",     "-",     "-",        "abandoned"]),
    ("completed", ["-", "-",        "-",        "-",    "-",       "=",         "-",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("failed",    ["-", "-",        "-",        "-",    "-",       "-",         "-",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("canceled",  ["-", "-",        "-",        "-",    "-",       "-",         "-",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("rejected",  ["-", "-",        "-",        "-",    "-",       "-",         "=",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("answered",  ["-", "-",        "-",        "-",    "-",       "-",         "-",        "=",        "-",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("refused",   ["-", "-",        "-",        "-",    "-",       "-",         "-",        "-",        "=",        "-",     "-",         "-",     "-",     "-",        "-"]),
    ("abandoned", ["-", "-",        "-",        "-",    "-",       "-",         "-",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "="]),
    ("aband-new", ["-", "-",        "-",        "-",    "-",       "-",         "-",        "-",        "-",        "-",     "-",         "-",     "-",     "-",        "="]),
];

#[test]
fn each_state_allows_what_the_table_says() {
    for (from, row) in TABLE {
        for (event, wanted) in events().iter().zip(row) {
            let made = transition(&state(from), event);
            let fits = match wanted {
                "-" => made.is_err(),
                "=" => made == Ok(Step::Stays),
                to => made == Ok(Step::Moves(state(to))),
            };
            assert!(fits, "{from} + {}: {made:?}, not {wanted}", event.name());
        }
    }
}

#[test]
fn news_of_another_task_is_refused_in_every_state_that_has_one() {
    let event = Event::Told { task_id: id("other"), stands: Stands::Running };
    for (name, _) in TABLE {
        let from = state(name);
        let made = transition(&from, &event);
        match &from {
            State::Settled { .. } => assert!(matches!(made, Err(NotAllowed::Settled(_))), "{name}"),
            open if open.task_id().is_some() => {
                assert_eq!(made, Err(NotAllowed::OtherTask { known: id("t"), told: id("other") }), "{name}");
            }
            _ => assert_eq!(made, Ok(Step::Moves(State::Accepted { task_id: id("other") })), "{name}"),
        }
    }
}

#[test]
fn the_end_of_another_task_is_not_the_same_end() {
    let event = Event::Told { task_id: id("other"), stands: Stands::Ended(TaskEnd::Completed, note("")) };
    assert!(transition(&state("completed"), &event).is_err());
}

#[test]
fn another_question_is_a_change_and_the_same_one_is_none() {
    let asks = |text: &str| told(Stands::Question(note(text)));
    let asked = State::Question { task_id: id("t"), text: note("which one?") };
    assert_eq!(transition(&asked, &asks("which one?")), Ok(Step::Stays));
    let next = State::Question { task_id: id("t"), text: note("how many?") };
    assert_eq!(transition(&asked, &asks("how many?")), Ok(Step::Moves(next)));
}

#[test]
fn a_kind_is_read_as_it_is_written() {
    for kind in StateKind::ALL.iter().copied() {
        assert_eq!(StateKind::from_code(kind.code()), Some(kind));
        assert_eq!(StateKind::from_name(kind.name()), Some(kind));
        assert_eq!(kind.end().map(StateKind::from), kind.end().is_some().then_some(kind));
    }
    assert_eq!((StateKind::from_code(0), StateKind::from_code(15), StateKind::from_name("done")), (None, None, None));
}

#[test]
fn the_numbers_of_kinds_tell_open_and_settled_ones_apart() {
    for (name, _) in TABLE {
        let state = state(name);
        assert_eq!(state.is_open(), state.kind().code() <= 5, "{name}");
        assert_eq!(!state.is_settled(), state.kind().code() <= 7, "{name}");
        assert_eq!(state.is_settled(), state.kind().end().is_some(), "{name}");
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let task = prop::sample::select(vec!["t", "t", "t", "u"]).prop_map(str::to_owned);
    let word = prop::sample::select(vec!["", "a", "b"]);
    (prop::sample::select(events()), task, word).prop_map(|(event, task_id, word)| match event {
        Event::Told { stands, .. } => {
            let stands = match stands {
                Stands::Question(_) => Stands::Question(note(word)),
                Stands::Authorization(_) => Stands::Authorization(note(word)),
                Stands::Ended(end, _) => Stands::Ended(end, note(word)),
                other => other,
            };
            Event::Told { task_id, stands }
        }
        Event::Adopt { .. } => Event::Adopt { task_id },
        other => other,
    })
}

proptest! {
    #[test]
    fn a_task_once_known_stays_known_and_an_end_stays_an_end(events in prop::collection::vec(any_event(), 0..40)) {
        let mut now = State::Prepared { task_id: None };
        for event in events {
            match transition(&now, &event) {
                Ok(Step::Moves(next)) => {
                    prop_assert!(!now.is_settled(), "{now:?} became {next:?}");
                    prop_assert_ne!(&now, &next);
                    if now.task_id().is_some() {
                        prop_assert_eq!(now.task_id(), next.task_id());
                    }
                    now = next;
                }
                Ok(Step::Stays) => {}
                Err(refused) => {
                    if now.is_settled() {
                        prop_assert_eq!(refused, NotAllowed::Settled(now.kind()));
                    } else {
                        prop_assert!(!matches!(refused, NotAllowed::Settled(_)));
                    }
                }
            }
        }
        // Whatever happened, a person can end it.
        if !now.is_settled() {
            let ended = transition(&now, &Event::Abandon { why: note("") });
            let is_ended = matches!(ended, Ok(Step::Moves(State::Settled { end: End::Abandoned, .. })));
            prop_assert!(is_ended);
        }
    }
}
