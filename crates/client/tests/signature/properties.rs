//! Whatever a card is: no panic, and no change that goes unnoticed.

use longhaul_client::signature::{CardProblem, Fetched, Form, JkuAllowList, JwkSet, Overall, Verifier, read_card};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::signer::{Signer, plain_card, with_signatures};
use super::vectors::{cards, trust_of};
use super::verify;

/// The value with all numbers as doubles, as a canonical form has them; `-0` is 0.
fn numbers_as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => Number::from_f64(number.as_f64().unwrap() + 0.0).map_or(Value::Null, Value::Number),
        Value::Array(elements) => elements.iter().map(numbers_as_doubles).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), numbers_as_doubles(member))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn no_single_byte_of_a_signed_card_can_be_changed() {
    let (mut changed, mut unread) = (0, 0);
    for vector in cards() {
        let mut card = vector["signed"].clone();
        let signatures = card.as_object_mut().unwrap().shift_remove("signatures").unwrap();
        let text = card.to_string();
        let meaning = numbers_as_doubles(&card);
        for position in 0..text.len() {
            for other in [b'7', b'x', b' '] {
                let mut bytes = text.clone().into_bytes();
                if bytes[position] == other {
                    continue;
                }
                bytes[position] = other;
                let read = match read_card(&bytes) {
                    Ok(read) => read,
                    Err(CardProblem::NotJson { .. }) => {
                        unread += 1;
                        continue;
                    }
                    Err(problem) => panic!("{problem}"),
                };
                // A byte that changes no value, such as the last zero of `1.00`, changes no meaning.
                let is_same = numbers_as_doubles(&read) == meaning;
                let card = with_signatures(&read, signatures.as_array().unwrap());
                // The most lenient verifier: what it refuses, all refuse.
                let lenient = Verifier::new(trust_of(&vector)).with_weakest_form(Form::ReferenceOfKnown);
                let report = lenient.verify(&card, &Fetched::nothing());
                let is_number = report.signatures[0].finding.to_string().contains("no exact canonical form");
                let wanted = match (is_same, is_number) {
                    (true, _) => Overall::Verified,
                    (false, true) => Overall::Unverifiable,
                    (false, false) => Overall::Wrong,
                };
                assert_eq!(report.overall(), wanted, "{position}: {}", String::from_utf8_lossy(&bytes));
                changed += 1;
            }
        }
    }
    assert!(changed > 2500 && unread > 500, "{changed} cards were changed, {unread} were none");
}

#[test]
fn a_member_in_the_spelling_that_no_signature_covers_is_not_verified() {
    // A reader that takes both spellings, and the last one, would lose what the card requires.
    for vector in cards() {
        for empty in [json!(null), json!([]), json!({}), json!("")] {
            for name in ["security_requirements", "supported_interfaces", "security_schemes"] {
                let mut card = vector["signed"].clone();
                card[name] = empty.clone();
                assert_eq!(verify(trust_of(&vector), &card).overall(), Overall::Unverifiable);
            }
        }
    }
}

#[test]
fn no_single_byte_of_a_signature_can_be_changed() {
    let vector = cards().remove(0);
    let entry = &vector["signed"]["signatures"][0];
    for member in ["protected", "signature"] {
        let text = entry[member].as_str().unwrap();
        for position in 0..text.len() {
            for other in ["A", "7", "=", "."] {
                if &text[position..=position] == other {
                    continue;
                }
                let mut changed = entry.clone();
                changed[member] = json!(format!("{}{other}{}", &text[..position], &text[position + 1..]));
                let card = with_signatures(&vector["card"], &[changed]);
                let overall = verify(trust_of(&vector), &card).overall();
                assert!(matches!(overall, Overall::Wrong | Overall::Unverifiable), "{member} {position}: {overall:?}");
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        "[a-z]{0,3}",
        any::<String>(),
        Just("signatures".to_owned()),
        Just("protected".to_owned()),
        Just("header".to_owned()),
        Just("capabilities".to_owned()),
        Just("skills".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[A-Za-z0-9_-]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        let members = prop::collection::vec((name.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect::<Map<String, Value>>())),
        ]
    })
}

/// Puts `new` at the place that `turns` leads to.
fn put(value: &mut Value, turns: &[prop::sample::Index], new: Value) {
    let Some((turn, rest)) = turns.split_first() else {
        *value = new;
        return;
    };
    let inner = match value {
        Value::Array(elements) if !elements.is_empty() => {
            let at = turn.index(elements.len());
            elements.get_mut(at)
        }
        Value::Object(members) if !members.is_empty() => {
            let at = turn.index(members.len());
            members.values_mut().nth(at)
        }
        _ => None,
    };
    match inner {
        Some(inner) => put(inner, rest, new),
        None => *value = new,
    }
}

fn following_jku() -> Verifier {
    let list: JkuAllowList = "https://a.example".parse().unwrap();
    Verifier::new(trust_of(&cards()[0])).with_jku_allow(list).with_weakest_form(Form::ReferenceOfKnown)
}

proptest! {
    #[test]
    fn any_json_is_a_card_that_is_not_verified(card in any_json(), signatures in any_json()) {
        let verifier = following_jku();
        for card in [card.clone(), json!({ "name": card, "signatures": signatures }), json!({ "signatures": [signatures] })] {
            prop_assert_ne!(verifier.verify(&card, &Fetched::nothing()).overall(), Overall::Verified);
            prop_assert_eq!(verifier.wanted_jku(&card, &Fetched::nothing()), []);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), json in any_json()) {
        let _ = read_card(&bytes);
        let _ = JwkSet::parse(&bytes);
        let text = json.to_string();
        let _ = JwkSet::parse(text.as_bytes());
        let in_a_set = json!({ "keys": [json] }).to_string();
        prop_assert!(JwkSet::parse(in_a_set.as_bytes()).unwrap().keys().is_empty());
    }

    #[test]
    fn a_signed_card_with_any_value_put_anywhere_is_verified_only_if_it_means_the_same(
        which in 0_usize..4,
        turns in prop::collection::vec(any::<prop::sample::Index>(), 0..7),
        new in any_json(),
    ) {
        let vector = cards().remove(which);
        let mut card = vector["signed"].clone();
        put(&mut card, &turns, new);
        let overall = verify(trust_of(&vector), &card).overall();
        if overall == Overall::Verified {
            // `null`, `""`, `[]` and `{}` that the reference form drops would be such a meaning; nothing else is.
            let without = |value: &Value| {
                let mut members = numbers_as_doubles(value);
                members.as_object_mut().unwrap().shift_remove("signatures");
                hollow_removed(&members)
            };
            prop_assert_eq!(without(&card), without(&vector["signed"]));
        }
    }

    #[test]
    fn whatever_is_signed_in_the_specifications_form_is_verified(extra in any_json()) {
        let mut card = plain_card();
        card["x"] = extra;
        let signer = Signer::ed_dsa("k");
        let signed = with_signatures(&card, &[signer.entry(&card)]);
        // A reader of the text sees what a reader of the value sees.
        if let Ok(read) = read_card(signed.to_string().as_bytes()) {
            prop_assert_eq!(numbers_as_doubles(&read), numbers_as_doubles(&signed));
            let report = verify(signer.trusted(), &read);
            let is_exact = report.overall() == Overall::Verified;
            prop_assert!(is_exact || report.signatures[0].finding.to_string().contains("no exact canonical form"), "{:?}", report);
        }
    }
}

fn hollow_removed(value: &Value) -> Value {
    let is_hollow = |value: &Value| {
        matches!(value, Value::Null) || *value == json!("") || *value == json!([]) || *value == json!({})
    };
    match value {
        Value::Array(elements) => elements.iter().map(hollow_removed).filter(|element| !is_hollow(element)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), hollow_removed(member)))
            .filter(|(_, member)| !is_hollow(member))
            .collect(),
        other => other.clone(),
    }
}
