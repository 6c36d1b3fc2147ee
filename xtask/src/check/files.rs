//! What the text of tracked files may not hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Hosts of registries, in two halves so that this file does not name them.
const HOSTS: &[(&str, &str)] = &[
    ("registry.npm", "js.org"),
    ("registry.yarn", "pkg.com"),
    ("crates.io", "/api"),
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("files.python", "hosted.org"),
    ("pypi.org", "/simple"),
    ("proxy.golang", ".org"),
];

/// Folders that exist on one machine only, likewise.
const FOLDERS: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/")];

/// What would make the pure crate depend on the moment at which it runs.
const IMPURE: &[&str] = &["SystemTime", "Instant::now", "now_utc", "now_local", "now_v7", ".await", "async fn"];

/// The files that git tracks, less those that are gone from the work tree.
///
/// # Errors
///
/// When git fails.
pub fn tracked(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().context("cannot start git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect())
}

/// Every line of a tracked file that names a registry's host or a folder of one machine.
///
/// # Errors
///
/// When a file cannot be read.
pub fn check_words(root: &Path, tracked: &[PathBuf]) -> Result<Vec<String>> {
    scan(root, tracked.iter(), |line| {
        let host = HOSTS.iter().map(|(a, b)| format!("{a}{b}")).find(|host| line.contains(host.as_str()));
        host.or_else(|| FOLDERS.iter().map(|(a, b)| format!("{a}{b}")).find(|folder| names_folder(line, folder)))
    })
}

/// Every line of `lifecycle` that reads a clock or awaits.
///
/// # Errors
///
/// When a file cannot be read.
pub fn check_pure(root: &Path, tracked: &[PathBuf]) -> Result<Vec<String>> {
    let sources = tracked.iter().filter(|path| path.starts_with("crates/lifecycle/src"));
    scan(root, sources, |line| {
        let code = line.split("//").next().unwrap_or_default();
        IMPURE.iter().find(|word| code.contains(**word)).map(|word| (*word).to_owned())
    })
}

fn scan<'a>(
    root: &Path,
    files: impl Iterator<Item = &'a PathBuf>,
    find: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for path in files {
        let bytes = std::fs::read(root.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
        // A file that is no text names nothing.
        let Ok(text) = std::str::from_utf8(&bytes) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = find(line) {
                breaches.push(format!("{}:{}: {word}", path.display(), index + 1));
            }
        }
    }
    Ok(breaches)
}

/// Whether `line` holds `folder` as the start of an absolute path, not as the middle of a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line.get(..at).and_then(|start| start.chars().next_back());
        before.is_none_or(|before| !(before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '/' | '}' | '*')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_is_found_and_a_relative_one_is_not() {
        let folder = FOLDERS[0].0.to_owned() + FOLDERS[0].1;
        for line in [format!("cd {folder}main"), format!("\"{folder}x\""), folder.clone(), format!("see:{folder}")] {
            assert!(names_folder(&line, &folder), "{line}");
        }
        for line in
            [format!("tests/.{}", "work/"), format!("home{folder}"), format!("$DIR}}{folder}"), "work/".to_owned()]
        {
            assert!(!names_folder(&line, &folder), "{line}");
        }
    }

    #[test]
    fn a_line_that_names_a_host_is_told_with_its_place() {
        let root = std::env::temp_dir().join(format!("longhaul-xtask-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let host = HOSTS[0].0.to_owned() + HOSTS[0].1;
        std::fs::write(root.join("lock.json"), format!("{{\n  \"resolved\": \"https://{host}/a.tgz\"\n}}\n")).unwrap();
        let found = check_words(&root, &[PathBuf::from("lock.json")]).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [format!("lock.json:2: {host}")]);
    }
}
