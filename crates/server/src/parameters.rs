use http::{HeaderMap, header};

use crate::route::EVENT_STREAM;
use crate::version::{Asked, Version};

pub(crate) const VERSION_HEADER: &str = "a2a-version";
/// The name in v1.0, and that of v0.3.
const EXTENSIONS_HEADERS: [&str; 2] = ["a2a-extensions", "x-a2a-extensions"];
const LAST_EVENT_ID_HEADER: &str = "last-event-id";

/// What comes beside a request, in headers, metadata or the query (A2A §3.2.6).
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// The version, as the caller wrote it; empty when absent.
    pub asked: String,
    /// The version that was chosen by it. It says in which words the caller is told things later, and nothing else.
    pub version: Version,
    /// The extensions that the caller wants to use.
    pub extensions: Vec<String>,
    /// The tenant that the path names; empty when it names none.
    pub tenant: String,
    /// The sequence of the last event that the caller has; `None` when it has none, or none of ours.
    pub last_event_id: Option<LastEventId>,
    /// Whether events are the one kind of answer that the caller takes by name.
    pub asks_for_events: bool,
}

/// What a caller says of where its stream broke off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LastEventId {
    Sequence(u64),
    /// Not one of our ids: the stream begins with the snapshot of now.
    Unknown,
}

impl LastEventId {
    /// A sequence that no log has stands for an id that is not known.
    pub fn sequence(self) -> u64 {
        match self {
            Self::Sequence(sequence) => sequence,
            Self::Unknown => u64::MAX,
        }
    }
}

impl Parameters {
    /// These, of a request in this version.
    pub fn spoken(self, version: Version) -> Self {
        Self { version, ..self }
    }

    pub fn from_headers(headers: &HeaderMap) -> Self {
        let asked = version_text(headers).to_owned();
        let all = EXTENSIONS_HEADERS.iter().flat_map(|name| headers.get_all(*name));
        let extensions = all
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|uri| !uri.is_empty())
            .map(str::to_owned)
            .collect();
        let last_event_id = match text(headers, LAST_EVENT_ID_HEADER).trim() {
            "" => None,
            id => Some(id.parse().map_or(LastEventId::Unknown, LastEventId::Sequence)),
        };
        let asks_for_events = asks_for_events(headers);
        let (version, tenant) = (Version::V1_0, String::new());
        Self { asked, version, extensions, tenant, last_event_id, asks_for_events }
    }

    /// What the caller says of its version.
    pub fn asked(&self) -> Asked<'_> {
        Asked::of(&self.asked)
    }
}

/// What headers alone say of the version.
pub(crate) fn asked(headers: &HeaderMap) -> Asked<'_> {
    Asked::of(version_text(headers))
}

fn version_text(headers: &HeaderMap) -> &str {
    text(headers, VERSION_HEADER).trim()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Clients add `text/event-stream` to a header that says `*/*` already, in one line or in two.
fn asks_for_events(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = all.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
    let mut named = kinds.map(str::trim).filter(|kind| *kind != "*/*").peekable();
    named.peek().is_some() && named.all(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
}
