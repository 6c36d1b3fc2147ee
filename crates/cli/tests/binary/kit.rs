//! `conformance --tck`: the public kit of a checkout is run, and decides.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::support::ended;

/// A checkout whose Python does this.
fn kit(script: &str) -> PathBuf {
    let folder = crate::support::folder();
    std::fs::write(folder.join("run_tck.py"), "").expect("it can be written");
    std::fs::create_dir_all(folder.join(".venv/bin")).expect("it can be made");
    let python = folder.join(".venv/bin/python");
    std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

fn run(kit: &Path, agent: &str, more: &[&str]) -> (i32, String, String) {
    let folder = kit.to_str().expect("it is text");
    ended(&[&["conformance", "--tck", folder, "-a", agent], more].concat())
}

#[test]
fn the_kit_is_run_in_its_folder_with_the_host_and_its_words_are_passed_on() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(json!({})));
    let kit = kit("echo \"$PWD $*\"; exit 0");
    let (code, stdout, stderr) = run(&kit, &agent.url(), &["--level", "must"]);
    assert_eq!(code, 0, "{stderr}");
    let folder = kit.canonicalize().expect("it is there");
    assert_eq!(stdout, format!("{} run_tck.py --sut-host {} --level must\n", folder.display(), agent.url()));
}

#[test]
fn what_the_kit_finds_is_the_end_of_the_command_too() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(json!({})));
    let kit = kit("echo 2 failed, 70 passed; exit 1");
    let (code, stdout, stderr) = run(&kit, &agent.url(), &[]);
    assert_eq!((code, stdout.as_str()), (1, "2 failed, 70 passed\n"));
    assert!(stderr.contains("LONGHAUL_ERR_NOT_CONFORMANT") && stderr.contains("/reports"), "{stderr}");
    let (code, stdout, stderr) = run(&kit, &agent.url(), &["-o", "json"]);
    let told: Value = serde_json::from_str(&stdout).expect("it is one document");
    assert_eq!((code, &told["passed"], &told["exitStatus"]), (1, &json!(false), &json!(1)));
    assert!(stderr.starts_with("2 failed, 70 passed\n"), "{stderr}");
}

#[test]
fn a_kit_that_can_not_run_has_found_nothing() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(json!({})));
    let (code, _, stderr) = run(&kit("echo no pytest >&2; exit 4"), &agent.url(), &[]);
    assert!(code == 1 && stderr.contains("exit status: 4") && stderr.contains("A2ACLI_ERR_INTERNAL"), "{stderr}");
}

#[test]
fn a_kit_that_takes_too_long_is_ended_with_all_that_it_started() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(json!({})));
    // Stdout stays open as long as one of them runs.
    let kit = kit("sleep 600 & sleep 600");
    let (code, _, stderr) = run(&kit, &agent.url(), &["--timeout", "500ms"]);
    assert!(code == 5 && stderr.contains("A2ACLI_ERR_TIMEOUT"), "{stderr}");
}

#[test]
fn what_is_no_kit_or_no_host_is_told_beforehand() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(json!({})));
    let (code, _, stderr) = run(&crate::support::folder(), &agent.url(), &[]);
    assert!(code == 2 && stderr.contains("there is no run_tck.py in") && stderr.contains("a2a-tck"), "{stderr}");
    let kit = kit("exit 0");
    let (code, _, stderr) = run(&kit, &format!("{}/card.json", agent.url()), &[]);
    assert!(code == 2 && stderr.contains("well-known path only"), "{stderr}");
    let (code, _, stderr) = run(&kit, "http://127.0.0.1:1", &[]);
    assert_eq!(code, 3, "{stderr}");
}
