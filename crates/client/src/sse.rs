//! Reads `text/event-stream` as the WHATWG specification says, from chunks of any size.
//!
//! ```
//! use longhaul_client::sse::{SseLimits, SseParser};
//!
//! let mut parser = SseParser::new(SseLimits::default());
//! parser.feed(b": ping\n\nid: 7\nda")?;
//! assert!(parser.next().is_none());
//! parser.feed(b"ta: {}\n\n")?;
//! let event = parser.next().unwrap();
//! assert_eq!(event.data, "{}");
//! assert_eq!(event.id.as_deref(), Some("7"));
//! # Ok::<(), longhaul_client::sse::SseError>(())
//! ```
//!
//! One thing differs from the letter: data is handed out as the bytes that came, and is not decoded with U+FFFD in place of what
//! is no UTF-8. What A2A sends is JSON, and the reader of JSON refuses invalid UTF-8, where a replacement would change a payload
//! in silence. Types and ids of events are decoded as the specification says.

mod line;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;

use line::{Field, Line};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The type of an event that gives itself none.
const TYPE_DEFAULT: &str = "message";

/// How much of a stream may have to be kept until an event is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SseLimits {
    /// Bytes of all lines of one event, without line ends and comments. Default 64 MiB.
    pub event_bytes_max: usize,
    /// Bytes of one line, without its end; of a comment too. Default 64 MiB.
    pub line_bytes_max: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        const DEFAULT: usize = 64 * 1024 * 1024;
        Self { event_bytes_max: DEFAULT, line_bytes_max: DEFAULT }
    }
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SseError {
    /// A line is longer than [`SseLimits::line_bytes_max`], or has no end.
    #[error("a line of the event stream is longer than {bytes_max} bytes")]
    LineTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// An event is larger than [`SseLimits::event_bytes_max`], or has no end.
    #[error("an event of the stream is larger than {bytes_max} bytes")]
    EventTooLarge {
        /// The limit.
        bytes_max: usize,
    },
}

/// One event of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SseEvent {
    /// Its type: `message` if it gives none.
    pub event: Cow<'static, str>,
    /// Its data, several lines joined by LF. May be no UTF-8, and may be empty.
    pub data: Bytes,
    /// The id that was given last on the stream, by this event or one before; none if it is empty.
    pub id: Option<Arc<str>>,
    /// The time before a reconnect that was given last on the stream, by this event or one before. Any length: to be capped.
    pub retry: Option<Duration>,
}

/// Makes events out of the chunks of a stream.
///
/// After each [`feed`](Self::feed) the events that it completed are taken as from an iterator, which goes on with the next chunk
/// after it gave none. Only these wait inside, so there are at most as many as end in what was fed since they were last taken.
/// Besides them at most one unfinished event is kept, within its [limits](SseLimits), and each byte of it once. The time is
/// linear in the bytes however they are cut.
///
/// A stream that ends within an event has not sent it: the parser is dropped, and the event with it.
#[derive(Debug)]
pub struct SseParser {
    limits: SseLimits,
    /// How many bytes of a BOM came, as long as nothing else did.
    bom: Option<usize>,
    line: Line,
    /// Whether the last line ended with CR, which a LF may still belong to.
    after_cr: bool,
    /// Bytes of the finished lines of the event, without comments.
    event_bytes: usize,
    event: String,
    /// The data so far, with a LF behind each line.
    data: Vec<u8>,
    /// The id as it will be with the end of this event.
    id: Option<Arc<str>>,
    last_event_id: Option<Arc<str>>,
    retry: Option<Duration>,
    ready: VecDeque<SseEvent>,
    failed: Option<SseError>,
}

impl SseParser {
    /// A parser at the start of a stream.
    #[must_use]
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            bom: Some(0),
            line: Line::default(),
            after_cr: false,
            event_bytes: 0,
            event: String::new(),
            data: Vec::new(),
            id: None,
            last_event_id: None,
            retry: None,
            ready: VecDeque::new(),
            failed: None,
        }
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    ///
    /// [`SseError`] when a line or an event is too large. The events before it can still be taken; whatever is fed after it
    /// gives the same error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.read(bytes);
        if let Err(error) = result {
            self.failed = Some(error);
            self.line = Line::default();
            self.data = Vec::new();
        }
        result
    }

    /// Whether an event has begun that has not ended. If the stream ends here, it was cut.
    #[must_use]
    pub fn is_in_event(&self) -> bool {
        self.event_bytes > 0 || self.line.event_bytes() > 0
    }

    /// The last event id, for `Last-Event-ID` of a reconnect: as the last finished event left it, be it one without data, which
    /// is not handed out. None if it is empty.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&Arc<str>> {
        self.last_event_id.as_ref()
    }

    /// The time before a reconnect that was given last. Any length: to be capped.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        let mut rest = self.without_bom(bytes)?;
        while let Some(first) = rest.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
            let (piece, tail) = rest.split_at(length);
            self.extend_line(piece)?;
            let Some((end, tail)) = tail.split_first() else { break };
            self.end_line();
            self.after_cr = *end == b'\r';
            rest = tail;
        }
        Ok(())
    }

    /// Leaves out a BOM at the very start, which may come in pieces.
    fn without_bom<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], SseError> {
        let Some(matched) = self.bom else { return Ok(bytes) };
        let expected = BOM.get(matched..).unwrap_or_default();
        let same = bytes.iter().zip(expected).take_while(|(byte, expected)| byte == expected).count();
        let rest = bytes.get(same..).unwrap_or_default();
        if same == expected.len() {
            self.bom = None;
        } else if rest.is_empty() {
            self.bom = Some(matched + same);
        } else {
            // It was none: what looked like one is the start of the first line.
            self.bom = None;
            self.extend_line(BOM.get(..matched + same).unwrap_or_default())?;
        }
        Ok(rest)
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), SseError> {
        let value = self.line.extend(piece);
        if self.line.bytes() > self.limits.line_bytes_max {
            return Err(SseError::LineTooLong { bytes_max: self.limits.line_bytes_max });
        }
        if self.event_bytes.saturating_add(self.line.event_bytes()) > self.limits.event_bytes_max {
            return Err(SseError::EventTooLarge { bytes_max: self.limits.event_bytes_max });
        }
        match self.line.field() {
            // Data goes where it stays, so that nothing large is copied twice.
            Some(Field::Data) => self.data.extend_from_slice(value),
            Some(Field::Event | Field::Id | Field::Retry) => self.line.keep(value),
            Some(Field::Comment | Field::Unknown) | None => {}
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let line = mem::take(&mut self.line);
        if line.bytes() == 0 {
            return self.end_event();
        }
        self.event_bytes = self.event_bytes.saturating_add(line.event_bytes());
        match line.finished_field() {
            Field::Data => self.data.push(b'\n'),
            Field::Event => self.event = line.into_text(),
            Field::Id => {
                let id = line.into_text();
                if !id.contains('\0') {
                    self.id = (!id.is_empty()).then(|| Arc::from(id));
                }
            }
            Field::Retry => self.retry = line.milliseconds().or(self.retry),
            Field::Comment | Field::Unknown => {}
        }
    }

    fn end_event(&mut self) {
        self.event_bytes = 0;
        self.last_event_id.clone_from(&self.id);
        let event = mem::take(&mut self.event);
        let mut data = mem::take(&mut self.data);
        if data.pop().is_none() {
            return;
        }
        let event = if event.is_empty() { Cow::Borrowed(TYPE_DEFAULT) } else { Cow::Owned(event) };
        self.ready.push_back(SseEvent { event, data: data.into(), id: self.id.clone(), retry: self.retry });
    }
}

impl Iterator for SseParser {
    type Item = SseEvent;

    /// Takes the next event that is complete. None until more is fed.
    fn next(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests;
