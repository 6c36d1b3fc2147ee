//! The list of decisions: each file in `docs/adr/` is linked from its README.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

const FOLDER: &str = "docs/adr";

/// Every decision that the README of the folder does not link, and every link that leads nowhere.
///
/// # Errors
///
/// When there are decisions and the README cannot be read.
pub fn check(root: &Path, tracked: &[PathBuf]) -> Result<Vec<String>> {
    let files: Vec<&str> = tracked
        .iter()
        .filter(|path| {
            path.parent() == Some(Path::new(FOLDER)) && path.extension().is_some_and(|ending| ending == "md")
        })
        .filter_map(|path| path.file_name()?.to_str())
        .filter(|name| *name != "README.md")
        .collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let readme = root.join(FOLDER).join("README.md");
    let text = std::fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    Ok(compare(&files, &text))
}

fn compare(files: &[&str], readme: &str) -> Vec<String> {
    let links: Vec<&str> = readme.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()).collect();
    let unlisted =
        files.iter().filter(|file| !links.contains(file)).map(|file| format!("{FOLDER}/{file} is not linked"));
    let dangling = links
        .iter()
        .filter(|link| !link.contains('/') && link.ends_with(".md") && **link != "README.md" && !files.contains(link))
        .map(|link| format!("the link to {link} leads nowhere"));
    unlisted.chain(dangling).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_without_a_link_is_found() {
        let readme = "- [One](0001-one.md): kept\n- [Gone](0003-gone.md)\n- [style](../style.md)\n";
        let found = compare(&["0001-one.md", "0002-two.md"], readme);
        assert_eq!(found, ["docs/adr/0002-two.md is not linked", "the link to 0003-gone.md leads nowhere"]);
    }
}
