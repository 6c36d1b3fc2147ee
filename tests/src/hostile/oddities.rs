//! Streams and answers that look odd and are right.

use serde_json::{Value, json};

use super::agent::{CONTEXT_ID, TASK_ID, item, reply, status_update, task};
use super::{Asked, Script};

const UPDATES: [&str; 3] = ["héllo ", "€ and \u{1d11e}, ", "in lines:\nand\u{2028}done"];

/// The stream that each [`Oddity`] carries: the task, submitted; working; an artifact in three pieces, with characters of
/// two, three and four bytes; completed.
#[must_use]
pub fn items() -> Vec<Value> {
    let mut items = vec![json!({"task": task("TASK_STATE_SUBMITTED")}), status_update("TASK_STATE_WORKING")];
    for (index, text) in UPDATES.iter().enumerate() {
        let artifact = json!({"artifactId": "text", "parts": [{"text": text}]});
        let (append, last) = (index > 0, index + 1 == UPDATES.len());
        items.push(json!({"artifactUpdate": {"taskId": TASK_ID, "contextId": CONTEXT_ID, "artifact": artifact,
            "append": append, "lastChunk": last}}));
    }
    items.push(status_update("TASK_STATE_COMPLETED"));
    items
}

/// A good answer with the task in a state of this name, whatever it means. To a send, a get or a cancel.
#[must_use]
pub fn named_state(asked: &Asked, state: &str) -> Script {
    reply(asked, &super::agent::result(asked, state))
}

/// How a stream of [`items`] is written. A client reads the same items from each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oddity {
    /// One event a chunk.
    Plain,
    /// All of it in one chunk.
    OneChunk,
    /// Each byte is a chunk, written alone: characters of several bytes are cut.
    SingleBytes,
    /// Each byte of the connection is written alone, the head too.
    Dripping,
    /// Lines end with CR and LF, and so does a comment.
    CrLf,
    /// Lines end with CR alone.
    Cr,
    /// CR and LF are in two chunks.
    CutCrLf,
    /// A byte order mark comes first.
    Bom,
    /// The JSON is spread over lines of data.
    ManyLines,
    /// No space follows `data:`.
    NoSpace,
    /// Comments before, between and within events.
    Comments,
    /// `event:`, `id:`, `retry:` and fields that nobody knows.
    OtherFields,
    /// Events without data, and blank lines.
    EmptyEvents,
    /// A media type with parameters, in capitals.
    MediaType,
    /// Without chunks or a length: the body ends with the connection.
    UntilClosed,
    /// Members that the protocol does not have.
    UnknownMembers,
    /// The server goes on after the task's end, and never closes the stream.
    StaysOpen,
}

impl Oddity {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: &[Self] = &[
        Self::Plain, Self::OneChunk, Self::SingleBytes, Self::Dripping, Self::CrLf, Self::Cr, Self::CutCrLf, Self::Bom,
        Self::ManyLines, Self::NoSpace, Self::Comments, Self::OtherFields, Self::EmptyEvents, Self::MediaType,
        Self::UntilClosed, Self::UnknownMembers, Self::StaysOpen,
    ];

    /// The stream.
    #[must_use]
    pub fn script(self, asked: &Asked) -> Script {
        let items: Vec<Value> = items().iter().map(|each| item(asked, each)).collect();
        let each = |write: fn(&Value) -> String| items.iter().map(write).collect::<Vec<String>>();
        let plain = || each(|item| format!("data: {item}\n\n"));
        match self {
            Self::Plain => Script::stream(plain()),
            Self::OneChunk => Script::stream([plain().concat()]),
            Self::SingleBytes => Script::stream(plain().concat().into_bytes().into_iter().map(|byte| [byte])),
            Self::Dripping => Script::stream(plain()).dripping(),
            Self::CrLf => Script::stream(each(|item| format!(": beat\r\n\r\ndata: {item}\r\n\r\n"))),
            Self::Cr => Script::stream(each(|item| format!("data: {item}\r\r"))),
            Self::CutCrLf => Script::stream(cut_line_ends(&each(|item| format!("data: {item}\r\n\r\n")))),
            Self::Bom => Script::stream([vec!["\u{feff}".to_owned()], plain()].concat()),
            Self::ManyLines => Script::stream(each(in_lines)),
            Self::NoSpace => Script::stream(each(|item| format!("data:{item}\n\n"))),
            Self::Comments => Script::stream(each(|item| format!(": a\n\n:\n: b\ndata: {item}\n: c\n\n: d\n\n"))),
            Self::OtherFields => Script::stream(each(|item| {
                format!("event: message\nid: x\nretry: 5000\nhumour: none\nalone\ndata: {item}\n\n")
            })),
            Self::EmptyEvents => {
                Script::stream(each(|item| format!("\n\nid: 1\n\nevent: ping\n\ndata: {item}\n\n\n\n")))
            }
            Self::MediaType => until(&plain(), "Text/Event-Stream; Charset=UTF-8", true),
            Self::UntilClosed => until(&plain(), "text/event-stream", false),
            Self::UnknownMembers => Script::stream(items.iter().map(with_more)),
            Self::StaysOpen => plain().into_iter().fold(Script::events(), Script::chunk).then(super::Step::Stall),
        }
    }
}

/// Each event in three pieces: up to its first CR, up to its last LF, and this.
fn cut_line_ends(events: &[String]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for event in events {
        let bytes = event.as_bytes();
        let cr = bytes.len() - 3;
        pieces.extend([bytes[..cr].to_vec(), bytes[cr..cr + 2].to_vec(), bytes[cr + 2..].to_vec()]);
    }
    pieces
}

fn in_lines(item: &Value) -> String {
    let pretty = serde_json::to_string_pretty(item).expect("a value is JSON");
    let lines = pretty.lines().map(|line| format!("data: {line}\n"));
    lines.chain(["\n".to_owned()]).collect()
}

fn until(events: &[String], kind: &str, told: bool) -> Script {
    let body = events.concat();
    match told {
        true => Script::whole(200, &[("Content-Type", kind)], body),
        false => {
            Script::head(200, &[("Content-Type", kind), ("Connection", "close")]).write(body).then(super::Step::Close)
        }
    }
}

fn with_more(item: &Value) -> String {
    let mut item = item.clone();
    item["x-trace"] = json!({"deep": [1, null]});
    for inner in item.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
        if inner.is_object() {
            inner["futureMember"] = json!([{"a": 1}]);
        }
    }
    format!("data: {item}\n\n")
}

/// How a server says that a push config is gone. A client takes each for done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deleted {
    /// 204, without a body; in JSON-RPC `result: null`.
    NoContent,
    /// 200 and no bytes; in JSON-RPC `result: null`.
    Empty,
    /// `null`.
    Null,
    /// `{}`.
    Object,
}

impl Deleted {
    /// All of them.
    pub const ALL: &[Self] = &[Self::NoContent, Self::Empty, Self::Null, Self::Object];

    /// The answer.
    #[must_use]
    pub fn script(self, asked: &Asked) -> Script {
        let rpc = super::is_rpc(asked);
        match self {
            Self::NoContent if !rpc => Script::head(204, &[]),
            Self::Empty if !rpc => Script::whole(200, &[], ""),
            Self::Object => reply(asked, &json!({})),
            _ => reply(asked, &Value::Null),
        }
    }
}
