//! A connection that keeps what it has prepared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use rusqlite::{Connection, Statement};

/// A connection with its prepared statements, by their text. There are a few dozen texts.
pub(super) struct Db<'c> {
    pub(super) connection: &'c Connection,
    idle: RefCell<BTreeMap<String, Statement<'c>>>,
}

impl<'c> Db<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, idle: RefCell::new(BTreeMap::new()) }
    }

    /// The statement of this text, prepared the first time.
    pub(super) fn prepare(&self, sql: &str) -> rusqlite::Result<Prepared<'_, 'c>> {
        let idle = self.idle.borrow_mut().remove_entry(sql);
        let (text, statement) = match idle {
            Some(found) => found,
            None => (sql.to_owned(), self.connection.prepare(sql)?),
        };
        Ok(Prepared { db: self, text, statement: Some(statement) })
    }
}

/// A statement in use. It goes back when it is dropped.
pub(super) struct Prepared<'d, 'c> {
    db: &'d Db<'c>,
    text: String,
    /// `None` only while it is dropped.
    statement: Option<Statement<'c>>,
}

impl<'c> Deref for Prepared<'_, 'c> {
    type Target = Statement<'c>;

    #[expect(clippy::expect_used, reason = "it is taken out only when it is dropped")]
    fn deref(&self) -> &Statement<'c> {
        self.statement.as_ref().expect("the statement is in use")
    }
}

impl<'c> DerefMut for Prepared<'_, 'c> {
    #[expect(clippy::expect_used, reason = "it is taken out only when it is dropped")]
    fn deref_mut(&mut self) -> &mut Statement<'c> {
        self.statement.as_mut().expect("the statement is in use")
    }
}

impl Drop for Prepared<'_, '_> {
    fn drop(&mut self) {
        if let Some(statement) = self.statement.take() {
            self.db.idle.borrow_mut().insert(std::mem::take(&mut self.text), statement);
        }
    }
}
