use longhaul_lifecycle::{ArtifactLedger, ArtifactRejection};
use longhaul_protocol::ArtifactId;

fn id(id: &str) -> ArtifactId {
    ArtifactId::new(id).expect("an id")
}

#[test]
fn an_update_without_append_makes_the_next_version() {
    let mut ledger = ArtifactLedger::default();
    assert_eq!(ledger.version(&id("a")), None);
    for version in 1..=3 {
        assert_eq!(ledger.apply(&id("a"), false, false), Ok(version));
        assert_eq!(ledger.apply(&id("a"), true, false), Ok(version));
        assert_eq!(ledger.apply(&id("a"), true, true), Ok(version));
        assert_eq!(ledger.version(&id("a")), Some(version));
    }
    assert_eq!(ledger.apply(&id("b"), false, false), Ok(1), "each artifact has versions of its own");
}

#[test]
fn an_append_to_nothing_or_after_the_last_chunk_is_refused() {
    let mut ledger = ArtifactLedger::default();
    assert_eq!(ledger.apply(&id("a"), true, false), Err(ArtifactRejection::Unknown(id("a"))));
    assert_eq!(ledger.apply(&id("a"), false, true), Ok(1));
    let before = ledger.clone();
    assert_eq!(ledger.apply(&id("a"), true, false), Err(ArtifactRejection::Closed(id("a"))));
    assert_eq!(ledger, before, "a refused update leaves no trace");
    assert_eq!(ledger.apply(&id("a"), false, false), Ok(2), "a new version is open again");
    assert_eq!(ledger.apply(&id("a"), true, false), Ok(2));
}

#[test]
fn a_task_has_no_more_artifacts_than_it_may() {
    let mut ledger = ArtifactLedger::default();
    for n in 0..ArtifactLedger::ARTIFACTS_MAX {
        assert_eq!(ledger.apply(&id(&n.to_string()), false, false), Ok(1));
    }
    let refused = ledger.apply(&id("one more"), false, false);
    assert_eq!(refused, Err(ArtifactRejection::TooMany(ArtifactLedger::ARTIFACTS_MAX)));
    assert_eq!(ledger.apply(&id("0"), false, false), Ok(2), "those that are there go on");
}
