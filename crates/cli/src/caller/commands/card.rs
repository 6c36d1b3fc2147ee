//! `card get`: who an agent says it is, and whether that can be believed (§10.1 of the contract).

use std::path::Path;

use longhaul_client::card::{CardDocument, Problem, Severity, Written};
use longhaul_client::signature::{Fetched, Finding, JwkSet, Overall, Report, TrustStore, Verifier};
use longhaul_protocol::wire::AgentCard;
use serde_json::Value;

use crate::arguments::OutputForm;
use crate::caller::arguments::CardFlags;
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::render::{Page, Verdict, card, clean, json};
use crate::caller::session::{End, Session};

/// The largest file with keys, in bytes.
const KEYS_BYTES_MAX: u64 = JwkSet::BYTES_MAX as u64;

/// Fetches and shows a card.
///
/// # Errors
///
/// [`End`] when there is none, or it does not hold what was asked of it.
pub async fn get(session: &Session, flags: &CardFlags) -> Result<(), End> {
    let keys = flags.verify.as_deref().map(keys).transpose()?;
    let found = session.card().await?;
    let document = &*found.document;
    let verdict = match &keys {
        Some(keys) => verdict(document, keys)?,
        None => Verdict::without_keys(document.card()),
    };
    let problems = if flags.validate { document.validate() } else { Vec::new() };
    if let Some(failure) = invalid(document, &problems) {
        return Err(failure.into());
    }
    if flags.extended {
        return extended(session, document).await;
    }
    show(session, document, &verdict, &problems, flags)
}

/// Shows the card for authenticated callers. Credentials go only where the public card has a scheme for them.
async fn extended(session: &Session, document: &CardDocument) -> Result<(), End> {
    let offered = document.card().capabilities.as_ref().and_then(|capabilities| capabilities.extended_agent_card);
    if offered == Some(true) && document.card().security_schemes.is_empty() {
        return Err(Failure::local(
            LocalCode::Forbidden,
            "the agent's card names no security scheme for an extended card",
        )
        .hint("longhaul card get shows the public card")
        .into());
    }
    let client = session.client().await?;
    let found = client.get_extended_agent_card().await.map_err(|error| session.failure(&error))?;
    session.answer(&found, |page| card(page, &found, &Verdict::without_keys(&found), session.options.detail))
}

fn show(
    session: &Session,
    document: &CardDocument,
    verdict: &Verdict,
    problems: &[Problem],
    flags: &CardFlags,
) -> Result<(), End> {
    match session.options.output {
        OutputForm::Json => {
            let mut page = Page::new();
            remarks(&mut page, problems);
            if flags.verify.is_some() {
                page.field("Signature", verdict.words());
            }
            eprint!("{}", page.into_text());
            session.print(&as_it_came(document))
        }
        OutputForm::Text => {
            let mut page = Page::new();
            card(&mut page, document.card(), verdict, session.options.detail);
            if flags.validate {
                remarks(&mut page, problems);
                page.field("Valid", "yes");
            }
            session.print(&page.into_text())
        }
    }
}

fn remarks(page: &mut Page, problems: &[Problem]) {
    for problem in problems {
        page.field("Remark", problem);
    }
}

/// A card of v1.0 is handed on with all of its members, those too that nobody here knows: signatures are over them.
fn as_it_came(document: &CardDocument) -> String {
    match document.written() {
        Written::V1_0 | Written::Both => clean::json(Value::Object(document.members().clone()).to_string()) + "\n",
        Written::V0_3 => json::document::<AgentCard>(document.card()),
    }
}

fn invalid(document: &CardDocument, problems: &[Problem]) -> Option<Failure> {
    let errors: Vec<String> =
        problems.iter().filter(|problem| problem.severity == Severity::Error).map(ToString::to_string).collect();
    if errors.is_empty() {
        return None;
    }
    let message = format!("the card at {} is not valid: {}", document.place(), errors.join("; "));
    Some(Failure::local(LocalCode::CardInvalid, message).hint("whoever runs the agent has to correct its card"))
}

fn keys(path: &Path) -> Result<JwkSet, Failure> {
    use std::io::Read as _;
    let refused = |problem: String| {
        Failure::usage(format!("--verify {}: {problem}", path.display())).hint("name a file with a JWK set, or one JWK")
    };
    let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(KEYS_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    JwkSet::parse(&bytes).map_err(|error| refused(error.to_string()))
}

/// What the signatures are worth with these keys.
///
/// # Errors
///
/// A [`Failure`] when one was made by a key that is known, and does not fit: the card was changed.
fn verdict(document: &CardDocument, keys: &JwkSet) -> Result<Verdict, Failure> {
    let mut trust = TrustStore::default();
    trust.trust(keys.clone());
    let members = Value::Object(document.members().clone());
    let report = Verifier::new(trust).verify(&members, &Fetched::nothing());
    match report.overall() {
        Overall::Verified => Ok(Verdict::Verified(verified_by(&report))),
        Overall::Absent => Ok(Verdict::Absent),
        Overall::Unverifiable => Ok(Verdict::Unverifiable(why(&report))),
        Overall::Wrong => {
            let message = format!(
                "the signature of the card at {} is wrong: the card or the signature was changed",
                document.place()
            );
            Err(Failure::local(LocalCode::CardInvalid, message)
                .hint("do not use this card; ask whoever runs the agent"))
        }
    }
}

fn verified_by(report: &Report) -> String {
    let by = report.signatures.iter().find_map(|signature| match &signature.finding {
        Finding::Verified { kid, alg, uncovered, .. } => {
            let kid = kid.as_deref().unwrap_or("without id");
            let rest =
                if uncovered.is_empty() { String::new() } else { format!(", not covered: {}", uncovered.join(", ")) };
            Some(format!("key {kid}, {alg}{rest}"))
        }
        Finding::Unverifiable { .. } | Finding::Wrong { .. } => None,
    });
    by.unwrap_or_default()
}

fn why(report: &Report) -> String {
    let reasons = report.signatures.iter().filter_map(|signature| match &signature.finding {
        Finding::Unverifiable { reason } => Some(reason.to_string()),
        Finding::Verified { .. } | Finding::Wrong { .. } => None,
    });
    report.problem.iter().cloned().chain(reasons).collect::<Vec<_>>().join("; ")
}
