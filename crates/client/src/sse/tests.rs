use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The specification word by word, on the whole stream at once.
fn reference(stream: &[u8]) -> Vec<SseEvent> {
    let stream = stream.strip_prefix(BOM).unwrap_or(stream);
    let (mut data, mut event, mut id, mut retry) = (Vec::new(), String::new(), String::new(), None);
    let mut events = Vec::new();
    for line in lines(stream) {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                let event = if event.is_empty() { "message".to_owned() } else { event.clone() };
                let id = (!id.is_empty()).then(|| Arc::from(id.as_str()));
                events.push(SseEvent { event: event.into(), data: data.clone().into(), id, retry });
            }
            data.clear();
            event.clear();
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => data.extend([value, b"\n"].concat()),
            b"event" => event = text,
            b"id" if !text.contains('\0') => id = text,
            b"retry" if !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()) => {
                retry = Some(Duration::from_millis(text.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    events
}

/// The lines that have ended.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            b'\n' | b'\r' => lines.push(mem::take(&mut line)),
            _ => line.push(*byte),
        }
    }
    lines
}

/// What the parser makes of a stream that comes in these chunks.
fn parsed<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
    let mut parser = SseParser::new(SseLimits::default());
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk).unwrap();
        events.extend(parser.by_ref());
    }
    events
}

fn event(data: &str) -> SseEvent {
    SseEvent { event: "message".into(), data: Bytes::copy_from_slice(data.as_bytes()), id: None, retry: None }
}

fn limited(event_bytes_max: usize, line_bytes_max: usize) -> SseParser {
    SseParser::new(SseLimits { event_bytes_max, line_bytes_max })
}

/// The data of the events of a stream: given whole, in single bytes, and as the reference reads it.
#[track_caller]
fn check(stream: &[u8], expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|data| event(data)).collect();
    assert_eq!(parsed([stream]), expected);
    assert_eq!(parsed(stream.chunks(1)), expected);
    assert_eq!(reference(stream), expected);
}

#[test]
fn lines_end_with_lf_cr_or_both() {
    check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
    check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
    check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check(b"data: a\r\n\ndata: b\n\r\n\r", &["a", "b"]);
    check(b"\r\n\r\n\n\rdata: a\r\n\r", &["a"]);
}

#[test]
fn an_event_that_ends_with_cr_does_not_wait_for_more() {
    let mut parser = SseParser::new(SseLimits::default());
    parser.feed(b"data: a\r\n\r").unwrap();
    assert_eq!(parser.next(), Some(event("a")));
    parser.feed(b"\ndata: b\r\r").unwrap();
    assert_eq!(parser.next(), Some(event("b")), "the LF was the rest of a line end and no empty line");
}

#[test]
fn data_has_lines_and_loses_one_space_each() {
    check(b"data: a\ndata:b\ndata:  c\ndata: \ndata\n\n", &["a\nb\n c\n\n"]);
    check(b"data:\n\n", &[""]);
    check(b"data\n\n", &[""]);
    check(b"data\ndata\n\n", &["\n"]);
    check("data: \u{1F600}\u{2028}x\u{85}\n\n".as_bytes(), &["\u{1F600}\u{2028}x\u{85}"]);
    check(b"data: {\"a\": \"b: c\"}\n\n", &["{\"a\": \"b: c\"}"]);
}

#[test]
fn what_is_no_known_field_is_ignored() {
    check(b": ping\n:\n\n::data: x\n\ndata: a\n: data: b\n\n", &["a"]);
    check(b"Data: a\n\n data: a\n\ndata : a\n\ndatas: a\n\ndat: a\n\nx\n\ndatadatadata:a\n\n", &[]);
    check(b"\n\n\r\rdata\t: a\n\n", &[]);
    check(b"data: a\nevents: x\nidid: x\nretrying: 1\n\n", &["a"]);
}

#[test]
fn a_byte_order_mark_is_left_out_at_the_very_start_only() {
    check(b"\xEF\xBB\xBFdata: a\n\n", &["a"]);
    check(b"\xEF\xBB\xBF\n\ndata: a\n\n", &["a"]);
    check(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &[]);
    check(b"\n\xEF\xBB\xBFdata: a\n\n", &[]);
    check(b"\xEF\xBBdata: a\n\ndata: b\n\n", &["b"]);
    check(b"\xEF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", &["b"]);
    check(b"\xEF", &[]);
}

#[test]
fn events_without_data_are_not_handed_out() {
    check(b"event: x\n\nid\n\nretry\n\ndata: a\n\n", &["a"]);
    check(b"event: x\n\ndata: the type went with its event\n\n", &["the type went with its event"]);
}

#[test]
fn an_unfinished_event_is_told_and_not_handed_out() {
    for (stream, in_event) in [
        ("", false),
        ("data: a\n\n", false),
        ("data: a\n", true),
        ("d", true),
        ("id: 1\n", true),
        ("data: a\n\n: pin", false),
        ("data: a\n\n:", false),
        ("data: a\n\n: ping\n", false),
        ("data: a\n\r", false),
    ] {
        let mut parser = SseParser::new(SseLimits::default());
        parser.feed(stream.as_bytes()).unwrap();
        assert_eq!(parser.is_in_event(), in_event, "{stream:?}");
        assert_eq!(parser.count(), usize::from(stream.contains("\n\n") || stream.contains("\n\r")), "{stream:?}");
    }
}

#[test]
fn types_and_ids_and_retries_are_read() {
    let mut parser = SseParser::new(SseLimits::default());
    let mut next = |stream: &str| {
        parser.feed(stream.as_bytes()).unwrap();
        let event = parser.next().map(|event| (event.event.into_owned(), event.id, event.retry));
        let last = parser.last_event_id().cloned();
        event.map(|(event, id, retry)| {
            assert_eq!(id, last, "{stream:?}");
            (event, id.as_deref().unwrap_or_default().to_owned(), retry.map(|retry| retry.as_millis()))
        })
    };
    let event = |event: &str, id: &str, retry| Some((event.to_owned(), id.to_owned(), retry));
    assert_eq!(next("data\nevent: one\nid: 1\nretry: 5\n\n"), event("one", "1", Some(5)));
    assert_eq!(next("data\n\n"), event("message", "1", Some(5)), "id and retry stay, the type does not");
    assert_eq!(next("data\nevent: a\nevent: b\nid: 2\nid: 3\n\n"), event("b", "3", Some(5)), "the last one counts");
    assert_eq!(next("data\nevent: a\nevent:\nid: 4\0\n\n"), event("message", "3", Some(5)), "NUL in an id");
    for retry in ["", "-1", "1.5", "1s", "٣", " 7"] {
        assert_eq!(next(&format!("data\nretry: {retry}\n\n")), event("message", "3", Some(5)), "{retry:?}");
    }
    assert_eq!(next("data\nretry: 007\n\n"), event("message", "3", Some(7)));
    let huge = "9".repeat(1000);
    assert_eq!(next(&format!("data\nretry: {huge}\n\n")), event("message", "3", Some(u128::from(u64::MAX))));
    assert_eq!(next("id: with space and ü\ndata\n\n").unwrap().1, "with space and ü");
    assert_eq!(next("data\nid\n\n").unwrap().1, "", "an empty id takes back the one before");
}

#[test]
fn an_id_counts_when_its_event_ends_even_without_data() {
    let mut parser = SseParser::new(SseLimits::default());
    parser.feed(b"id: 1\n").unwrap();
    assert_eq!(parser.last_event_id(), None, "the event can still be cut");
    parser.feed(b"\nretry: 3000\n\n").unwrap();
    assert_eq!(parser.next(), None);
    assert_eq!(parser.last_event_id().map(AsRef::as_ref), Some("1"));
    assert_eq!(parser.retry(), Some(Duration::from_secs(3)));
}

#[test]
fn data_that_is_no_utf8_comes_as_it_is() {
    let events = parsed([b"event: \xFF\nid: \xC3\ndata: \"\xFF\xC3\"\n\n".as_slice()]);
    assert_eq!(events[0].data, b"\"\xFF\xC3\"".as_slice());
    assert_eq!((events[0].event.as_ref(), events[0].id.as_deref()), ("\u{FFFD}", Some("\u{FFFD}")));
}

#[test]
fn an_endless_line_is_an_error_and_takes_bounded_memory() {
    for start in ["data: ", "event: ", "id: ", "retry: ", "unknown: ", "nocolon", ": comment", ""] {
        let mut parser = limited(1_000_000, 10_000);
        parser.feed(b"data: before\n\n").unwrap();
        parser.feed(start.as_bytes()).unwrap();
        let mut fed = start.len();
        let error = loop {
            assert!(parser.data.capacity() <= 20_000, "{start:?}");
            match parser.feed(&[b'5'; 1000]) {
                Ok(()) => fed += 1000,
                Err(error) => break error,
            }
        };
        assert!((9_000..=10_000).contains(&fed), "{start:?} failed after {fed} bytes");
        assert_eq!(error, SseError::LineTooLong { bytes_max: 10_000 });
        assert_eq!(error.to_string(), "a line of the event stream is longer than 10000 bytes");
        assert_eq!(parser.feed(b"\n\n"), Err(error), "it stays broken");
        assert_eq!(parser.next(), Some(event("before")));
        assert_eq!(parser.next(), None);
    }
}

#[test]
fn an_endless_event_is_an_error() {
    for line in ["data: 0123456789\n", "data\n", "event: x\n", "id: 1\n", "unknown\n"] {
        let mut parser = limited(10_000, 1000);
        let lines = 10_000 / (line.len() - 1);
        for _ in 0..lines {
            parser.feed(line.as_bytes()).unwrap();
        }
        let error = parser.feed(line.as_bytes()).unwrap_err();
        assert_eq!(error, SseError::EventTooLarge { bytes_max: 10_000 }, "{line:?}");
        assert_eq!(parser.next(), None);
    }
}

#[test]
fn what_is_exactly_at_the_limits_passes() {
    let mut parser = limited(20, 10);
    for _ in 0..3 {
        parser.feed(b"data:01234\n: 34567890\ndata:56789\r\n: 34567890\n\n").unwrap();
        assert_eq!(parser.next(), Some(event("01234\n56789")), "comments are not the event's");
    }
    assert_eq!(limited(20, 10).feed(b"data:012345\n"), Err(SseError::LineTooLong { bytes_max: 10 }));
    assert_eq!(limited(9, 10).feed(b"data:01234"), Err(SseError::EventTooLarge { bytes_max: 9 }));
    assert_eq!(limited(9, 10).feed(b":ata:01234"), Ok(()), "comments are lines only");
}

#[test]
fn a_large_event_comes_whole_in_single_bytes_and_in_one_chunk() {
    let data = "é\u{2028}{\"a\": 1}: ".repeat(120_000);
    assert!(data.len() > 1_000_000);
    let stream = format!("id: 1\ndata: {data}\n\n");
    let whole = parsed([stream.as_bytes()]);
    assert_eq!(whole[0].data, data.as_bytes());
    assert_eq!(parsed(stream.as_bytes().chunks(1)), whole);
    let large = format!("data: {}\n\n", "x".repeat(8 * 1024 * 1024));
    assert_eq!(parsed(large.as_bytes().chunks(16 * 1024))[0].data.len(), 8 * 1024 * 1024);
}

#[test]
fn a_long_id_is_kept_once_however_many_events_have_it() {
    let id = "i".repeat(100_000);
    let mut parser = SseParser::new(SseLimits::default());
    parser.feed(format!("id: {id}\n{}", "data\n\n".repeat(1000)).as_bytes()).unwrap();
    let events: Vec<_> = parser.by_ref().collect();
    assert_eq!(events.len(), 1000);
    let first = events[0].id.as_ref().unwrap();
    assert!(events.iter().all(|event| Arc::ptr_eq(event.id.as_ref().unwrap(), first)));
}

/// Pieces of which streams consist, so that every rule is met often.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "data",
        "data:",
        "data: ",
        "event:",
        "id: ",
        "retry:",
        "retry: 12",
        ":",
        ": ",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\r",
        "\r\n\r\n",
        "\0",
        "x",
        "7",
        "é",
        "\u{FEFF}",
        "\u{2028}",
        "{}",
        "data: a\n",
        "id: 4\n",
        "event: b\n",
    ]);
    prop_oneof![
        9 => words.prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #[test]
    fn any_cutting_gives_what_the_specification_says(
        pieces in vec(piece(), 0..60),
        cuts in vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let stream = pieces.concat();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let expected = reference(&stream);
        prop_assert_eq!(parsed([stream.as_slice()]), expected.clone());
        prop_assert_eq!(parsed(cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]])), expected.clone());
        prop_assert_eq!(parsed(stream.chunks(1)), expected);
    }

    #[test]
    fn no_bytes_break_it_and_its_memory_is_bounded(chunks in vec(vec(any::<u8>(), 0..50), 0..50)) {
        let mut parser = limited(64, 32);
        for chunk in &chunks {
            let _broken = parser.feed(chunk);
            prop_assert!(parser.data.len() <= 64);
            parser.by_ref().for_each(|event| assert!(event.data.len() <= 64));
        }
    }

    #[test]
    fn a_limit_is_met_or_not_however_the_stream_is_cut(pieces in vec(piece(), 0..60)) {
        let stream = pieces.concat();
        let read = |chunk_bytes: usize| {
            let mut parser = limited(12, 9);
            let result = stream.chunks(chunk_bytes).try_for_each(|chunk| parser.feed(chunk));
            // Which of the two limits is told first may differ.
            (result.is_ok(), parser.collect::<Vec<_>>())
        };
        prop_assert_eq!(read(1), read(stream.len().max(1)));
    }
}
