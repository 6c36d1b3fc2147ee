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
            connection
                .execute_batch(&format!("BEGIN IMMEDIATE;\n{migration}\nPRAGMA user_version = {version};\nCOMMIT;"))?;
        }
    }
    Ok(())
}

/// How SQLite works out each of these statements, step by step; the ends of transactions are left out.
#[cfg(test)]
pub(crate) fn plans(connection: &Connection, texts: &[(&'static str, &'static str)]) -> Vec<(&'static str, String)> {
    let mut plans = Vec::new();
    for (name, sql) in texts {
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = vec![rusqlite::types::Null; explained.parameter_count()];
        let steps = explained.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3)).unwrap();
        plans.extend(steps.map(|step| (*name, step.unwrap())));
    }
    plans
}
