//! Processor time a request, with one and with two runtime threads.

use std::time::Duration;

use anyhow::Result;

use crate::load;
use crate::process::{Process, StoreKind};
use crate::report::{Bound, Figure};
use crate::run::Run;

const CONNECTIONS: usize = 32;
const TEXT: &str = "echo hello";

/// Processor time and the requests that it was used for.
#[derive(Debug, Default)]
struct Used {
    time: Duration,
    requests: u64,
}

impl Used {
    fn micros_a_request(&self) -> f64 {
        let requests = u32::try_from(self.requests).unwrap_or(u32::MAX).max(1);
        self.time.as_secs_f64() * 1e6 / f64::from(requests)
    }
}

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for store in run.options.stores.clone() {
        measure_store(run, figures, store).await?;
    }
    Ok(())
}

async fn measure_store(run: &mut Run, figures: &mut Vec<Figure>, store: StoreKind) -> Result<()> {
    let one = run.server(store, Some(1)).await?;
    let two = run.server(store, Some(2)).await?;
    let (mut used_one, mut used_two) = (Used::default(), Used::default());
    for _ in 0..run.options.rounds {
        drive(run, &one, &mut used_one).await?;
        drive(run, &two, &mut used_two).await?;
    }
    one.stop().await?;
    two.stop().await?;
    let what = format!("{}, {CONNECTIONS}: processor time a request", store.name());
    let base = used_one.micros_a_request();
    figures.push(Figure::new(format!("{what}, one thread"), base, "us"));
    let figure = Figure::new(format!("{what}, two threads"), used_two.micros_a_request(), "us");
    figures.push(figure.ratio(base, "one thread", Bound::AtMost, 1.2));
    Ok(())
}

/// Adds about one window of requests. The window is turned into a number first, so that each
/// request whose time is counted is counted too.
async fn drive(run: &Run, server: &Process, used: &mut Used) -> Result<()> {
    let probe = load::sends(server.addr(), CONNECTIONS, Duration::from_millis(500), TEXT).await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is positive and small")]
    let count = (probe.rate() * run.options.window.as_secs_f64()).max(1.0) as u64;
    let before = server.cpu_time()?;
    load::sends_exactly(server.addr(), CONNECTIONS, count, TEXT).await?;
    used.time += server.cpu_time()?.saturating_sub(before);
    used.requests += count;
    Ok(())
}
