//! The members that a card must have (A2A §4.4, §4.5, §5.7; v0.3 §5.5).
//!
//! Looked for in the JSON as it came: once it is read, a member that is absent and one that is empty are the same.

use longhaul_protocol::JsonObject;
use serde_json::Value;

use crate::card::read::{CardDocument, Written};

use super::names::key;
use super::{Findings, Severity};

/// Objects by their path, and what each of them must have. `[]` is each item, `*` each member.
type Table = &'static [(&'static [&'static str], &'static [&'static str])];

#[rustfmt::skip]
const V1_0: Table = &[
    (&[],                                                   &["name", "description", "supportedInterfaces", "version", "capabilities",
                                                              "defaultInputModes", "defaultOutputModes", "skills"]),
    (&["supportedInterfaces", "[]"],                        &["url", "protocolBinding", "protocolVersion"]),
    (&["provider"],                                         &["url", "organization"]),
    (&["skills", "[]"],                                     &["id", "name", "description", "tags"]),
    (&["signatures", "[]"],                                 &["protected", "signature"]),
    (&["securitySchemes", "*", "apiKeySecurityScheme"],     &["location", "name"]),
    (&["securitySchemes", "*", "httpAuthSecurityScheme"],   &["scheme"]),
    (&["securitySchemes", "*", "oauth2SecurityScheme"],     &["flows"]),
    (&["securitySchemes", "*", "openIdConnectSecurityScheme"], &["openIdConnectUrl"]),
    (&["securitySchemes", "*", "oauth2SecurityScheme", "flows", "authorizationCode"], &["authorizationUrl", "tokenUrl", "scopes"]),
    (&["securitySchemes", "*", "oauth2SecurityScheme", "flows", "clientCredentials"], &["tokenUrl", "scopes"]),
    (&["securitySchemes", "*", "oauth2SecurityScheme", "flows", "deviceCode"], &["deviceAuthorizationUrl", "tokenUrl", "scopes"]),
];

#[rustfmt::skip]
const V0_3: Table = &[
    (&[],                                                   &["protocolVersion", "name", "description", "url", "version", "capabilities",
                                                              "defaultInputModes", "defaultOutputModes", "skills"]),
    (&["additionalInterfaces", "[]"],                       &["url", "transport"]),
    (&["provider"],                                         &["url", "organization"]),
    (&["skills", "[]"],                                     &["id", "name", "description", "tags"]),
    (&["signatures", "[]"],                                 &["protected", "signature"]),
    (&["securitySchemes", "*"],                             &["type"]),
    (&["securitySchemes", "*", "flows", "authorizationCode"], &["authorizationUrl", "tokenUrl", "scopes"]),
    (&["securitySchemes", "*", "flows", "clientCredentials"], &["tokenUrl", "scopes"]),
    (&["securitySchemes", "*", "flows", "implicit"],        &["authorizationUrl", "scopes"]),
    (&["securitySchemes", "*", "flows", "password"],        &["tokenUrl", "scopes"]),
];

/// What a version asks of lists that it requires.
#[derive(Clone, Copy)]
enum Lists {
    /// v1.0 (§5.7).
    HaveItems,
    /// v0.3.
    MayBeEmpty,
}

/// Members that may be empty though they must be there: nothing but a person reads them.
const MAY_BE_EMPTY: &[&str] = &["description"];

pub(super) fn check(document: &CardDocument, findings: &mut Findings) {
    let is_v0_3 = document.written() == Written::V0_3;
    let (table, rule) = if is_v0_3 { (V0_3, Lists::MayBeEmpty) } else { (V1_0, Lists::HaveItems) };
    for (path, required) in table {
        let mut check_object = |members: &JsonObject, at: &str| {
            for name in *required {
                if let Some((severity, description)) = fault(find(members, name), name, rule) {
                    findings.add(severity, joined(at, name), description.to_owned());
                }
            }
        };
        visit(document.members(), "", path, &mut check_object);
    }
    if is_v0_3 && find(document.members(), "preferredTransport").is_none() {
        findings.remark("preferredTransport", "should say what is spoken at url; JSONRPC is taken for it");
    }
}

/// What is wrong with a required member, if anything is.
fn fault(value: Option<&Value>, name: &str, lists: Lists) -> Option<(Severity, &'static str)> {
    match (value, lists) {
        (None, _) => Some((Severity::Error, "is required")),
        (Some(Value::String(text)), _) if text.is_empty() => match MAY_BE_EMPTY.contains(&name) {
            true => Some((Severity::Remark, "is empty")),
            false => Some((Severity::Error, "must not be empty")),
        },
        (Some(Value::Array(items)), Lists::HaveItems) if items.is_empty() => {
            Some((Severity::Error, "must have at least one item"))
        }
        (Some(_), _) => None,
    }
}

/// Calls `check` with each object that a path leads to.
fn visit(members: &JsonObject, at: &str, path: &[&str], check: &mut dyn FnMut(&JsonObject, &str)) {
    let Some((step, rest)) = path.split_first() else { return check(members, at) };
    if *step == "*" {
        for (name, value) in members {
            visit_value(value, &joined(at, &key(name)), rest, check);
        }
    } else if let Some(value) = find(members, step) {
        visit_value(value, &joined(at, step), rest, check);
    }
}

fn visit_value(value: &Value, at: &str, path: &[&str], check: &mut dyn FnMut(&JsonObject, &str)) {
    match (value, path.split_first()) {
        (Value::Array(items), Some((&"[]", rest))) => {
            for (index, item) in items.iter().enumerate() {
                visit_value(item, &format!("{at}[{index}]"), rest, check);
            }
        }
        (Value::Object(members), _) => visit(members, at, path, check),
        _ => {}
    }
}

fn joined(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// A member by either of the names that ProtoJSON has for it; `null` is none.
fn find<'a>(members: &'a JsonObject, name: &str) -> Option<&'a Value> {
    members.get(name).or_else(|| members.get(&snake_case(name))).filter(|value| !value.is_null())
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
