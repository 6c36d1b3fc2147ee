//! Durations as people write them: a whole number and its unit.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `500ms`, `30s`, `5m`, `24h`, `7d`.
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(*millis)?))
}

/// Writes what [`parse`] reads, in the largest unit that fits.
pub fn format(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = UNITS.iter().rev().find(|(_, unit)| millis >= *unit && millis % unit == 0);
    match fits {
        // Days are read, and hours are what people say of a day or two.
        Some(("d", unit)) if millis / unit < 3 => format!("{}h", millis / 3_600_000),
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None => "0s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, millis) in [
            ("500ms", 500),
            ("1500ms", 1_500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
        assert_eq!(format(Duration::ZERO), "0s");
        assert_eq!(parse("0s"), Some(Duration::ZERO));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "30", "s", "1.5s", "-1s", "30 seconds", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
