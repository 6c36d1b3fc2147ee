//! Streams: the first event, short streams beside sends, and one long stream.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::bare_loop::Shape;
use crate::http::Connection;
use crate::load::{self, StreamSeen, Window};
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::Run;
use crate::stats::{Latencies, Outcome, as_f64, median, rate};

const SHORT: usize = 10;
const LONG: usize = 10_000;

/// Chunks at either end of a long stream whose rates are compared.
const ENDS: usize = 1000;

/// Long streams that are read at least, whatever the window says.
const LONG_STREAMS_MIN: usize = 3;

const CONNECTIONS: usize = 16;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for store in run.options.stores.clone() {
        let server = run.server(store, None).await?;
        first_event(run, figures, store, server.addr()).await?;
        short_streams(run, figures, store, server.addr()).await?;
        server.stop().await?;
        let server = run.server(store, None).await?;
        long_streams(run, figures, store, server.addr()).await?;
        server.stop().await?;
    }
    Ok(())
}

async fn first_event(run: &mut Run, figures: &mut Vec<Figure>, store: StoreKind, addr: SocketAddr) -> Result<()> {
    if store == StoreKind::Sqlite {
        // The limit hangs on the disk of this minute, so the loop runs right before.
        run.run_loop(Shape::ALONE).await?;
    }
    let mut connection = Connection::connect(addr).await?;
    let mut request = MessageRequest::stream("echo hello")?;
    let (mut first, mut whole) = (Latencies::default(), Latencies::default());
    let window = Window::after_warm_up(run.options.window);
    while !window.is_over() {
        let begun = Instant::now();
        let seen = load::stream_one(&mut connection, &mut request).await?;
        first.push(seen.first - begun);
        window.record(begun, &mut whole);
    }
    let name = store.name();
    let figure = Figure::new(format!("{name}, 1: first event p50"), first.p50_ms(), "ms");
    figures.push(match store {
        StoreKind::Memory => figure,
        StoreKind::Sqlite => {
            let transaction = run.transaction_p50_ms().await?;
            figure.limit(&format!("ms, limit {transaction:.3} + 1"), Bound::AtMost, transaction + 1.0)
        }
    });
    figures.push(Figure::new(format!("{name}, 1: first event p99"), first.p99_ms(), "ms"));
    figures.push(Figure::new(format!("{name}, 1: whole stream of echo p50"), whole.p50_ms(), "ms"));
    Ok(())
}

async fn short_streams(run: &Run, figures: &mut Vec<Figure>, store: StoreKind, addr: SocketAddr) -> Result<()> {
    let (mut sends, mut streams, mut alone) = (Outcome::default(), Outcome::default(), Outcome::default());
    for _ in 0..run.options.rounds {
        sends.extend(load::sends(addr, CONNECTIONS, run.options.window, "echo hello").await?);
        streams.extend(load::streams(addr, CONNECTIONS, run.options.window, SHORT).await?);
        alone.extend(load::streams(addr, 1, run.options.window, SHORT).await?);
    }
    let what = format!("{}, {CONNECTIONS}", store.name());
    figures.push(Figure::new(format!("{what}: sends"), sends.rate(), "/s"));
    let figure = Figure::new(format!("{what}: streams of {SHORT} chunks"), streams.rate(), "/s");
    figures.push(figure.ratio(sends.rate(), "sends", Bound::AtLeast, 0.5));
    let chunks = streams.rate() * as_f64(SHORT);
    figures.push(Figure::new(format!("{what}: chunks of such streams"), chunks, "/s"));
    figures.push(Figure::new(format!("{what}: stream p50"), streams.latencies.p50_ms(), "ms"));
    figures.push(Figure::new(format!("{what}: stream p99"), streams.latencies.p99_ms(), "ms"));
    let chunks = alone.rate() * as_f64(SHORT);
    figures.push(Figure::new(format!("{}, 1: chunks of streams of {SHORT}", store.name()), chunks, "/s"));
    Ok(())
}

async fn long_streams(run: &Run, figures: &mut Vec<Figure>, store: StoreKind, addr: SocketAddr) -> Result<()> {
    let mut connection = Connection::connect(addr).await?;
    let mut request = MessageRequest::stream(&format!("chunks {LONG}"))?;
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while rates.len() < LONG_STREAMS_MIN || begun.elapsed() < run.options.window {
        let started = Instant::now();
        let seen = load::stream_one(&mut connection, &mut request).await?;
        let elapsed = started.elapsed();
        if seen.chunks.len() != LONG {
            bail!("a stream of {LONG} chunks had {} artifact updates", seen.chunks.len());
        }
        rates.push(rate(LONG, elapsed));
        ratios.push(end_ratio(&seen, started)?);
    }
    let what = format!("{}, 1: a stream of {LONG} chunks", store.name());
    figures.push(Figure::new(what.clone(), median(&mut rates), "/s"));
    let ratio = median(&mut ratios);
    let figure = Figure::new(format!("{what}: last {ENDS} to first {ENDS}"), ratio, "");
    figures.push(figure.limit("of the rate", Bound::AtLeast, 0.8));
    Ok(())
}

/// Rate of the last chunks of a stream, by that of its first, counted from its start.
fn end_ratio(seen: &StreamSeen, started: Instant) -> Result<f64> {
    let at = |index: usize| seen.chunks.get(index).copied().context("a stream with fewer chunks");
    let last = seen.chunks.len().saturating_sub(1);
    let first_took = at(ENDS - 1)?.saturating_duration_since(started);
    let last_took = at(last)?.saturating_duration_since(at(last.saturating_sub(ENDS))?);
    // Chunks that arrive in one read have the same time; a microsecond stands for none.
    let last_took = last_took.max(Duration::from_micros(1));
    Ok(first_took.as_secs_f64() / last_took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_slows_down_has_a_ratio_below_one() {
        let started = Instant::now();
        let chunks =
            (1..=2000_u64).map(|n| started + Duration::from_micros(if n <= 1000 { n } else { 1000 + (n - 1000) * 4 }));
        let seen = StreamSeen { first: started, chunks: chunks.collect() };
        let ratio = end_ratio(&seen, started).unwrap();
        assert!((ratio - 0.25).abs() < 0.01, "{ratio}");
    }
}
