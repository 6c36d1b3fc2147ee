use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use longhaul_protocol::ContextId;

use crate::{Claim, Scope, StoreError};

/// Whose turn it is to be served: the scope after the last one, and in it the context after its last one.
///
/// It is a place in a circle, not a record: lost, the circle begins anew, and nobody loses more than a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rotation {
    scope: Option<Scope>,
    contexts: BTreeMap<Scope, ContextId>,
}

/// For how many scopes it is remembered which of their contexts was last.
const SCOPES_MAX: usize = 10_000;

/// The tasks that wait in line, by scope, context, and since when. Scopes stand in an order of the store's own, and so do the
/// contexts of a scope; neither changes while there are tasks.
pub trait Line {
    /// The first scope behind `after` that has tasks in line; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it can't be read; likewise below.
    fn scope_behind(&mut self, after: Option<&Scope>) -> Result<Option<Scope>, StoreError>;

    /// The first context behind `after` in which `scope` has tasks in line; `None` when there is none.
    fn context_behind(&mut self, scope: &Scope, after: Option<&ContextId>) -> Result<Option<ContextId>, StoreError>;

    /// The task of a context that is in line at place `place`, counted from 0; `None` when the line is shorter.
    fn task(&mut self, scope: &Scope, context: &ContextId, place: usize) -> Result<Option<Claim>, StoreError>;
}

impl Rotation {
    /// The scope that was served last.
    #[must_use]
    pub fn scope(&self) -> Option<&Scope> {
        self.scope.as_ref()
    }

    /// The context of which `scope` was served last, as far as it is remembered.
    #[must_use]
    pub fn context(&self, scope: &Scope) -> Option<&ContextId> {
        self.contexts.get(scope)
    }

    /// The remembered contexts by scope, in the order in which the scopes would be served if they stood in their own order.
    pub fn contexts(&self) -> impl Iterator<Item = (&Scope, &ContextId)> {
        let behind = self.scope.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.scope.iter().flat_map(|last| self.contexts.range(..=last));
        self.contexts.range::<Scope, _>((behind, Bound::Unbounded)).chain(before)
    }

    /// Takes at most `limit` tasks out of a line, one of each scope in turn, and of each scope one of each context in turn.
    /// The line must not change meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the line can't be read.
    pub fn take(&mut self, line: &mut impl Line, limit: usize) -> Result<Vec<Claim>, StoreError> {
        let mut claims: Vec<Claim> = Vec::new();
        let mut taken: BTreeMap<(Scope, ContextId), usize> = BTreeMap::new();
        let mut circle = self.circle(line, limit)?;
        while let Some(scope) = circle.pop_front().filter(|_| claims.len() < limit) {
            // A scope that has nothing left is left out from then on.
            if let Some(claim) = self.next_of(line, &scope, &mut taken)? {
                claims.push(claim);
                self.scope = Some(scope.clone());
                circle.push_back(scope);
            }
        }
        Ok(claims)
    }

    /// The scopes with tasks in line, at most `limit`, in the order of their turns.
    fn circle(&self, line: &mut impl Line, limit: usize) -> Result<VecDeque<Scope>, StoreError> {
        let mut circle = VecDeque::new();
        let (mut after, mut wrapped) = (self.scope.clone(), self.scope.is_none());
        while circle.len() < limit {
            match line.scope_behind(after.as_ref())? {
                Some(scope) if circle.front() == Some(&scope) => break,
                Some(scope) => {
                    after = Some(scope.clone());
                    circle.push_back(scope);
                }
                None if wrapped => break,
                None => (wrapped, after) = (true, None),
            }
        }
        Ok(circle)
    }

    /// The next task of a scope: of the context after its last one, or of the first one that has any left.
    fn next_of(
        &mut self,
        line: &mut impl Line,
        scope: &Scope,
        taken: &mut BTreeMap<(Scope, ContextId), usize>,
    ) -> Result<Option<Claim>, StoreError> {
        let mut after = self.contexts.get(scope).cloned();
        let mut wrapped = after.is_none();
        loop {
            let Some(context) = line.context_behind(scope, after.as_ref())? else {
                if wrapped {
                    return Ok(None);
                }
                (wrapped, after) = (true, None);
                continue;
            };
            let place = taken.entry((scope.clone(), context.clone())).or_default();
            if let Some(claim) = line.task(scope, &context, *place)? {
                *place += 1;
                if self.contexts.len() >= SCOPES_MAX {
                    self.contexts.clear();
                }
                self.contexts.insert(scope.clone(), context);
                return Ok(Some(claim));
            }
            after = Some(context);
        }
    }
}
