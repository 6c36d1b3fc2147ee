use super::*;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A card of v1.0 with nothing wrong.
fn good() -> Value {
    json!({
        "name": "n", "description": "d", "version": "1", "capabilities": {},
        "supportedInterfaces": [
            {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "a.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        ],
        "provider": {"url": "https://a.example", "organization": "o"},
        "iconUrl": "data:image/png;base64,AA==",
        "securitySchemes": {
            "k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://a.example/t", "scopes": {}}}}},
            "m": {"mtlsSecurityScheme": {}},
        },
        "securityRequirements": [{"schemes": {"k": {}}}],
        "defaultInputModes": ["text/plain; charset=utf-8"], "defaultOutputModes": ["application/vnd.x+json", "*/*"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"], "securityRequirements": [{"schemes": {"o": {}}}]}],
        "signatures": [{"protected": protected(&json!({"alg": "ES256", "kid": "1", "typ": "JOSE"})), "signature": "AAAA"}],
    })
}

/// The same of v0.3.
fn good_v0_3() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "n", "description": "d", "version": "1", "capabilities": {},
        "url": "https://a.example/rpc", "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": "https://a.example/rpc", "transport": "JSONRPC"},
            {"url": "https://a.example/rest", "transport": "HTTP+JSON"},
        ],
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "security": [{"k": []}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": [], "skills": [],
    })
}

fn protected(header: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(header.to_string())
}

fn problems(card: &Value) -> Vec<String> {
    let document = CardDocument::parse(card.to_string().as_bytes(), "p").unwrap();
    document.validate().iter().map(ToString::to_string).collect()
}

/// Puts `value` at a JSON pointer, or takes away what is there for `null`, and wants this one problem to come of it.
#[track_caller]
fn check(mut card: Value, pointer: &str, value: Value, wanted: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = card.pointer_mut(parent).unwrap();
    match (parent, name.parse::<usize>()) {
        (Value::Array(items), Ok(index)) => items[index] = value,
        (Value::Object(members), _) if value.is_null() => drop(members.shift_remove(name)),
        (Value::Object(members), _) => drop(members.insert(name.to_owned(), value)),
        _ => panic!("{pointer}"),
    }
    let problems = problems(&card);
    assert!(problems.iter().any(|problem| problem.starts_with(wanted)), "{pointer}: {problems:#?}");
}

#[test]
fn a_card_with_nothing_wrong_has_no_problems() {
    assert_eq!(problems(&good()), Vec::<String>::new());
    assert_eq!(problems(&good_v0_3()), Vec::<String>::new());
}

#[test]
fn each_required_member_is_missed() {
    #[rustfmt::skip]
    let members = [
        "/name", "/description", "/supportedInterfaces/0/url", "/supportedInterfaces/0/protocolBinding",
        "/supportedInterfaces/0/protocolVersion", "/version", "/capabilities", "/defaultInputModes", "/defaultOutputModes", "/skills",
        "/provider/url", "/provider/organization", "/skills/0/id", "/skills/0/name", "/skills/0/description", "/skills/0/tags",
        "/signatures/0/protected", "/signatures/0/signature", "/securitySchemes/k/apiKeySecurityScheme/location",
        "/securitySchemes/k/apiKeySecurityScheme/name", "/securitySchemes/o/oauth2SecurityScheme/flows",
        "/securitySchemes/o/oauth2SecurityScheme/flows/clientCredentials/tokenUrl",
    ];
    for member in members {
        let path = member[1..].replace('/', ".").replace(".0", "[0]");
        check(good(), member, Value::Null, &format!("error: {path} is required"));
    }
    for member in ["protocolVersion", "name", "url", "defaultInputModes", "skills"] {
        check(good_v0_3(), &format!("/{member}"), Value::Null, &format!("error: {member} is required"));
    }
    check(
        good_v0_3(),
        "/additionalInterfaces/1/transport",
        Value::Null,
        "error: additionalInterfaces[1].transport is required",
    );
    check(good_v0_3(), "/securitySchemes/k/type", Value::Null, "error: securitySchemes.k.type is required");
    check(good_v0_3(), "/preferredTransport", Value::Null, "remark: preferredTransport should say");
    // Empty lists are left out by printers of ProtoJSON, so then there is nothing but a name to know the card by.
    check(good(), "/supportedInterfaces", Value::Null, "error: supportedInterfaces is required");
}

#[test]
fn a_member_by_its_other_name_is_there() {
    let mut card = good();
    let modes = card.as_object_mut().unwrap().shift_remove("defaultInputModes").unwrap();
    card["default_input_modes"] = modes;
    assert_eq!(problems(&card), Vec::<String>::new());
}

#[test]
fn each_fault_of_a_member_is_told() {
    #[rustfmt::skip]
    let cases = [
        ("/name",                                   json!(""),                   "error: name must not be empty"),
        ("/description",                            json!(""),                   "remark: description is empty"),
        ("/skills",                                 json!([]),                   "error: skills must have at least one item"),
        ("/skills/0/tags",                          json!([]),                   "error: skills[0].tags must have at least one item"),
        ("/skills/0/inputModes",                    json!(["text"]),             "error: skills[0].inputModes[0] must be a media type"),
        ("/defaultInputModes/0",                    json!("text/"),              "error: defaultInputModes[0] must be a media type"),
        ("/supportedInterfaces/0/url",              json!("/rpc"),               "error: supportedInterfaces[0].url must be an absolute"),
        ("/supportedInterfaces/0/url",              json!("https://u@a.example"), "error: supportedInterfaces[0].url must name no user"),
        ("/supportedInterfaces/0/url",              json!("http://a.example"),   "remark: supportedInterfaces[0].url is without TLS"),
        ("/supportedInterfaces/1/url",              json!("unix:///x"),          "error: supportedInterfaces[1].url must be an absolute"),
        ("/supportedInterfaces/1/url",              json!("https://a.example/x"), "remark: supportedInterfaces[1].url has a path"),
        ("/supportedInterfaces/0/protocolBinding",  json!("json-rpc"),           "error: supportedInterfaces[0].protocolBinding must be written JSONRPC"),
        ("/supportedInterfaces/0/protocolBinding",  json!("urn:x"),              "remark: supportedInterfaces[0].protocolBinding is \"urn:x\", none of"),
        ("/supportedInterfaces/0/protocolVersion",  json!("one"),                "error: supportedInterfaces[0].protocolVersion must be a version"),
        ("/supportedInterfaces/0/protocolVersion",  json!("1.0.1"),              "remark: supportedInterfaces[0].protocolVersion should be major and minor"),
        ("/provider/url",                           json!("a.example"),          "error: provider.url must be an absolute https URL"),
        ("/documentationUrl",                       json!("http://a.example"),   "remark: documentationUrl is without TLS"),
        ("/iconUrl",                                json!("icon.png"),           "error: iconUrl must be an absolute"),
        ("/capabilities/extensions",                json!([{}]),                 "error: capabilities.extensions[0].uri must not be empty"),
        ("/capabilities/extensions",                json!([{"uri": "x"}]),       "remark: capabilities.extensions[0].uri should be an absolute URI"),
        ("/capabilities/extensions",                json!([{"uri": "urn:x:y"}, {"uri": "urn:x:y"}]), "remark: capabilities.extensions[1].uri repeats"),
        ("/securityRequirements/0/schemes/x",       json!({}),                   "error: securityRequirements[0].schemes.x must name one of"),
        ("/skills/0/securityRequirements/0/schemes/x", json!({}),                "error: skills[0].securityRequirements[0].schemes.x must name"),
        ("/securitySchemes/k",                      json!({}),                   "error: securitySchemes.k must have one of"),
        ("/securitySchemes/k/apiKeySecurityScheme/location", json!("body"),      "error: securitySchemes.k.apiKeySecurityScheme.location must be one of"),
        ("/securitySchemes/o/oauth2SecurityScheme/flows", json!({}),             "error: securitySchemes.o.oauth2SecurityScheme.flows must have a flow"),
        ("/securitySchemes/o/oauth2SecurityScheme/flows", json!({"password": {}}), "remark: securitySchemes.o.oauth2SecurityScheme.flows.password is a flow"),
        ("/securitySchemes/o/oauth2SecurityScheme/flows/clientCredentials/tokenUrl", json!("/t"),
            "error: securitySchemes.o.oauth2SecurityScheme.flows.clientCredentials.tokenUrl must be an absolute"),
        ("/signatures/0/signature",                 json!("A A"),                "error: signatures[0].signature must be base64url"),
        ("/signatures/0/protected",                 json!("e30="),               "error: signatures[0].protected must be a JSON object"),
        ("/signatures/0/protected",                 json!(protected(&json!([]))), "error: signatures[0].protected must be a JSON object"),
        ("/signatures/0/protected",                 json!(protected(&json!({"kid": "1"}))), "error: signatures[0].protected must name its algorithm"),
        ("/signatures/0/protected",                 json!(protected(&json!({"alg": "None"}))), "error: signatures[0].protected must have an algorithm"),
        ("/signatures/0/protected",                 json!(protected(&json!({"alg": "ES256"}))), "error: signatures[0].protected must name its key"),
        ("/signatures/0/protected",                 json!(protected(&json!({"jku": "http://a.example"}))), "remark: signatures[0].protected should have its keys"),
    ];
    for (pointer, value, wanted) in cases {
        check(good(), pointer, value, wanted);
    }
}

#[test]
fn faults_of_an_older_card_are_told_by_its_own_names() {
    #[rustfmt::skip]
    let cases = [
        ("/url",                              json!("a"),            "error: url must be an absolute"),
        ("/preferredTransport",               json!("jsonrpc"),      "error: preferredTransport must be written JSONRPC"),
        ("/protocolVersion",                  json!("old"),          "error: protocolVersion must be a version"),
        ("/additionalInterfaces/0/url",       json!("a"),            "error: additionalInterfaces[0].url must be an absolute"),
        ("/additionalInterfaces/1/url",       json!("a"),            "error: additionalInterfaces[1].url must be an absolute"),
        ("/security/0/x",                     json!([]),             "error: security[0].x must name one of"),
        ("/securitySchemes/k/in",             json!("body"),         "error: securitySchemes.k.in must be one of"),
        ("/securitySchemes/k/type",           json!("magic"),        "error: securitySchemes.k.type must be one of"),
    ];
    for (pointer, value, wanted) in cases {
        check(good_v0_3(), pointer, value, wanted);
    }
}

#[test]
fn skills_with_one_id_and_interfaces_that_repeat_are_told() {
    let mut card = good();
    for list in ["skills", "supportedInterfaces"] {
        let first = card[list][0].clone();
        card[list].as_array_mut().unwrap().push(first);
    }
    let wanted = [
        "remark: supportedInterfaces[2].url repeats an interface before it",
        "error: skills[1].id must be unique, repeats \"s\"",
    ];
    assert_eq!(problems(&card), wanted);
}

#[test]
fn older_members_that_nobody_reads_are_told() {
    let mut card = good();
    card["security"] = json!([{"k": []}]);
    assert_eq!(problems(&card), Vec::<String>::new());
    check(card, "/securityRequirements", Value::Null, "remark: security is read by v0.3 only");
    check(good(), "/url", json!(5), "remark: url can't be read as the member of v0.3 that it is");
}

#[test]
fn a_card_with_very_many_problems_has_a_limit() {
    let mut card = good();
    card["skills"] = json!(vec![json!({}); 1000]);
    let problems = problems(&card);
    assert_eq!(problems.len(), PROBLEMS_MAX + 1);
    assert!(problems[PROBLEMS_MAX].starts_with("error: the card has more than 200 problems"));
}

#[test]
fn a_problem_repeats_no_control_characters() {
    let mut card = good();
    card["securityRequirements"] = json!([{"schemes": {"\u{1b}[2J": {}}}]);
    assert!(problems(&card).iter().all(|problem| !problem.contains('\u{1b}')));
}

/// The lines of the golden vectors.
fn vectors(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn cards_that_other_peoples_tools_wrote_have_no_errors() {
    let signed =
        vectors(include_str!("../../../../protocol/tests/data/cards.jsonl")).map(|line| line["signed"].clone());
    let older = vectors(include_str!("../../../../protocol/tests/data/v03.jsonl"));
    let older = older.filter(|line| line["type"] == "AgentCard").map(|line| line["v03"].clone());
    let mut count = 0;
    for card in signed.chain(older) {
        count += 1;
        assert_eq!(problems(&card), Vec::<String>::new());
    }
    assert_eq!(count, 5);
}
