//! Where the client's commands take their settings from, and what shells are told of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{end_of, ended, folder, longhaul};

fn env_file(text: &str, mode: u32) -> PathBuf {
    let path = folder().join("agent.env");
    std::fs::write(&path, text).expect("it can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    path
}

#[test]
fn what_is_in_effect_is_shown_with_its_source_and_without_secrets() {
    let path = env_file("A2ACLI_BEARER=s3cret\nA2ACLI_TIMEOUT=9s\nA2ACLI_OUTPUT=json\n", 0o600);
    let mut command =
        longhaul(&["config", "show", "--config", path.to_str().expect("it is text"), "--api-key", "s3cret"]);
    let (code, stdout, stderr) = end_of(command.env("A2ACLI_TIMEOUT", "8s").env("HOME", folder()));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(!stdout.contains("s3cret"), "{stdout}");
    let shown: Value = serde_json::from_str(&stdout).expect("it is JSON");
    let of = |name: &str| {
        let settings = shown["settings"].as_array().expect("it is a list");
        let one = settings.iter().find(|one| one["name"] == name).expect("it is there");
        (one["value"].as_str().unwrap_or("-").to_owned(), one["source"].as_str().expect("it has one").to_owned())
    };
    assert_eq!(of("timeout"), ("8s".to_owned(), "environment".to_owned()));
    assert_eq!(of("bearer"), ("(hidden)".to_owned(), "file".to_owned()));
    assert_eq!(of("api-key"), ("(hidden)".to_owned(), "flag".to_owned()));
    assert_eq!(of("poll-interval"), ("2s".to_owned(), "default".to_owned()));
    assert_eq!(of("agent-card"), ("-".to_owned(), "default".to_owned()));
}

#[test]
fn a_file_with_secrets_that_others_can_read_is_warned_of() {
    let path = env_file("A2ACLI_BEARER=s3cret\n", 0o644);
    let (code, _, stderr) = ended(&["config", "show", "--config", path.to_str().expect("it is text")]);
    assert!(code == 0 && stderr.contains("longhaul: warning: ") && stderr.contains("chmod 600"), "{stderr}");
}

#[test]
fn the_form_of_a_failure_is_that_of_the_variable_too() {
    let mut command = longhaul(&["send", "hi"]);
    let (code, stdout, _) = end_of(command.env("A2ACLI_OUTPUT", "json"));
    assert!(code == 2 && stdout.starts_with("{\"error\":"), "{stdout}");
    let mut command = longhaul(&["send", "--nonsense"]);
    let (code, stdout, _) = end_of(command.env("A2ACLI_OUTPUT", "json"));
    assert!(code == 2 && stdout.starts_with("{\"error\":"), "{stdout}");
}

#[test]
fn who_turns_verification_off_is_warned() {
    let line = ["card", "get", "-a", "http://127.0.0.1:1", "--insecure"];
    let (_, _, stderr) = ended(&line);
    assert!(stderr.starts_with("longhaul: WARNING: --insecure"), "{stderr}");
    assert!(!stderr.contains("credentials are sent"), "{stderr}");
    let (_, _, stderr) = ended(&[&line[..], &["--bearer", "s3cret"]].concat());
    assert!(stderr.contains("WARNING: credentials are sent") && !stderr.contains("s3cret"), "{stderr}");
}

#[test]
fn the_settings_of_a_server_are_still_shown() {
    let (code, stdout, _) = ended(&["config", "--listen", "127.0.0.1:5"]);
    assert!(code == 0 && stdout.contains("listen = \"127.0.0.1:5\""), "{stdout}");
}

#[test]
fn help_version_and_completions_are_printed() {
    for flag in ["-v", "-V", "--version"] {
        let (code, stdout, _) = ended(&[flag]);
        assert!(code == 0 && stdout.starts_with("longhaul "), "{stdout}");
    }
    for line in
        [&["help"][..], &["help", "send"], &["send", "--help"], &["task", "get", "-h"], &["config", "show", "--help"]]
    {
        let (code, stdout, _) = ended(line);
        assert!(code == 0 && stdout.contains("Usage:"), "{line:?}: {stdout}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, stdout, _) = ended(&["completion", shell]);
        assert!(code == 0 && stdout.contains("push-config"), "{shell}");
    }
}
