//! The form of signatures (A2A §8.4.2). Whether they hold is not looked at here.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use longhaul_protocol::JsonObject;
use longhaul_protocol::json::object_from_json;
use longhaul_protocol::wire::AgentCardSignature;
use serde_json::Value;

use super::Findings;

pub(super) fn check(signatures: &[AgentCardSignature], findings: &mut Findings) {
    for (index, signature) in signatures.iter().enumerate() {
        let path = |member: &str| format!("signatures[{index}].{member}");
        // That one of them is missing is told with the required members.
        if !signature.protected.is_empty() {
            check_header(&signature.protected, &path("protected"), findings);
        }
        if BASE64_URL_SAFE_NO_PAD.decode(&signature.signature).is_err() {
            findings.error(path("signature"), "must be base64url without padding");
        }
    }
}

fn check_header(protected: &str, path: &str, findings: &mut Findings) {
    let header = BASE64_URL_SAFE_NO_PAD.decode(protected).ok().and_then(|json| object_from_json(&json).ok());
    let Some(header) = header else {
        return findings.error(path, "must be a JSON object in base64url without padding");
    };
    let text = |header: &JsonObject, name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
    match text(&header, "alg") {
        None => findings.error(path, "must name its algorithm (alg)"),
        Some(algorithm) if algorithm.eq_ignore_ascii_case("none") => {
            findings.error(path, "must have an algorithm (alg) other than none");
        }
        Some(_) => {}
    }
    if text(&header, "kid").is_none_or(|kid| kid.is_empty()) {
        findings.error(path, "must name its key (kid)");
    }
    if text(&header, "typ").is_none_or(|kind| !kind.eq_ignore_ascii_case("JOSE")) {
        findings.remark(path, "should have JOSE as its type (typ)");
    }
    if header.contains_key("jku") && text(&header, "jku").is_none_or(|url| !url.starts_with("https://")) {
        findings.remark(path, "should have its keys (jku) at an https URL");
    }
}
