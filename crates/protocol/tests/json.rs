//! What the vectors do not say about our ProtoJSON: paths, depth, digits, and bytes of any kind.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use longhaul_protocol::json::{DEPTH_MAX, JsonErrorKind};
use longhaul_protocol::{JsonError, from_json, to_json, wire};
use proptest::prelude::*;
use serde_json::{Value, json};

fn refused(json: &str) -> JsonError {
    from_json::<wire::SendMessageRequest>(json.as_bytes()).unwrap_err()
}

fn part(json: &str) -> wire::Part {
    from_json(json.as_bytes()).unwrap()
}

#[track_caller]
fn check(json: &str, kind: JsonErrorKind, path: &str, message: &str) {
    let error = refused(json);
    assert_eq!((error.kind, error.path.as_str()), (kind, path), "{error}");
    assert!(error.message.contains(message), "{error}");
}

#[test]
fn a_fault_is_told_with_its_path() {
    use JsonErrorKind::{Invalid, Syntax};
    check(r#"{"message":{"parts":[{"raw":"!!!"}]}}"#, Invalid, "message.parts[0].raw", "must be base64");
    check(r#"{"message":{"parts":[{},{"text":5}]}}"#, Invalid, "message.parts[1].text", "expected a string");
    check(r#"{"message":{"parts":[{},null]}}"#, Invalid, "message.parts[1]", "null");
    check(
        r#"{"configuration":{"history_length":"x"}}"#,
        Invalid,
        "configuration.historyLength",
        "expected a whole number of 32 bits",
    );
    check(r#"{"configuration":{"historyLength":1e400}}"#, Invalid, "configuration.historyLength", "range");
    check(
        r#"{"message":{"parts":[{"text":"a","url":"b"}]}}"#,
        Invalid,
        "message.parts[0]",
        "only one of text, raw, url, data is allowed, `url` is the second",
    );
    check(r#"{"tenant":"a","tenant":"b"}"#, Invalid, "", "duplicate field `tenant`");
    check(r#"[]"#, Invalid, "", "expected a JSON object (SendMessageRequest)");
    check(r#"{"tenant":"a"} x"#, Syntax, "", "trailing characters at line 1 column 16");
    check(r#"{"message":{"messageId":"m"#, Syntax, "message.messageId", "EOF");
    check("", Syntax, "", "EOF");
    let error = from_json::<wire::AgentCard>(br#"{"securitySchemes":{"k":{"apiKeySecurityScheme":{"name":1}}}}"#);
    assert_eq!(error.unwrap_err().path, "securitySchemes.k.apiKeySecurityScheme.name");
}

#[test]
fn the_path_of_one_fault_is_not_in_the_next() {
    for _ in 0..2 {
        assert_eq!(refused(r#"{"message":{"parts":[5]}}"#).path, "message.parts[0]");
        assert!(serde_json::from_str::<wire::Part>(r#"{"text":5}"#).is_err());
    }
}

#[test]
fn data_may_be_nested_a_hundred_times_but_not_ten_thousand() {
    let send = |levels: usize| {
        let data = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"message":{{"parts":[{{"data":{data}}}]}}}}"#)
    };
    // The request, the message, the list of parts and the part are levels too.
    let request: wire::SendMessageRequest = from_json(send(DEPTH_MAX - 4).as_bytes()).unwrap();
    assert!(to_json(&request).len() > DEPTH_MAX);
    const { assert!(DEPTH_MAX - 4 >= 100) };
    for levels in [DEPTH_MAX - 3, 10_000, 1_000_000] {
        let error = refused(&send(levels));
        assert_eq!(error.kind, JsonErrorKind::Depth);
        assert_eq!(error.path, "message.parts[0].data");
        assert_eq!(error.message, "must not be nested deeper than 127 levels");
    }
    let unclosed = format!(r#"{{"metadata":{}"#, r#"{"a":"#.repeat(100_000));
    assert_eq!(refused(&unclosed).kind, JsonErrorKind::Depth);
    let unknown = format!(r#"{{"future":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(from_json::<wire::SendMessageRequest>(unknown.as_bytes()).is_ok());
}

#[test]
fn whole_numbers_keep_their_digits() {
    let text = r#"{"data":[1,-7,0,9007199254740993,18446744073709551615,-9223372036854775808,1.5,1.0]}"#;
    assert_eq!(to_json(&part(text)), text);
}

#[test]
fn null_in_data_and_metadata_is_kept_and_elsewhere_absent() {
    let text = r#"{"data":{"a":null,"b":[null,1]},"metadata":{"k":null,"e":[],"o":{}}}"#;
    assert_eq!(to_json(&part(text)), text);
    assert_eq!(part(r#"{"data":null}"#), wire::Part::data(Value::Null));
    assert_eq!(part(r#"{"text":null,"metadata":null,"filename":null}"#), wire::Part::default());
    let text = r#"{"text":"a","data":null}"#;
    assert!(from_json::<wire::Part>(text.as_bytes()).is_err(), "a null in data is a content");
}

#[test]
fn a_key_that_the_json_library_keeps_for_itself_is_data() {
    for key in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let text = format!(r#"{{"data":{{"{key}":"[1]"}},"metadata":{{"a":{{"{key}":"5"}}}}}}"#);
        assert_eq!(to_json(&part(&text)), text);
    }
}

#[test]
fn of_two_spellings_the_last_one_wins() {
    assert_eq!(part(r#"{"media_type":"a","mediaType":"b"}"#).media_type, "b");
    assert_eq!(part(r#"{"mediaType":"a","media_type":null}"#).media_type, "");
    assert!(from_json::<wire::Part>(br#"{"media_type":"a","media_type":"b"}"#).is_err());
}

#[test]
fn integers_are_read_from_each_form_and_kept_in_range() {
    let read = |json: &str| {
        let text = format!(r#"{{"historyLength":{json}}}"#);
        from_json::<wire::GetTaskRequest>(text.as_bytes()).ok().and_then(|request| request.history_length)
    };
    for (json, wanted) in [
        ("5", 5),
        ("\"5\"", 5),
        ("5.0", 5),
        ("\"5.0\"", 5),
        ("\"1e1\"", 10),
        ("-0", 0),
        ("\"-7\"", -7),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
        ("2.147483647e9", i32::MAX),
    ] {
        assert_eq!(read(json), Some(wanted), "{json}");
    }
    for json in [
        "2147483648",
        "\"2147483648\"",
        "-2147483649",
        "2147483648.0",
        "18446744073709551615",
        "1e300",
        "0.5",
        "\"0.5\"",
        "\" 5\"",
        "\"5 \"",
        "\"+5\"",
        "\"0x5\"",
        "\"NaN\"",
        "\"inf\"",
        "[]",
        "{}",
        "false",
    ] {
        assert_eq!(read(json), None, "{json}");
    }
}

#[test]
fn enum_numbers_out_of_range_are_refused_and_unknown_ones_kept() {
    let read = |json: &str| {
        let text = format!(r#"{{"role":{json}}}"#);
        from_json::<wire::Message>(text.as_bytes()).ok().map(|message| message.role.0)
    };
    for (json, wanted) in [("77", 77), ("-3", -3), ("2.0", 2), ("null", 0), ("\"\"", 0)] {
        assert_eq!(read(json), Some(wanted), "{json}");
    }
    for json in ["2147483648", "1.5", "true", "[]"] {
        assert_eq!(read(json), None, "{json}");
    }
}

#[test]
fn our_own_messages_print_what_they_promise() {
    assert_eq!(to_json(&wire::ListArtifactVersionsResponse::default()), r#"{"versions":[],"nextPageToken":""}"#);
    let version = wire::ArtifactVersion { version: 1, sequence: 1 << 60, ..Default::default() };
    assert_eq!(to_json(&version), r#"{"version":1,"sequence":1152921504606846976}"#);
    let read: wire::ArtifactVersion = from_json(br#"{"version":"1","sequence":"1152921504606846976"}"#).unwrap();
    assert_eq!(read, version);
    assert_eq!(
        to_json(&wire::ListTasksResponse::default()),
        r#"{"tasks":[],"nextPageToken":"","pageSize":0,"totalSize":0}"#
    );
}

#[test]
fn a_message_reads_from_a_value_as_from_bytes() {
    let value = json!({"message": {"messageId": "m", "role": 1, "parts": [{"data": {"a": null}}]}});
    let from_value: wire::SendMessageRequest = serde_json::from_value(value.clone()).unwrap();
    let from_bytes: wire::SendMessageRequest = from_json(value.to_string().as_bytes()).unwrap();
    assert_eq!(from_value, from_bytes);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no infinities", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_data_comes_back(data in any_json(), metadata in any_json()) {
        let part = wire::Part {
            metadata: metadata.as_object().cloned(),
            ..wire::Part::data(data)
        };
        prop_assert_eq!(from_json::<wire::Part>(&to_json(&part)), Ok(part));
    }

    #[test]
    fn any_bytes_come_back(bytes in any::<Vec<u8>>()) {
        let part = wire::Part::raw(bytes);
        prop_assert_eq!(from_json::<wire::Part>(&to_json(&part)), Ok(part));
    }

    #[test]
    fn no_bytes_bring_the_reader_down(bytes in any::<Vec<u8>>()) {
        let _ = from_json::<wire::SendMessageRequest>(&bytes);
        let _ = from_json::<wire::AgentCard>(&bytes);
    }

    #[test]
    fn no_damage_to_a_message_brings_the_reader_down(
        line in 0..109_usize,
        place in any::<prop::sample::Index>(),
        damage in prop::collection::vec(any::<u8>(), 0..4),
        length in 0..8_usize,
    ) {
        let line = include_str!("data/protojson.jsonl").lines().nth(line).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        let mut bytes = line["input"].as_str().unwrap().as_bytes().to_vec();
        let start = place.index(bytes.len() + 1);
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, damage);
        let _ = from_json::<wire::SendMessageRequest>(&bytes);
        let _ = from_json::<wire::StreamResponse>(&bytes);
        let _ = from_json::<wire::Message>(&bytes);
        let _ = from_json::<wire::AgentCard>(&bytes);
    }
}
