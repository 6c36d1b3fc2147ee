use rusqlite::Connection;

/// The migrations in their order; the number of the last one is the version of the schema. They only go forward, and
/// the previous release must run on the new schema.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_init.sql")];

/// The newest schema that this release knows.
pub(crate) fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

/// The schema of the file; 0 when it is new.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the schema up to date, each step whole or not at all.
pub(crate) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    let from = version(connection)?;
    for (migration, version) in MIGRATIONS.iter().zip(1..) {
        if version > from {
            connection.execute_batch(&format!("BEGIN IMMEDIATE;\n{migration}\nPRAGMA user_version = {version};\nCOMMIT;"))?;
        }
    }
    Ok(())
}
