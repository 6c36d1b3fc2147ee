use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longhaul_protocol::TaskId;
use longhaul_store::{Heard, TaskMark};
use tokio::sync::Notify;

/// How many tasks are noted before it becomes "anything": what a batch of NOTIFY holds for ids of the usual length.
pub(super) const MARKS_MAX: usize = 1024;

/// Where it is noted what happened, until somebody takes it. Of each task the newest counts, so that it has a limit and nobody
/// who notes has to wait.
#[derive(Debug, Default)]
pub(super) struct Slate {
    noted: Mutex<Noted>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct Noted {
    marks: BTreeMap<TaskId, TaskMark>,
    due: bool,
    anything: bool,
    /// Counts what was noted.
    count: u64,
}

impl Slate {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, marks: impl IntoIterator<Item = TaskMark>, due: bool) {
        let mut noted = self.noted();
        let mut anew = due;
        for mark in marks {
            noted.note(mark);
            anew = true;
        }
        if !anew {
            return;
        }
        noted.due |= due;
        noted.count += 1;
        drop(noted);
        self.bell.notify_one();
    }

    pub(super) fn note_anything(&self) {
        let mut noted = self.noted();
        noted.give_up_counting();
        noted.count += 1;
        drop(noted);
        self.bell.notify_one();
    }

    pub(super) fn note_heard(&self, heard: Heard) {
        match heard {
            Heard::Tasks { marks, due } => self.note(marks, due),
            Heard::Anything => self.note_anything(),
        }
    }

    /// How much was noted until now, for whoever wants to know when it was taken.
    pub(super) fn count(&self) -> u64 {
        self.noted().count
    }

    /// Takes what is noted, and how much was noted by then.
    pub(super) fn take(&self) -> (Option<Heard>, u64) {
        let mut noted = self.noted();
        let Noted { marks, due, anything, count } = std::mem::take(&mut *noted);
        noted.count = count;
        let heard = match (anything, marks.is_empty() && !due) {
            (true, _) => Some(Heard::Anything),
            (false, true) => None,
            (false, false) => Some(Heard::Tasks { marks: marks.into_values().collect(), due }),
        };
        (heard, count)
    }

    /// Waits for something to be noted, or for [`Slate::wake`]; may answer needlessly. One waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(super) async fn changed(&self) {
        self.bell.notified().await;
    }

    pub(super) fn wake(&self) {
        self.bell.notify_one();
    }
}

impl Noted {
    fn note(&mut self, mark: TaskMark) {
        if self.anything {
            return;
        }
        // Two writers may tell of one task in the wrong order.
        if let Some(known) = self.marks.get_mut(&mark.task_id) {
            known.version = known.version.max(mark.version);
            known.last_sequence = known.last_sequence.max(mark.last_sequence);
        } else if self.marks.len() == MARKS_MAX {
            self.give_up_counting();
        } else {
            self.marks.insert(mark.task_id.clone(), mark);
        }
    }

    fn give_up_counting(&mut self) {
        self.marks.clear();
        self.anything = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(id: &str, version: u64, last_sequence: u64) -> TaskMark {
        TaskMark { task_id: TaskId::new(id).unwrap(), version, last_sequence }
    }

    #[test]
    fn of_a_task_the_newest_is_kept_whatever_came_last() {
        let slate = Slate::default();
        slate.note([mark("a", 2, 9), mark("b", 1, 1)], false);
        slate.note([mark("a", 3, 8)], true);
        let marks = vec![mark("a", 3, 9), mark("b", 1, 1)];
        assert_eq!(slate.take(), (Some(Heard::Tasks { marks, due: true }), 2));
        assert_eq!(slate.take(), (None, 2));
    }

    #[test]
    fn nothing_noted_is_nothing() {
        let slate = Slate::default();
        slate.note([], false);
        assert_eq!(slate.take(), (None, 0));
        slate.note([], true);
        assert_eq!(slate.take(), (Some(Heard::Tasks { marks: vec![], due: true }), 1));
    }

    #[test]
    fn more_than_the_limit_is_anything_until_it_is_taken() {
        let slate = Slate::default();
        slate.note((0..MARKS_MAX).map(|n| mark(&n.to_string(), 1, 1)), true);
        slate.note([mark("0", 2, 2)], false);
        assert!(matches!(slate.take().0, Some(Heard::Tasks { marks, .. }) if marks.len() == MARKS_MAX));
        slate.note((0..=MARKS_MAX).map(|n| mark(&n.to_string(), 1, 1)), false);
        slate.note([mark("z", 1, 1)], false);
        assert_eq!(slate.take().0, Some(Heard::Anything));
        slate.note([mark("z", 1, 1)], false);
        assert_eq!(slate.take().0, Some(Heard::Tasks { marks: vec![mark("z", 1, 1)], due: false }));
    }
}
