//! `conformance`: a quick look at whether a running agent keeps to the protocol, by each binding that it offers.
//!
//! It is the beginning of what the protocol's own kit asks (its mandatory checks that need no particular agent), not the whole of
//! it. Real messages are sent.

mod checks;
mod kit;

use std::sync::Arc;

use longhaul_client::FoundCard;
use longhaul_client::card::{Binding, Preference, Severity};
use longhaul_protocol::wire::AgentCard;
use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::arguments::ConformanceFlags;
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::render::Page;
use crate::caller::session::{End, Session};

use checks::of_binding;

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// By which binding; none for the card.
    binding: Option<Binding>,
    /// What was looked at.
    name: &'static str,
    /// Where the specification says it.
    section: &'static str,
    result: Finding,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Finding {
    /// It is as it has to be.
    Pass,
    /// It is not; how it is instead.
    Fail(String),
    /// It could not be looked at; why.
    Skip(String),
}

impl Finding {
    fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Skip(_) => "skip",
        }
    }

    fn detail(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Fail(detail) | Self::Skip(detail) => Some(detail),
        }
    }
}

/// Looks at the card, and at each binding.
///
/// # Errors
///
/// [`End`] when there is no card, and when anything is not as it has to be: after the report was written.
pub async fn conformance(session: &Session, flags: &ConformanceFlags) -> Result<(), End> {
    if let Some(folder) = &flags.tck {
        return kit::run(session, folder, flags.level.as_deref()).await;
    }
    let found = session.card().await?;
    let mut checks = vec![of_card(&found)];
    for binding in offered(found.document.card()) {
        checks.extend(by(session, &found, binding, &flags.text).await?);
    }
    match session.options.output {
        OutputForm::Text => session.print(&text(&checks))?,
        OutputForm::Json => session.print_json(&report(&checks))?,
    }
    match count(&checks, "fail") {
        0 => Ok(()),
        failed => Err(End::Told(Failure::local(LocalCode::NotConformant, format!("{failed} checks failed")))),
    }
}

fn of_card(found: &FoundCard) -> Check {
    let problems = found.document.validate();
    let errors: Vec<String> =
        problems.iter().filter(|problem| problem.severity == Severity::Error).map(ToString::to_string).collect();
    let result = if errors.is_empty() { Finding::Pass } else { Finding::Fail(errors.join("; ")) };
    Check { binding: None, name: "agent card is valid", section: "4.4.1", result }
}

/// The bindings of the card that this client speaks, each once.
fn offered(card: &AgentCard) -> Vec<Binding> {
    let mut bindings: Vec<Binding> = Vec::new();
    for interface in &card.supported_interfaces {
        if let Some(binding) = interface.protocol_binding.parse().ok().filter(|binding| !bindings.contains(binding)) {
            bindings.push(binding);
        }
    }
    bindings
}

async fn by(session: &Session, found: &FoundCard, binding: Binding, text: &str) -> Result<Vec<Check>, Failure> {
    let preference = Preference { bindings: vec![binding], ..session.way.preference() };
    let builder = session.builder()?.preference(preference);
    let found = FoundCard { document: Arc::clone(&found.document), origin: found.origin.clone() };
    let skipped = |why: String| {
        vec![Check {
            binding: Some(binding),
            name: "interface can be called",
            section: "8.3.2",
            result: Finding::Skip(why),
        }]
    };
    match builder.connect_card(found).await {
        Ok(client) if client.binding() == binding => Ok(of_binding(&client, text).await),
        Ok(_) => Ok(skipped("none of its interfaces may be called".to_owned())),
        Err(error) => Ok(skipped(error.to_string())),
    }
}

fn count(checks: &[Check], word: &str) -> usize {
    checks.iter().filter(|check| check.result.word() == word).count()
}

fn text(checks: &[Check]) -> String {
    let mut page = Page::new();
    for check in checks {
        let binding = check.binding.map_or("card", Binding::wire_name);
        let detail = check.result.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        let label = match check.result {
            Finding::Pass => "Pass",
            Finding::Fail(_) => "Fail",
            Finding::Skip(_) => "Skip",
        };
        page.field(label, format_args!("{binding}, {} (§{}){detail}", check.name, check.section));
    }
    page.field("Passed", count(checks, "pass"));
    page.field("Failed", count(checks, "fail"));
    page.field("Skipped", count(checks, "skip"));
    page.into_text()
}

fn report(checks: &[Check]) -> Value {
    let one = |check: &Check| {
        json!({
            "binding": check.binding.map(Binding::wire_name),
            "check": check.name,
            "section": check.section,
            "result": check.result.word(),
            "detail": check.result.detail(),
        })
    };
    json!({
        "checks": checks.iter().map(one).collect::<Vec<_>>(),
        "passed": count(checks, "pass"),
        "failed": count(checks, "fail"),
        "skipped": count(checks, "skip"),
    })
}
