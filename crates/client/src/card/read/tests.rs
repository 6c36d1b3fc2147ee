use super::*;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::card::ProtocolVersion;

fn read(card: &Value) -> CardDocument {
    CardDocument::parse(card.to_string().as_bytes(), "https://a.example").unwrap()
}

fn problem(json: &[u8]) -> String {
    CardDocument::parse(json, "https://a.example").unwrap_err().to_string()
}

fn interface(version: &str) -> Value {
    json!([{"url": "https://a.example/new", "protocolBinding": "JSONRPC", "protocolVersion": version}])
}

fn allowing(versions: &[ProtocolVersion]) -> Preference {
    Preference { versions: versions.to_vec(), ..Preference::default() }
}

fn url(document: &CardDocument, versions: &[ProtocolVersion]) -> Option<String> {
    let chosen = document.choose(&allowing(versions), &OriginPolicy::default(), &CardOrigin::caller());
    chosen.ok().map(|chosen| chosen.url)
}

#[test]
fn a_document_is_of_the_version_whose_members_it_has() {
    #[rustfmt::skip]
    let cases = [
        (json!({"supportedInterfaces": []}),                                  Written::V1_0),
        (json!({"supported_interfaces": []}),                                 Written::V1_0),
        (json!({"supportedInterfaces": [], "protocolVersion": "0.3.0"}),      Written::V1_0),
        (json!({"supportedInterfaces": [], "url": "https://a.example"}),      Written::Both),
        (json!({"url": "https://a.example"}),                                 Written::V0_3),
        (json!({"url": "https://a.example", "supportedInterfaces": null}),    Written::V0_3),
        (json!({"name": "n", "protocolVersion": "0.3.0"}),                    Written::V0_3),
        (json!({"name": "n", "skills": []}),                                  Written::V1_0),
    ];
    for (card, written) in cases {
        assert_eq!(read(&card).written(), written, "{card}");
    }
}

#[test]
fn both_versions_are_read_alike() {
    let new = read(
        &json!({"name": "n", "supportedInterfaces": interface("1.0"), "capabilities": {"extendedAgentCard": true}}),
    );
    let old = read(&json!({"name": "n", "url": "https://a.example/new", "protocolVersion": "1.0",
        "capabilities": {}, "supportsAuthenticatedExtendedCard": true}));
    assert_eq!(new.card(), old.card());
}

#[test]
fn the_json_is_kept_as_it_came() {
    let json = br#"{"supportedInterfaces":[],"x":{"b":1.50,"a":null},"description":""}"#;
    let document = CardDocument::parse(json, "p").unwrap();
    assert_eq!(document.members().keys().collect::<Vec<_>>(), ["supportedInterfaces", "x", "description"]);
    assert_eq!(document.members()["x"], json!({"b": 1.5, "a": null}));
    assert_eq!(document.place(), "p");
}

#[test]
fn older_members_count_only_where_the_newer_have_nothing() {
    const BOTH: [ProtocolVersion; 2] = [ProtocolVersion::V1_0, ProtocolVersion::V0_3];
    let both = |version| read(&json!({"supportedInterfaces": interface(version), "url": "https://a.example/old"}));
    assert_eq!(url(&both("1.0"), &BOTH).as_deref(), Some("https://a.example/new"));
    assert_eq!(url(&both("2.0"), &BOTH).as_deref(), Some("https://a.example/old"));
    assert_eq!(url(&both("2.0"), &[ProtocolVersion::V1_0]), None);
    // Older members that can't be read do no harm.
    let broken = read(&json!({"supportedInterfaces": interface("1.0"), "url": 5, "security": 7}));
    assert_eq!(url(&broken, &BOTH).as_deref(), Some("https://a.example/new"));
}

#[test]
fn what_is_no_card_is_refused_with_a_reason() {
    #[rustfmt::skip]
    let cases: &[(&[u8], &str)] = &[
        (b"",                                                          "EOF"),
        (b"<!DOCTYPE html>",                                           "expected value"),
        (b"[]",                                                        "expected a JSON object"),
        (b"{}",                                                        "neither supportedInterfaces"),
        (br#"{"error":"not found","name":"n"}"#,                       "neither supportedInterfaces"),
        (br#"{"supportedInterfaces":[{"url":5}]}"#,                    "supportedInterfaces[0].url: "),
        (br#"{"url":"https://a.example","skills":[{"tags":"t"}]}"#,    "skills[0].tags: "),
        (b"{\"supportedInterfaces\":[],\"name\":\"\xff\"}",            "invalid unicode"),
    ];
    for (json, wanted) in cases {
        let problem = problem(json);
        assert!(problem.starts_with("what is at https://a.example is not an agent card: "), "{problem}");
        assert!(problem.contains(wanted), "{problem}");
    }
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    assert!(CardDocument::parse(b"\xef\xbb\xbf{\"supportedInterfaces\":[]}", "p").is_ok());
}

#[test]
fn a_card_may_be_large_and_deep_but_not_without_end() {
    let padded = |bytes: usize| {
        let start = r#"{"supportedInterfaces":[],"x":""#;
        format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2)).into_bytes()
    };
    assert!(CardDocument::parse(&padded(CARD_BYTES_MAX), "p").is_ok());
    assert!(problem(&padded(CARD_BYTES_MAX + 1)).contains("1048576 are allowed"));
    let deep = format!(r#"{{"supportedInterfaces":[],"x":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert!(problem(deep.as_bytes()).contains("nested deeper"));
}

/// JSON with the names that cards have.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "name",
        "url",
        "supportedInterfaces",
        "protocolBinding",
        "protocolVersion",
        "skills",
        "id",
        "security",
        "signatures",
        "securitySchemes",
        "securityRequirements",
        "schemes",
        "k",
        "oauth2SecurityScheme",
        "flows",
        "implicit",
        "capabilities",
        "extensions",
        "protected",
        "provider",
        "iconUrl",
        "additionalInterfaces",
        "transport",
        "type",
        "header",
        "list",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::String),
        Just(json!("https://a.example")),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(names.to_vec()), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

fn use_fully(json: &[u8]) {
    if let Ok(document) = CardDocument::parse(json, "p") {
        let _ = document.validate();
        let _ = url(&document, &[ProtocolVersion::V1_0, ProtocolVersion::V0_3]);
    }
}

proptest! {
    #[test]
    fn no_json_breaks_the_reader(value in any_json(), top in prop::collection::vec(any_json(), 4)) {
        use_fully(value.to_string().as_bytes());
        let [a, b, c, d] = <[Value; 4]>::try_from(top).unwrap();
        use_fully(json!({"name": a, "supportedInterfaces": [b], "skills": [c], "url": d}).to_string().as_bytes());
    }

    #[test]
    fn no_text_in_a_card_breaks_the_reader(text in "\\PC{0,20}") {
        use_fully(json!({"name": text, "supportedInterfaces": [{"url": text, "protocolBinding": "GRPC", "protocolVersion": text}],
            "iconUrl": text, "defaultInputModes": [text], "skills": [{"id": text, "inputModes": [text]}],
            "signatures": [{"protected": text, "signature": text}], "securitySchemes": {&text: {"apiKeySecurityScheme": {}}},
            "capabilities": {"extensions": [{"uri": text}]}}).to_string().as_bytes());
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        use_fully(&bytes);
    }
}
