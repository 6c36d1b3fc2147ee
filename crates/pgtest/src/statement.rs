//! Single statements, each on a connection of its own.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use crate::error::Error;
use crate::server::Row;

/// How long a statement may take, with its connection.
const STATEMENT_DURATION_MAX: Duration = Duration::from_secs(60);

/// Runs `statement` in the database at `url` and returns its rows.
pub fn run(url: &str, statement: &str) -> Result<Vec<Row>, Error> {
    // The caller may be inside a runtime, which may not be blocked on from within: hence a thread and a runtime of it.
    let rows = thread::scope(|scope| scope.spawn(|| run_here(url, statement)).join());
    match rows {
        Ok(rows) => rows.map_err(|source| Error::Statement { statement: statement.to_owned(), source }),
        Err(panic) => resume_unwind(panic),
    }
}

fn run_here(url: &str, statement: &str) -> Result<Vec<Row>, Box<dyn std::error::Error + Send + Sync>> {
    let config: Config = url.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let messages = runtime.block_on(async {
        tokio::time::timeout(STATEMENT_DURATION_MAX, async {
            let (client, connection) = config.connect(NoTls).await?;
            let work = async move { client.simple_query(statement).await };
            // The connection ends when the client is dropped at the end of its work. If it fails, so does the work.
            let (messages, _) = tokio::join!(work, connection);
            messages
        })
        .await
    })??;
    Ok(messages.iter().filter_map(row).collect())
}

fn row(message: &SimpleQueryMessage) -> Option<Row> {
    match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    }
}
