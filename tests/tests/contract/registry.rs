//! Every requirement of the contract, what is claimed of it, and that what is claimed has a test and stands in the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What the report says of a requirement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Claim {
    /// It is done: there is a test of this name's beginning.
    Pass,
    /// It does not apply to this tool, and that is why.
    NotApplicable(&'static str),
    /// It is not done, and that is why.
    Fail(&'static str),
}

use Claim::{Fail, NotApplicable, Pass};

/// Identifier without `A2ACLI_`, tier, claim: the tables of COMPLIANCE.md, §4 to §6.
#[rustfmt::skip]
const REQUIREMENTS: &[(&str, u8, Claim)] = &[
    ("CARD_GET_001", 1, Pass), ("SEND_001", 1, Pass), ("SEND_002", 1, Pass), ("SEND_003", 1, Pass),
    ("SEND_004", 1, Pass), ("SEND_005", 1, Pass), ("SEND_006", 1, Pass), ("TASK_GET_001", 1, Pass),
    ("TASK_CANCEL_001", 1, Pass), ("INTERACT_001", 1, Pass), ("INTERACT_002", 1, Pass), ("INTERACT_003", 1, Pass),
    ("INTERACT_004", 1, Pass), ("INTERACT_005", 1, Pass), ("TASK_POLL_001", 1, Pass), ("TASK_POLL_002", 1, Pass),
    ("TASK_POLL_003", 1, Pass), ("TASK_POLL_004", 1, Pass), ("OUT_001", 1, Pass), ("OUT_002", 1, Pass),
    ("OUT_003", 1, Pass), ("OUT_004", 1, Pass), ("OUT_005", 1, Pass), ("OUT_006", 1, Pass), ("EXIT_001", 1, Pass),
    ("EXIT_002", 1, Pass), ("AUTH_001", 1, Pass), ("AUTH_002", 1, Pass), ("AUTH_003", 1, Pass), ("AUTH_004", 1, Pass),
    ("TX_001", 1, Pass), ("TX_002", 1, Pass), ("TX_003", 1, Pass), ("VER_001", 1, Pass), ("DEFAULT_001", 1, Pass),
    ("CONFIG_001", 1, Pass), ("CLI_001", 1, Pass),
    ("SKILL_001", 1, NotApplicable("no Agent Skill is shipped")),
    ("SKILL_002", 1, NotApplicable("no Agent Skill is shipped")),
    ("CARD_GET_002", 2, Pass), ("TASK_LIST_001", 2, Pass), ("TASK_SUBSCRIBE_001", 2, Pass),
    ("TASK_SUBSCRIBE_002", 2, Pass), ("AUTH_005", 2, Pass), ("AUTH_006", 2, Pass), ("AUTH_007", 2, Pass),
    ("TX_004", 2, Pass), ("VER_003", 2, Pass), ("CONFIG_002", 2, Pass), ("DOWNLOAD_001", 2, Pass), ("OUT_007", 2, Pass),
    ("CONFORM_001", 2, Pass), ("CLI_002", 2, Pass), ("PUSH_001", 2, Pass),
    ("CARD_GET_003", 3, Pass), ("AUTH_008", 3, Pass), ("CARD_GET_004", 3, Pass),
    ("CARD_GET_005", 3, Fail("catalogs and registries are not read")),
    ("PUSH_002", 3, Fail("the command line hosts no receiver; the library has one")),
    ("CHAT_001", 3, Pass), ("TX_005", 3, Pass),
    ("AUTH_009", 3, Pass),
    ("AUTH_010", 3, Pass),
    ("AUTH_011", 3, Fail("the state is reported with a hint, and nothing is done about it")),
    ("DEMO_SERVER_001", 3, Pass), ("VER_002", 3, Pass),
];

/// How many of a tier are done, are not, and do not apply.
fn counts(tier: u8) -> (usize, usize, usize) {
    let of =
        |wanted: fn(&Claim) -> bool| REQUIREMENTS.iter().filter(|(_, of, claim)| *of == tier && wanted(claim)).count();
    let [pass, fail, na]: [fn(&Claim) -> bool; 3] =
        [|claim| *claim == Pass, |claim| matches!(claim, Fail(_)), |claim| matches!(claim, NotApplicable(_))];
    (of(pass), of(fail), of(na))
}

/// Whether all of a tier is done that applies, and of those below it.
fn satisfied(tier: u8) -> bool {
    (1..=tier).all(|tier| counts(tier).1 == 0)
}

/// How many a tier has.
fn total(tier: u8) -> usize {
    REQUIREMENTS.iter().filter(|(_, of, _)| *of == tier).count()
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of all tests here.
fn tests() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder().join("tests/contract")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut lines = text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            let is_test = line == "#[tokio::test]" || line == "#[test]" || line.starts_with("#[tokio::test(");
            let Some(next) = lines.peek().filter(|_| is_test) else { continue };
            let name = next.trim_start_matches("async ").strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

#[test]
fn each_requirement_that_is_claimed_has_a_test_and_no_other_has() {
    let tests = tests();
    for (id, _, claim) in REQUIREMENTS {
        let name = format!("a2acli_{}_", id.to_lowercase());
        // A test may be of two requirements: `…_and_tx_005_…`.
        let also = format!("_and_{}_", id.to_lowercase());
        let found = tests.iter().any(|test| test.starts_with(&name) || test.contains(&also));
        assert_eq!(found, *claim == Pass, "{id}");
    }
    for test in tests.iter().filter(|test| test.starts_with("a2acli_")) {
        let known = REQUIREMENTS.iter().any(|(id, ..)| test.starts_with(&format!("a2acli_{}_", id.to_lowercase())));
        assert!(known, "{test} is of no requirement");
    }
}

#[test]
fn tiers_have_as_many_requirements_as_the_contract_says() {
    assert_eq!([total(1), total(2), total(3)], [39, 15, 12]);
    let once: BTreeMap<_, _> = REQUIREMENTS.iter().map(|(id, tier, _)| (id, tier)).collect();
    assert_eq!(once.len(), REQUIREMENTS.len());
}

/// A file of the report.
fn report(name: &str) -> String {
    fs::read_to_string(folder().join("../docs").join(name)).unwrap()
}

#[test]
fn the_report_says_of_each_requirement_what_is_claimed_here() {
    let report = report("cli-compliance.md");
    let rows: BTreeMap<&str, Vec<&str>> = report
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
            let id = cells.first()?.strip_prefix("`A2ACLI_")?.strip_suffix('`')?;
            (!id.starts_with("ERR_")).then_some((id, cells))
        })
        .collect();
    assert_eq!(rows.len(), REQUIREMENTS.len(), "one row a requirement");
    for (id, _, claim) in REQUIREMENTS {
        let cells = rows.get(id).unwrap_or_else(|| panic!("{id} is not in the report"));
        let (mark, note) = (cells[3], cells[4]);
        match claim {
            Pass => assert_eq!(mark, "✅ Pass", "{id}"),
            NotApplicable(why) => assert_eq!((mark, note), ("— N/A", *why), "{id}"),
            Fail(why) => assert_eq!((mark, note), ("❌ Fail", *why), "{id}"),
        }
    }
    for tier in 1..=3 {
        let (pass, fail, na) = counts(tier);
        let row = format!(
            "| {} | {pass} | 0 | {fail} | 0 | {na} | {} |",
            total(tier),
            if satisfied(tier) { "yes" } else { "no" }
        );
        let found = report.lines().find(|line| line.starts_with(&format!("| Tier {tier}: ")));
        assert!(found.is_some_and(|line| line.ends_with(&row)), "{found:?} is not {row}");
    }
}

#[test]
fn the_report_for_programs_says_the_same() {
    let report = report("cli-compliance.yaml");
    let entries: Vec<&str> = report.split("\n  A2ACLI_").skip(1).collect();
    for (id, tier, claim) in REQUIREMENTS {
        let entry = entries.iter().find_map(|entry| entry.strip_prefix(&format!("{id}:\n")));
        let entry = entry.unwrap_or_else(|| panic!("{id} is not in the report"));
        let (status, note) = match claim {
            Pass => ("pass", None),
            NotApplicable(why) => ("na", Some(why)),
            Fail(why) => ("fail", Some(why)),
        };
        assert!(entry.contains(&format!("    tier: {tier}\n")), "{id}: {entry}");
        assert!(entry.contains(&format!("    status: {status}\n")), "{id}: {entry}");
        assert!(note.is_none_or(|why| entry.contains(&format!("    note: \"{why}\"\n"))), "{id}: {entry}");
    }
    for tier in 1..=3 {
        let (pass, fail, na) = counts(tier);
        let satisfied = satisfied(tier);
        let total = total(tier);
        let line = format!(
            "  tier_{tier}: {{total: {total}, pass: {pass}, partial: 0, fail: {fail}, not_measured: 0, na: {na}, satisfied: {satisfied}}}"
        );
        assert!(report.lines().any(|other| other == line), "{line}");
    }
    let claimed = (1..=3).filter(|tier| satisfied(*tier)).max().unwrap_or_default();
    assert!(report.contains(&format!("  tier_claimed: {claimed}\n")));
}

#[test]
fn the_report_lists_each_code_of_our_own() {
    let source = fs::read_to_string(folder().join("../crates/cli/src/caller/failure.rs")).unwrap();
    let ours: BTreeSet<&str> =
        source.split('"').filter(|word| word.starts_with("LONGHAUL_ERR_") && word.len() > 13).collect();
    assert!(!ours.is_empty());
    let report = report("cli-compliance.md");
    for code in ours {
        assert!(report.contains(&format!("| `{code}` | ")), "{code} is not in the report");
    }
}
