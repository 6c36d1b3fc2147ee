//! Bodies that are far larger than anything that a client should hold.

use super::script::{Script, Step, chunk};

/// How much is written of a body that is called huge, in bytes.
pub(super) const HUGE_BYTES: u64 = 1 << 30;
/// How deep nesting is that is called deep.
pub(super) const DEEP: usize = 10_000;

const PIECE_BYTES: u64 = 64 * 1024;

/// So many bytes of one letter, rounded up to whole pieces.
fn flood(letter: &str, bytes: u64) -> Step {
    let count = usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX) / letter.len();
    Step::Flood { piece: letter.repeat(count).into_bytes(), times: bytes.div_ceil(PIECE_BYTES) }
}

/// The same in chunks.
fn flood_in_chunks(letter: &str, bytes: u64) -> Step {
    match flood(letter, bytes) {
        Step::Flood { piece, times } => Step::Flood { piece: chunk(&piece), times },
        other => other,
    }
}

/// A JSON string of [`HUGE_BYTES`], with its length told.
pub(super) fn huge_json() -> Script {
    let (open, close) = (r#"{"result":""#, r#""}"#);
    let length = HUGE_BYTES + (open.len() + close.len()) as u64;
    let headers = [("Content-Type", "application/json"), ("Content-Length", &length.to_string())];
    Script::head(200, &headers).write(open).then(flood("x", HUGE_BYTES)).write(close)
}

/// The same in chunks, so that no header warns.
pub(super) fn huge_json_in_chunks() -> Script {
    let headers = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")];
    let open = Script::head(200, &headers).chunk(r#"{"result":""#);
    open.then(flood_in_chunks("x", HUGE_BYTES)).chunk(r#""}"#).end()
}

/// Headers without end.
pub(super) fn huge_head() -> Script {
    let start = Script::new().write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n");
    start.then(flood("X-A: 0123456789\r\n", HUGE_BYTES))
}

/// An event's line without end.
pub(super) fn endless_line() -> Script {
    Script::events().chunk("data: ").then(flood_in_chunks("x", HUGE_BYTES))
}

/// An event of short lines without end.
pub(super) fn endless_event() -> Script {
    Script::events().then(flood_in_chunks("data: x\n", HUGE_BYTES))
}

/// A comment without end: no event ever comes.
pub(super) fn endless_comment() -> Script {
    Script::events().chunk(":").then(flood_in_chunks("x", HUGE_BYTES))
}

/// Arrays in arrays.
pub(super) fn nested() -> String {
    format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP))
}
