//! Puts keys, forms and signatures together.

use serde_json::Value;
use url::Url;

use super::canonical::{Form, Payloads};
use super::header::{Envelope, Header};
use super::jku::JkuAllowList;
use super::jwk::{Jwk, JwkSet};
use super::report::{By, Finding, Overall, Reason, Report, SignatureReport};
use super::trust::{Fetched, Match, TrustStore};

/// How many signatures of a card are looked at. The protocol has several for the rotation of keys.
pub const SIGNATURES_MAX: usize = 8;

/// How many keys are tried for one signature; those whose `kid` it names come first.
pub const KEYS_TRIED_MAX: usize = 16;

/// Verifies the signatures of cards (§8.4.3). Does no input or output.
///
/// ```
/// use longhaul_client::signature::{Fetched, JwkSet, Overall, TrustStore, Verifier, read_card};
///
/// let mut trust = TrustStore::default();
/// trust.trust(JwkSet::parse(br#"{"keys":[]}"#)?);
/// let verifier = Verifier::new(trust);
/// let card = read_card(br#"{"name":"n"}"#)?;
/// assert_eq!(verifier.verify(&card, &Fetched::nothing()).overall(), Overall::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Verifier {
    trust: TrustStore,
    jku_allow: JkuAllowList,
    weakest_form: Form,
}

impl Verifier {
    /// A verifier that trusts these keys, follows no `jku`, and accepts [`Form::Specification`] and [`Form::Reference`].
    #[must_use]
    pub fn new(trust: TrustStore) -> Self {
        Self { trust, jku_allow: JkuAllowList::default(), weakest_form: Form::Reference }
    }

    /// Follows a `jku` in a protected header where the list allows it.
    #[must_use]
    pub fn with_jku_allow(mut self, list: JkuAllowList) -> Self {
        self.jku_allow = list;
        self
    }

    /// Accepts this form and the stricter ones. What fits a weaker one is then [`Reason::FormRefused`].
    #[must_use]
    pub fn with_weakest_form(mut self, form: Form) -> Self {
        self.weakest_form = form;
        self
    }

    /// The key sets that the caller should fetch before it calls [`verify`](Self::verify): those that signatures of the card
    /// name in their protected header, that the allow-list has, and that are not in `fetched`. None when a key of the trust
    /// store verifies the card already. At most [`SIGNATURES_MAX`], each once.
    #[must_use]
    pub fn wanted_jku(&self, card: &Value, fetched: &Fetched) -> Vec<Url> {
        let mut wanted = Vec::new();
        // Without an allowed set there is none to be fetched, whatever the signatures say.
        if self.jku_allow.is_empty() {
            return wanted;
        }
        let report = self.verify(card, fetched);
        if report.overall() == Overall::Verified {
            return wanted;
        }
        for signature in report.signatures {
            let is_readable = match signature.finding {
                Finding::Unverifiable { reason } => !matches!(
                    reason,
                    Reason::Malformed { .. }
                        | Reason::AlgorithmRefused { .. }
                        | Reason::Refused { .. }
                        | Reason::Card { .. }
                ),
                Finding::Wrong { .. } | Finding::Verified { .. } => true,
            };
            let url = signature.jku.filter(|_| is_readable).and_then(|jku| self.jku_allow.allowed(&jku));
            wanted.extend(url.filter(|url| fetched.set(url).is_none() && !wanted.contains(url)));
        }
        wanted
    }

    /// Verifies the signatures of a card as it was received.
    ///
    /// Reads nothing but its arguments and can't fail: whatever is wrong with the card is in the report.
    pub fn verify(&self, card: &Value, fetched: &Fetched) -> Report {
        let Some(members) = card.as_object() else {
            return Report { problem: Some("the card is not a JSON object".to_owned()), ..Report::default() };
        };
        let entries = match members.get("signatures") {
            None | Some(Value::Null) => return Report::default(),
            Some(Value::Array(entries)) => entries,
            Some(_) => {
                return Report { problem: Some("\"signatures\" is not a list".to_owned()), ..Report::default() };
            }
        };
        if entries.is_empty() {
            return Report::default();
        }
        let payloads = Payloads::of(card).map_err(|problem| Reason::Card { problem: problem.to_string() });
        let look = |entry| self.look_at(entry, payloads.as_ref(), fetched);
        Report {
            signatures: entries.iter().take(SIGNATURES_MAX).map(look).collect(),
            not_looked_at: entries.len().saturating_sub(SIGNATURES_MAX),
            problem: None,
        }
    }

    fn look_at(&self, entry: &Value, payloads: Result<&Payloads, &Reason>, fetched: &Fetched) -> SignatureReport {
        let envelope = Envelope::open(entry);
        let said = |name| envelope.as_ref().ok().and_then(|envelope| envelope.said(name)).map(str::to_owned);
        let (kid, alg, jku) = (said("kid"), said("alg"), said("jku"));
        let finding = envelope.and_then(|envelope| {
            let header = envelope.header()?;
            self.try_keys(&envelope, &header, payloads.map_err(Reason::clone)?, fetched)
        });
        SignatureReport { kid, alg, jku, finding: finding.unwrap_or_else(|reason| Finding::Unverifiable { reason }) }
    }

    /// # Errors
    ///
    /// The reason why it can't be told whether the signature fits.
    fn try_keys(
        &self,
        envelope: &Envelope<'_>,
        header: &Header<'_>,
        payloads: &Payloads,
        fetched: &Fetched,
    ) -> Result<Finding, Reason> {
        let jku = self.jku_set(header, fetched);
        let trusted = self.trust.sets(fetched.card_url()).map(|set| (By::TrustStore, set));
        let sets: Vec<(By, &JwkSet)> = trusted.chain(jku.clone().ok().flatten()).collect();
        let candidates = candidates(&sets, header);
        let messages: Vec<(Form, String)> =
            payloads.iter().map(|(form, payload)| (form, format!("{}.{payload}", envelope.protected))).collect();
        for (_, by, key) in &candidates.usable {
            let fits = |message: &str| key.verifies(header.algorithm, message.as_bytes(), &envelope.signature);
            if let Some((form, _)) = messages.iter().find(|(_, message)| fits(message)) {
                return self.accept(*form, payloads, key, (*by).clone(), header);
            }
        }
        match (candidates.usable.first(), header.kid) {
            (Some((Match::Named, ..)), Some(kid)) => Ok(Finding::Wrong { kid: kid.to_owned(), alg: header.algorithm }),
            _ => Err(why_not(&candidates, &sets, header, jku.err())),
        }
    }

    fn accept(
        &self,
        form: Form,
        payloads: &Payloads,
        key: &Jwk,
        by: By,
        header: &Header<'_>,
    ) -> Result<Finding, Reason> {
        let uncovered = payloads.uncovered(form);
        if form > self.weakest_form {
            return Err(Reason::FormRefused { form, uncovered });
        }
        Ok(Finding::Verified { kid: key.kid().map(str::to_owned), alg: header.algorithm, by, form, uncovered })
    }

    /// The key set that the header names, if it names one.
    ///
    /// # Errors
    ///
    /// The reason why it can't be used.
    fn jku_set<'a>(&self, header: &Header<'_>, fetched: &'a Fetched) -> Result<Option<(By, &'a JwkSet)>, Reason> {
        let Some(jku) = header.jku else { return Ok(None) };
        let url =
            self.jku_allow.allowed(jku).ok_or_else(|| Reason::JkuNotAllowed { jku: super::json::excerpt(jku) })?;
        match fetched.set(&url) {
            None => Err(Reason::JkuNotFetched { jku: url }),
            Some(Err(problem)) => Err(Reason::JkuFailed { jku: url, problem: problem.clone() }),
            Some(Ok(set)) => Ok(Some((By::Jku(url), set))),
        }
    }
}

/// The keys that a signature may mean.
struct Candidates<'a> {
    /// Those that fit its algorithm, the surest first, at most [`KEYS_TRIED_MAX`].
    usable: Vec<(Match, &'a By, &'a Jwk)>,
    /// The first that doesn't.
    misfit: Option<&'a Jwk>,
}

fn candidates<'a>(sets: &'a [(By, &'a JwkSet)], header: &'a Header<'_>) -> Candidates<'a> {
    let all = sets.iter().flat_map(|(by, set)| set.candidates(header.kid).map(move |(sure, key)| (sure, by, key)));
    let (mut usable, misfits): (Vec<_>, Vec<_>) = all.partition(|(_, _, key)| key.fits(header.algorithm));
    usable.sort_by_key(|(sure, _, _)| *sure);
    usable.truncate(KEYS_TRIED_MAX);
    // A key that the signature names explains more than one that it may mean.
    Candidates { usable, misfit: misfits.iter().min_by_key(|(sure, _, _)| *sure).map(|(_, _, key)| *key) }
}

/// Why a signature could not be verified, where no key that it names was tried.
fn why_not(candidates: &Candidates<'_>, sets: &[(By, &JwkSet)], header: &Header<'_>, jku: Option<Reason>) -> Reason {
    let kid = header.kid.map(str::to_owned);
    if let Some(refused) = sets.iter().find_map(|(_, set)| set.refused_of(header.kid)) {
        return Reason::KeyRefused { kid: kid.unwrap_or_default(), error: refused.error.clone() };
    }
    if let Some(reason) = jku {
        return reason;
    }
    if !candidates.usable.is_empty() {
        return Reason::NoneFits { keys: candidates.usable.len() };
    }
    match candidates.misfit {
        Some(key) => Reason::KeyMisfit { kid, kind: key.kind(), alg: header.algorithm },
        None => Reason::KeyUnknown { kid },
    }
}
