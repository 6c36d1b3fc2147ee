//! Everything that is only read. Each read is one statement, and so of one moment.

use crate::pool::Pool;

mod due;
mod line;
mod list;
mod oldest;
pub(crate) mod row;
mod statements;
#[cfg(test)]
mod tests;
mod view;

/// Reads what the tables hold.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pool: Pool,
}

impl Reader {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }
}
