//! How entries are written. Their JSON is described in docs/cli.md, and stays as it is.

use longhaul_client::Outcome;
use longhaul_client::ledger::{Deadline, Entry, Happening, Kept, Route, State};
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::to_json;
use longhaul_protocol::wire::Task;
use serde_json::{Value, json};

use crate::caller::render::{self, Detail, Page, message};
use crate::caller::session::Session;

use super::now;

/// One line of a list.
pub fn line(page: &mut Page, entry: &Entry) {
    let mut words = vec![entry.id.to_string(), state(entry), entry.created_at.to_string(), entry.route.card.clone()];
    words.extend(entry.state.task_id().map(|id| format!("task {id}")));
    words.extend((!entry.purpose.is_empty()).then(|| format!("{:?}", entry.purpose)));
    page.field("Entry", words.join(", "));
}

/// The state in words, with what a person should know.
fn state(entry: &Entry) -> String {
    let name = entry.state.kind().name();
    match entry.alarmed_at {
        Some(_) if entry.needs_person() && !entry.state.waits_for_person() => format!("{name} (alarm)"),
        Some(_) | None => name.to_owned(),
    }
}

/// What a person has to know about it.
pub fn short(page: &mut Page, entry: &Entry) {
    page.field("Entry", entry.id);
    page.field("State", state(entry));
    page.field_if("Purpose", &entry.purpose);
    page.field("Agent", &entry.route.card);
    page.field_if("Task", entry.state.task_id().unwrap_or_default());
    page.field_if("Context", entry.context_id.as_deref().unwrap_or_default());
    page.field_if("Said", entry.state.text());
}

/// All of it, but for what the agent told and what happened.
pub fn whole(page: &mut Page, entry: &Entry) {
    short(page, entry);
    page.field(
        "Interface",
        format_args!("{} {} {}", entry.route.binding, entry.route.protocol_version, entry.route.interface_url),
    );
    page.field_if("Tenant", &entry.route.tenant);
    page.field("Message ID", &entry.message_id);
    page.field("Written down", entry.created_at);
    page.field("Since", entry.since);
    page.field_if("Last heard", &entry.last_heard_at.map(|at| at.to_string()).unwrap_or_default());
    page.field("Attempts", entry.attempts);
    match entry.deadline {
        Some(Deadline::Quiet(longest)) => {
            page.field("Alarm", format_args!("after {} s of silence", longest.as_secs_f64()))
        }
        Some(Deadline::At(moment)) => page.field("Alarm", format_args!("at {moment}")),
        None => {}
    }
    page.field_if("Alarm raised", &entry.alarmed_at.map(|at| at.to_string()).unwrap_or_default());
    page.field_if("Acknowledged", &entry.acknowledged_at.map(|at| at.to_string()).unwrap_or_default());
    if let Some(claimed) = entry.claimed.as_ref().filter(|_| entry.is_claimed(now())) {
        page.field("Followed by", format_args!("{}, until {} unless that is renewed", claimed.by, claimed.until));
    }
}

/// What a person does next about it.
pub fn next(session: &Session, entry: &Entry) -> Option<String> {
    let command = |words: &str| session.options.continuation.ledger(words);
    let id = entry.id;
    let is_alarmed = entry.needs_person() && !entry.state.waits_for_person();
    match &entry.state {
        _ if is_alarmed => {
            Some(format!("say that you saw the alarm: {}", command(&format!("resolve acknowledge {id}"))))
        }
        State::Question { .. } => Some(format!("{} \"<reply>\"", command(&format!("answer {id}")))),
        State::Authorization { .. } => Some(format!(
            "give it as the agent says, then {}; or by a message: {} \"<reply>\"",
            command("recover"),
            command(&format!("answer {id}"))
        )),
        State::Uncertain { .. } => Some(format!(
            "look with the agent whether it acted; then {}, or {}, or {}",
            command(&format!("resolve send-again {id}")),
            command(&format!("resolve adopt {id} --task <task>")),
            command(&format!("resolve abandon {id}"))
        )),
        State::Lost { .. } => {
            Some(format!("ask whoever runs the agent; {} gives it up", command(&format!("resolve abandon {id}"))))
        }
        State::Prepared { .. } | State::Accepted { .. } | State::Unknown { .. } if !entry.is_claimed(now()) => {
            Some(command("recover"))
        }
        State::Prepared { .. } | State::Accepted { .. } | State::Unknown { .. } | State::Settled { .. } => None,
    }
}

/// An entry for programs.
pub fn json(entry: &Entry) -> Value {
    let time = |at: Option<longhaul_protocol::Timestamp>| at.map(|at| at.to_string());
    let deadline = match entry.deadline {
        Some(Deadline::At(moment)) => json!({ "at": moment.to_string() }),
        Some(Deadline::Quiet(longest)) => {
            json!({ "quietMillis": u64::try_from(longest.as_millis()).unwrap_or(u64::MAX) })
        }
        None => Value::Null,
    };
    let followed = entry.claimed.as_ref().filter(|_| entry.is_claimed(now()));
    json!({
        "id": entry.id.to_string(),
        "state": entry.state.kind().name(),
        "needsPerson": entry.needs_person(),
        "purpose": entry.purpose,
        "agent": route(&entry.route),
        "messageId": entry.message_id,
        "contextId": entry.context_id,
        "taskId": entry.state.task_id(),
        "text": entry.state.text(),
        "createdAt": entry.created_at.to_string(),
        "since": entry.since.to_string(),
        "lastHeardAt": time(entry.last_heard_at),
        "attempts": entry.attempts,
        "deadline": deadline,
        "alarmAt": time(entry.alarm_at),
        "alarmedAt": time(entry.alarmed_at),
        "acknowledgedAt": time(entry.acknowledged_at),
        "followedBy": followed.map(|claimed| json!({ "name": claimed.by.as_str(), "until": claimed.until.to_string() })),
        "kept": match entry.kept { Kept::Nothing => "nothing", Kept::Whole => "whole", Kept::Trimmed => "trimmed" },
        "version": entry.version,
    })
}

/// The way to an agent for programs.
pub fn route(route: &Route) -> Value {
    json!({
        "card": route.card,
        "interfaceUrl": route.interface_url,
        "binding": route.binding,
        "protocolVersion": route.protocol_version,
        "tenant": route.tenant,
    })
}

/// A line of the history for programs.
pub fn happening(happening: &Happening) -> Value {
    json!({
        "sequence": happening.sequence,
        "at": happening.at.to_string(),
        "what": happening.what,
        "state": happening.state.name(),
        "detail": happening.detail,
    })
}

/// A line of the history for people.
pub fn write_happening(page: &mut Page, happening: &Happening) {
    let detail = if happening.detail.is_empty() { String::new() } else { format!(": {}", happening.detail) };
    page.field("Happened", format_args!("{}, {}{detail}", happening.at, happening.what));
}

/// What the agent told.
pub fn outcome(session: &Session, page: &mut Page, outcome: &Outcome) {
    if let Outcome::Answered(said) = outcome {
        message(page, said, session.options.detail);
    }
    if let Some(task) = outcome.task() {
        let mut shown = Task::clone(task);
        if session.options.detail == Detail::Concise {
            shown.history.clear();
        }
        render::task(page, &shown, session.options.detail);
    }
}

/// A message of the protocol as a value.
pub fn proto<T: ProtoJson>(message: &T) -> Value {
    // What was written as JSON reads as JSON.
    serde_json::from_slice(&to_json(message)).unwrap_or_default()
}
