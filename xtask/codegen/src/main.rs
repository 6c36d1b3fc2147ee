//! Makes `crates/protobuf/src/generated/` out of `crates/protobuf/proto/`.
//!
//! It stands apart from `xtask` because the protobuf compiler is heavy, and is pure Rust, so that
//! nobody needs `protoc`. With `--check` it writes nothing and fails when a file is stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use prost::Message;
use prost_types::FileDescriptorSet;

/// The files to compile, relative to the proto folder; what they import comes along.
const PROTOS: [&str; 5] = [
    "a2a/v1/a2a.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
    "lf/a2a/v1/a2a.proto",
    "longhaul/v1/artifact.proto",
];

/// The name under which the compiled descriptors are kept for tests and server reflection.
const DESCRIPTOR: &str = "descriptor.bin";

fn main() -> anyhow::Result<()> {
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("unknown argument {other:?}\nhint: the only one is --check"),
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/protobuf");
    let generated = package.join("src/generated");
    let fresh = generate(&package.join("proto"))?;
    if check {
        return compare(&fresh, &generated);
    }
    fs::create_dir_all(&generated).context("cannot make the folder of generated code")?;
    for name in present(&generated)? {
        if !fresh.contains_key(&name) {
            fs::remove_file(generated.join(&name)).with_context(|| format!("cannot remove {name}"))?;
        }
    }
    for (name, content) in &fresh {
        fs::write(generated.join(name), content).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// Compiles the protos and returns each generated file by name.
fn generate(protos: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let descriptors = protox::compile(PROTOS, [protos]).context("cannot compile the protos")?;
    let scratch = Scratch::new()?;
    let mut config = tonic_prost_build::Config::new();
    // Error details are found by their full names.
    config.enable_type_names();
    tonic_prost_build::configure()
        .build_transport(false)
        // What cannot be read is the fault of the peer, and said in our words.
        .codec_path("crate::codec::Codec")
        .emit_rerun_if_changed(false)
        // Sorted maps, so that one message has one encoding.
        .btree_map(".")
        .bytes(".lf.a2a.v1.Part.raw")
        .bytes(".a2a.v1.FilePart.file_with_bytes")
        .extern_path(".google.protobuf.Struct", "crate::json_value::JsonStruct")
        .extern_path(".google.protobuf.Value", "crate::json_value::JsonValue")
        .out_dir(&scratch.0)
        .compile_fds_with_config(descriptors.clone(), config)
        .context("cannot generate code")?;
    let mut files = BTreeMap::new();
    for name in present(&scratch.0)? {
        let content = fs::read(scratch.0.join(&name)).with_context(|| format!("cannot read the generated {name}"))?;
        // The well-known types come from `prost-types`; their own package has nothing of ours.
        if !name.starts_with("google.protobuf") {
            files.insert(name, content);
        }
    }
    files.insert(DESCRIPTOR.to_owned(), without_comments(descriptors));
    Ok(files)
}

/// Encodes the descriptors without source positions and comments, which no reader needs.
fn without_comments(mut descriptors: FileDescriptorSet) -> Vec<u8> {
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    descriptors.encode_to_vec()
}

/// Fails, naming the files, when what is committed differs from what is generated.
fn compare(fresh: &BTreeMap<String, Vec<u8>>, generated: &Path) -> anyhow::Result<()> {
    let mut stale: Vec<String> = present(generated)?.into_iter().filter(|name| !fresh.contains_key(name)).collect();
    for (name, content) in fresh {
        if fs::read(generated.join(name)).ok().as_ref() != Some(content) {
            stale.push(name.clone());
        }
    }
    if !stale.is_empty() {
        bail!("generated code is stale: {}\nhint: run `cargo xtask codegen` and commit the result", stale.join(", "));
    }
    Ok(())
}

/// The names of the files in a folder, in order.
fn present(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A folder of this process alone, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("longhaul-codegen-{}", std::process::id()));
        fs::create_dir_all(&folder).context("cannot make a scratch folder")?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind in the system's temporary folder harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
