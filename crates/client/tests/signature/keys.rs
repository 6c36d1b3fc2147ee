//! Key sets, and those that a card points at.

use longhaul_client::signature::{
    By, Fetched, Finding, JkuAllowList, Jwk, JwkError, JwkSet, JwkSetError, KEYS_TRIED_MAX, Overall, Reason,
    TrustStore, Verifier,
};
use serde_json::{Value, json};
use url::Url;

use super::signer::{Signer, base64url, plain_card, set_of, with, with_signatures};
use super::verify;

const JKU: &str = "https://keys.example/jwks.json";

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn allowing(entry: &str) -> Verifier {
    Verifier::new(TrustStore::default()).with_jku_allow(entry.parse::<JkuAllowList>().unwrap())
}

fn card_with_jku(signer: &Signer, jku: &str) -> Value {
    let header = with(&signer.header(), "jku", json!(jku));
    with_signatures(&plain_card(), &[signer.entry_with_header(&plain_card(), &header)])
}

fn fetched(set: Result<JwkSet, String>) -> Fetched {
    let mut fetched = Fetched::nothing();
    fetched.insert(url(JKU), set);
    fetched
}

fn reason(verifier: &Verifier, card: &Value, fetched: &Fetched) -> Reason {
    match verifier.verify(card, fetched).signatures.remove(0).finding {
        Finding::Unverifiable { reason } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_key_set_on_the_allow_list_is_wanted_and_then_used() {
    let signer = Signer::es256("k");
    let card = card_with_jku(&signer, JKU);
    for entry in [JKU, "https://keys.example"] {
        let verifier = allowing(entry);
        assert_eq!(verifier.wanted_jku(&card, &Fetched::nothing()), [url(JKU)]);
        let not_fetched = Reason::JkuNotFetched { jku: url(JKU) };
        assert_eq!(reason(&verifier, &card, &Fetched::nothing()), not_fetched);

        let fetched = fetched(Ok(signer.set()));
        let report = verifier.verify(&card, &fetched);
        let Finding::Verified { by, .. } = &report.signatures[0].finding else { panic!("{report:?}") };
        assert_eq!(*by, By::Jku(url(JKU)));
        assert_eq!(verifier.wanted_jku(&card, &fetched), []);
    }
}

#[test]
fn no_key_set_is_wanted_or_used_that_the_allow_list_lacks() {
    let signer = Signer::es256("k");
    let card = card_with_jku(&signer, JKU);
    for verifier in
        [Verifier::new(TrustStore::default()), allowing("https://other.example"), allowing("https://keys.example/x")]
    {
        assert_eq!(verifier.wanted_jku(&card, &Fetched::nothing()), []);
        let refused = Reason::JkuNotAllowed { jku: JKU.to_owned() };
        assert_eq!(reason(&verifier, &card, &fetched(Ok(signer.set()))), refused);
    }
    let plain = card_with_jku(&signer, "http://keys.example/jwks.json");
    assert_eq!(allowing("https://keys.example").wanted_jku(&plain, &Fetched::nothing()), []);
}

#[test]
fn a_key_set_in_the_unprotected_header_is_never_wanted() {
    let signer = Signer::es256("k");
    let entry = with(&signer.entry(&plain_card()), "header", json!({ "jku": JKU }));
    let card = with_signatures(&plain_card(), &[entry]);
    let verifier = allowing(JKU);
    assert_eq!(verifier.wanted_jku(&card, &Fetched::nothing()), []);
    let unknown = Reason::KeyUnknown { kid: Some("k".to_owned()) };
    assert_eq!(reason(&verifier, &card, &fetched(Ok(signer.set()))), unknown);
}

#[test]
fn nothing_is_fetched_for_a_card_that_is_verified_or_that_no_key_could_verify() {
    let signer = Signer::es256("k");
    let list: JkuAllowList = JKU.parse().unwrap();
    let trusting = Verifier::new(signer.trusted()).with_jku_allow(list);
    assert_eq!(trusting.wanted_jku(&card_with_jku(&signer, JKU), &Fetched::nothing()), []);

    let header = json!({ "alg": "none", "kid": "k", "jku": JKU });
    let unsigned = with_signatures(&plain_card(), &[signer.entry_with_header(&plain_card(), &header)]);
    assert_eq!(allowing(JKU).wanted_jku(&unsigned, &Fetched::nothing()), []);
}

#[test]
fn each_key_set_is_wanted_once() {
    let signer = Signer::es256("k");
    let header = with(&signer.header(), "jku", json!(JKU));
    let entry = signer.entry_with_header(&plain_card(), &header);
    let card = with_signatures(&plain_card(), &vec![entry; 20]);
    assert_eq!(allowing(JKU).wanted_jku(&card, &Fetched::nothing()), [url(JKU)]);
}

#[test]
fn a_key_set_that_could_not_be_had_is_a_reason_and_not_wanted_again() {
    let card = card_with_jku(&Signer::es256("k"), JKU);
    let failed = fetched(Err("status 503".to_owned()));
    let verifier = allowing(JKU);
    assert_eq!(verifier.wanted_jku(&card, &failed), []);
    let problem = "status 503".to_owned();
    assert_eq!(reason(&verifier, &card, &failed), Reason::JkuFailed { jku: url(JKU), problem });
}

#[test]
fn a_card_that_was_changed_is_wrong_by_a_fetched_key_too() {
    let signer = Signer::es256("k");
    let card = with(&card_with_jku(&signer, JKU), "name", json!("m"));
    assert_eq!(allowing(JKU).verify(&card, &fetched(Ok(signer.set()))).overall(), Overall::Wrong);
}

#[test]
fn a_bounded_number_of_keys_is_tried_and_those_of_the_kid_first() {
    let (signer, other) = (Signer::es256("k"), Signer::es256("o"));
    let mut nameless = other.jwk();
    nameless.as_object_mut().unwrap().shift_remove("kid");
    let mut keys = vec![nameless; 50];
    let card = with_signatures(&plain_card(), &[signer.entry(&plain_card())]);
    let trusting = |keys: &[Value]| {
        let mut trust = TrustStore::default();
        trust.trust(set_of(keys));
        Verifier::new(trust)
    };
    let none_fits = Reason::NoneFits { keys: KEYS_TRIED_MAX };
    assert_eq!(reason(&trusting(&keys), &card, &Fetched::nothing()), none_fits);
    keys.push(signer.jwk());
    assert_eq!(trusting(&keys).verify(&card, &Fetched::nothing()).overall(), Overall::Verified);
}

#[test]
fn a_point_that_is_on_no_curve_verifies_nothing() {
    let signer = Signer::es256("k");
    let mut trust = TrustStore::default();
    trust.trust(set_of(&[with(&signer.jwk(), "y", json!(base64url([7; 32])))]));
    let card = with_signatures(&plain_card(), &[signer.entry(&plain_card())]);
    assert_ne!(verify(trust, &card).overall(), Overall::Verified);
}

#[test]
fn a_set_keeps_the_keys_that_it_can_use_and_says_why_not_the_others() {
    let ec = Signer::es256("e").jwk();
    let rsa = Signer::rs256("r").jwk();
    let short = base64url([0xff; 128]);
    let member = |member| JwkError::Member { member, problem: String::new() };
    #[rustfmt::skip]
    let refused = [
        (json!(1), JwkError::NotAnObject),
        (json!({}), member("kty")),
        (with(&ec, "kty", json!(1)), member("kty")),
        (with(&ec, "kid", json!(1)), member("kid")),
        (with(&ec, "x", json!("AA")), member("x")),
        (with(&ec, "y", json!("A=")), member("y")),
        (with(&ec, "use", json!(["sig"])), member("use")),
        (with(&ec, "key_ops", json!("verify")), member("key_ops")),
        (with(&ec, "crv", json!("P-521")), JwkError::Kind { kind: "P-521".to_owned() }),
        (with(&ec, "crv", json!("secp256k1")), JwkError::Kind { kind: "secp256k1".to_owned() }),
        (json!({ "kty": "OKP", "crv": "X25519", "x": base64url([1; 32]) }), JwkError::Kind { kind: "X25519".to_owned() }),
        (json!({ "kty": "oct", "k": "AA" }), JwkError::Secret { member: "k" }),
        (with(&ec, "d", json!("AA")), JwkError::Secret { member: "d" }),
        (with(&ec, "use", json!("enc")), JwkError::Use { member: "use", value: "enc".to_owned() }),
        (with(&ec, "key_ops", json!([])), JwkError::Use { member: "key_ops", value: String::new() }),
        (with(&ec, "alg", json!("ES384")), JwkError::Algorithm { alg: "ES384".to_owned(), kind: "EC P-256" }),
        (with(&rsa, "alg", json!("RSA-OAEP")), JwkError::Algorithm { alg: "RSA-OAEP".to_owned(), kind: "RSA" }),
        (with(&rsa, "n", json!(short)), JwkError::RsaBits { bits: 1024 }),
        (with(&rsa, "n", json!("")), JwkError::RsaBits { bits: 0 }),
        (with(&rsa, "n", json!(base64url([0xff; 1025]))), JwkError::RsaBits { bits: 8200 }),
        (with(&rsa, "n", json!(base64url([0xfe; 256]))), member("n")),
        (with(&rsa, "e", json!("AQ")), member("e")),
        (with(&rsa, "e", json!("Ag")), member("e")),
        (with(&rsa, "e", json!(base64url([1; 9]))), member("e")),
    ];
    let keys: Vec<Value> = refused.iter().map(|(key, _)| key.clone()).chain([ec, rsa]).collect();
    let set = set_of(&keys);
    assert_eq!(set.keys().iter().map(Jwk::kid).collect::<Vec<_>>(), [Some("e"), Some("r")]);
    assert_eq!(set.refused().len(), refused.len());
    for (refused, (key, wanted)) in set.refused().iter().zip(refused) {
        let error = match refused.error.clone() {
            JwkError::Member { member: name, .. } => member(name),
            other => other,
        };
        assert_eq!(error, wanted, "{key}");
    }
}

#[test]
fn a_text_that_is_no_set_is_refused_as_a_whole() {
    let key = Signer::es256("k").jwk();
    let parse = |text: &str| JwkSet::parse(text.as_bytes());
    assert_eq!(parse(&key.to_string()).unwrap().keys().len(), 1, "one key is a set of one");
    assert_eq!(parse(r#"{"keys":[]}"#).unwrap(), JwkSet::default());
    for text in ["", "{", "\u{feff}{}", r#"{"keys":[],"keys":[]}"#, &"[".repeat(10_000)] {
        assert!(matches!(parse(text), Err(JwkSetError::NotJson { .. })), "{text:.40}");
    }
    for text in ["{}", "[]", "7", r#"{"keys":{}}"#] {
        assert_eq!(parse(text), Err(JwkSetError::NoKeys), "{text}");
    }
    let many = |keys: usize| json!({ "keys": vec![&key; keys] }).to_string();
    assert_eq!(parse(&many(JwkSet::KEYS_MAX)).unwrap().keys().len(), JwkSet::KEYS_MAX);
    assert_eq!(parse(&many(101)), Err(JwkSetError::TooManyKeys { keys: 101 }));
    assert_eq!(parse(&" ".repeat(JwkSet::BYTES_MAX + 1)), Err(JwkSetError::TooLarge));
}
