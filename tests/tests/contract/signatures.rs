//! Signatures of cards: verified, unverifiable, or absent (§10.1).

use serde_json::{Value, json};

use crate::cli::{Cli, Done};

/// Cards that the reference implementation has signed, with their keys.
const VECTORS: &str = include_str!("../../../crates/client/tests/data/cards.jsonl");

fn vectors() -> Vec<Value> {
    VECTORS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was said about the signature: the words behind the label, wherever they are.
fn outcome(done: &Done) -> String {
    let all = done.all();
    let line = all.lines().find(|line| line.to_lowercase().contains("signature"));
    let line = line.unwrap_or_else(|| panic!("nothing about the signature\n{}", done.told()));
    line.split_once(':').map_or(line, |(_, words)| words.rsplit("ignature:").next().unwrap_or(words)).trim().to_owned()
}

async fn verify(card: &Value, keys: Option<&Value>, extra: &[&str]) -> Done {
    let cli = Cli::new();
    cli.file("card.json", card.to_string());
    let mut args = vec!["card", "get", "-a", "./card.json"];
    if let Some(key) = keys {
        cli.file("keys.json", json!({"keys": [key]}).to_string());
        args.extend(["--verify", "keys.json"]);
    }
    args.extend(extra);
    cli.run(&args).await
}

#[tokio::test]
async fn a2acli_card_get_004_a_signature_with_a_known_key_is_verified() {
    for vector in vectors() {
        let done = verify(&vector["signed"], Some(&vector["jwk"]), &[]).await;
        assert!(outcome(done.exits(0)).starts_with("verified"), "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_card_get_004_an_absent_signature_is_reported_and_no_failure() {
    let vector = &vectors()[0];
    for keys in [None, Some(&vector["jwk"])] {
        let done = verify(&vector["card"], keys, &[]).await;
        assert!(outcome(done.exits(0)).starts_with("absent"), "{}", done.told());
        let done = verify(&vector["card"], keys, &["-o", "json"]).await;
        assert_eq!(done.exits(0).json(), vector["card"]);
    }
}

#[tokio::test]
async fn a2acli_card_get_004_what_can_not_be_verified_is_never_called_verified() {
    let vector = &vectors()[0];
    let mut tampered = vector["signed"].clone();
    tampered["description"] = "another".into();
    let mut other_key = vector["jwk"].clone();
    other_key["kid"] = "another".into();
    for (card, keys) in [
        (&vector["signed"], None),
        (&vector["signed"], Some(&other_key)),
        (&tampered, None),
        (&tampered, Some(&vector["jwk"])),
    ] {
        let done = verify(card, keys, &[]).await;
        // Where a key was given, a wrong signature may fail the command as well.
        if done.code == 1 && done.stderr.contains("A2ACLI_ERR_CARD_INVALID") {
            assert!(done.stdout.is_empty() && done.stderr.contains("signature"), "{}", done.told());
            continue;
        }
        let outcome = outcome(done.exits(0));
        assert!(
            outcome.starts_with("unverifiable") || outcome.starts_with("not verified"),
            "{outcome}\n{}",
            done.told()
        );
    }
}

#[tokio::test]
async fn a2acli_card_get_004_json_stays_the_card_and_the_outcome_is_said_beside_it() {
    let vector = &vectors()[0];
    let done = verify(&vector["signed"], Some(&vector["jwk"]), &["-o", "json"]).await;
    assert_eq!(done.exits(0).json(), vector["signed"]);
    assert!(done.stderr.contains("verified"), "{}", done.told());
}
