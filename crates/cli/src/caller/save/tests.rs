use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_protocol::from_json;

use super::*;

fn scratch() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("longhaul-save-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn saved(folder: &Path, artifact: &str) -> Vec<Saved> {
    let artifact: Artifact = from_json(artifact.as_bytes()).unwrap();
    save(&Folder::open(folder).unwrap(), &[artifact]).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_content_is_a_file_and_an_address_is_only_told() {
    let root = scratch();
    let folder = root.join("made/by/us");
    let told = saved(
        &folder,
        r#"{"artifactId": "a", "name": "report", "parts": [
            {"text": "one "}, {"text": "two"}, {"data": {"n": 1}},
            {"raw": "AAEC", "filename": "x.bin"}, {"url": "https://a/x"}, {"text": "three", "filename": "3.md"}]}"#,
    );
    assert_eq!(names(&folder), ["3.md", "report.json", "report.txt", "x.bin"]);
    assert_eq!(std::fs::read_to_string(folder.join("report.txt")).unwrap(), "one two");
    assert_eq!(std::fs::read(folder.join("x.bin")).unwrap(), [0, 1, 2]);
    assert_eq!(told.len(), 5);
    assert_eq!(told[0], Saved::File { artifact_id: "a".to_owned(), path: folder.join("report.txt"), bytes: 7 });
    assert_eq!(told[3], Saved::Url { artifact_id: "a".to_owned(), url: "https://a/x".to_owned() });
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn nothing_is_written_outside_the_folder_or_over_what_is_there() {
    let root = scratch();
    let (folder, outside) = (root.join("folder"), root.join("outside"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&outside, "mine").unwrap();
    std::fs::write(folder.join("taken"), "mine").unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
    std::os::unix::fs::symlink(root.join("nowhere"), folder.join("dangling")).unwrap();
    let outside_path = outside.to_str().unwrap();
    for filename in ["../outside", outside_path, "taken", "link", "dangling", "..", "x/../../outside"] {
        saved(&folder, &format!(r#"{{"artifactId": "a", "parts": [{{"raw": "AA==", "filename": "{filename}"}}]}}"#));
    }
    assert_eq!(names(&root), ["folder", "outside"]);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(folder.join("taken")).unwrap(), "mine");
    let wanted =
        ["a", "dangling", "dangling-2", "link", "link-2", "outside", "outside-2", "outside-3", "taken", "taken-2"];
    assert_eq!(names(&folder), wanted);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_folder_that_is_none_is_a_fault_of_the_command_line() {
    let root = scratch();
    std::fs::write(root.join("file"), "").unwrap();
    let failure = Folder::open(&root.join("file")).unwrap_err();
    assert_eq!(failure.exit.code(), 2);
    std::fs::remove_dir_all(root).unwrap();
}
