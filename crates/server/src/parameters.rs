use http::HeaderMap;
use longhaul_protocol::{A2aError, ErrorCode};

/// The version of the protocol that answers are made in, `Major.Minor` (A2A §3.6).
pub(crate) const VERSION: &str = "1.0";
/// The version that an absent or empty parameter stands for (A2A §3.6.2).
const VERSION_IF_ABSENT: &str = "0.3";

pub(crate) const VERSION_HEADER: &str = "a2a-version";
const EXTENSIONS_HEADER: &str = "a2a-extensions";
const LAST_EVENT_ID_HEADER: &str = "last-event-id";

/// What comes beside a request, in headers, metadata or the query (A2A §3.2.6).
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    /// As the caller wrote it; empty when absent.
    pub version: String,
    /// The extensions that the caller wants to use.
    pub extensions: Vec<String>,
    /// The tenant that the path names; empty when it names none.
    pub tenant: String,
    /// The sequence of the last event that the caller has; `None` when it has none, or none of ours.
    pub last_event_id: Option<LastEventId>,
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
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let version = text(headers, VERSION_HEADER).trim().to_owned();
        let all = headers.get_all(EXTENSIONS_HEADER).iter().filter_map(|value| value.to_str().ok());
        let extensions = all
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|uri| !uri.is_empty())
            .map(str::to_owned)
            .collect();
        let last_event_id = match text(headers, LAST_EVENT_ID_HEADER).trim() {
            "" => None,
            id => Some(id.parse().map_or(LastEventId::Unknown, LastEventId::Sequence)),
        };
        Self { version, extensions, tenant: String::new(), last_event_id }
    }

    /// Whether the version asked for is one that is served.
    ///
    /// # Errors
    ///
    /// `VersionNotSupportedError`, which lists what is served.
    pub fn check_version(&self) -> Result<(), A2aError> {
        let asked = if self.version.is_empty() { VERSION_IF_ABSENT } else { &self.version };
        let patch = asked.strip_prefix(VERSION).map(|rest| rest.strip_prefix('.').unwrap_or(rest));
        match patch {
            Some("") if asked == VERSION => return Ok(()),
            Some(patch)
                if asked != VERSION
                    && !patch.is_empty()
                    && patch.bytes().all(|byte| byte.is_ascii_digit())
                    && asked.len() > VERSION.len() + 1 =>
            {
                return Ok(());
            }
            Some(_) | None => {}
        }
        let said = if self.version.is_empty() { " (no A2A-Version was given)" } else { "" };
        let shown: String = asked.chars().filter(|character| !character.is_control()).take(32).collect();
        let message = format!("version {shown}{said} of the protocol is not supported; supported: {VERSION}");
        Err(A2aError::new(ErrorCode::VersionNotSupported, message).with_metadata("supportedVersions", VERSION))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_the_served_version_are_served_and_nothing_else() {
        let served =
            |version: &str| Parameters { version: version.to_owned(), ..Parameters::default() }.check_version().is_ok();
        for version in ["1.0", "1.0.0", "1.0.1", "1.0.12"] {
            assert!(served(version), "{version}");
        }
        for version in
            ["", "0.3", "0.3.0", "1", "1.", "1.0.", "1.0.x", "1.00", "1.01", "1.1", "2.0", "9.9", "abc", "1.0,0.3"]
        {
            assert!(!served(version), "{version}");
        }
    }

    #[test]
    fn the_error_lists_what_is_served() {
        let error = Parameters::default().check_version().unwrap_err();
        assert_eq!(error.code, ErrorCode::VersionNotSupported);
        assert!(error.message.contains("1.0"), "{}", error.message);
        assert!(error.metadata.iter().any(|(key, value)| key == "supportedVersions" && value == "1.0"));
    }
}
