//! The file: where it lies, who may read it, and its schema.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::LedgerError;
use crate::folder::{folder_of, make_folder, private, sync_folder};

/// How long other processes may keep the file locked before a call gives up.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Marks the file as ours: "LHLG".
const APPLICATION_ID: i64 = 0x4C48_4C47;
/// The first SQLite without the fault that could lose commits when the write-ahead log starts over.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// The migrations in their order; the number of the last one is the version of the schema. They only go forward.
const MIGRATIONS: &[&str] = &[include_str!("schema_0001.sql")];
/// How long to wait before the file is asked again to keep a write-ahead log, where SQLite does not wait by itself.
const JOURNAL_WAIT: Duration = Duration::from_millis(10);

/// Opens the file, makes it and its folder when there is none, and brings its schema up to date.
pub(super) fn open(path: &Path) -> Result<Connection, LedgerError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        let source = format!("SQLite {} is too old, at least 3.51.3 is needed", rusqlite::version());
        return Err(LedgerError::Unavailable { action: "be opened", source: source.into() });
    }
    make(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|error| fault(path, error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| fault(path, error))?;
    refuse_foreign(&connection, path)?;
    configure(&connection).map_err(|error| fault(path, error))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

fn fault(path: &Path, error: rusqlite::Error) -> LedgerError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => LedgerError::NotOurs { path: path.to_owned() },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LedgerError::Busy { after: BUSY_TIMEOUT },
        _ => LedgerError::Unavailable { action: "be opened", source: Box::new(error) },
    }
}

/// Makes the file and its folder, for this user alone: requests may hold secrets.
///
/// A file that exists is not opened here: closing it would end the locks that SQLite holds on it for this process.
fn make(path: &Path) -> Result<(), LedgerError> {
    let files = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| LedgerError::Files { action, path, source }
    };
    let folder = folder_of(path);
    if !folder.is_dir() {
        make_folder(&folder).map_err(files("make the folder", &folder))?;
    }
    match private().write(true).create_new(true).open(path) {
        Ok(file) => {
            file.sync_all().map_err(files("write", path))?;
            sync_folder(&folder).map_err(files("sync the folder", &folder))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => restrict(path).map_err(files("restrict", path)),
        Err(error) => Err(files("make", path)(error)),
    }
}

/// Takes the file from others who may read it. SQLite gives the files beside it the same mode.
#[cfg(unix)]
fn restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))
}

#[cfg(not(unix))]
fn restrict(_path: &Path) -> io::Result<()> {
    Ok(())
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Refuses what is no ledger, or one of a newer release, before a byte of it is changed.
fn refuse_foreign(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let read = || -> rusqlite::Result<(i64, i64, i64)> {
        // All of one moment: another process may be making the tables.
        let moment = connection.unchecked_transaction()?;
        let tables = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((pragma(&moment, "application_id")?, pragma(&moment, "user_version")?, tables))
    };
    let (application, version, tables) = read().map_err(|error| fault(path, error))?;
    let is_new = (application, version, tables) == (0, 0, 0);
    if application != APPLICATION_ID && !is_new {
        return Err(LedgerError::NotOurs { path: path.to_owned() });
    }
    refuse_newer(path, version)
}

fn refuse_newer(path: &Path, found: i64) -> Result<(), LedgerError> {
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(LedgerError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    keep_write_ahead_log(connection)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;
         PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 16777216;",
    )
}

/// Has the file keep a write-ahead log. When two processes do so at once in a new file, SQLite tells one of them at once that
/// the file is busy, whatever the timeout.
#[expect(clippy::disallowed_methods, reason = "runs on the ledger's own thread")]
fn keep_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let mut waited = Duration::ZERO;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            // What can't be shared between processes, such as a file on some network drives, has another mode.
            Ok(mode) => {
                let text = format!("the journal's mode stays {mode:?}, a write-ahead log is needed");
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
                return Err(rusqlite::Error::SqliteFailure(code, Some(text)));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < BUSY_TIMEOUT => {
                std::thread::sleep(JOURNAL_WAIT);
                waited += JOURNAL_WAIT;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Brings the schema up to date, each step whole or not at all. Two processes may do so at once.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    let newest = MIGRATIONS.len() as i64;
    if pragma(connection, "user_version").map_err(|error| fault(path, error))? == newest {
        return Ok(());
    }
    let failed = |error| fault(path, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let from = pragma(&transaction, "user_version").map_err(failed)?;
    refuse_newer(path, from)?;
    for (migration, version) in MIGRATIONS.iter().zip(1_i64..) {
        if version > from {
            transaction.execute_batch(migration).map_err(failed)?;
        }
    }
    transaction
        .execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {newest};"))
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_for_the_disk() {
        let folder = std::env::temp_dir().join(format!("longhaul-ledger-file-{}", std::process::id()));
        let connection = open(&folder.join("ledger.db")).unwrap();
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), pragma(&connection, "synchronous").unwrap()), ("wal", 2));
        drop(connection);
        fs::remove_dir_all(&folder).unwrap();
    }
}
