//! `card get`: who an agent says it is, and whether that can be believed (§10.1 of the contract).

use std::path::Path;

use longhaul_client::FoundCard;
use longhaul_client::card::{CardDocument, Problem, Severity, Written};
use longhaul_client::signature::{By, Finding, Overall, Report};
use longhaul_protocol::wire::AgentCard;
use serde_json::Value;

use crate::arguments::OutputForm;
use crate::caller::arguments::CardFlags;
use crate::caller::failure::{Failure, LocalCode, TRUST_HINT};
use crate::caller::options::CardTrust;
use crate::caller::render::{Page, Verdict, card, json};
use crate::caller::session::{End, Session};
use crate::caller::way::keys;

/// Fetches and shows a card.
///
/// # Errors
///
/// [`End`] when there is none, or it does not hold what was asked of it.
pub async fn get(session: &Session, flags: &CardFlags) -> Result<(), End> {
    let found = session.card().await?;
    let document = &*found.document;
    let verdict = verdict(session, &found, flags).await?;
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
            if flags.verify.is_some() || session.options.trust == CardTrust::Verified {
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
        page.field("Remark", problem.to_string().trim_start_matches("remark: "));
    }
}

/// A card of v1.0 is handed on with all of its members, those too that nobody here knows: signatures are over them.
fn as_it_came(document: &CardDocument) -> String {
    match document.written() {
        Written::V1_0 | Written::Both => json::value(&Value::Object(document.members().clone())),
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

/// What the signatures are worth, by the keys that are trusted.
///
/// # Errors
///
/// A [`Failure`] when one was made by a key that is known, and does not fit: the card was changed. Also when nobody vouches for
/// the card, where that is needed.
async fn verdict(session: &Session, found: &FoundCard, flags: &CardFlags) -> Result<Verdict, Failure> {
    let is_required = session.options.trust == CardTrust::Verified;
    let more = match flags.verify.as_deref() {
        None if !is_required => return Ok(Verdict::without_keys(found.document.card())),
        None | Some("") => None,
        Some(path) => Some(keys("--verify", Path::new(path))?),
    };
    let verifier = session.way.verifier(more);
    let report = session.builder()?.verify_card(found, &verifier).await.map_err(|error| session.failure(&error))?;
    let place = found.document.place();
    let verdict = match report.overall() {
        Overall::Verified => return Ok(Verdict::Verified(verified_by(&report))),
        Overall::Wrong => {
            let message =
                format!("the signature of the card at {place} is wrong: the card or the signature was changed");
            return Err(Failure::local(LocalCode::CardInvalid, message)
                .hint("do not use this card; ask whoever runs the agent"));
        }
        Overall::Absent => Verdict::Absent,
        Overall::Unverifiable => Verdict::Unverifiable(why(&report)),
    };
    if is_required {
        let message = format!("the card at {place} is not verified: {}", verdict.words());
        return Err(Failure::local(LocalCode::NotVerified, message).hint(TRUST_HINT));
    }
    Ok(verdict)
}

fn verified_by(report: &Report) -> String {
    let by = report.signatures.iter().find_map(|signature| match &signature.finding {
        Finding::Verified { kid, alg, uncovered, by, .. } => {
            let kid = kid.as_deref().unwrap_or("without id");
            let by = match by {
                By::TrustStore => String::new(),
                By::Jku(url) => format!(" of {url}"),
            };
            let rest =
                if uncovered.is_empty() { String::new() } else { format!(", not covered: {}", uncovered.join(", ")) };
            Some(format!("key {kid}{by}, {alg}{rest}"))
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
