//! Verifies cards that are fetched, and sees to it that nothing else of them is used (§8.4).

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::Value;
use url::Url;

use super::builder::ClientBuilder;
use super::discover::FoundCard;
use crate::card::{CardDocument, CardOrigin, Reach};
use crate::error::{CardError, ClientError, explain};
use crate::signature::{Fetched, Finding, Form, JwkSet, Overall, Report, Verifier, covered};
use crate::transport::{Deadline, Transport, TransportConfig, Verification, shown};

impl ClientBuilder {
    /// Verifies a card's signatures, and tells what came out. Fetches the key sets that they name and the verifier allows: over
    /// verified TLS, without following redirects, without the client's certificate or credentials, at most
    /// [`JwkSet::BYTES_MAX`] of each, and all of them within [`timeout`](ClientBuilder::timeout). What could not be fetched is in
    /// the report.
    ///
    /// Keys that are trusted for an origin count only for a card that came from there over verified TLS.
    ///
    /// # Errors
    ///
    /// [`ClientError::Setup`] when the transport can't be set up.
    pub async fn verify_card(&self, card: &FoundCard, verifier: &Verifier) -> Result<Report, ClientError> {
        let fetched = self.fetch_keys(card, verifier).await?;
        Ok(verifier.verify(&Value::Object(card.document.members().clone()), &fetched))
    }

    pub(super) async fn fetch_keys(&self, card: &FoundCard, verifier: &Verifier) -> Result<Fetched, ClientError> {
        let mut fetched = self.fetched(card);
        let wanted = verifier.wanted_jku(&Value::Object(card.document.members().clone()), &fetched);
        if wanted.is_empty() {
            return Ok(fetched);
        }
        // The certificate is for agents. The operator named the sets, so they may be anywhere.
        let config = TransportConfig { identity: None, ..self.transport.clone() };
        let transport = Transport::new(&config, Arc::new(Reach::ANYWHERE))?;
        let deadline = Deadline::after(self.options.timeout);
        for url in wanted {
            let set = match config.verification {
                Verification::Full => key_set(&transport, &url, deadline).await,
                Verification::Off => Err("the peer's certificate would not be verified".to_owned()),
            };
            fetched.insert(url, set);
        }
        Ok(fetched)
    }

    /// What is known about where the card came from.
    pub(super) fn fetched(&self, card: &FoundCard) -> Fetched {
        let is_proven = self.transport.verification == Verification::Full && card.origin != CardOrigin::caller();
        let url = Url::parse(card.document.place()).ok().filter(|url| is_proven && url.scheme() == "https");
        url.map_or_else(Fetched::nothing, Fetched::of_card_at)
    }
}

/// # Errors
///
/// Why the set could not be had.
async fn key_set(transport: &Transport, url: &Url, deadline: Deadline) -> Result<JwkSet, String> {
    let request = Request::builder()
        .method(Method::GET)
        .uri(url.as_str())
        .header(header::ACCEPT, "application/jwk-set+json, application/json;q=0.9")
        .body(Full::new(Bytes::new()))
        .map_err(|error| error.to_string())?;
    let whom = shown(request.uri());
    // With the causes: they are no source of a finding.
    let told = |error: ClientError| explain(&error);
    let (head, body) = transport.send(request, deadline).await.map_err(told)?.into_parts();
    if !head.status.is_success() {
        return Err(format!("HTTP status {}", head.status.as_u16()));
    }
    let text = transport.read(body, JwkSet::BYTES_MAX, &whom, deadline).await.map_err(told)?;
    JwkSet::parse(&text).map_err(|error| error.to_string())
}

/// The part of a verified card that its signature covers, which is all that may be used of it.
///
/// # Errors
///
/// [`CardError::Unverified`] when no signature fits by a trusted key and in a form that the verifier accepts.
pub(super) fn covered_part(card: FoundCard, verifier: &Verifier, fetched: &Fetched) -> Result<FoundCard, CardError> {
    let members = Value::Object(card.document.members().clone());
    let report = verifier.verify(&members, fetched);
    let place = card.document.place();
    let unverified = || CardError::Unverified { place: place.to_owned(), report: text_of(&report) };
    let form = strictest_form(&report).ok_or_else(unverified)?;
    let invalid = |problem: String| CardError::Invalid { place: place.to_owned(), problem };
    let part = covered(&members, form).map_err(|problem| invalid(problem.to_string()))?;
    let text = serde_json::to_vec(&part).map_err(|error| invalid(error.to_string()))?;
    let document = Arc::new(CardDocument::parse(&text, place)?);
    Ok(FoundCard { document, origin: card.origin })
}

fn strictest_form(report: &Report) -> Option<Form> {
    let forms = report.signatures.iter().filter_map(|signature| match &signature.finding {
        Finding::Verified { form, .. } => Some(*form),
        Finding::Unverifiable { .. } | Finding::Wrong { .. } => None,
    });
    forms.min().filter(|_| report.overall() == Overall::Verified)
}

fn text_of(report: &Report) -> String {
    let findings: Vec<String> = report.signatures.iter().map(|signature| signature.finding.to_string()).collect();
    match (&report.problem, findings.is_empty()) {
        (Some(problem), _) => problem.clone(),
        (None, true) => "it carries no signature".to_owned(),
        (None, false) => findings.join("; "),
    }
}
