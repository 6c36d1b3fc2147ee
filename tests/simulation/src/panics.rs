//! Counts the panics of a thread: those of an engine's own tasks are caught by the runtime, and would go unseen.

use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// How many panics this thread has seen.
pub(crate) fn count() -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            before(panic);
        }));
    });
    PANICS.with(Cell::get)
}
