use std::collections::HashMap;

use longhaul_protocol::{ContextId, Timestamp};
use longhaul_store::{Claim, Due, Line, Rotation, Scope, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use super::{Reads, row};
use crate::fault::Fault;
use crate::layout::int;

const ACTION: &str = "read which tasks are due";

impl Reads<'_> {
    pub(crate) fn due(&mut self, now: Timestamp, limit: usize, mut rotation: Rotation) -> Result<Due, Fault> {
        let range = params![now.unix_millis(), int(limit as u64)];
        let timed = self.statements.timed.query_map(range, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        let mut claims = Vec::new();
        for number in timed {
            claims.extend(self.claim(number)?);
        }
        let left = limit - claims.len();
        let mut line =
            DueLine { reads: self, now: now.unix_millis(), scopes: HashMap::new(), contexts: HashMap::new() };
        claims.extend(rotation.take(&mut line, left)?);
        Ok(Due { claims, rotation })
    }

    pub(crate) fn next_due(&mut self) -> Result<Option<Timestamp>, Fault> {
        let read = |row: &Row<'_>| row.get::<_, i64>(0);
        let timed = self.statements.next_timed.query_row([i64::MIN], read).optional()?;
        let in_line = self.statements.next_in_line.query_row([i64::MIN], read).optional()?;
        Ok(timed.into_iter().chain(in_line).min().map(Timestamp::from_unix_millis))
    }

    /// A task with its scope.
    pub(super) fn claim(&mut self, number: i64) -> Result<Option<Claim>, Fault> {
        let mut rows = self.statements.claim_by_number.query([number])?;
        rows.next()?.map(row::claim).transpose()
    }
}

/// The line at one time. Scopes and contexts stand in it in the order in which they were made.
struct DueLine<'r, 'c> {
    reads: &'r mut Reads<'c>,
    now: i64,
    scopes: HashMap<Scope, i64>,
    contexts: HashMap<(i64, ContextId), i64>,
}

impl DueLine<'_, '_> {
    /// The number of a scope; 0 for one that never was, which stands before the first.
    fn scope(&mut self, scope: &Scope) -> Result<i64, Fault> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(*number);
        }
        let names = params![scope.tenant.as_str(), scope.owner.as_str()];
        let number = self.reads.statements.scope_number.query_row(names, |row| row.get(0)).optional()?.unwrap_or(0);
        self.scopes.insert(scope.clone(), number);
        Ok(number)
    }

    /// The number of a context; 0 for one that is gone, so that its scope's circle begins anew.
    fn context(&mut self, scope: i64, context: &ContextId) -> Result<i64, Fault> {
        let key = (scope, context.clone());
        if let Some(number) = self.contexts.get(&key) {
            return Ok(*number);
        }
        let name = params![scope, context.as_str()];
        let number = self.reads.statements.context_number.query_row(name, |row| row.get(0)).optional()?.unwrap_or(0);
        self.contexts.insert(key, number);
        Ok(number)
    }

    fn next_scope(&mut self, after: Option<&Scope>) -> Result<Option<Scope>, Fault> {
        let after = after.map_or(Ok(0), |after| self.scope(after))?;
        let statements = &mut self.reads.statements;
        let next = statements.scope_in_line.query_row([after, self.now], |row| row.get::<_, i64>(0)).optional()?;
        let Some(number) = next else { return Ok(None) };
        let mut rows = statements.scope_name.query([number])?;
        let scope = rows.next()?.map(|row| row::scope(row, 0)).transpose()?;
        if let Some(scope) = &scope {
            self.scopes.insert(scope.clone(), number);
        }
        Ok(scope)
    }

    fn next_context(&mut self, scope: &Scope, after: Option<&ContextId>) -> Result<Option<ContextId>, Fault> {
        let scope = self.scope(scope)?;
        let after = after.map_or(Ok(0), |after| self.context(scope, after))?;
        let statements = &mut self.reads.statements;
        let wanted = [scope, after, self.now];
        let next = statements.context_in_line.query_row(wanted, |row| row.get::<_, i64>(0)).optional()?;
        let Some(number) = next else { return Ok(None) };
        let mut rows = statements.context_name.query([number])?;
        let context = rows.next()?.map(row::context).transpose()?;
        if let Some(context) = &context {
            self.contexts.insert((scope, context.clone()), number);
        }
        Ok(context)
    }

    fn task_at(&mut self, scope: &Scope, context: &ContextId, place: usize) -> Result<Option<Claim>, Fault> {
        let scope = self.scope(scope)?;
        let wanted = [scope, self.context(scope, context)?, self.now, int(place as u64)];
        let number = self.reads.statements.task_in_line.query_row(wanted, |row| row.get(0)).optional()?;
        number.map_or(Ok(None), |number| self.reads.claim(number))
    }
}

impl Line for DueLine<'_, '_> {
    fn scope_behind(&mut self, after: Option<&Scope>) -> Result<Option<Scope>, StoreError> {
        self.next_scope(after).map_err(|fault| fault.into_store(ACTION))
    }

    fn context_behind(&mut self, scope: &Scope, after: Option<&ContextId>) -> Result<Option<ContextId>, StoreError> {
        self.next_context(scope, after).map_err(|fault| fault.into_store(ACTION))
    }

    fn task(&mut self, scope: &Scope, context: &ContextId, place: usize) -> Result<Option<Claim>, StoreError> {
        self.task_at(scope, context, place).map_err(|fault| fault.into_store(ACTION))
    }
}
