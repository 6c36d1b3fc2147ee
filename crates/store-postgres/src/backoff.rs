//! How long to wait before another attempt.

use std::time::Duration;

/// Waits that double from attempt to attempt.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// How long to wait before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.max);
        jittered(wait)
    }

    /// Says that an attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }
}

/// A wait that differs from others that would be alike: from a half of it to the whole.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_the_most_and_begin_anew_after_a_success() {
        let (min, max) = (Duration::from_millis(100), Duration::from_millis(300));
        let mut backoff = Backoff::new(min, max);
        for whole in [min, min * 2, max, max] {
            let wait = backoff.next();
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} of {whole:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= min);
    }
}
