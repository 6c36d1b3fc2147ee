//! What is wrong with a card, as far as it can be seen from the card alone (`card get --validate`).

mod interfaces;
mod names;
mod required;
mod security;
mod signature;
mod text;

use std::collections::HashSet;
use std::fmt;

use longhaul_protocol::wire::{AgentCard, AgentSkill};

use super::read::{CardDocument, Written};
use super::shown;

use names::Names;
use text::{check_media_type, check_url};

/// The most problems that are told of one card.
const PROBLEMS_MAX: usize = 200;

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// The protocol allows it; somebody may still not have meant it.
    Remark,
    /// The protocol forbids it.
    Error,
}

/// One thing that is wrong with a card.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The member, by the names of the version in which the card is written: `skills[0].id`. Empty for the card as a whole.
    pub path: String,
    /// What is wrong and what is allowed.
    pub description: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remark => "remark",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the card" } else { &self.path };
        write!(f, "{}: {path} {}", self.severity, self.description)
    }
}

/// The problems that were found so far.
#[derive(Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn error(&mut self, path: impl Into<String>, description: impl Into<String>) {
        self.add(Severity::Error, path.into(), description.into());
    }

    fn remark(&mut self, path: impl Into<String>, description: impl Into<String>) {
        self.add(Severity::Remark, path.into(), description.into());
    }

    fn add(&mut self, severity: Severity, path: String, description: String) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(Problem { severity, path, description });
        } else if self.0.len() == PROBLEMS_MAX {
            let description = format!("has more than {PROBLEMS_MAX} problems, of which the rest is not told");
            self.0.push(Problem { severity: Severity::Error, path: String::new(), description });
        }
    }
}

/// Each problem of a card; required members first, and then by the order of the members.
pub(super) fn validate(document: &CardDocument) -> Vec<Problem> {
    let mut findings = Findings::default();
    let names = Names::of(document);
    let card = document.card();
    required::check(document, &mut findings);
    interfaces::check(card, &names, &mut findings);
    check_links(card, &mut findings);
    check_extensions(card, &mut findings);
    security::check(card, &names, &mut findings);
    check_modes(&card.default_input_modes, "defaultInputModes", &mut findings);
    check_modes(&card.default_output_modes, "defaultOutputModes", &mut findings);
    check_skills(card, &names, &mut findings);
    signature::check(&card.signatures, &mut findings);
    check_mixture(document, &mut findings);
    findings.0
}

fn check_links(card: &AgentCard, findings: &mut Findings) {
    if let Some(provider) = &card.provider {
        check_url(&provider.url, "provider.url", findings);
    }
    if let Some(url) = &card.documentation_url {
        check_url(url, "documentationUrl", findings);
    }
    if let Some(url) = card.icon_url.as_ref().filter(|url| !url.starts_with("data:")) {
        check_url(url, "iconUrl", findings);
    }
}

fn check_extensions(card: &AgentCard, findings: &mut Findings) {
    let Some(capabilities) = &card.capabilities else { return };
    let mut seen = HashSet::new();
    for (index, extension) in capabilities.extensions.iter().enumerate() {
        let path = format!("capabilities.extensions[{index}].uri");
        if extension.uri.is_empty() {
            findings.error(path, "must not be empty");
        } else if !seen.insert(&extension.uri) {
            findings.remark(path, format!("repeats the extension {}", shown(&extension.uri)));
        } else if url::Url::parse(&extension.uri).is_err() {
            findings.remark(path, "should be an absolute URI");
        }
    }
}

fn check_modes(modes: &[String], path: &str, findings: &mut Findings) {
    for (index, mode) in modes.iter().enumerate() {
        check_media_type(mode, || format!("{path}[{index}]"), findings);
    }
}

fn check_skills(card: &AgentCard, names: &Names, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (index, skill) in card.skills.iter().enumerate() {
        let AgentSkill { id, input_modes, output_modes, security_requirements, .. } = skill;
        if !id.is_empty() && !seen.insert(id) {
            findings.error(format!("skills[{index}].id"), format!("must be unique, repeats {}", shown(id)));
        }
        check_modes(input_modes, &format!("skills[{index}].inputModes"), findings);
        check_modes(output_modes, &format!("skills[{index}].outputModes"), findings);
        security::check_requirements(security_requirements, card, names, &format!("skills[{index}]."), findings);
    }
}

/// What older members do in a newer card: stand beside its own, or instead of them and unread.
fn check_mixture(document: &CardDocument, findings: &mut Findings) {
    let members = document.members();
    let is_unread = document.card().security_requirements.is_empty() && members.contains_key("security");
    if document.written() != Written::V0_3 && is_unread {
        findings.remark(
            "security",
            "is read by v0.3 only: in v1.0 it is securityRequirements, so no credentials are asked for",
        );
    }
    if let Some(Err(error)) = document.older() {
        let fault = shown(&error.message);
        findings.remark(error.path.clone(), format!("can't be read as the member of v0.3 that it is: {fault}"));
    }
}

#[cfg(test)]
mod tests;
