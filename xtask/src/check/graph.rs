//! The dependency graph, as `cargo metadata` tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cargo;

/// Which packages use which.
///
/// Packages are known by name: two versions of one are the same to a rule that bans it.
#[derive(Debug, Default)]
pub struct Graph {
    /// The packages of this workspace.
    pub members: BTreeSet<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds an edge that counts: not one of development.
    pub fn add(&mut self, user: &str, used: &str) {
        self.uses.entry(user.to_owned()).or_default().insert(used.to_owned());
    }

    /// What `package` uses directly.
    pub fn direct(&self, package: &str) -> impl Iterator<Item = &str> {
        self.uses.get(package).into_iter().flatten().map(String::as_str)
    }

    /// All that `package` uses, directly or not, each with the package through which it was found.
    pub fn reached(&self, package: &str) -> BTreeMap<String, String> {
        let mut through = BTreeMap::new();
        let mut open = vec![package.to_owned()];
        while let Some(user) = open.pop() {
            for used in self.direct(&user) {
                if used != package && !through.contains_key(used) {
                    through.insert(used.to_owned(), user.clone());
                    open.push(used.to_owned());
                }
            }
        }
        through
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    target_directory: PathBuf,
}

/// Asks cargo for the graph of the workspace at `root`.
///
/// # Errors
///
/// When cargo fails, or its answer is not understood.
pub fn load(root: &Path) -> Result<Graph> {
    read(metadata(root, &[])?)
}

/// The folder in which cargo builds.
///
/// # Errors
///
/// When cargo fails, or its answer is not understood.
pub fn target_directory(root: &Path) -> Result<PathBuf> {
    let target: Target = metadata(root, &["--no-deps"])?;
    Ok(target.target_directory)
}

fn metadata<T: DeserializeOwned>(root: &Path, flags: &[&str]) -> Result<T> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(flags)
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cannot read the answer of cargo metadata")
}

fn read(metadata: Metadata) -> Result<Graph> {
    let names: BTreeMap<&str, &str> = metadata.packages.iter().map(|package| (&*package.id, &*package.name)).collect();
    let name = |id: &str| names.get(id).copied().with_context(|| format!("cargo names no package {id}"));
    let mut graph = Graph::default();
    for id in &metadata.workspace_members {
        graph.members.insert(name(id)?.to_owned());
    }
    for node in &metadata.resolve.nodes {
        for dependency in &node.deps {
            // An edge of several kinds is exempt only when all of them are development.
            if dependency.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev")) {
                graph.add(name(&node.id)?, name(&dependency.pkg)?);
            }
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_dependencies_are_no_edges() {
        let metadata = serde_json::json!({
            "packages": [{"id": "a 1", "name": "a"}, {"id": "b 1", "name": "b"}, {"id": "c 1", "name": "c"}],
            "workspace_members": ["a 1"],
            "resolve": { "nodes": [
                {"id": "a 1", "deps": [
                    {"pkg": "b 1", "dep_kinds": [{"kind": "dev"}]},
                    {"pkg": "c 1", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                ]},
                {"id": "b 1", "deps": []},
                {"id": "c 1", "deps": []},
            ]},
        });
        let graph = read(serde_json::from_value(metadata).unwrap()).unwrap();
        assert_eq!(graph.direct("a").collect::<Vec<_>>(), ["c"]);
        assert!(graph.members.contains("a"));
    }
}
