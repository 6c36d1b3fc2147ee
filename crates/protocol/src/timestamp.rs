//! A moment, as `google.protobuf.Timestamp` has it, and its RFC 3339 form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

const NANOS_PER_SECOND: u32 = 1_000_000_000;
const NANOS_PER_MILLI: u32 = 1_000_000;

/// A moment between [`Timestamp::MIN`] and [`Timestamp::MAX`] (years 1 to 9999), to the nanosecond.
///
/// Printed in UTC with `Z` and 3, 6 or 9 digits of fraction (§5.6.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// Says that a text or a pair of numbers is no moment that can be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTimestamp {
    /// The text does not have the form of RFC 3339, or names a day or an hour that does not exist.
    #[error("must be an RFC 3339 time such as 2026-01-02T03:04:05.678Z")]
    Format,
    /// The moment is before the year 1 or after the year 9999, or its nanoseconds are not below 10⁹.
    #[error("must be between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z")]
    OutOfRange,
}

impl Timestamp {
    /// The earliest moment: 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self { seconds: -62_135_596_800, nanos: 0 };
    /// The latest moment: 9999-12-31T23:59:59.999999999Z.
    pub const MAX: Self = Self { seconds: 253_402_300_799, nanos: NANOS_PER_SECOND - 1 };

    /// The moment that is this many milliseconds after 1970-01-01T00:00:00Z, moved into the range
    /// if it is outside.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        let seconds = millis.div_euclid(1000);
        let nanos = u32::try_from(millis.rem_euclid(1000)).unwrap_or_default() * NANOS_PER_MILLI;
        Self { seconds, nanos }.clamp(Self::MIN, Self::MAX)
    }

    /// The moment with these members of `google.protobuf.Timestamp`; `nanos` counts forward from
    /// `seconds`, before 1970 too.
    ///
    /// # Errors
    ///
    /// [`InvalidTimestamp::OutOfRange`] when `nanos` is not in `0..1_000_000_000` or the moment is
    /// outside the range of the type.
    pub fn from_parts(seconds: i64, nanos: impl TryInto<u32>) -> Result<Self, InvalidTimestamp> {
        let nanos = nanos.try_into().map_err(|_| InvalidTimestamp::OutOfRange)?;
        let moment = Self { seconds, nanos };
        if nanos < NANOS_PER_SECOND && moment >= Self::MIN && moment <= Self::MAX {
            Ok(moment)
        } else {
            Err(InvalidTimestamp::OutOfRange)
        }
    }

    /// Whole milliseconds since 1970-01-01T00:00:00Z, rounded towards the past.
    #[must_use]
    pub fn unix_millis(self) -> i64 {
        self.seconds * 1000 + i64::from(self.nanos / NANOS_PER_MILLI)
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded towards the past.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds after [`seconds`](Self::seconds), below 10⁹.
    #[must_use]
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// Writes the RFC 3339 form into `buffer` and returns the part that was written.
    fn print(self, buffer: &mut [u8; 30]) -> &str {
        let moment = OffsetDateTime::from_unix_timestamp(self.seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let mut pen = Pen { buffer, written: 0 };
        pen.digits(moment.year().unsigned_abs(), 4);
        pen.byte(b'-');
        pen.digits(u32::from(u8::from(moment.month())), 2);
        pen.byte(b'-');
        pen.digits(u32::from(moment.day()), 2);
        pen.byte(b'T');
        pen.digits(u32::from(moment.hour()), 2);
        pen.byte(b':');
        pen.digits(u32::from(moment.minute()), 2);
        pen.byte(b':');
        pen.digits(u32::from(moment.second()), 2);
        pen.byte(b'.');
        if self.nanos.is_multiple_of(NANOS_PER_MILLI) {
            pen.digits(self.nanos / NANOS_PER_MILLI, 3);
        } else if self.nanos.is_multiple_of(1000) {
            pen.digits(self.nanos / 1000, 6);
        } else {
            pen.digits(self.nanos, 9);
        }
        pen.byte(b'Z');
        let written = pen.written;
        buffer.get(..written).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

struct Pen<'a> {
    buffer: &'a mut [u8; 30],
    written: usize,
}

impl Pen<'_> {
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.buffer.get_mut(self.written) {
            *place = byte;
            self.written += 1;
        }
    }

    fn digits(&mut self, value: u32, width: u32) {
        for place in (0..width).rev() {
            let digit = value / 10_u32.pow(place) % 10;
            self.byte(b'0' + u8::try_from(digit).unwrap_or_default());
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.print(&mut [0; 30]))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let mut scan = Scan(text.as_bytes());
        let (date, time) = scan.date_time().ok_or(InvalidTimestamp::Format)?;
        let nanos = scan.fraction().ok_or(InvalidTimestamp::Format)?;
        let offset = scan.offset().ok_or(InvalidTimestamp::Format)?;
        if !scan.0.is_empty() {
            return Err(InvalidTimestamp::Format);
        }
        let local = date.with_time(time).assume_offset(UtcOffset::UTC).unix_timestamp();
        Self::from_parts(local - offset, nanos)
    }
}

/// What is left to read of an RFC 3339 text. Only the upper-case `T` and `Z` are read, as ProtoJSON
/// has it.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn date_time(&mut self) -> Option<(Date, Time)> {
        let year = self.digits(4)?;
        self.expect(b'-')?;
        let month = self.two()?;
        self.expect(b'-')?;
        let day = self.two()?;
        self.expect(b'T')?;
        let hour = self.two()?;
        self.expect(b':')?;
        let minute = self.two()?;
        self.expect(b':')?;
        let second = self.two()?;
        let month = Month::try_from(month).ok()?;
        let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, day).ok()?;
        Some((date, Time::from_hms(hour, minute, second).ok()?))
    }

    /// Nanoseconds of a fraction of 1 to 9 digits; 0 when there is none.
    fn fraction(&mut self) -> Option<u32> {
        if self.expect(b'.').is_none() {
            return Some(0);
        }
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&count) {
            return None;
        }
        let value = self.digits(count)?;
        Some(value * 10_u32.pow(u32::try_from(9 - count).ok()?))
    }

    /// Seconds by which local time is ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.byte()? {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.two()?;
        self.expect(b':')?;
        let minutes = self.two()?;
        if hours > 23 || minutes > 59 {
            return None;
        }
        Some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[wanted])?;
        Some(())
    }

    fn two(&mut self) -> Option<u8> {
        u8::try_from(self.digits(2)?).ok()
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let (head, rest) = self.0.split_at_checked(count)?;
        let mut value = 0;
        for byte in head {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value * 10 + u32::from(byte - b'0');
        }
        self.0 = rest;
        Some(value)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.print(&mut [0; 30]))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl de::Visitor<'_> for TextVisitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(text: &str) -> String {
        text.parse::<Timestamp>().unwrap().to_string()
    }

    #[test]
    fn a_time_is_printed_in_utc_with_3_6_or_9_digits() {
        for (given, wanted) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
            ("2026-01-02T03:04:05.12Z", "2026-01-02T03:04:05.120Z"),
            ("2026-01-02T03:04:05.1234Z", "2026-01-02T03:04:05.123400Z"),
            ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05.123456700Z"),
            ("2026-01-02T11:04:05+08:00", "2026-01-02T03:04:05.000Z"),
            ("2026-01-01T23:04:05.5-04:30", "2026-01-02T03:34:05.500Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(printed(given), wanted);
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_refused() {
        for text in [
            "",
            "2026-01-02",
            "2026-01-02 03:04:05Z",
            "2026-01-02T03:04:05",
            "2026-13-02T03:04:05Z",
            "2026-02-30T03:04:05Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:04:60Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05.1234567890Z",
            "2026-01-02t03:04:05z",
            "2026-01-02T03:04:05+0800",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05Zx",
            "-026-01-02T03:04:05Z",
            "２026-01-02T03:04:05Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp::Format), "{text}");
        }
        for text in ["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp::OutOfRange), "{text}");
        }
    }

    #[test]
    fn milliseconds_outside_the_range_are_moved_into_it() {
        assert_eq!(Timestamp::from_unix_millis(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::from_unix_millis(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_unix_millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn parts_outside_the_range_are_refused() {
        assert!(Timestamp::from_parts(0, 999_999_999).is_ok());
        assert!(Timestamp::from_parts(0, 1_000_000_000).is_err());
        assert!(Timestamp::from_parts(0, -1).is_err());
        assert!(Timestamp::from_parts(Timestamp::MAX.seconds() + 1, 0).is_err());
    }

    proptest! {
        #[test]
        fn a_printed_time_reads_back(
            seconds in Timestamp::MIN.seconds()..=Timestamp::MAX.seconds(),
            nanos in prop_oneof![0..1_000_000_000_u32, (0..1000_u32).prop_map(|n| n * 1_000_000)],
        ) {
            let moment = Timestamp::from_parts(seconds, nanos).unwrap();
            prop_assert_eq!(moment.to_string().parse::<Timestamp>(), Ok(moment));
        }

        #[test]
        fn milliseconds_come_back(millis in Timestamp::MIN.unix_millis()..=Timestamp::MAX.unix_millis()) {
            prop_assert_eq!(Timestamp::from_unix_millis(millis).unix_millis(), millis);
        }
    }
}
