//! What a signature may not be, or ask for.

use longhaul_client::signature::{Finding, HEADER_BYTES_MAX, Overall, Reason, TrustStore};
use serde_json::{Value, json};

use super::signer::{Signer, base64url, plain_card, set_of, with, with_signatures};
use super::{finding, verify};

fn reason(trust: TrustStore, entry: Value) -> Reason {
    match finding(trust, &with_signatures(&plain_card(), &[entry])) {
        Finding::Unverifiable { reason } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn an_algorithm_that_is_not_accepted_is_refused_by_its_name() {
    let signer = Signer::es256("k");
    for alg in ["none", "None", "HS256", "HS384", "HS512", "ES512", "ES256K", "RS1", "es256", ""] {
        let mut entry = signer.entry_with_header(&plain_card(), &with(&signer.header(), "alg", json!(alg)));
        let refused = Reason::AlgorithmRefused { alg: alg.to_owned() };
        assert_eq!(reason(signer.trusted(), entry.clone()), refused);
        entry["signature"] = json!("");
        assert_eq!(reason(signer.trusted(), entry), refused);
    }
}

#[test]
fn a_public_key_is_never_the_secret_of_an_hmac() {
    let signer = Signer::rs256("k");
    let protected = base64url(r#"{"alg":"HS256","kid":"k"}"#);
    let payload = base64url(serde_json_canonicalizer::to_vec(&plain_card()).unwrap());
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, signer.jwk().to_string().as_bytes());
    let mac = ring::hmac::sign(&secret, format!("{protected}.{payload}").as_bytes());
    let entry = json!({ "protected": protected, "signature": base64url(mac) });
    assert_eq!(reason(signer.trusted(), entry), Reason::AlgorithmRefused { alg: "HS256".to_owned() });
}

#[test]
fn header_parameters_that_change_what_a_signature_means_are_refused() {
    let signer = Signer::es256("k");
    for (member, value) in [
        ("crit", json!(["b64"])),
        ("crit", json!([])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("b64", json!("false")),
        ("b64", Value::Null),
    ] {
        let entry = signer.entry_with_header(&plain_card(), &with(&signer.header(), member, value.clone()));
        assert_eq!(reason(signer.trusted(), entry), Reason::Refused { member }, "{member}: {value}");
        let entry = with(&signer.entry(&plain_card()), "header", json!({ member: value }));
        assert_eq!(reason(signer.trusted(), entry), Reason::Refused { member }, "unprotected {member}");
    }
    let entry = signer.entry_with_header(&plain_card(), &with(&signer.header(), "b64", json!(true)));
    let card = with_signatures(&plain_card(), &[entry]);
    assert_eq!(verify(signer.trusted(), &card).overall(), Overall::Verified);
}

#[test]
fn the_unprotected_header_decides_nothing() {
    let signer = Signer::es256("k");
    // An algorithm, a key id and a key set that stand in the unprotected header alone are not read.
    let entry =
        with(&signer.entry_with_header(&plain_card(), &json!({ "kid": "k" })), "header", json!({ "alg": "ES256" }));
    assert!(matches!(reason(signer.trusted(), entry), Reason::Malformed { .. }));
    let entry = with(
        &signer.entry_with_header(&plain_card(), &json!({ "alg": "ES256", "kid": "other" })),
        "header",
        json!({ "kid": "k" }),
    );
    assert!(matches!(reason(signer.trusted(), entry), Reason::Malformed { .. }), "both headers have kid");
    let entry = with(&signer.entry(&plain_card()), "header", json!({ "note": 1, "jku": "https://a.example/" }));
    let card = with_signatures(&plain_card(), &[entry]);
    let report = verify(signer.trusted(), &card);
    assert_eq!((report.overall(), &report.signatures[0].jku), (Overall::Verified, &None));
}

#[test]
fn a_key_that_a_signature_brings_along_is_never_used() {
    let (signer, ours) = (Signer::es256("k"), Signer::es256("ours"));
    let mut header = signer.header();
    header["jwk"] = signer.jwk();
    header["x5c"] = json!(["MIIB"]);
    header["x5u"] = json!("https://a.example/cert");
    let entry = signer.entry_with_header(&plain_card(), &header);
    assert_eq!(reason(ours.trusted(), entry), Reason::KeyUnknown { kid: Some("k".to_owned()) });
}

#[test]
fn what_is_no_signature_is_said_to_be_malformed() {
    let signer = Signer::es256("k");
    let good = signer.entry(&plain_card());
    let changed = |member: &str, value: Value| with(&good, member, value);
    let header = |text: &str| signer.entry_with_header_text(&plain_card(), text);
    let padded = |member: &str| changed(member, json!(format!("{}=", good[member].as_str().unwrap())));
    for entry in [
        json!(null),
        json!("x"),
        json!({}),
        changed("protected", json!(1)),
        changed("protected", json!("")),
        changed("protected", json!("!")),
        changed("signature", Value::Null),
        changed("signature", json!("A")),
        changed("signature", json!("A".repeat(1400))),
        changed("header", json!("x")),
        padded("protected"),
        padded("signature"),
        header("[]"),
        header("{"),
        header(r#"{"alg":"ES256","alg":"ES256","kid":"k"}"#),
        header(r#"{"kid":"k"}"#),
        header(r#"{"alg":7,"kid":"k"}"#),
        header(r#"{"alg":"ES256","kid":7}"#),
        header(r#"{"alg":"ES256","kid":"k","jku":{}}"#),
        header(&format!(r#"{{"alg":"ES256","kid":"k","x":"{}"}}"#, "x".repeat(HEADER_BYTES_MAX))),
        header(&"[".repeat(HEADER_BYTES_MAX)),
    ] {
        let reason = reason(signer.trusted(), entry.clone());
        assert!(matches!(reason, Reason::Malformed { .. }), "{entry}: {reason}");
    }
    let largest = format!(r#"{{"alg":"ES256","kid":"k","x":"{}"}}"#, "x".repeat(HEADER_BYTES_MAX - 32));
    assert_eq!(largest.len(), HEADER_BYTES_MAX);
    let card = with_signatures(&plain_card(), &[header(&largest)]);
    assert_eq!(verify(signer.trusted(), &card).overall(), Overall::Verified);
}

#[test]
fn an_algorithm_that_is_not_the_keys_is_a_misfit() {
    let signers = [Signer::es256("k"), Signer::ed_dsa("k"), Signer::rs256("k")];
    for signer in &signers {
        for other in &signers {
            let entry = signer.entry_with_header(&plain_card(), &other.header());
            if signer.alg() != other.alg() {
                assert!(matches!(reason(signer.trusted(), entry), Reason::KeyMisfit { .. }));
            }
        }
    }
    // The key is for one algorithm of its kind, the signature names another one of it.
    let signer = Signer::rs256("k");
    let mut trust = TrustStore::default();
    trust.trust(set_of(&[with(&signer.jwk(), "alg", json!("PS256"))]));
    assert!(matches!(reason(trust, signer.entry(&plain_card())), Reason::KeyMisfit { kind: "RSA", .. }));
}

#[test]
fn a_key_that_is_not_for_signatures_is_refused_and_the_report_says_why() {
    let signer = Signer::es256("k");
    for (member, value) in [("use", json!("enc")), ("key_ops", json!(["sign"])), ("alg", json!("HS256"))] {
        let mut trust = TrustStore::default();
        trust.trust(set_of(&[with(&signer.jwk(), member, value)]));
        let reason = reason(trust, signer.entry(&plain_card()));
        assert!(matches!(&reason, Reason::KeyRefused { kid, .. } if kid == "k"), "{reason}");
    }
}

#[test]
fn what_a_peer_wrote_is_escaped_and_short_where_it_is_shown() {
    let signer = Signer::es256("k");
    let alg = format!("\u{1b}[2J{}", "x".repeat(5000));
    let shown = reason(signer.trusted(), signer.entry_with_header(&plain_card(), &json!({ "alg": alg }))).to_string();
    assert!(shown.len() < 200 && !shown.contains('\u{1b}'), "{shown}");
}
