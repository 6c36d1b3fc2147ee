//! The agent card (A2A §8): made once, served with validators.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use longhaul_protocol::v0_3::card::card_to_v0_3;
use longhaul_protocol::{JsonObject, to_json, wire};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ServerConfig;
use crate::body::Body;
use crate::route::JSON;
use crate::version::{Version, Versions};

/// The card as it is served.
#[derive(Debug)]
pub(crate) struct Card {
    json: Bytes,
    etag: HeaderValue,
    last_modified: SystemTime,
    cache_control: HeaderValue,
}

/// The card with its interfaces, those of each version, newest first. JSON-RPC comes first, as some clients take the first one
/// that they know.
pub(crate) fn with_interfaces(config: &ServerConfig, base_url: &str) -> wire::AgentCard {
    let mut card = config.card.clone();
    let interface = |url: &str, binding: &str, version: Version| wire::AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        tenant: String::new(),
        protocol_version: version.name().to_owned(),
    };
    let url = format!("{}{}", base_url.trim_end_matches('/'), config.prefix);
    card.supported_interfaces.clear();
    for version in config.versions.iter() {
        card.supported_interfaces.extend(["JSONRPC", "HTTP+JSON"].map(|binding| interface(&url, binding, version)));
        if config.grpc_interface {
            card.supported_interfaces.push(interface(&authority(base_url), "GRPC", version));
        }
    }
    card
}

/// The one document for readers of each version: the members of v1.0, and those by which v0.3 says the same, if it is served.
/// Neither looks at the other's.
fn document(card: &wire::AgentCard, versions: &Versions) -> Bytes {
    let json = to_json(card);
    let Some(older) = versions.serve(Version::V0_3).then(|| card_to_v0_3(card)).flatten() else { return json };
    // What was just written is read; were it not, readers of v1.0 would still have their card.
    let Ok(mut document) = serde_json::from_slice::<JsonObject>(&json) else { return json };
    merge(&mut document, older);
    let names: Vec<Value> = versions.iter().map(|version| version.name().into()).collect();
    document.insert("supportedProtocolVersions".to_owned(), names.into());
    Bytes::from(Value::Object(document).to_string())
}

/// Adds members that are not there. Objects of one name are merged, and so are lists of objects, which are of one length: they
/// tell of the same skills. Where both say something else, `into` stays.
fn merge(into: &mut JsonObject, from: JsonObject) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (None, value) => drop(into.insert(name, value)),
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(Value::Array(known)), Value::Array(more)) if known.len() == more.len() => {
                for (known, more) in known.iter_mut().zip(more) {
                    if let (Value::Object(known), Value::Object(more)) = (known, more) {
                        merge(known, more);
                    }
                }
            }
            (Some(_), _) => {}
        }
    }
}

/// `host:port` of a URL, with the scheme's own port if it names none.
fn authority(base_url: &str) -> String {
    let (scheme, rest) = base_url.split_once("://").unwrap_or(("http", base_url));
    let authority = rest.split('/').next().unwrap_or(rest);
    let names_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match (names_port, scheme) {
        (true, _) => authority.to_owned(),
        (false, "https") => format!("{authority}:443"),
        (false, _) => format!("{authority}:80"),
    }
}

impl Card {
    pub fn new(card: &wire::AgentCard, versions: &Versions, made_at: SystemTime, max_age: Duration) -> Self {
        let json = document(card, versions);
        let digest: String = Sha256::digest(&json).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let printable = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        Self {
            json,
            etag: printable(format!("\"{digest}\"")),
            last_modified: made_at,
            cache_control: printable(format!("public, max-age={}", max_age.as_secs())),
        }
    }

    /// The document.
    pub fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// Answers a request for the card; whoever has it already is told so.
    pub fn answer(&self, method: &Method, headers: &HeaderMap) -> Response<Body> {
        let not_modified = self.is_known(headers);
        let body = match not_modified || method == Method::HEAD {
            true => Body::empty(),
            false => Body::from(self.json.clone()),
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = if not_modified { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let headers = answer.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, self.cache_control.clone());
        if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(self.last_modified)) {
            headers.insert(header::LAST_MODIFIED, date);
        }
        if !not_modified {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        if method == Method::HEAD {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.json.len()));
        }
        answer
    }

    /// Whether the caller has the card as it is; an entity tag counts before a date.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if let Some(tags) = text(header::IF_NONE_MATCH) {
            let own = self.etag.to_str().unwrap_or_default();
            return tags.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == "*" || tag == own);
        }
        let since = text(header::IF_MODIFIED_SINCE).and_then(|date| httpdate::parse_http_date(date).ok());
        since.is_some_and(|since| since + Duration::from_secs(1) > self.last_modified)
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::{from_json, v0_3};
    use serde_json::json;

    use super::*;

    fn secured() -> ServerConfig {
        let card = json!({
            "name": "one", "description": "two", "version": "3",
            "capabilities": {"streaming": true, "extendedAgentCard": true},
            "securitySchemes": {
                "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
                "sign in": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {
                    "tokenUrl": "https://id.example/token", "scopes": {"run": "may run"},
                }}}},
            },
            "securityRequirements": [{"schemes": {"sign in": {"list": ["run"]}}}],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [
                {"id": "a", "name": "A", "description": "a", "tags": ["t"]},
                {"id": "b", "name": "B", "description": "b", "tags": ["t"],
                 "securityRequirements": [{"schemes": {"key": {"list": []}}}]},
            ],
        });
        ServerConfig { prefix: "/one".to_owned(), ..ServerConfig::new(from_json(card.to_string().as_bytes()).unwrap()) }
    }

    #[test]
    fn both_readers_find_the_same_in_one_document() {
        let config = secured();
        let card = with_interfaces(&config, "https://agent.example");
        let document = document(&card, &config.versions);
        assert_eq!(from_json::<wire::AgentCard>(&document).unwrap(), card, "v1.0 reads what it would read alone");
        let old = v0_3::card::card_from_json(&document).unwrap();
        let alone = Value::Object(card_to_v0_3(&card).unwrap()).to_string();
        assert_eq!(old, v0_3::card::card_from_json(alone.as_bytes()).unwrap(), "and so does v0.3");
        let text: Value = serde_json::from_slice(&document).unwrap();
        let key = json!({
            "apiKeySecurityScheme": {"location": "header", "name": "X-Key"},
            "type": "apiKey", "in": "header", "name": "X-Key",
        });
        assert_eq!(text["securitySchemes"]["key"], key);
        assert_eq!(text["security"], json!([{"sign in": ["run"]}]));
        assert_eq!(text["securityRequirements"], json!([{"schemes": {"sign in": {"list": ["run"]}}}]));
        assert_eq!(
            (&text["skills"][0].get("security"), &text["skills"][1]["security"]),
            (&None, &json!([{"key": []}]))
        );
        assert_eq!(text["supportsAuthenticatedExtendedCard"], true);
        assert_eq!((&text["url"], &text["protocolVersion"]), (&json!("https://agent.example/one"), &json!("0.3")));
        assert_eq!(text["additionalInterfaces"][1], json!({"url": "agent.example:443", "transport": "GRPC"}));
    }

    #[test]
    fn without_v0_3_the_document_is_the_card_of_v1_0() {
        let versions = Versions::new([Version::V1_0]).unwrap();
        let config = ServerConfig { versions: versions.clone(), ..secured() };
        let card = with_interfaces(&config, "https://agent.example");
        assert_eq!(card.supported_interfaces.len(), 3);
        assert_eq!(document(&card, &versions), to_json(&card));
    }

    #[test]
    fn the_grpc_interface_is_host_and_port() {
        assert_eq!(authority("http://127.0.0.1:4100"), "127.0.0.1:4100");
        assert_eq!(authority("https://agent.example.com"), "agent.example.com:443");
        assert_eq!(authority("http://agent.example.com/base"), "agent.example.com:80");
        assert_eq!(authority("http://[::1]:4100"), "[::1]:4100");
        assert_eq!(authority("http://[::1]"), "[::1]:80");
    }
}
