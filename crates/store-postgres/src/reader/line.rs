use std::collections::BTreeMap;
use std::ops::Bound;

use longhaul_protocol::ContextId;
use longhaul_store::{Claim, Line, Scope, StoreError};

/// Stands between tenant and owner where both are one text: ids hold no control characters.
pub(super) const KEY_SEPARATOR: char = '\u{1f}';

/// A part of the line: the scopes whose turn comes next; of each, the contexts whose turn comes next; of each, the first tasks.
/// What it answers is what the whole line would, or it says that it was too short.
#[derive(Debug)]
pub(super) struct Window {
    lasts: BTreeMap<Scope, ContextId>,
    scopes: BTreeMap<Scope, Contexts>,
    short: bool,
}

/// Contexts of a scope, in a circle that begins behind the last one that was served.
#[derive(Debug, Default)]
struct Contexts {
    tasks: BTreeMap<ContextId, Tasks>,
    /// Whether there may be more.
    is_cut: bool,
}

#[derive(Debug, Default)]
struct Tasks {
    claims: Vec<Claim>,
    /// How many there are at the most.
    limit: i64,
}

impl Window {
    /// An empty one, with the contexts behind which the circles of their scopes begin.
    pub(super) fn new(lasts: impl IntoIterator<Item = (Scope, ContextId)>) -> Self {
        Self { lasts: lasts.into_iter().collect(), scopes: BTreeMap::new(), short: false }
    }

    /// Adds a task, of a scope of which there may be more contexts, and of a context of which there are at most `limit` tasks.
    pub(super) fn add(&mut self, claim: Claim, is_cut: bool, limit: i64) {
        let contexts = self.scopes.entry(claim.scope.clone()).or_default();
        contexts.is_cut |= is_cut;
        let tasks = contexts.tasks.entry(claim.head.context_id.clone()).or_default();
        tasks.limit = limit;
        tasks.claims.push(claim);
    }

    /// Brings the tasks of each context into the order of the line.
    pub(super) fn sort(&mut self) {
        for tasks in self.scopes.values_mut().flat_map(|contexts| contexts.tasks.values_mut()) {
            tasks
                .claims
                .sort_by(|one, other| (one.head.due_at, &one.head.id).cmp(&(other.head.due_at, &other.head.id)));
        }
    }

    /// Whether it was asked for something that it can't know.
    pub(super) fn was_short(&self) -> bool {
        self.short
    }

    pub(super) fn into_scopes(self) -> Vec<Scope> {
        self.scopes.into_keys().collect()
    }
}

impl Contexts {
    /// Whether what follows `after` is beyond the window, which reaches from behind `last` to its end, over the end of the order
    /// if `last` was not far from it.
    fn is_beyond(&self, last: Option<&ContextId>, after: Option<&ContextId>) -> bool {
        if !self.is_cut {
            return false;
        }
        let before = |last| self.tasks.range::<ContextId, _>((Bound::Unbounded, Bound::Included(last))).next_back();
        match last.map(|last| (last, before(last))) {
            // It begins anew at the first context, and ends at or before the last one.
            Some((last, Some((end, _)))) => after.is_some_and(|after| (end..last).contains(&after)),
            // It ends where its greatest context stands.
            Some((last, None)) => after
                .is_none_or(|after| after < last || self.tasks.last_key_value().is_some_and(|(end, _)| after >= end)),
            None => after.is_some_and(|after| self.tasks.last_key_value().is_some_and(|(end, _)| after >= end)),
        }
    }
}

impl Line for Window {
    /// The scopes are as many as are wanted, so none is missed.
    fn scope_behind(&mut self, after: Option<&Scope>) -> Result<Option<Scope>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(self.scopes.range::<Scope, _>((start, Bound::Unbounded)).next().map(|(scope, _)| scope.clone()))
    }

    fn context_behind(&mut self, scope: &Scope, after: Option<&ContextId>) -> Result<Option<ContextId>, StoreError> {
        let Some(contexts) = self.scopes.get(scope) else { return Ok(None) };
        self.short |= contexts.is_beyond(self.lasts.get(scope), after);
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = contexts.tasks.range::<ContextId, _>((start, Bound::Unbounded));
        Ok(behind.next().map(|(context, _)| context.clone()))
    }

    fn task(&mut self, scope: &Scope, context: &ContextId, place: usize) -> Result<Option<Claim>, StoreError> {
        let tasks = self.scopes.get(scope).and_then(|contexts| contexts.tasks.get(context));
        let Some(Tasks { claims, limit }) = tasks else { return Ok(None) };
        let found = claims.get(place).cloned();
        self.short |= found.is_none() && usize::try_from(*limit).is_ok_and(|limit| claims.len() >= limit);
        Ok(found)
    }
}
