//! Versions of the protocol.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A version of the protocol by its major and minor (A2A §3.6). Patches exist, but nothing is decided by them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ProtocolVersion {
    /// What differs between versions that can't talk to each other.
    pub major: u16,
    /// What differs between versions that can.
    pub minor: u16,
}

/// A text that is no version.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is no version of the protocol (hint: major and minor, such as 1.0)")]
pub struct InvalidVersion(String);

impl ProtocolVersion {
    /// The version that this client speaks.
    pub const V1_0: Self = Self { major: 1, minor: 0 };

    /// The last version before 1.0.
    pub const V0_3: Self = Self { major: 0, minor: 3 };

    /// Whether this client can speak it: drafts before 0.3 it can't.
    #[must_use]
    pub fn is_spoken(self) -> bool {
        self >= Self::V0_3
    }

    /// Whether an interface that declares `declared` can be spoken to in this version: it has the same major and not a smaller
    /// minor. Before 1.0 each minor stands for itself.
    #[must_use]
    pub fn is_served_by(self, declared: Self) -> bool {
        match self.major {
            0 => self == declared,
            major => major == declared.major && self.minor <= declared.minor,
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ProtocolVersion {
    type Err = InvalidVersion;

    /// Reads `1.0`; a patch is passed over, and a major alone has minor 0.
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let invalid = || InvalidVersion(text.to_owned());
        let number = |part: &str| {
            let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            if is_number { part.parse::<u16>().map_err(|_| invalid()) } else { Err(invalid()) }
        };
        let mut parts = text.split('.');
        let major = number(parts.next().unwrap_or_default())?;
        let minor = parts.next().map_or(Ok(0), number)?;
        if let Some(patch) = parts.next() {
            number(patch)?;
        }
        match parts.next() {
            Some(_) => Err(invalid()),
            None => Ok(Self { major, minor }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_major_and_minor() {
        for (text, major, minor) in [("1.0", 1, 0), ("1", 1, 0), ("0.3.0", 0, 3), ("1.12.7", 1, 12)] {
            assert_eq!(text.parse(), Ok(ProtocolVersion { major, minor }));
        }
        for text in ["", "v1", "1.", ".0", "1.x", "1.0.0.0", "1.0-rc", "+1.0", "99999.0", " 1.0"] {
            assert_eq!(text.parse::<ProtocolVersion>(), Err(InvalidVersion(text.to_owned())));
        }
    }

    #[test]
    fn a_later_minor_serves_an_earlier_one() {
        #[rustfmt::skip]
        let cases = [
            ("1.0", "1.0", true), ("1.0", "1.2", true), ("1.1", "1.0", false), ("1.0", "2.0", false),
            ("0.3", "0.3", true), ("0.2", "0.3", false), ("0.3", "1.0", false),
        ];
        for (spoken, declared, wanted) in cases {
            let (spoken, declared): (ProtocolVersion, _) = (spoken.parse().unwrap(), declared.parse().unwrap());
            assert_eq!(spoken.is_served_by(declared), wanted, "{spoken} {declared}");
        }
    }
}
