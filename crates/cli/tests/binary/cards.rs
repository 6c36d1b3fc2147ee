//! Cards that have to be signed, and whose keys count.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::support::{ended, folder};

/// A signed card in a file, and the key in another one.
fn signed() -> (String, String) {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../client/tests/data/cards.jsonl");
    let vectors = std::fs::read_to_string(vectors).expect("they are there");
    let vector: Value = vectors
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"))
        .find(|vector| vector["signed"].is_object() && vector["jwk"].is_object())
        .expect("there is one");
    let folder = folder();
    let write = |name: &str, value: &Value| -> String {
        let path: PathBuf = folder.join(name);
        std::fs::write(&path, value.to_string()).expect("it can be written");
        path.to_str().expect("it is text").to_owned()
    };
    (write("card.json", &vector["signed"]), write("keys.json", &vector["jwk"]))
}

#[test]
fn a_card_is_verified_by_the_keys_of_the_setting_too() {
    let (card, keys) = signed();
    for line in [
        &["card", "get", "--verify", &keys, "-a", &card][..],
        &["card", "get", "-a", &card, "--card-keys", &keys, "--verify"],
        &["card", "get", "-a", &card, "--card-keys", &keys, "--require-verified"],
    ] {
        let (code, stdout, stderr) = ended(line);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("Signature: verified"), "{line:?}\n{stdout}");
    }
    let (code, stdout, _) = ended(&["card", "get", "-a", &card, "--verify"]);
    assert!(code == 0 && stdout.contains("Signature: unverifiable"), "{stdout}");
}

#[test]
fn a_card_that_nobody_vouches_for_is_not_used_where_that_is_required() {
    let (card, keys) = signed();
    let agent = Scripted::new(json!({}), |_, _, _| {
        Ok(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
    });
    for line in [
        &["card", "get", "-a", &card, "--require-verified"][..],
        &["card", "get", "-a", &agent.url(), "--require-verified", "--card-keys", &keys],
        &["send", "hi", "-a", &agent.url(), "--require-verified", "--card-keys", &keys],
        &["task", "list", "-a", &agent.url(), "--require-verified"],
    ] {
        let (code, _, stderr) = ended(line);
        assert!(code == 1 && stderr.contains("LONGHAUL_ERR_CARD_NOT_VERIFIED"), "{line:?}\n{stderr}");
        assert!(stderr.contains("hint: --card-keys names the keys"), "{stderr}");
    }
    assert!(agent.asked("SendMessage").is_empty());
    assert_eq!(ended(&["send", "hi", "-a", &agent.url(), "--require-verified=false"]).0, 0);
}

#[test]
fn a_key_set_has_to_be_one_and_an_allowed_url_has_to_be_https() {
    let (card, _) = signed();
    let (code, _, stderr) = ended(&["card", "get", "-a", &card, "--card-keys", &card]);
    assert!(code == 2 && stderr.contains("--card-keys"), "{stderr}");
    let (code, _, stderr) = ended(&["card", "get", "-a", &card, "--jku-allow", "http://keys.example/jwks.json"]);
    assert!(code == 2 && stderr.contains("--jku-allow: ") && stderr.contains("only https"), "{stderr}");
}

#[test]
fn a_key_set_that_can_not_be_fetched_is_told_of() {
    let (card, _) = signed();
    let signature: Value =
        serde_json::from_str(&std::fs::read_to_string(&card).expect("it is there")).expect("it is JSON");
    let mut pointing = signature.clone();
    // {"alg":"ES256","kid":"k","jku":"https://127.0.0.1:1/jwks.json"}
    pointing["signatures"] = json!([{
        "protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsiLCJqa3UiOiJodHRwczovLzEyNy4wLjAuMToxL2p3a3MuanNvbiJ9",
        "signature": "c2lnbmF0dXJl",
    }]);
    std::fs::write(&card, pointing.to_string()).expect("it is ours");
    let verified = |more: &[&str]| {
        let (code, stdout, stderr) = ended(&[&["card", "get", "-a", &card, "--verify"], more].concat());
        assert_eq!(code, 0, "{stderr}");
        stdout.lines().find_map(|line| line.strip_prefix("Signature: ")).expect("it is said").to_owned()
    };
    let refused = verified(&[]);
    assert!(refused.starts_with("unverifiable") && !refused.contains("connect"), "{refused}");
    let tried = verified(&["--jku-allow", "https://127.0.0.1:1"]);
    assert!(tried.starts_with("unverifiable") && tried.contains("connect"), "{tried}");
}
