use std::path::PathBuf;

use thiserror::Error;

/// Why a store could not be opened. What is on the disk is as it was.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The folder or a file in it cannot be used.
    #[error("cannot {action} {}", path.display())]
    Files {
        /// What was attempted.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another instance has the store open.
    #[error("the store in {} is held by {}", path.display(), holder(*pid))]
    Held {
        /// The process that holds it, as it says itself.
        pid: Option<u32>,
        /// The store's folder.
        path: PathBuf,
    },
    /// The file was made by something else.
    #[error("{} is not a store of Longhaul", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file was made by a newer release, which changed its form.
    #[error("{} has schema {found}, and this release knows schemas up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file's schema.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The payloads in the file have a form that this release cannot read.
    #[error("{} holds payloads of format {found}, and this release knows format {known}", path.display())]
    PayloadFormat {
        /// The file.
        path: PathBuf,
        /// The format in the file.
        found: i64,
        /// The format of this release.
        known: i64,
    },
    /// The SQLite that this program was built with has a known fault that loses data.
    #[error("SQLite {found} is too old, at least 3.51.3 is needed")]
    SqliteTooOld {
        /// Its version.
        found: &'static str,
    },
    /// SQLite refused.
    #[error("cannot {action} {}", path.display())]
    Database {
        /// What was attempted.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
