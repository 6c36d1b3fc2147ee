//! The path to a fault, noted while the error travels outwards, and only when somebody asked.

use std::cell::RefCell;
use std::fmt::Write as _;

/// One step from a value to a value inside it.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Member(&'static str),
    Index(usize),
    Key(String),
}

thread_local! {
    /// Innermost first; none while nobody traces, so that reading costs nothing.
    static TRACE: RefCell<Option<Vec<Segment>>> = const { RefCell::new(None) };
}

/// Passes `result` on, and notes where it happened if it is an error.
#[inline]
pub(crate) fn within<T, E>(segment: impl FnOnce() -> Segment, result: Result<T, E>) -> Result<T, E> {
    if result.is_err() {
        note(segment());
    }
    result
}

#[cold]
fn note(segment: Segment) {
    TRACE.with_borrow_mut(|trace| {
        if let Some(segments) = trace {
            segments.push(segment);
        }
    });
}

/// Runs `read`, and returns the path to its fault beside its result.
pub(crate) fn traced<T>(read: impl FnOnce() -> T) -> (T, String) {
    TRACE.set(Some(Vec::new()));
    let result = read();
    let segments = TRACE.take().unwrap_or_default();
    let mut path = String::new();
    for segment in segments.iter().rev() {
        match segment {
            Segment::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
            Segment::Member(name) => push_name(&mut path, name),
            Segment::Key(name) => push_name(&mut path, name),
        }
    }
    (result, path)
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}
