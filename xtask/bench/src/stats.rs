//! Latencies and rates.

use std::time::Duration;

/// Latencies of one measured window.
#[derive(Debug, Default)]
pub struct Latencies {
    nanos: Vec<u64>,
}

impl Latencies {
    /// Adds one latency.
    pub fn push(&mut self, latency: Duration) {
        self.nanos.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Self) {
        self.nanos.extend(other.nanos);
    }

    /// Number of latencies seen.
    pub fn len(&self) -> usize {
        self.nanos.len()
    }

    /// The quantile `q` (0 to 1) in milliseconds; 0 when nothing was seen.
    pub fn quantile_ms(&mut self, q: f64) -> f64 {
        self.nanos.sort_unstable();
        let last = self.nanos.len().saturating_sub(1);
        let index = (as_f64(last) * q).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the index lies between 0 and `last`"
        )]
        let nanos = self.nanos.get(index as usize).copied().unwrap_or(0);
        Duration::from_nanos(nanos).as_secs_f64() * 1e3
    }

    /// The median in milliseconds.
    pub fn p50_ms(&mut self) -> f64 {
        self.quantile_ms(0.5)
    }

    /// The 99th percentile in milliseconds.
    pub fn p99_ms(&mut self) -> f64 {
        self.quantile_ms(0.99)
    }
}

/// What one or more windows of closed-loop load gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Latency of each finished operation.
    pub latencies: Latencies,
    /// Length of all windows together.
    pub elapsed: Duration,
}

impl Outcome {
    /// Adds another window.
    pub fn extend(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
    }

    /// Finished operations a second.
    pub fn rate(&self) -> f64 {
        rate(self.latencies.len(), self.elapsed)
    }
}

/// `count` in `elapsed`, a second; 0 when no time passed.
pub fn rate(count: usize, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { as_f64(count) / elapsed.as_secs_f64() }
}

/// A count as a float; counts here stay far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark stay far below 2^52")]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}

/// The median of a few values; 0 when there are none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_come_from_the_sorted_latencies() {
        let mut latencies = Latencies::default();
        for ms in (1..=101).rev() {
            latencies.push(Duration::from_millis(ms));
        }
        assert!((latencies.p50_ms() - 51.0).abs() < 1e-9);
        assert!((latencies.p99_ms() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_seen_is_zero() {
        assert!(Latencies::default().p50_ms().abs() < f64::EPSILON);
        assert!(Outcome::default().rate().abs() < f64::EPSILON);
        assert!(median(&mut []).abs() < f64::EPSILON);
    }
}
