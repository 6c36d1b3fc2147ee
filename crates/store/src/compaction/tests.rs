use longhaul_protocol::{ArtifactId, JsonObject};

use super::*;
use crate::{ArtifactFold, ArtifactVersion, VersionFold};

fn time(sequence: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_700_000_000_000 + sequence.cast_signed())
}

/// An update in which everything depends on its sequence.
fn update(sequence: u64, artifact_id: &str, append: bool) -> StoredEvent {
    let part = wire::Part { content: Some(wire::PartContent::Text(sequence.to_string())), ..wire::Part::default() };
    let mut metadata = JsonObject::default();
    metadata.insert((sequence % 3).to_string(), serde_json::Value::from(sequence));
    let text = |every: u64| if sequence.is_multiple_of(every) { sequence.to_string() } else { String::new() };
    let artifact = wire::Artifact {
        artifact_id: artifact_id.to_owned(),
        name: text(2),
        description: text(3),
        parts: vec![part],
        metadata: (!sequence.is_multiple_of(4)).then(|| metadata.clone()),
        // The first of a version keeps what it repeats.
        extensions: vec![format!("urn:{}", sequence % 2), format!("urn:{}", sequence % 2)],
    };
    let last_chunk = sequence.is_multiple_of(5);
    let (task_id, context_id) = ("task".to_owned(), "context".to_owned());
    let update = wire::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact: Some(artifact),
        append,
        last_chunk,
        metadata: Some(metadata),
    };
    event((sequence, time(sequence)), update)
}

fn merge(log: &[StoredEvent]) -> Option<Compaction> {
    let mut fold = CompactionFold::default();
    log.iter().for_each(|event| fold.apply(event).unwrap());
    fold.finish()
}

fn artifacts(log: &[StoredEvent]) -> Vec<wire::Artifact> {
    let mut fold = ArtifactFold::default();
    for event in log {
        fold.apply(artifact_update(event.kind, event.sequence, &event.payload).unwrap().unwrap());
    }
    fold.into_artifacts()
}

type Seen = (Option<Vec<ArtifactVersion>>, Vec<Option<(u64, wire::Artifact)>>);

fn versions(log: &[StoredEvent], artifact_id: &str) -> Seen {
    let fold = |wanted| {
        let mut fold = VersionFold::new(ArtifactId::new(artifact_id).unwrap(), wanted);
        log.iter().for_each(|event| fold.apply(event).unwrap());
        fold
    };
    let contents = [None, Some(1), Some(2), Some(3), Some(4)].map(|wanted| fold(wanted).into_artifact());
    (fold(None).into_versions(None, 100), contents.to_vec())
}

/// A letter is an artifact; a capital begins a version, a small one extends it. A space is another event.
fn log(text: &str) -> Vec<StoredEvent> {
    let letters = (1..).zip(text.chars()).filter(|(_, letter)| *letter != ' ');
    letters
        .map(|(sequence, letter)| {
            update(sequence, &letter.to_ascii_lowercase().to_string(), letter.is_ascii_lowercase())
        })
        .collect()
}

#[test]
fn whatever_the_log_its_artifacts_and_versions_stay() {
    let letters = ['A', 'a', 'B', 'b', 'C', 'c'];
    let mut texts = vec![String::new()];
    let mut merged_logs = 0;
    for _ in 0..5 {
        texts = texts.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))).collect();
        // Names are given in the order of their coming: others are the same log under other names.
        texts.retain(|text| {
            let place = |name: &str| text.to_ascii_lowercase().find(name).unwrap_or(usize::MAX);
            place("a") <= place("b") && place("b") <= place("c") && place("a") == 0
        });
        for text in &texts {
            let log = log(text);
            let Some(changes) = merge(&log) else { continue };
            merged_logs += 1;
            let merged = changes.apply(log.clone());
            assert!(merged.len() < log.len(), "{text}");
            assert_eq!(artifacts(&merged), artifacts(&log), "{text}");
            for name in ["a", "b", "c"] {
                assert_eq!(versions(&merged, name), versions(&log, name), "{name} of {text}");
            }
        }
    }
    assert!(merged_logs > 500, "{merged_logs}");
}

#[test]
fn a_version_becomes_one_update_in_the_place_of_its_newest() {
    let log = log("AaaBb a");
    let changes = merge(&log).unwrap();
    // B came while A went on, so A holds its place.
    assert_eq!(changes.removed, [2..=4]);
    let merged = changes.apply(log);
    let read = |event: &StoredEvent| {
        let update = artifact_update(event.kind, event.sequence, &event.payload).unwrap().unwrap();
        (event.sequence, event.timestamp, update.append, update.artifact.unwrap().parts.len(), update.last_chunk)
    };
    let expected = [(1, time(1), false, 0, false), (5, time(5), false, 2, true), (7, time(7), true, 4, false)];
    assert_eq!(merged.iter().map(read).collect::<Vec<_>>(), expected);
}

#[test]
fn what_has_nothing_to_merge_stays_as_it_is() {
    for text in ["", "A", "ABAB", "A B C", "ABa"] {
        assert_eq!(merge(&log(text)), None, "{text}");
    }
}

#[test]
fn updates_apart_from_each_other_go_in_ranges() {
    let changes = merge(&log("Aaa aa a Aa")).unwrap();
    assert_eq!(changes.removed, [1..=3, 5..=6, 10..=10]);
    assert_eq!(changes.rewritten.iter().map(|event| event.sequence).collect::<Vec<_>>(), [8, 11]);
}

#[test]
fn a_log_that_changes_in_too_many_places_stays_as_it_is() {
    // Each version has two updates, of which one goes and one is rewritten.
    let places = |count: usize| merge(&log(&"Aa".repeat(count)));
    assert_eq!(places(10_000).map(|changes| (changes.removed.len(), changes.rewritten.len())), Some((10_000, 10_000)));
    assert_eq!(places(10_001), None);
}

#[test]
fn a_log_that_is_too_large_stays_as_it_is() {
    let mut fold = CompactionFold::default();
    let mut large = update(1, "a", false);
    let part = wire::Part { content: Some(wire::PartContent::Text("x".repeat(1 << 20))), ..wire::Part::default() };
    let artifact = wire::Artifact { artifact_id: "a".to_owned(), parts: vec![part], ..wire::Artifact::default() };
    let update = wire::TaskArtifactUpdateEvent { artifact: Some(artifact), ..wire::TaskArtifactUpdateEvent::default() };
    large.payload = event((1, time(1)), wire::TaskArtifactUpdateEvent { append: true, ..update }).payload;
    for sequence in 1..=15 {
        fold.apply(&StoredEvent { sequence, ..large.clone() }).unwrap();
    }
    assert!(fold.finish().is_some(), "15 MiB can be written");
    let mut fold = CompactionFold::default();
    for sequence in 1..=17 {
        fold.apply(&StoredEvent { sequence, ..large.clone() }).unwrap();
    }
    assert!(!fold.is_too_large());
    assert_eq!(fold.finish(), None, "17 MiB can't");
    let mut fold = CompactionFold::default();
    for sequence in 1..=32 {
        fold.apply(&StoredEvent { sequence, ..large.clone() }).unwrap();
    }
    assert!(fold.is_too_large());
    assert_eq!(fold.finish(), None);
}
