use std::collections::VecDeque;

use longhaul_protocol::wire;
use sha2::{Digest as _, Sha256};

use super::digest::{self, Digest, Digester};

/// How many parts of each artifact can be told to be among its last ones.
const NEWEST_PARTS_MAX: usize = 16;

/// The parts of an artifact that are known: how many, and digests of them in two readings.
///
/// Part by part is what most servers keep. Others join a text to the text before it; so the second reading takes adjacent
/// texts for one, up to where the known ones end.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    parts: usize,
    chain: Digest,
    runs: Runs,
    /// Digests of the last parts, oldest first.
    newest: VecDeque<Digest>,
}

/// Where, in the parts of an artifact, those that are known end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct End {
    /// The part that is not known, or not whole.
    part: usize,
    /// How many bytes of its text are known; zero in a part that is no text.
    text_bytes: usize,
}

impl End {
    /// What comes behind it.
    pub fn rest(self, parts: Vec<wire::Part>) -> Vec<wire::Part> {
        let mut rest: Vec<_> = parts.into_iter().skip(self.part).collect();
        if self.text_bytes > 0
            && let Some(wire::PartContent::Text(text)) = rest.first_mut().and_then(|part| part.content.as_mut())
        {
            *text = text.get(self.text_bytes..).unwrap_or_default().to_owned();
        }
        rest
    }

    /// Whether nothing comes behind it.
    pub fn is_end_of(self, parts: &[wire::Part]) -> bool {
        self.part >= parts.len()
    }
}

impl Content {
    /// Adds a part.
    pub fn push(&mut self, part: &wire::Part) {
        self.parts = self.parts.saturating_add(1);
        let digest = digest::of_part(part);
        self.chain = linked(&self.chain, &digest);
        self.runs.push(part);
        self.newest.push_back(digest);
        if self.newest.len() > NEWEST_PARTS_MAX {
            self.newest.pop_front();
        }
    }

    /// Whether these parts, one behind the other, are among the last ones.
    pub fn ends_around(&self, parts: &[wire::Part]) -> bool {
        let sought: Vec<_> = parts.iter().map(digest::of_part).collect();
        let newest: Vec<_> = self.newest.iter().copied().collect();
        !sought.is_empty() && newest.windows(sought.len()).any(|known| known == sought)
    }

    /// Where these parts go on behind the known ones; none if they do not begin with them.
    pub fn end_in(&self, parts: &[wire::Part]) -> Option<End> {
        let begin = parts
            .get(..self.parts)
            .map(|known| known.iter().fold(Digest::default(), |chain, part| linked(&chain, &digest::of_part(part))));
        if begin.is_some_and(|begin| begin == self.chain) {
            return Some(End { part: self.parts, text_bytes: 0 });
        }
        let end = self.end_in_joined(parts)?;
        // Nothing but empty texts is nothing, where texts are joined.
        let mut behind = parts.get(end.part..).unwrap_or_default().iter();
        let is_all = end.text_bytes == 0 && behind.all(|part| text(part).is_some_and(str::is_empty));
        Some(if is_all { End { part: parts.len(), text_bytes: 0 } } else { end })
    }

    fn end_in_joined(&self, parts: &[wire::Part]) -> Option<End> {
        let mut runs = Runs::default();
        if runs.is(&self.runs) {
            return Some(End { part: 0, text_bytes: 0 });
        }
        // Joining only takes borders away: in more parts than are known, something else became of them.
        for (place, part) in parts.iter().enumerate().take(self.parts) {
            let before = runs.clone();
            runs.push(part);
            let Some(excess) = runs.excess_over(&self.runs) else { continue };
            if excess == 0 {
                return runs.is(&self.runs).then_some(End { part: place + 1, text_bytes: 0 });
            }
            let text = text(part)?;
            let known = text.get(..text.len().checked_sub(excess)?)?;
            let mut runs = before;
            runs.push_text(digest::of_members(part), known);
            return runs.is(&self.runs).then_some(End { part: place, text_bytes: known.len() });
        }
        None
    }
}

/// Parts, of which adjacent texts with the same other members are one, and empty texts nothing.
#[derive(Clone, Debug, Default)]
struct Runs {
    /// All that no text can be joined to any more.
    closed: Digest,
    open: Option<Run>,
}

/// A text that the next one may be joined to. Never empty.
#[derive(Clone, Debug)]
struct Run {
    members: Digest,
    bytes: usize,
    text: Sha256,
}

impl Runs {
    fn push(&mut self, part: &wire::Part) {
        match text(part) {
            Some(text) => self.push_text(digest::of_members(part), text),
            None => {
                self.close();
                self.closed = linked(&self.closed, &digest::of_part(part));
            }
        }
    }

    fn push_text(&mut self, members: Digest, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_some_and(|run| run.members != members) {
            self.close();
        }
        let run = self.open.get_or_insert_with(|| Run { members, bytes: 0, text: Sha256::new() });
        run.bytes = run.bytes.saturating_add(text.len());
        run.text.update(text);
    }

    fn close(&mut self) {
        if let Some(run) = self.open.take() {
            let text: Digest = run.text.finalize().into();
            self.closed = Digester::default().bytes(&self.closed).text("run").bytes(&run.members).bytes(&text).finish();
        }
    }

    /// By how many bytes the last text is longer than that of `other`, if all before them is the same.
    fn excess_over(&self, other: &Self) -> Option<usize> {
        if self.closed != other.closed {
            return None;
        }
        match (&self.open, &other.open) {
            (None, None) => Some(0),
            (Some(run), Some(other)) if run.members == other.members => run.bytes.checked_sub(other.bytes),
            (Some(_) | None, Some(_) | None) => None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        let text = |runs: &Self| -> Option<Digest> { runs.open.as_ref().map(|run| run.text.clone().finalize().into()) };
        self.excess_over(other) == Some(0) && text(self) == text(other)
    }
}

fn text(part: &wire::Part) -> Option<&str> {
    match &part.content {
        Some(wire::PartContent::Text(text)) => Some(text),
        Some(wire::PartContent::Raw(_) | wire::PartContent::Url(_) | wire::PartContent::Data(_)) | None => None,
    }
}

fn linked(chain: &Digest, part: &Digest) -> Digest {
    Digester::default().bytes(chain).text("part").bytes(part).finish()
}
