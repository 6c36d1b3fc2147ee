//! Cards that other people signed.

use longhaul_client::signature::{Fetched, Finding, Form, JwkSet, Overall, Reason, TrustStore, Verifier, read_card};
use serde_json::Value;

use super::{form_of, signer::with_signatures, verify};

/// Signed by the reference SDK for Python, as the vectors of the project describe it.
pub fn cards() -> Vec<Value> {
    lines(include_str!("../data/cards.jsonl"))
}

/// One card for each algorithm, signed by the reference SDK for Python 1.3.0 and `PyJWT`; and one as its server gives it out.
fn sdk_signed() -> Vec<Value> {
    lines(include_str!("../data/sdk-signed.jsonl"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| read_card(line.as_bytes()).unwrap()).collect()
}

pub fn trust_of(vector: &Value) -> TrustStore {
    let mut trust = TrustStore::default();
    trust.trust(JwkSet::parse(vector["jwk"].to_string().as_bytes()).unwrap());
    trust
}

#[test]
fn each_card_of_the_vectors_is_verified() {
    let cards = cards();
    assert_eq!(cards.len(), 4);
    for vector in cards {
        let report = verify(trust_of(&vector), &vector["signed"]);
        assert_eq!(form_of(&report.signatures[0].finding), Form::Specification, "{}", vector["about"]);
        // As it was before the SDK read and printed it: with `[]`, and with `3` for `3.0`.
        let signatures = vector["signed"]["signatures"].as_array().unwrap();
        let as_written = with_signatures(&vector["card"], signatures);
        assert_eq!(verify(trust_of(&vector), &as_written).overall(), Overall::Verified, "{}", vector["about"]);
    }
}

#[test]
fn the_reference_sdk_is_verified_in_each_algorithm_and_the_form_is_named() {
    let vectors = sdk_signed();
    assert_eq!(vectors.len(), 11);
    for vector in &vectors {
        let lenient = Verifier::new(trust_of(vector)).with_weakest_form(Form::ReferenceOfKnown);
        let report = lenient.verify(&vector["signed"], &Fetched::nothing());
        assert_eq!(form_of(&report.signatures[0].finding).as_str(), vector["form"], "{}", vector["about"]);
    }
}

#[test]
fn the_reference_form_does_not_cover_a_scheme_without_members_and_says_so() {
    let vectors = sdk_signed();
    let vector = vectors.iter().find(|vector| vector["about"] == "ES256").unwrap();
    let report = verify(trust_of(vector), &vector["signed"]);
    let Finding::Verified { form: Form::Reference, uncovered, .. } = &report.signatures[0].finding else {
        panic!("{report:?}")
    };
    assert_eq!(uncovered, &["securitySchemes.tls"]);
}

#[test]
fn members_that_the_sdks_server_adds_after_signing_are_not_taken_for_signed() {
    let vectors = sdk_signed();
    let vector = vectors.iter().find(|vector| vector["form"] == "reference-of-known").unwrap();
    let report = verify(trust_of(vector), &vector["signed"]);
    assert_eq!(report.overall(), Overall::Unverifiable);
    let Finding::Unverifiable { reason: Reason::FormRefused { form, uncovered } } = &report.signatures[0].finding
    else {
        panic!("{report:?}")
    };
    assert_eq!(*form, Form::ReferenceOfKnown);
    for added in ["url", "preferredTransport", "protocolVersion", "security", "securitySchemes.oauth.type"] {
        assert!(uncovered.iter().any(|path| path == added), "{uncovered:?} lacks {added}");
    }
}
