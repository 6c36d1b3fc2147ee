//! The versions of the protocol: which are served, and which one a request asks for (A2A §3.6).

use std::fmt;

use longhaul_protocol::{A2aError, ErrorCode};

/// A version of the protocol, `Major.Minor`: patches of it are the same to us.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Version {
    /// 0.3.
    V0_3,
    /// 1.0.
    V1_0,
}

impl Version {
    /// Each of them, newest first.
    pub const ALL: &[Self] = &[Self::V1_0, Self::V0_3];

    /// As `A2A-Version` and cards write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => longhaul_protocol::v0_3::card::VERSION,
        }
    }

    /// The version of this name, or that a patch of this name belongs to.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let is_patch = |rest: &str| {
            let digits = rest.strip_prefix('.').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_it =
            |version: &Self| name.strip_prefix(version.name()).is_some_and(|rest| rest.is_empty() || is_patch(rest));
        Self::ALL.iter().copied().find(is_it)
    }
}

/// The versions that are served, at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Versions(Vec<Version>);

impl Default for Versions {
    /// All.
    fn default() -> Self {
        Self(Version::ALL.to_vec())
    }
}

impl Versions {
    /// These; `None` if there are none.
    #[must_use]
    pub fn new(versions: impl IntoIterator<Item = Version>) -> Option<Self> {
        let mut served: Vec<Version> = versions.into_iter().collect();
        served.sort_unstable_by(|one, other| other.cmp(one));
        served.dedup();
        (!served.is_empty()).then_some(Self(served))
    }

    /// Newest first.
    pub fn iter(&self) -> impl Iterator<Item = Version> + '_ {
        self.0.iter().copied()
    }

    /// Whether this one is served.
    #[must_use]
    pub fn serve(&self, version: Version) -> bool {
        self.0.contains(&version)
    }

    fn list(&self) -> String {
        let names: Vec<_> = self.iter().map(Version::name).collect();
        names.join(", ")
    }

    /// Chooses the version of a request that could be of either.
    ///
    /// # Errors
    ///
    /// `VersionNotSupportedError`, which lists what is served.
    pub(crate) fn choose(&self, asked: Asked<'_>) -> Result<Version, A2aError> {
        match asked.version() {
            Some(version) if self.serve(version) => Ok(version),
            Some(_) | None => Err(not_supported(asked, "", &self.list())),
        }
    }

    /// Whether a request may be answered that is of v1.0 by its form, of which `what` tells the caller.
    ///
    /// # Errors
    ///
    /// `VersionNotSupportedError`. A caller that has asked for another version, which no `A2A-Version` does as well, is told
    /// which one it needs here.
    pub(crate) fn require_v1_0(&self, asked: Asked<'_>, what: impl fmt::Display) -> Result<(), A2aError> {
        match self.choose(asked)? {
            Version::V1_0 => Ok(()),
            Version::V0_3 if self.serve(Version::V1_0) => {
                let name = Version::V1_0.name();
                let needed = format!(" by {what}: send A2A-Version: {name}");
                Err(not_supported(asked, &needed, name))
            }
            Version::V0_3 => Err(not_supported(Asked::Known(Version::V1_0), "", &self.list())),
        }
    }
}

fn not_supported(asked: Asked<'_>, why: &str, supported: &str) -> A2aError {
    let shown: String = match asked {
        Asked::Nothing => Version::V0_3.name().to_owned(),
        Asked::Known(version) => version.name().to_owned(),
        Asked::Unknown(text) => text.chars().filter(|character| !character.is_control()).take(32).collect(),
    };
    let said = if asked == Asked::Nothing { " (no A2A-Version was given)" } else { "" };
    let message = format!("version {shown}{said} of the protocol is not supported{why}; supported: {supported}");
    A2aError::new(ErrorCode::VersionNotSupported, message).with_metadata("supportedVersions", supported)
}

/// What a request says of its version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Asked<'a> {
    /// Nothing, which stands for 0.3 (A2A §3.6.2).
    Nothing,
    Known(Version),
    Unknown(&'a str),
}

impl<'a> Asked<'a> {
    /// What a header, a parameter or metadata says; empty when it is absent.
    pub fn of(text: &'a str) -> Self {
        match (text, Version::of_name(text)) {
            ("", _) => Self::Nothing,
            (_, Some(version)) => Self::Known(version),
            (_, None) => Self::Unknown(text),
        }
    }

    fn version(self) -> Option<Version> {
        match self {
            Self::Nothing => Some(Version::V0_3),
            Self::Known(version) => Some(version),
            Self::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_the_same_and_nothing_else_is() {
        for name in ["1.0", "1.0.0", "1.0.1", "1.0.12"] {
            assert_eq!(Version::of_name(name), Some(Version::V1_0), "{name}");
        }
        for name in ["0.3", "0.3.0", "0.3.26"] {
            assert_eq!(Version::of_name(name), Some(Version::V0_3), "{name}");
        }
        for name in [
            "", "0", "0.2", "0.3.", "0.30", "0.3.x", "1", "1.", "1.0.", "1.0.x", "1.00", "1.1", "2.0", "abc", "1.0,0.3",
        ] {
            assert_eq!(Version::of_name(name), None, "{name}");
        }
    }

    /// One row for what is asked; columns: any request, and one that is of v1.0 by its form.
    #[test]
    fn what_is_asked_for_is_served_or_the_list_is_told() {
        let (all, new, old) = (
            Versions::default(),
            Versions::new([Version::V1_0]).unwrap(),
            Versions::new([Version::V0_3, Version::V0_3]).unwrap(),
        );
        let told = |result: Result<(), A2aError>| match result {
            Ok(()) => "served".to_owned(),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::VersionNotSupported);
                let list = error.metadata.into_iter().find(|(key, _)| key == "supportedVersions").unwrap().1;
                assert!(error.message.ends_with(&format!("supported: {list}")), "{}", error.message);
                list
            }
        };
        #[rustfmt::skip]
        let rows = [
            // versions, asked, any request, of v1.0 by its form
            (&all, "",      "served",   "1.0"),
            (&all, "0.3",   "served",   "1.0"),
            (&all, "0.3.1", "served",   "1.0"),
            (&all, "1.0",   "served",   "served"),
            (&all, "9.9",   "1.0, 0.3", "1.0, 0.3"),
            (&new, "",      "1.0",      "1.0"),
            (&new, "0.3",   "1.0",      "1.0"),
            (&new, "1.0.3", "served",   "served"),
            (&new, "9.9",   "1.0",      "1.0"),
            (&old, "",      "served",   "0.3"),
            (&old, "0.3",   "served",   "0.3"),
            (&old, "1.0",   "0.3",      "0.3"),
            (&old, "9.9",   "0.3",      "0.3"),
        ];
        for (versions, asked, any, of_v1_0) in rows {
            let asked_for = Asked::of(asked);
            assert_eq!(told(versions.choose(asked_for).map(drop)), any, "{versions:?} {asked:?}");
            assert_eq!(told(versions.require_v1_0(asked_for, "GetTask")), of_v1_0, "{versions:?} {asked:?}");
        }
        let error = all.require_v1_0(Asked::Nothing, "GetTask").unwrap_err();
        assert!(error.message.contains("GetTask: send A2A-Version: 1.0"), "{}", error.message);
        assert_eq!(Versions::new([]), None);
    }
}
