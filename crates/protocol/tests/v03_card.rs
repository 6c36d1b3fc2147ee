//! Cards of v0.3 and of v1.0 say the same, as far as both can.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use indexmap::IndexMap;
use longhaul_protocol::v0_3::card::{card_from_json, card_to_v0_3};
use longhaul_protocol::wire::{self, AgentCard, OAuthFlow, SecuritySchemeKind};
use longhaul_protocol::{from_json, json::object_from_json, to_json};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a value says: without members that hold what their absence means, and with each number as a double.
fn meaning(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().map(|(name, value)| (name.clone(), meaning(value)));
            let is_said =
                |value: &Value| !matches!(value, Value::Bool(false)) && *value != json!([]) && *value != json!("");
            Value::Object(kept.filter(|(_, value)| is_said(value)).collect())
        }
        Value::Array(items) => items.iter().map(meaning).collect(),
        Value::Number(number) => json!(number.as_f64().unwrap()),
        other => other.clone(),
    }
}

fn read(card: &Value) -> AgentCard {
    card_from_json(card.to_string().as_bytes()).unwrap()
}

fn v1_0(card: &AgentCard) -> Value {
    serde_json::from_slice(&to_json(card)).unwrap()
}

#[test]
fn each_card_of_the_vectors_is_translated_and_comes_back() {
    let lines = include_str!("data/v03.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut count = 0;
    for line in lines.filter(|line| line["type"] == "AgentCard") {
        count += 1;
        let card = read(&line["v03"]);
        assert_eq!(meaning(&v1_0(&card)), meaning(&line["v1"]), "{}", line["about"]);
        let back = Value::Object(card_to_v0_3(&card).unwrap());
        assert_eq!(meaning(&back), meaning(&line["back"]), "{}", line["about"]);
    }
    assert_eq!(count, 1);
}

#[test]
fn a_card_older_than_versions_speaks_json_rpc_at_its_url() {
    let card = read(&json!({"name": "n", "url": "https://a.example/rpc", "authentication": {"schemes": ["Bearer"]}}));
    let interfaces: Vec<_> = card.supported_interfaces.iter().map(interface).collect();
    assert_eq!(interfaces, [("https://a.example/rpc", "JSONRPC", "0.3")]);
}

fn interface(interface: &wire::AgentInterface) -> (&str, &str, &str) {
    (&interface.url, &interface.protocol_binding, &interface.protocol_version)
}

#[test]
fn interfaces_keep_their_order_and_the_version_of_the_card() {
    let more = json!([{"url": "https://b.example", "transport": "GRPC"}, {"url": "https://a.example", "transport": "JSONRPC"}]);
    #[rustfmt::skip]
    let cases = [
        (json!({"url": "https://a.example", "protocolVersion": "0.3.0"}), vec![("https://a.example", "JSONRPC", "0.3.0")]),
        (json!({"url": "https://a.example", "preferredTransport": "HTTP+JSON"}), vec![("https://a.example", "HTTP+JSON", "0.3")]),
        (json!({"url": "https://a.example", "protocolVersion": "0.2.6", "additionalInterfaces": more}), vec![
            ("https://a.example", "JSONRPC", "0.2.6"), ("https://b.example", "GRPC", "0.2"), ("https://a.example", "JSONRPC", "0.2")]),
        (json!({"additionalInterfaces": more}), vec![("https://b.example", "GRPC", "0.3"), ("https://a.example", "JSONRPC", "0.3")]),
        (json!({"url": null, "additionalInterfaces": null}), vec![]),
    ];
    for (document, wanted) in cases {
        let card = read(&document);
        let interfaces: Vec<_> = card.supported_interfaces.iter().map(interface).collect();
        assert_eq!(interfaces, wanted, "{document}");
    }
}

#[test]
fn the_flag_of_the_extended_card_is_a_capability() {
    let flag = |card: Value| read(&card).capabilities.map(|all| all.extended_agent_card);
    assert_eq!(flag(json!({"supportsAuthenticatedExtendedCard": true})), Some(Some(true)));
    assert_eq!(flag(json!({"supportsAuthenticatedExtendedCard": false, "capabilities": {}})), Some(Some(false)));
    assert_eq!(flag(json!({"capabilities": {}})), Some(None));
    assert_eq!(flag(json!({})), None);
}

#[test]
fn of_several_flows_the_first_is_kept_and_unknown_schemes_keep_their_place() {
    let flow = json!({"tokenUrl": "https://t.example", "scopes": {}});
    let card = read(&json!({"securitySchemes": {
        "o": {"type": "oauth2", "flows": {"password": flow, "clientCredentials": flow}},
        "x": {"type": "telepathy"},
    }}));
    let Some(SecuritySchemeKind::OAuth2(oauth2)) = &card.security_schemes["o"].scheme else { panic!("not OAuth 2.0") };
    assert!(matches!(oauth2.flows.as_ref().unwrap().flow, Some(OAuthFlow::ClientCredentials(_))));
    assert_eq!(card.security_schemes["x"].scheme, None);
}

#[test]
fn a_fault_is_told_where_v0_3_has_it() {
    #[rustfmt::skip]
    let cases = [
        (json!({"skills": [{"security": [{"k": [1]}]}]}),                    "skills[0].security[0].k[0]"),
        (json!({"securitySchemes": {"k": {"type": "apiKey", "in": 5}}}),     "securitySchemes.k.in"),
        (json!({"additionalInterfaces": [{"transport": []}]}),               "additionalInterfaces[0].transport"),
        (json!({"capabilities": {"extensions": [{"params": "x"}]}}),         "capabilities.extensions[0].params"),
    ];
    for (document, path) in cases {
        assert_eq!(card_from_json(document.to_string().as_bytes()).unwrap_err().path, path);
    }
}

#[test]
fn a_card_without_an_older_interface_has_no_form_in_v0_3() {
    let card: AgentCard = from_json(br#"{"supportedInterfaces":[{"url":"u","protocolVersion":"1.0"}]}"#).unwrap();
    assert_eq!(card_to_v0_3(&card), None);
    let card: AgentCard = from_json(
        br#"{"supportedInterfaces":[{"url":"u","protocolVersion":"1.0"},{"url":"v","protocolVersion":"0.3"}]}"#,
    )
    .unwrap();
    assert_eq!(card_to_v0_3(&card).unwrap()["url"], "v");
}

#[test]
fn a_written_card_has_each_member_that_v0_3_requires() {
    let card: AgentCard = from_json(br#"{"supportedInterfaces":[{"url":"u","protocolVersion":"0.3"}],
        "securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"implicit":{}}}},"d":{"oauth2SecurityScheme":{"flows":{"deviceCode":{}}}}},
        "skills":[{}]}"#)
    .unwrap();
    let written = card_to_v0_3(&card).unwrap();
    for name in [
        "protocolVersion",
        "name",
        "description",
        "url",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ] {
        assert!(written.contains_key(name), "{name}");
    }
    assert_eq!(written["securitySchemes"]["o"]["flows"]["implicit"], json!({"authorizationUrl": "", "scopes": {}}));
    assert_eq!(written["securitySchemes"]["d"], json!({"type": "oauth2", "flows": {}}));
    assert_eq!(written["skills"][0]["tags"], json!([]));
}

#[test]
fn an_object_keeps_its_members_as_they_are() {
    // A name that the JSON library gives a meaning of its own is a name like any other.
    let json = br#"{"$serde_json::private::RawValue":"{\"a\":1}","b":[1.0,null]}"#;
    let object = object_from_json(json).unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), ["$serde_json::private::RawValue", "b"]);
    assert_eq!(object_from_json(b"[]").unwrap_err().to_string(), "invalid type: sequence, expected a JSON object");
}

fn text() -> impl Strategy<Value = String> {
    "[a-z]{1,4}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

fn map<V: Strategy>(values: V) -> impl Strategy<Value = IndexMap<String, V::Value>> {
    prop::collection::btree_map(text(), values, 0..3).prop_map(|map| map.into_iter().collect())
}

fn requirements() -> impl Strategy<Value = Vec<wire::SecurityRequirement>> {
    let schemes = map(texts().prop_map(|list| wire::StringList { list }));
    prop::collection::vec(schemes.prop_map(|schemes| wire::SecurityRequirement { schemes }), 0..3)
}

fn flow() -> impl Strategy<Value = OAuthFlow> {
    (0..4, text(), text(), map(text())).prop_map(|(kind, url, refresh_url, scopes)| match kind {
        0 => OAuthFlow::AuthorizationCode(wire::AuthorizationCodeOAuthFlow {
            authorization_url: url.clone(),
            token_url: url,
            refresh_url,
            scopes,
            pkce_required: false,
        }),
        1 => OAuthFlow::ClientCredentials(wire::ClientCredentialsOAuthFlow { token_url: url, refresh_url, scopes }),
        2 => OAuthFlow::Implicit(wire::ImplicitOAuthFlow { authorization_url: url, refresh_url, scopes }),
        _ => OAuthFlow::Password(wire::PasswordOAuthFlow { token_url: url, refresh_url, scopes }),
    })
}

fn scheme() -> impl Strategy<Value = wire::SecurityScheme> {
    (0..5, text(), text(), text(), prop::option::of(flow())).prop_map(|(kind, description, a, b, flow)| {
        let scheme = match kind {
            0 => SecuritySchemeKind::ApiKey(wire::APIKeySecurityScheme { description, location: a, name: b }),
            1 => {
                SecuritySchemeKind::HttpAuth(wire::HTTPAuthSecurityScheme { description, scheme: a, bearer_format: b })
            }
            2 => SecuritySchemeKind::OAuth2(wire::OAuth2SecurityScheme {
                description,
                flows: Some(wire::OAuthFlows { flow }),
                oauth2_metadata_url: a,
            }),
            3 => SecuritySchemeKind::OpenIdConnect(wire::OpenIdConnectSecurityScheme {
                description,
                open_id_connect_url: a,
            }),
            _ => SecuritySchemeKind::MutualTls(wire::MutualTlsSecurityScheme { description }),
        };
        wire::SecurityScheme { scheme: Some(scheme) }
    })
}

fn skill() -> impl Strategy<Value = wire::AgentSkill> {
    (text(), texts(), texts(), requirements()).prop_map(|(text, tags, modes, security_requirements)| wire::AgentSkill {
        id: text.clone(),
        name: text.clone(),
        description: text,
        tags,
        examples: modes.clone(),
        input_modes: modes.clone(),
        output_modes: modes,
        security_requirements,
    })
}

/// Cards that v0.3 can say in full: what the module's documentation names as lost is not in them.
fn sayable_card() -> impl Strategy<Value = AgentCard> {
    let interfaces = prop::collection::vec((text(), text()), 1..4).prop_map(|all| {
        let interface = |(url, protocol_binding)| wire::AgentInterface {
            url,
            protocol_binding,
            tenant: String::new(),
            protocol_version: "0.3".to_owned(),
        };
        all.into_iter().map(interface).collect::<Vec<_>>()
    });
    let flags = prop::array::uniform3(prop::option::of(any::<bool>()));
    let schemes = map(scheme());
    let skills = prop::collection::vec(skill(), 0..3);
    (interfaces, flags, schemes, requirements(), skills, prop::option::of(text()), texts()).prop_map(
        |(supported_interfaces, [a, b, c], security_schemes, security_requirements, skills, optional, modes)| {
            AgentCard {
                name: "n".to_owned(),
                description: "d".to_owned(),
                supported_interfaces,
                provider: optional.clone().map(|url| wire::AgentProvider { url, organization: "o".to_owned() }),
                version: "1".to_owned(),
                documentation_url: optional.clone(),
                capabilities: Some(wire::AgentCapabilities {
                    streaming: a,
                    push_notifications: b,
                    extensions: vec![wire::AgentExtension {
                        uri: "u".to_owned(),
                        required: a == b,
                        ..Default::default()
                    }],
                    extended_agent_card: c,
                }),
                security_schemes,
                security_requirements,
                default_input_modes: modes.clone(),
                default_output_modes: modes,
                skills,
                signatures: vec![wire::AgentCardSignature { protected: "p".to_owned(), ..Default::default() }],
                icon_url: optional,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_v0_3_can_say_comes_back_from_it(card in sayable_card()) {
        let older = Value::Object(card_to_v0_3(&card).expect("it has an older interface"));
        prop_assert_eq!(read(&older), card);
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = card_from_json(&bytes);
        let _ = object_from_json(&bytes);
    }

    #[test]
    fn no_member_of_another_type_breaks_the_reader(
        name in prop::sample::select(vec!["url", "skills", "security", "securitySchemes", "capabilities", "signatures", "additionalInterfaces"]),
        value in prop::sample::select(vec![json!(1), json!("x"), json!([]), json!({}), json!([[]]), json!({"a": []}), json!([{"a": null}])]),
    ) {
        if let Ok(card) = card_from_json(json!({name: value}).to_string().as_bytes()) {
            let _ = card_to_v0_3(&card);
        }
    }
}
