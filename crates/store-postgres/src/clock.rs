//! The database's clock, as far as it is known here.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul_protocol::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::session::{Database, Session, within};

/// How often the database is asked.
const INTERVAL: Duration = Duration::from_secs(5);
/// How many times each time; the quickest answer counts.
const SAMPLES: usize = 3;
/// A clock that is ahead of the database's goes slower by one part in this many, until it is not.
const SLOWNESS: i64 = 10;

const ASK: &str = "/* clock::ask */ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The time by the database's clock: it was read, and is carried on by this process's monotonic clock. All instances on a database
/// follow one clock by it, whatever their own say.
///
/// It is right within half of what the quickest of some questions took, and compared every 5 s; while the database can't be asked
/// it goes on by itself. It never goes back: when the database's clock turns out to be behind, as after a failover to a machine
/// whose clock is, it goes a tenth slower until it has met it. When that is ahead it follows at once.
#[derive(Debug)]
pub struct ClockOffset {
    monotonic: Monotonic,
    course: Mutex<Course>,
    latest: AtomicI64,
}

impl ClockOffset {
    /// Asks the database for its time, and again and again until `closing`.
    pub(crate) async fn follow(database: &Database, closing: CancellationToken) -> Result<Arc<Self>, Fault> {
        let monotonic = Monotonic::start();
        let session = database.connect().await?;
        let first = measure(database, &session, &monotonic).await?;
        let clock =
            Arc::new(Self { monotonic, course: Mutex::new(Course::begin(first)), latest: AtomicI64::new(i64::MIN) });
        let keeping = keep(Arc::clone(&clock), database.clone(), session);
        database.tracker().spawn(async move { closing.run_until_cancelled_owned(keeping).await });
        Ok(clock)
    }

    /// The time now, which never goes back.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let micros = self.course().at(self.monotonic.micros());
        let latest = self.latest.fetch_max(micros, Ordering::Relaxed).max(micros);
        Timestamp::from_unix_millis(latest.div_euclid(1000))
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts microseconds from its start.
#[derive(Clone, Copy, Debug)]
struct Monotonic(Instant);

impl Monotonic {
    #[expect(clippy::disallowed_methods, reason = "the database's time is carried on by it; this is the one place")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn micros(self) -> i64 {
        i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

/// One answer of the database; all in microseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// When it was asked and when it answered, by the monotonic clock.
    asked: i64,
    answered: i64,
    /// What it said.
    theirs: i64,
}

impl Sample {
    fn duration(&self) -> i64 {
        self.answered - self.asked
    }

    /// How far the database's clock is ahead of the monotonic one, if the way there took as long as the way back.
    fn offset(&self) -> i64 {
        self.theirs - self.asked - self.duration() / 2
    }

    /// Whether the clocks may be this far apart.
    fn allows(&self, offset: i64) -> bool {
        (self.offset() - offset).abs() <= self.duration() / 2 + 1
    }
}

/// What the time is at each moment of the monotonic clock; all in microseconds.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// How far the database's clock is ahead.
    offset: i64,
    /// A moment, and the time that was answered then.
    from: i64,
    answered: i64,
}

impl Course {
    fn begin(sample: Sample) -> Self {
        let offset = sample.offset();
        Self { offset, from: sample.answered, answered: sample.answered + offset }
    }

    /// The time at a moment that is not before [`Course::from`].
    fn at(&self, moment: i64) -> i64 {
        let passed = (moment - self.from).max(0);
        (moment + self.offset).max(self.answered + passed - passed / SLOWNESS)
    }

    /// Goes on with what a sample says. One that took so long that the clocks may be as far apart as was thought says nothing.
    fn correct(&mut self, sample: Sample) {
        if sample.allows(self.offset) {
            return;
        }
        let now = sample.answered;
        *self = Self { offset: sample.offset(), from: now, answered: self.at(now) };
    }
}

async fn measure(database: &Database, session: &Session, monotonic: &Monotonic) -> Result<Sample, Fault> {
    // Prepared before, so that each question is one way there and back.
    within(database.config.statement_timeout, session.prepare(ASK)).await?;
    let mut best = ask(database, session, monotonic).await?;
    for _ in 1..SAMPLES {
        let sample = ask(database, session, monotonic).await?;
        if sample.duration() < best.duration() {
            best = sample;
        }
    }
    Ok(best)
}

async fn ask(database: &Database, session: &Session, monotonic: &Monotonic) -> Result<Sample, Fault> {
    let asked = monotonic.micros();
    let rows = within(database.config.statement_timeout, session.query(ASK, &[])).await?;
    let answered = monotonic.micros();
    let row = rows.first().ok_or_else(|| Fault::NoConnection("the database did not tell the time".to_owned()))?;
    Ok(Sample { asked, answered, theirs: row.try_get(0)? })
}

/// Asks the database from time to time.
async fn keep(clock: Arc<ClockOffset>, database: Database, session: Session) {
    let mut session = Some(session);
    loop {
        tokio::time::sleep(INTERVAL).await;
        match asked_again(&clock, &database, &mut session).await {
            Ok(sample) => clock.course().correct(sample),
            // The writers say so louder.
            Err(fault) => {
                let error = &fault as &dyn std::error::Error;
                tracing::debug!(error, "the database cannot be asked for its time");
            }
        }
    }
}

async fn asked_again(clock: &ClockOffset, database: &Database, session: &mut Option<Session>) -> Result<Sample, Fault> {
    let used = match session.take().filter(|session| !session.is_closed()) {
        Some(session) => session,
        None => database.connect().await?,
    };
    let sample = measure(database, &used, &clock.monotonic).await?;
    *session = Some(used);
    Ok(sample)
}

#[cfg(test)]
mod tests;
