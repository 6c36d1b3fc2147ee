use std::path::PathBuf;

use clap::Parser;
use serde_json::json;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    parts: PartFlags,
}

fn flags(words: &[&str]) -> Vec<PartFlag> {
    Line::try_parse_from(std::iter::once(&"send").chain(words)).unwrap().parts.0
}

fn made(words: &[&str]) -> Result<Vec<Part>, Failure> {
    parts(&flags(words), &mut io::empty())
}

#[track_caller]
fn refused(words: &[&str], message: &str) {
    let failure = made(words).unwrap_err();
    assert_eq!(failure.exit.code(), 2);
    assert!(failure.message.contains(message), "{}", failure.message);
    assert!(failure.hint.is_some());
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("longhaul-parts-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn flags_keep_the_order_of_the_command_line() {
    let line =
        ["one", "--data", "d", "--text", "-two", "--media-type", "text/x", "--file=f", "three", "--text", "four"];
    let wanted = [
        PartFlag::Words("one".to_owned()),
        PartFlag::Data("d".to_owned()),
        PartFlag::Text("-two".to_owned()),
        PartFlag::MediaType("text/x".to_owned()),
        PartFlag::File("f".to_owned()),
        PartFlag::Words("three".to_owned()),
        PartFlag::Text("four".to_owned()),
    ];
    assert_eq!(flags(&line), wanted);
}

#[test]
fn a_media_type_belongs_to_the_flag_right_before_it() {
    let parts = made(&["--text", "a", "--media-type", "text/markdown", "--text", "b"]).unwrap();
    assert_eq!(parts[0].media_type, "text/markdown");
    assert_eq!(parts[1].media_type, "");
    for stray in [
        &["--media-type", "text/x", "--text", "a"][..],
        &["--media-type", "text/x"],
        &["hello", "--media-type", "text/x"],
        &["--text", "a", "--media-type", "text/x", "--media-type", "text/y"],
    ] {
        refused(stray, "follows no part flag");
    }
}

#[test]
fn a_file_goes_along_with_its_name_and_a_guess_at_its_type() {
    let path = file("report.pdf", b"%PDF");
    let nameless = file("bytes", &[0, 255]);
    let (path, nameless) = (path.to_str().unwrap(), nameless.to_str().unwrap());
    let url = format!("file://{path}");
    let parts =
        made(&["--file", path, "--file", nameless, "--file", path, "--media-type", "x/y", "--file", &url]).unwrap();
    let shown: Vec<_> = parts.iter().map(|part| (part.filename.as_str(), part.media_type.as_str())).collect();
    assert_eq!(
        shown,
        [("report.pdf", "application/pdf"), ("bytes", ""), ("report.pdf", "x/y"), ("report.pdf", "application/pdf")]
    );
    assert_eq!(parts[1].content, Some(PartContent::Raw(vec![0, 255].into())));
    assert_eq!(parts[3].content, parts[0].content);
}

#[test]
fn a_url_stays_one() {
    for (url, name, media_type) in [
        ("https://a/b/c%20d.png?x=1#y", "c d.png", "image/png"),
        ("http://a", "", ""),
        ("s3://bucket/key.json", "key.json", "application/json"),
    ] {
        let part = made(&["--file", url]).unwrap().remove(0);
        assert_eq!(part.content, Some(PartContent::Url(url.to_owned())));
        assert_eq!((part.filename.as_str(), part.media_type.as_str()), (name, media_type));
    }
}

#[test]
fn data_is_any_json_and_nothing_else() {
    let path = file("data.json", br#" {"n": 12345678901234567890, "x": null} "#);
    let part = made(&["--data", path.to_str().unwrap()]).unwrap().remove(0);
    assert_eq!(part.content, Some(PartContent::Data(json!({"n": 12_345_678_901_234_567_890_u64, "x": null}))));
    assert_eq!(part.media_type, "application/json");
    for (name, content) in
        [("empty", ""), ("text", "hello"), ("two", "1 2"), ("member", r#"1, "filename": "x""#), ("open", "{")]
    {
        refused(&["--data", file(name, content.as_bytes()).to_str().unwrap()], "is not JSON");
    }
    refused(&["--data", file("deep", &b"[".repeat(100_000)).to_str().unwrap()], "is not JSON");
}

#[test]
fn stdin_is_read_once() {
    let parts = parts(&flags(&["--data", "-"]), &mut &b"[1]"[..]).unwrap();
    assert_eq!(parts[0].content, Some(PartContent::Data(json!([1]))));
    let failure = super::parts(&flags(&["--data", "-", "--file", "-"]), &mut &b"[1]"[..]).unwrap_err();
    assert_eq!(failure.message, "stdin can be only one part");
}

#[test]
fn what_can_not_be_sent_is_refused_before_anything_is() {
    refused(&[], "there is nothing to send");
    refused(&["--file", "/nowhere/at/all"], "cannot read /nowhere/at/all");
    refused(&["--file", "/"], "cannot read /");
    let mut endless = io::repeat(b'x');
    let failure = parts(&flags(&["--file", "-"]), &mut endless).unwrap_err();
    assert!(failure.message.contains("larger than 64 MiB"), "{}", failure.message);
}

#[test]
fn metadata_is_an_object() {
    assert_eq!(json_object(r#"{"a": [1]}"#).unwrap().get("a"), Some(&json!([1])));
    for wrong in ["", "1", "[]", "{", r#"{"a": 1} x"#] {
        assert!(json_object(wrong).is_err(), "{wrong}");
    }
}
