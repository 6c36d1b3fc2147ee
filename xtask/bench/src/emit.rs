//! An agent whose chunks say when they were written.

use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use longhaul_protocol::Timestamp;

/// What goes before the time in a chunk.
const MARK: &str = "at=";

/// Flags of `longhaul-bench emit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time from one line to the next, in microseconds.
    #[arg(long, value_name = "N")]
    every_us: u64,
    /// How many lines.
    #[arg(long, value_name = "N")]
    count: u32,
}

/// Prints the lines at an even rate. A line that is late does not move those after it.
pub fn run(args: Args) -> Result<()> {
    let begun = Instant::now();
    let mut out = std::io::stdout();
    for line in 0..args.count {
        let at = Duration::from_micros(args.every_us) * line;
        std::thread::sleep(at.saturating_sub(begun.elapsed()));
        // Each is to be a chunk of its own.
        writeln!(out, "{MARK}{};", now()?.as_nanos()).and_then(|()| out.flush()).context("nobody reads")?;
    }
    Ok(())
}

/// The time since 1970, by the clock that all processes of this machine share.
pub fn now() -> Result<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is wrong")
}

/// The same, as the protocol writes times.
pub fn timestamp() -> Result<Timestamp> {
    Ok(Timestamp::from_unix_millis(i64::try_from(now()?.as_millis())?))
}

/// When the chunks of an event were written.
pub fn written(event: &str) -> impl Iterator<Item = Duration> {
    let times = event.split(MARK).skip(1).filter_map(|rest| rest.split(';').next()?.parse().ok());
    times.map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_all_chunks_of_an_event_are_read() {
        let event = r#"{"parts":[{"text":"at=1000;\nat=2500;\n"},{"text":"no time"}]}"#;
        assert_eq!(written(event).collect::<Vec<_>>(), [Duration::from_nanos(1000), Duration::from_nanos(2500)]);
        assert_eq!(written("{}").count(), 0);
    }
}
