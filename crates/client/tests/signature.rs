//! Signed cards: what is verified, what can't be, and what is wrong.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[path = "signature/keys.rs"]
mod keys;
#[path = "signature/properties.rs"]
mod properties;
#[path = "signature/refusals.rs"]
mod refusals;
#[path = "signature/signer.rs"]
mod signer;
#[path = "signature/vectors.rs"]
mod vectors;

use longhaul_client::signature::{
    Algorithm, By, Fetched, Finding, Form, Overall, Reason, Report, SIGNATURES_MAX, TrustStore, Verifier,
};
use serde_json::{Value, json};

use signer::{Signer, plain_card, set_of, with, with_signatures};

fn verify(trust: TrustStore, card: &Value) -> Report {
    Verifier::new(trust).verify(card, &Fetched::nothing())
}

/// What the one signature of the card comes to.
fn finding(trust: TrustStore, card: &Value) -> Finding {
    let report = verify(trust, card);
    assert_eq!(report.signatures.len(), 1, "{report:?}");
    report.signatures.into_iter().next().unwrap().finding
}

fn form_of(finding: &Finding) -> Form {
    match finding {
        Finding::Verified { form, .. } => *form,
        other => panic!("{other}"),
    }
}

#[test]
fn a_card_is_verified_by_each_kind_of_key() {
    for signer in [Signer::es256("e"), Signer::ed_dsa("d"), Signer::rs256("r")] {
        let card = with_signatures(&plain_card(), &[signer.entry(&plain_card())]);
        let wanted = Finding::Verified {
            kid: Some(signer.kid.to_owned()),
            alg: Algorithm::from_name(signer.alg()).unwrap(),
            by: By::TrustStore,
            form: Form::Specification,
            uncovered: vec![],
        };
        let report = verify(signer.trusted(), &card);
        assert_eq!((report.signatures[0].finding.clone(), report.overall()), (wanted, Overall::Verified));
    }
}

#[test]
fn a_card_without_signatures_is_absent_and_never_verified() {
    for card in [plain_card(), with_signatures(&plain_card(), &[]), with(&plain_card(), "signatures", Value::Null)] {
        assert_eq!(verify(Signer::es256("k").trusted(), &card).overall(), Overall::Absent);
    }
}

#[test]
fn what_is_no_card_or_has_no_list_of_signatures_can_not_be_verified() {
    let mut nested = json!(1);
    for _ in 0..200 {
        nested = json!([nested]);
    }
    let signer = Signer::es256("k");
    let entry = signer.entry(&plain_card());
    for card in [
        json!(null),
        json!([]),
        with(&plain_card(), "signatures", json!({})),
        with(&plain_card(), "signatures", json!("x")),
        with(&with_signatures(&plain_card(), std::slice::from_ref(&entry)), "x", nested),
        with(&with_signatures(&plain_card(), &[entry]), "x", json!(9_007_199_254_740_993_u64)),
    ] {
        let report = verify(signer.trusted(), &card);
        assert_eq!(report.overall(), Overall::Unverifiable, "{report:?}");
    }
}

#[test]
fn the_forms_are_told_apart_and_what_is_not_covered_is_named() {
    let signer = Signer::es256("k");
    let params = json!({ "null": null, "list": [], "object": {}, "text": "" });
    let mut card = plain_card();
    card["description"] = json!("");
    card["iconUrl"] = json!("");
    card["capabilities"] = json!({ "extensions": [{ "uri": "u", "params": params, "required": false }] });
    // What the two kinds of signer sign, written down by hand.
    let mut specification = card.clone();
    specification["capabilities"] = json!({ "extensions": [{ "uri": "u", "params": params }] });
    let mut reference = plain_card();
    reference.as_object_mut().unwrap().shift_remove("description");
    reference["capabilities"] = json!({ "extensions": [{ "uri": "u" }] });

    let by_specification = finding(signer.trusted(), &with_signatures(&card, &[signer.entry(&specification)]));
    assert_eq!(form_of(&by_specification), Form::Specification);
    let Finding::Verified { form, uncovered, .. } =
        finding(signer.trusted(), &with_signatures(&card, &[signer.entry(&reference)]))
    else {
        panic!("not verified")
    };
    assert_eq!(form, Form::Reference);
    assert_eq!(uncovered, ["description", "capabilities.extensions[0].params", "iconUrl"]);
    // Signed as it stands there, with a default value that stands for nothing: neither form.
    let as_it_stands = with_signatures(&card, &[signer.entry(&card)]);
    assert_eq!(verify(signer.trusted(), &as_it_stands).overall(), Overall::Wrong);
}

#[test]
fn a_member_that_the_protocol_does_not_know_is_part_of_what_was_signed() {
    let signer = Signer::es256("k");
    let extended = with(&plain_card(), "x-owner", json!({ "team": ["a", ""] }));
    let card = with_signatures(&extended, &[signer.entry(&extended)]);
    assert_eq!(form_of(&finding(signer.trusted(), &card)), Form::Specification);
    assert_eq!(verify(signer.trusted(), &with(&card, "x-owner", json!("b"))).overall(), Overall::Wrong);

    let added_later =
        with(&with_signatures(&plain_card(), &[signer.entry(&plain_card())]), "url", json!("https://evil"));
    let reason = Reason::FormRefused { form: Form::ReferenceOfKnown, uncovered: vec!["url".to_owned()] };
    assert_eq!(finding(signer.trusted(), &added_later), Finding::Unverifiable { reason });
    let lenient = Verifier::new(signer.trusted()).with_weakest_form(Form::ReferenceOfKnown);
    let report = lenient.verify(&added_later, &Fetched::nothing());
    assert_eq!(form_of(&report.signatures[0].finding), Form::ReferenceOfKnown);
}

#[test]
fn a_strict_verifier_accepts_the_form_of_the_specification_alone() {
    let signer = Signer::es256("k");
    let card = with_signatures(&with(&plain_card(), "iconUrl", json!("")), &[signer.entry(&plain_card())]);
    let strict = Verifier::new(signer.trusted()).with_weakest_form(Form::Specification);
    assert_eq!(strict.verify(&card, &Fetched::nothing()).overall(), Overall::Unverifiable);
    assert_eq!(verify(signer.trusted(), &card).overall(), Overall::Verified);
}

#[test]
fn one_signature_that_fits_is_enough_and_the_report_shows_all() {
    let (ours, theirs) = (Signer::es256("ours"), Signer::ed_dsa("theirs"));
    let wrong = ours.entry(&json!({ "name": "another card" }));
    let card = with_signatures(&plain_card(), &[wrong.clone(), theirs.entry(&plain_card()), ours.entry(&plain_card())]);
    let report = verify(ours.trusted(), &card);
    assert_eq!(report.overall(), Overall::Verified);
    let findings: Vec<&Finding> = report.signatures.iter().map(|signature| &signature.finding).collect();
    assert!(matches!(
        findings.as_slice(),
        [Finding::Wrong { .. }, Finding::Unverifiable { reason: Reason::KeyUnknown { .. } }, Finding::Verified { .. }]
    ));

    let without = with_signatures(&plain_card(), &[wrong, theirs.entry(&plain_card())]);
    assert_eq!(verify(ours.trusted(), &without).overall(), Overall::Wrong);
    let unknown = with_signatures(&plain_card(), &[theirs.entry(&plain_card()), json!(7)]);
    assert_eq!(verify(ours.trusted(), &unknown).overall(), Overall::Unverifiable);
}

#[test]
fn no_more_than_eight_signatures_are_looked_at() {
    let signer = Signer::es256("k");
    let mut entries = vec![json!({}); SIGNATURES_MAX];
    entries.push(signer.entry(&plain_card()));
    let report = verify(signer.trusted(), &with_signatures(&plain_card(), &entries));
    assert_eq!((report.overall(), report.signatures.len(), report.not_looked_at), (Overall::Unverifiable, 8, 1));
    entries.remove(0);
    assert_eq!(verify(signer.trusted(), &with_signatures(&plain_card(), &entries)).overall(), Overall::Verified);
}

#[test]
fn a_signature_by_another_key_of_the_same_name_is_wrong_and_one_by_a_nameless_key_unverifiable() {
    let (signer, other) = (Signer::es256("k"), Signer::es256("k"));
    let card = with_signatures(&plain_card(), &[signer.entry(&plain_card())]);
    let wrong = Finding::Wrong { kid: "k".to_owned(), alg: Algorithm::Es256 };
    assert_eq!(finding(other.trusted(), &card), wrong);

    // Both agents call their key `k`: each key of that name is tried.
    let mut both = other.trusted();
    both.trust(signer.set());
    assert_eq!(verify(both, &card).overall(), Overall::Verified);

    let nameless = |signer: &Signer| {
        let mut key = signer.jwk();
        key.as_object_mut().unwrap().shift_remove("kid");
        let mut trust = TrustStore::default();
        trust.trust(set_of(&[key]));
        trust
    };
    assert_eq!(verify(nameless(&signer), &card).overall(), Overall::Verified);
    let reason = Reason::NoneFits { keys: 1 };
    assert_eq!(finding(nameless(&other), &card), Finding::Unverifiable { reason });
}

#[test]
fn a_signature_without_kid_is_tried_with_every_key() {
    let (signer, other) = (Signer::es256("k"), Signer::es256("o"));
    let entry = signer.entry_with_header(&plain_card(), &json!({ "alg": "ES256" }));
    let card = with_signatures(&plain_card(), &[entry]);
    let mut trust = other.trusted();
    assert_eq!(finding(trust.clone(), &card), Finding::Unverifiable { reason: Reason::NoneFits { keys: 1 } });
    trust.trust(signer.set());
    let Finding::Verified { kid, .. } = finding(trust, &card) else { panic!("not verified") };
    assert_eq!(kid.as_deref(), Some("k"));
}

#[test]
fn a_key_that_is_trusted_for_an_origin_counts_for_cards_from_there_alone() {
    let signer = Signer::es256("k");
    let card = with_signatures(&plain_card(), &[signer.entry(&plain_card())]);
    let mut trust = TrustStore::default();
    trust.trust_for_origin(&"https://a.example".parse().unwrap(), signer.set());
    let verifier = Verifier::new(trust);
    let from = |url: &str| verifier.verify(&card, &Fetched::of_card_at(url.parse().unwrap())).overall();
    assert_eq!(from("https://a.example/.well-known/agent-card.json"), Overall::Verified);
    for other in ["https://a.example:444/", "http://a.example/", "https://b.example/", "data:,x"] {
        assert_eq!(from(other), Overall::Unverifiable, "{other}");
    }
    assert_eq!(verifier.verify(&card, &Fetched::nothing()).overall(), Overall::Unverifiable);
}
