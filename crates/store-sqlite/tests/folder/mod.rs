//! A folder of its own for each test.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![expect(clippy::expect_used, reason = "a test whose folder fails has failed")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_protocol::Timestamp;
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};

/// Removed when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longhaul-store-sqlite-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    pub fn config(&self) -> SqliteConfig {
        SqliteConfig { directory: self.0.clone(), ..SqliteConfig::default() }
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("longhaul.db")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000)
}

pub fn open(config: &SqliteConfig) -> SqliteStore {
    SqliteStore::open(config, now()).expect("a fresh folder opens")
}
