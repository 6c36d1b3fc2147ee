//! Paths by the names of the version in which the card is written.

use crate::card::read::{CardDocument, Written};
use crate::card::shown;

/// The names of one version.
pub(super) struct Names {
    /// Which version's.
    pub is_v0_3: bool,
    /// In v0.3, whether the first interface is that at `url`.
    has_url: bool,
}

/// Where an interface says what it is.
pub(super) struct InterfacePaths {
    pub url: String,
    pub binding: String,
    pub version: String,
}

impl Names {
    pub(super) fn of(document: &CardDocument) -> Self {
        let url = document.members().get("url").and_then(|url| url.as_str()).unwrap_or_default();
        Self { is_v0_3: document.written() == Written::V0_3, has_url: !url.is_empty() }
    }

    pub(super) fn interface(&self, index: usize) -> InterfacePaths {
        if !self.is_v0_3 {
            let member = |name: &str| format!("supportedInterfaces[{index}].{name}");
            return InterfacePaths {
                url: member("url"),
                binding: member("protocolBinding"),
                version: member("protocolVersion"),
            };
        }
        let version = "protocolVersion".to_owned();
        match index.checked_sub(usize::from(self.has_url)) {
            None => InterfacePaths { url: "url".to_owned(), binding: "preferredTransport".to_owned(), version },
            Some(index) => {
                let member = |name: &str| format!("additionalInterfaces[{index}].{name}");
                InterfacePaths { url: member("url"), binding: member("transport"), version }
            }
        }
    }

    /// A scheme that a requirement names; `parent` is empty or ends in a dot.
    pub(super) fn requirement(&self, parent: &str, index: usize, scheme: &str) -> String {
        let scheme = key(scheme);
        match self.is_v0_3 {
            true => format!("{parent}security[{index}].{scheme}"),
            false => format!("{parent}securityRequirements[{index}].schemes.{scheme}"),
        }
    }

    /// A member of a security scheme, by v1.0's oneof and name, and by v0.3's name.
    pub(super) fn scheme(&self, scheme: &str, kind: &str, member: &str, older: &str) -> String {
        let scheme = key(scheme);
        match self.is_v0_3 {
            true => format!("securitySchemes.{scheme}.{older}"),
            false => format!("securitySchemes.{scheme}.{kind}.{member}"),
        }
    }
}

/// A name that the card's writer chose, fit to stand in a path.
pub(super) fn key(name: &str) -> String {
    let is_plain = !name.is_empty() && name.len() <= 64;
    let is_plain = is_plain && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if is_plain { name.to_owned() } else { shown(name) }
}
