use longhaul_protocol::from_json;

use super::*;

const CARD: &str = r#"{
    "name": "Demo", "description": "Does what it is told", "version": "1.2",
    "provider": {"url": "https://p/", "organization": "P"},
    "supportedInterfaces": [
        {"url": "https://a/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "a:443", "protocolBinding": "GRPC", "tenant": "acme", "protocolVersion": "1.0"}],
    "capabilities": {"streaming": true, "extensions": [{"uri": "urn:x", "required": true}]},
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "login": {"oauth2SecurityScheme": {"flows": {"deviceCode": {"deviceAuthorizationUrl": "https://d/", "tokenUrl": "https://t/", "scopes": {}}}}}},
    "securityRequirements": [{"schemes": {"key": {}}}, {"schemes": {"login": {"list": ["read", "write"]}}}],
    "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain", "application/json"],
    "skills": [{"id": "s", "name": "Skill", "description": "d", "tags": ["a", "b"], "examples": ["do\nit"]}]
}"#;

fn shown(verdict: &Verdict, detail: Detail) -> String {
    let mut page = Page::new();
    card(&mut page, &from_json(CARD.as_bytes()).unwrap(), verdict, detail);
    page.into_text()
}

#[test]
fn a_card_is_shown_whole() {
    let wanted = "\
Name: Demo
Description: Does what it is told
Version: 1.2
Provider: P https://p/
Streaming: yes
Push notifications: no
Extended card: no
Extension: urn:x (required)
Interface: JSONRPC 1.0 https://a/rpc
Interface: GRPC 1.0 a:443 tenant acme
Input modes: text/plain
Output modes: text/plain, application/json
Security scheme: key: API key X-Key in header
Security scheme: login: OAuth 2.0, device code
Security requirement: key
Security requirement: login (read, write)
Signature: absent
Skill: s: Skill
Description: d
Tags: a, b
";
    assert_eq!(shown(&Verdict::Absent, Detail::Concise), wanted);
    assert!(shown(&Verdict::Absent, Detail::Verbose).ends_with("Example: do\\nit\n"));
}

#[test]
fn a_card_that_nobody_verified_is_never_called_verified() {
    for (verdict, words) in [
        (Verdict::Unchecked, "Signature: unverifiable ("),
        (Verdict::Unverifiable("no key k1".to_owned()), "Signature: unverifiable (no key k1)\n"),
        (Verdict::Verified("key k1".to_owned()), "Signature: verified (key k1)\n"),
    ] {
        assert!(shown(&verdict, Detail::Concise).contains(words), "{verdict:?}");
    }
}
