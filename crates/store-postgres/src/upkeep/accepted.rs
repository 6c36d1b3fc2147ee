//! Forgets messages whose repetition need not be recognized any more.

use super::statements;
use crate::fault::Fault;
use crate::pool::Pool;

/// How many messages one statement forgets.
const PAGE: i64 = 500;

/// Forgets all messages whose time is over by the database's clock, in small steps.
pub(super) async fn forget(pool: &Pool) -> Result<(), Fault> {
    loop {
        let forgotten = pool.query_opt(statements::FORGET_ACCEPTED, &[&PAGE]).await?;
        let forgotten: i64 = forgotten.map_or(Ok(0), |row| row.try_get(0))?;
        if forgotten < PAGE {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
