//! The texts that may have been signed (§8.4.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::json::{CardProblem, check, excerpt};
use super::schema::{AGENT_CARD, Member, Message, Presence, Shape};

/// How many paths of members that a signature doesn't cover are named.
const UNCOVERED_MAX: usize = 16;

/// The canonical form that a signature fits. Ordered: the later, the less of a card is covered.
///
/// Each form leaves out `signatures`, and what stands for nothing in the protocol: a `null` member, and a default value of a
/// member that is neither REQUIRED nor `optional`. The rest goes through RFC 8785.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Form {
    /// The specification's: everything else is covered, members that the protocol doesn't know among it.
    Specification,
    /// The reference SDKs': empty strings, lists and objects, and `null`, are dropped as well, wherever they are, and what they
    /// leave empty too.
    ///
    /// Not covered, therefore: whether such a value is there. Most of that means nothing. But a security requirement without
    /// scopes (`{"schemes":{"bearer":{"list":[]}}}`, the usual one), one that requires nothing (`{}`), and a security scheme
    /// without members (`mtlsSecurityScheme: {}`) are dropped whole: somebody else could have added or removed one. So take
    /// what a card in this form says about authentication for a hint, and let where a credential goes not depend on it.
    Reference,
    /// The reference SDKs' when they verify: they look only at the members that the protocol knows. Their servers add members
    /// of v0.3 to a card after it was signed, so that such a card fits only this form.
    ///
    /// Not covered in addition: every other member, anywhere in the card.
    ReferenceOfKnown,
}

impl Form {
    /// The name, for output that programs read.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Specification => "specification",
            Self::Reference => "reference",
            Self::ReferenceOfKnown => "reference-of-known",
        }
    }
}

/// What members do that the protocol doesn't know.
#[derive(Clone, Copy)]
enum Unknown {
    Keep,
    Drop,
}

/// A card in its canonical forms, made once for all its signatures.
#[derive(Debug)]
pub(super) struct Payloads {
    card: Value,
    /// The strictest form comes first; forms that say the same are there once.
    texts: Vec<(Form, String)>,
}

impl Payloads {
    pub(super) fn of(card: &Value) -> Result<Self, CardProblem> {
        let card = specification(check(card)?, Unknown::Keep)?;
        let mut texts: Vec<(Form, String)> = Vec::with_capacity(3);
        for form in [Form::Specification, Form::Reference, Form::ReferenceOfKnown] {
            let text = URL_SAFE_NO_PAD.encode(canonical(&in_form(&card, form)?)?);
            if texts.iter().all(|(_, other)| *other != text) {
                texts.push((form, text));
            }
        }
        Ok(Self { card, texts })
    }

    /// The forms with their texts in base64url, the strictest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Form, &str)> {
        self.texts.iter().map(|(form, text)| (*form, text.as_str()))
    }

    /// The paths of members that the card holds and a signature over this form doesn't cover, at most [`UNCOVERED_MAX`].
    pub(super) fn uncovered(&self, form: Form) -> Vec<String> {
        let mut paths = Vec::new();
        // It was in this form before, so that nothing is lost where it can't be.
        if let Ok(part) = in_form(&self.card, form) {
            differences(&self.card, &part, &mut Vec::new(), &mut paths);
        }
        paths
    }
}

fn canonical(value: &Value) -> Result<Vec<u8>, CardProblem> {
    // A checked value has a canonical form; were it otherwise, the card is one that can't be verified.
    serde_json_canonicalizer::to_vec(value).map_err(|error| CardProblem::NotJson { problem: error.to_string() })
}

/// The part of a card that a signature over this form covers. Without the signatures.
pub(crate) fn covered(card: &Value, form: Form) -> Result<Value, CardProblem> {
    in_form(&specification(check(card)?, Unknown::Keep)?, form)
}

/// `card` is in the specification's form.
fn in_form(card: &Value, form: Form) -> Result<Value, CardProblem> {
    let reference = |card: &Value| without_empties(card).unwrap_or_else(|| Value::Object(Map::new()));
    Ok(match (form, card) {
        (Form::ReferenceOfKnown, Value::Object(members)) => reference(&specification(members, Unknown::Drop)?),
        (Form::Reference | Form::ReferenceOfKnown, card) => reference(card),
        (Form::Specification, card) => card.clone(),
    })
}

fn specification(card: &Map<String, Value>, unknown: Unknown) -> Result<Value, CardProblem> {
    let mut members = by_schema(&AGENT_CARD, card, unknown)?;
    members.shift_remove("signatures");
    Ok(Value::Object(members))
}

fn by_schema(
    message: &Message,
    object: &Map<String, Value>,
    unknown: Unknown,
) -> Result<Map<String, Value>, CardProblem> {
    let mut kept = Map::new();
    for (name, value) in object {
        if let Some(member) = message.other_spelling(name) {
            return Err(CardProblem::Spelling { member: excerpt(name), wanted: member.name });
        }
        let value = match (message.member(name), unknown) {
            (Some(member), _) => known(member, value, unknown)?,
            (None, Unknown::Keep) => Some(value.clone()),
            (None, Unknown::Drop) => None,
        };
        if let Some(value) = value {
            kept.insert(name.clone(), value);
        }
    }
    Ok(kept)
}

/// What is left of a member that the protocol knows. A value of the wrong type stays as it is.
fn known(member: &Member, value: &Value, unknown: Unknown) -> Result<Option<Value>, CardProblem> {
    if value.is_null() || (member.presence == Presence::Implicit && is_default(&member.shape, value)) {
        return Ok(None);
    }
    let inner = |message: &Message, value: &Value| match value {
        Value::Object(object) => by_schema(message, object, unknown).map(Value::Object),
        other => Ok(other.clone()),
    };
    let kept = match (&member.shape, value) {
        (Shape::One(message), _) => inner(message, value)?,
        (Shape::List(message), Value::Array(elements)) => {
            Value::Array(elements.iter().map(|element| inner(message, element)).collect::<Result<_, _>>()?)
        }
        (Shape::Map(message), Value::Object(entries)) => {
            let entries = entries.iter().map(|(key, entry)| Ok((key.clone(), inner(message, entry)?)));
            Value::Object(entries.collect::<Result<_, CardProblem>>()?)
        }
        _ => value.clone(),
    };
    Ok(Some(kept))
}

fn is_default(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::Text => value.as_str() == Some(""),
        Shape::Flag => value.as_bool() == Some(false),
        Shape::TextList | Shape::List(_) => value.as_array().is_some_and(Vec::is_empty),
        Shape::TextMap | Shape::Map(_) => value.as_object().is_some_and(Map::is_empty),
        Shape::Struct | Shape::One(_) => false,
    }
}

fn without_empties(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(elements) => {
            let kept: Vec<Value> = elements.iter().filter_map(without_empties).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        Value::Object(members) => {
            let kept: Map<String, Value> = members
                .iter()
                .filter_map(|(name, member)| without_empties(member).map(|member| (name.clone(), member)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

/// A step from a value to one inside.
#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

/// Collects the paths of what `whole` holds and `part` doesn't. A list that lost elements is named as a whole.
fn differences<'a>(whole: &'a Value, part: &Value, path: &mut Vec<Step<'a>>, paths: &mut Vec<String>) {
    if paths.len() >= UNCOVERED_MAX {
        return;
    }
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, member) in whole {
                path.push(Step::Member(name));
                match part.get(name) {
                    Some(other) => differences(member, other, path, paths),
                    None => report(path, paths),
                }
                path.pop();
            }
        }
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            for (index, (element, other)) in whole.iter().zip(part).enumerate() {
                path.push(Step::Element(index));
                differences(element, other, path, paths);
                path.pop();
            }
        }
        // Forms drop values and never change one.
        (Value::Array(_), _) => report(path, paths),
        _ => {}
    }
}

fn report(path: &[Step<'_>], paths: &mut Vec<String>) {
    if paths.len() < UNCOVERED_MAX {
        let steps = path.iter().map(|step| match step {
            Step::Member(name) => format!(".{}", excerpt(name).escape_debug()),
            Step::Element(index) => format!("[{index}]"),
        });
        paths.push(steps.collect::<String>().trim_start_matches('.').to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(card: &Value, form: Form) -> String {
        let specification = specification(check(card).unwrap(), Unknown::Keep).unwrap();
        String::from_utf8(canonical(&in_form(&specification, form).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn the_cards_of_the_vectors_have_the_text_that_was_signed() {
        for line in include_str!("../../tests/data/cards.jsonl").lines() {
            let vector: Value = serde_json::from_str(line).unwrap();
            for card in [&vector["card"], &vector["signed"]] {
                assert_eq!(text(card, Form::Specification), vector["canonical"], "{}", vector["about"]);
                assert_eq!(text(card, Form::Reference), vector["canonical"], "{}", vector["about"]);
            }
        }
    }

    #[test]
    fn a_member_in_the_other_spelling_is_refused_wherever_the_protocol_knows_it() {
        for (card, wanted) in [
            (json!({ "iconUrl": "a", "icon_url": null }), "iconUrl"),
            (json!({ "securitySchemes": { "a": { "oauth2_security_scheme": {} } } }), "oauth2SecurityScheme"),
            (json!({ "skills": [{ "security_requirements": [] }] }), "securityRequirements"),
        ] {
            let problem = Payloads::of(&card).unwrap_err();
            assert!(matches!(problem, CardProblem::Spelling { wanted: found, .. } if found == wanted), "{problem}");
        }
        // Names of schemes, members of a Struct and what nobody knows are no members of the protocol.
        let card = json!({
            "x_icon_url": 1,
            "securitySchemes": { "icon_url": {} },
            "capabilities": { "extensions": [{ "params": { "icon_url": 1 } }] },
        });
        assert!(Payloads::of(&card).is_ok());
    }

    #[test]
    fn the_example_of_the_specification_has_the_form_that_it_says() {
        let card = json!({
            "name": "Example Agent",
            "description": "",
            "capabilities": { "streaming": false, "pushNotifications": false, "extensions": [] },
            "skills": [],
        });
        let wanted = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        assert_eq!(text(&card, Form::Specification), wanted);
        let reference = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}"#;
        assert_eq!(text(&card, Form::Reference), reference);
    }

    #[test]
    fn a_default_stays_where_the_protocol_tells_it_from_nothing() {
        let card = json!({
            "documentationUrl": "", "iconUrl": null, "provider": {}, "securitySchemes": {}, "securityRequirements": [],
            "capabilities": { "extensions": [{ "uri": "", "required": false, "params": { "a": null, "b": [], "c": {} } }] },
            "supportedInterfaces": [{ "url": "", "tenant": "" }, null, 7],
            "skills": [{ "id": "", "tags": [], "examples": [], "inputModes": "" }],
        });
        let wanted = json!({
            "documentationUrl": "", "provider": {},
            "capabilities": { "extensions": [{ "params": { "a": null, "b": [], "c": {} } }] },
            "supportedInterfaces": [{ "url": "" }, null, 7],
            "skills": [{ "id": "", "tags": [], "inputModes": "" }],
        });
        assert_eq!(serde_json::from_str::<Value>(&text(&card, Form::Specification)).unwrap(), wanted);
        assert_eq!(text(&card, Form::Reference), r#"{"supportedInterfaces":[7]}"#);
    }

    #[test]
    fn members_that_the_protocol_does_not_know_are_kept_but_in_the_weakest_form() {
        let card = json!({
            "url": "u", "empty": "", "signatures": [{}],
            "skills": [{ "id": "s", "x": { "signatures": 1 } }],
            "securitySchemes": { "k": { "type": "apiKey", "apiKeySecurityScheme": { "name": "n", "in": "header" } } },
        });
        let wanted = json!({
            "url": "u", "empty": "",
            "skills": [{ "id": "s", "x": { "signatures": 1 } }],
            "securitySchemes": { "k": { "type": "apiKey", "apiKeySecurityScheme": { "name": "n", "in": "header" } } },
        });
        assert_eq!(serde_json::from_str::<Value>(&text(&card, Form::Specification)).unwrap(), wanted);
        assert_eq!(
            text(&card, Form::ReferenceOfKnown),
            r#"{"securitySchemes":{"k":{"apiKeySecurityScheme":{"name":"n"}}},"skills":[{"id":"s"}]}"#
        );
        let payloads = Payloads::of(&card).unwrap();
        assert_eq!(payloads.uncovered(Form::Specification), [""; 0]);
        assert_eq!(payloads.uncovered(Form::Reference), ["empty"]);
        let known =
            ["url", "empty", "skills[0].x", "securitySchemes.k.type", "securitySchemes.k.apiKeySecurityScheme.in"];
        assert_eq!(payloads.uncovered(Form::ReferenceOfKnown), known);
    }

    #[test]
    fn a_requirement_without_scopes_is_named_as_not_covered() {
        let card = json!({ "name": "n", "securityRequirements": [{ "schemes": { "oauth": { "list": [] } } }] });
        let payloads = Payloads::of(&card).unwrap();
        assert_eq!(payloads.uncovered(Form::Reference), ["securityRequirements"]);
        let many: Map<String, Value> = (0..100).map(|n| (format!("m{n}"), json!([]))).collect();
        assert_eq!(Payloads::of(&Value::Object(many)).unwrap().uncovered(Form::Reference).len(), UNCOVERED_MAX);
    }

    #[test]
    fn forms_that_say_the_same_are_there_once() {
        assert_eq!(Payloads::of(&json!({ "name": "n" })).unwrap().iter().count(), 1);
        assert_eq!(Payloads::of(&json!({ "name": "n", "x": "", "y": 1 })).unwrap().iter().count(), 3);
    }
}
