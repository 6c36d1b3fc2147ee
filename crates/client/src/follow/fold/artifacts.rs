use std::collections::{BTreeMap, HashMap, HashSet};

use longhaul_protocol::wire;

use super::content::{Content, End};
use super::digest::{self, Digest};
use super::{ARTIFACT_DETAILS_MAX, ARTIFACTS_MAX};

/// What is known of a task's artifacts.
#[derive(Clone, Debug, Default)]
pub(super) struct Artifacts {
    /// By the digest of the id, which may be long. None of one whose details were too many.
    known: HashMap<Digest, Option<Known>>,
    /// The sum of what [`Details::count`] gives.
    details: usize,
}

/// What became of an artifact since.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// It has more parts, behind this.
    Parts(End),
    /// It has more parts, behind this, and name, description, metadata or extensions with which appending would end up too.
    PartsAndDetails(End),
    /// It is new, something else, or not remembered.
    Whole,
}

#[derive(Clone, Debug, Default)]
struct Known {
    details: Details,
    content: Content,
}

/// All of an artifact but its parts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Details {
    name: Option<Digest>,
    description: Option<Digest>,
    extensions: Vec<Digest>,
    metadata: BTreeMap<Digest, Digest>,
}

impl Artifacts {
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes in an artifact as it is from now on.
    pub fn replace(&mut self, artifact: &wire::Artifact) {
        let known = Known::of(artifact);
        self.keep(digest::of_text(&artifact.artifact_id), known);
    }

    /// Takes in what is added to an artifact.
    pub fn append(&mut self, piece: &wire::Artifact) {
        let id = digest::of_text(&piece.artifact_id);
        match self.known.get_mut(&id) {
            None => self.replace(piece),
            // Of what was forgotten, nothing is known by knowing more.
            Some(None) => {}
            Some(known @ Some(_)) => {
                let Some(mut known) = known.take() else { return };
                self.details = self.details.saturating_sub(known.details.count());
                known.extend(piece);
                self.keep(id, known);
            }
        }
    }

    /// What became of an artifact, now that it is seen again.
    pub fn change(&self, artifact: &wire::Artifact) -> Change {
        match self.known.get(&digest::of_text(&artifact.artifact_id)) {
            Some(Some(known)) => known.change(artifact),
            Some(None) | None => Change::Whole,
        }
    }

    /// Whether these parts are among the last ones of the artifact.
    pub fn ends_around(&self, piece: &wire::Artifact) -> bool {
        let known = self.known.get(&digest::of_text(&piece.artifact_id)).and_then(Option::as_ref);
        known.is_some_and(|known| known.content.ends_around(&piece.parts))
    }

    /// Whether this piece is what comes next in the whole artifact, behind all that is known. None if the whole does not begin
    /// with what is known.
    pub fn goes_on_with(&self, piece: &wire::Artifact, whole: wire::Artifact) -> Option<bool> {
        let known = self.known.get(&digest::of_text(&piece.artifact_id))?.as_ref()?;
        let rest = known.content.end_in(&whole.parts)?.rest(whole.parts);
        Some(Known::of(piece).content.end_in(&rest).is_some())
    }

    fn keep(&mut self, id: Digest, known: Known) {
        if self.known.len() >= ARTIFACTS_MAX && !self.known.contains_key(&id) {
            return;
        }
        let before = self.known.insert(id, None).flatten().map_or(0, |known| known.details.count());
        self.details = self.details.saturating_sub(before);
        let details = self.details.saturating_add(known.details.count());
        if details <= ARTIFACT_DETAILS_MAX {
            self.details = details;
            self.known.insert(id, Some(known));
        }
    }
}

impl Known {
    fn of(artifact: &wire::Artifact) -> Self {
        let mut known = Self { details: Details::of(artifact), content: Content::default() };
        artifact.parts.iter().for_each(|part| known.content.push(part));
        known
    }

    fn extend(&mut self, piece: &wire::Artifact) {
        self.details.extend(piece);
        piece.parts.iter().for_each(|part| self.content.push(part));
    }

    fn change(&self, artifact: &wire::Artifact) -> Change {
        let Some(end) = self.content.end_in(&artifact.parts) else { return Change::Whole };
        let is_same_content = end.is_end_of(&artifact.parts);
        let details = Details::of(artifact);
        if details == self.details {
            return if is_same_content { Change::None } else { Change::Parts(end) };
        }
        let mut grown = self.details.clone();
        grown.extend(artifact);
        // An update without parts would be none (§4.1.7).
        if grown == details && !is_same_content { Change::PartsAndDetails(end) } else { Change::Whole }
    }
}

impl Details {
    fn of(artifact: &wire::Artifact) -> Self {
        let extensions = artifact.extensions.iter().map(|extension| digest::of_text(extension)).collect();
        let mut details = Self { extensions, ..Self::default() };
        details.set(artifact);
        details
    }

    /// As what is appended is joined to what was there before: metadata and extensions are added, names are replaced.
    fn extend(&mut self, piece: &wire::Artifact) {
        self.set(piece);
        if piece.extensions.is_empty() {
            return;
        }
        let mut known: HashSet<_> = self.extensions.iter().copied().collect();
        let given = piece.extensions.iter().map(|extension| digest::of_text(extension));
        self.extensions.extend(given.filter(|extension| known.insert(*extension)));
    }

    fn set(&mut self, piece: &wire::Artifact) {
        let given = |text: &str| (!text.is_empty()).then(|| digest::of_text(text));
        self.name = given(&piece.name).or(self.name);
        self.description = given(&piece.description).or(self.description);
        let metadata = piece.metadata.iter().flatten();
        self.metadata.extend(metadata.map(|(name, value)| (digest::of_text(name), digest::of_value(value))));
    }

    fn count(&self) -> usize {
        self.extensions.len().saturating_add(self.metadata.len())
    }
}

/// For each artifact, whether no later one has its id: of two with one id, a reader that goes by ids keeps the last.
pub(super) fn last_of_each_id(artifacts: &[wire::Artifact]) -> Vec<bool> {
    let mut ids = HashSet::new();
    let mut is_last: Vec<_> =
        artifacts.iter().rev().map(|artifact| ids.insert(artifact.artifact_id.as_str())).collect();
    is_last.reverse();
    is_last
}
