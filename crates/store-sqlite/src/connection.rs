use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_protocol::Timestamp;
use rusqlite::{Connection, OpenFlags};

use crate::{OpenError, SqliteConfig, Synchronous, layout, migrations};

/// Marks the file as ours: "LHUL".
const APPLICATION_ID: i32 = 0x4C48_554C;
/// The first SQLite without the fault that could lose commits when the write-ahead log starts over.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Only other programs that look into the file can be in the way.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How large the write-ahead log's file stays after a checkpoint.
const JOURNAL_BYTES_MAX: u32 = 64 << 20;
pub(crate) const PAGE_BYTES: u32 = 4096;
/// How much of a SQLite file its header takes.
const HEADER_BYTES: u64 = 100;

/// Where the file is.
pub(crate) fn path(config: &SqliteConfig) -> PathBuf {
    config.directory.join("longhaul.db")
}

/// Opens the only connection that writes, and brings the file up to date. The caller holds the folder's lock.
pub(crate) fn open_writer(config: &SqliteConfig, now: Timestamp) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::SqliteTooOld { found: rusqlite::version() });
    }
    let path = path(config);
    let made = inspect(&path)?;
    let failed = |action: &'static str| {
        let path = path.clone();
        move |source: rusqlite::Error| OpenError::Database { action, path, source: source.into() }
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(failed("open"))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed("open"))?;
    if made == Made::Never {
        // These three stand in the file's first page, which is written before there can be anything else in it.
        let first = format!(
            "PRAGMA page_size = {PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = {APPLICATION_ID};"
        );
        connection.execute_batch(&first).map_err(failed("set up"))?;
    }
    let found = migrations::version(&connection).map_err(failed("read the schema version of"))?;
    refuse_newer(&path, found)?;
    configure_writer(&connection, config).map_err(failed("configure"))?;
    migrations::migrate(&connection).map_err(failed("migrate"))?;
    let format = meta(&connection, "payload_format").map_err(failed("read the payload format of"))?;
    if format != layout::PAYLOAD_FORMAT {
        return Err(OpenError::PayloadFormat { path, found: format, known: layout::PAYLOAD_FORMAT });
    }
    clean(&connection, now).map_err(failed("write"))?;
    Ok(connection)
}

/// Opens a connection that only reads. The writer must have been opened before.
pub(crate) fn open_reader(config: &SqliteConfig) -> Result<Connection, OpenError> {
    let path = path(config);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(&path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let cache_kib = config.reader_cache_bytes.max(SqliteConfig::READER_CACHE_BYTES_MIN) / 1024;
        connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cache_size = -{cache_kib};"
        ))?;
        Ok(connection)
    });
    opened.map_err(|source| OpenError::Database { action: "open for reading", path, source: source.into() })
}

/// Reads one value of the table `meta`.
pub(crate) fn meta(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0))
}

/// The latest status time in the file, read from the ends of the index on state and time.
pub(crate) fn latest_time(connection: &Connection, config: &SqliteConfig) -> Result<Timestamp, OpenError> {
    let latest = connection.query_row(
        "SELECT max(latest) FROM (
            SELECT (SELECT max(status_time) FROM task WHERE task.scope = scope.number AND task.state = state.column1) AS latest
            FROM scope, (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS state)",
        [],
        |row| row.get::<_, Option<i64>>(0),
    );
    let latest = latest.map_err(|source| OpenError::Database {
        action: "read the latest time of",
        path: path(config),
        source: source.into(),
    })?;
    Ok(Timestamp::from_unix_millis(latest.unwrap_or(0)))
}

fn configure_writer(connection: &Connection, config: &SqliteConfig) -> rusqlite::Result<()> {
    let synchronous = match config.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    let cache_kib = config.writer_cache_bytes.max(SqliteConfig::WRITER_CACHE_BYTES_MIN) / 1024;
    let checkpoint_pages = config.checkpoint_pages.max(SqliteConfig::CHECKPOINT_PAGES_MIN);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cache_size = -{cache_kib};
         PRAGMA wal_autocheckpoint = {checkpoint_pages}; PRAGMA journal_size_limit = {JOURNAL_BYTES_MAX};"
    ))
}

/// Removes what ran out while nobody looked, and so finds out at once when the file cannot be written.
fn clean(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM accepted WHERE expires_at <= ?1", [now.unix_millis()])?;
    connection.execute("UPDATE meta SET value = ?1 WHERE name = 'opened_at'", [now.unix_millis()])?;
    Ok(())
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Made {
    /// There is no file, or one without a single byte.
    Never,
    ByUs,
}

/// Looks at the file's first bytes without SQLite, which would touch files beside it.
fn inspect(path: &Path) -> Result<Made, OpenError> {
    let failed = |source| OpenError::Files { action: "read", path: path.to_owned(), source };
    let mut header = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(HEADER_BYTES).read_to_end(&mut header).map_err(failed)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Made::Never),
        Err(error) => return Err(failed(error)),
    };
    if header.is_empty() {
        return Ok(Made::Never);
    }
    let number =
        |offset: usize| header.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    let is_sqlite = header.starts_with(b"SQLite format 3\0");
    if !is_sqlite || number(68) != Some(APPLICATION_ID) {
        return Err(OpenError::NotOurs { path: path.to_owned() });
    }
    refuse_newer(path, number(60).map_or(0, i64::from))?;
    Ok(Made::ByUs)
}

fn refuse_newer(path: &Path, found: i64) -> Result<(), OpenError> {
    let known = migrations::newest();
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}
