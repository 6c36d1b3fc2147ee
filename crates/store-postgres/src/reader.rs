//! Everything that is only read. Each read is one statement, and so of one moment.

use longhaul_protocol::{MessageId, Tenant};
use longhaul_store::shard_of_text;

use crate::counts::to_column;
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

/// Where it is kept that a message was accepted.
pub(crate) fn shard_of_message(tenant: &Tenant, message_id: &MessageId) -> i16 {
    to_column(shard_of_text(&format!("{tenant}\0{message_id}")))
}
