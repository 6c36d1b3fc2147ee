//! What is measured within one process, on the engine itself: no binding is in the way.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use longhaul_engine::{
    Agent, AgentError, ArtifactPiece, Config, Engine, EngineParts, HistoryLimit, Outcome, RandomIds, Scope, SendReply,
    SendRequest, Store, SystemClock, Turn, TurnRequest, text_part,
};
use longhaul_protocol::{Message, Role, wire};
use longhaul_store::MemoryStore;
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::run::Run;
use crate::stats::{Latencies, as_f64, rate};

/// Targets: from the send of a task to its start with idle workers, in milliseconds.
const START_P50_MS: f64 = 5.0;
const START_P99_MS: f64 = 25.0;
const STARTS: usize = 1000;

/// Tasks that write at once, and how often each.
const WRITERS: usize = 100;
const CHUNK_EVERY: Duration = Duration::from_millis(5);
/// Target: from the write of a chunk until its subscriber has it, in milliseconds.
const CHUNK_P99_MS: f64 = 50.0;

const LEASE: Duration = Duration::from_secs(1);
const RECLAIMS: u64 = 5;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>, kind: StoreKind) -> Result<()> {
    let window = run.options.window;
    let dirs = [run.data_dir()?, run.data_dir()?, run.data_dir()?];
    // The engine has a runtime of its own, with as many threads as the server has.
    let measured = tokio::task::spawn_blocking(move || {
        let [starts_dir, chunks_dir, reclaim_dir] = &dirs;
        let mut figures = starts(kind, starts_dir)?;
        figures.extend(chunks(kind, chunks_dir, window)?);
        figures.extend(reclaim(kind, reclaim_dir)?);
        anyhow::Ok(figures)
    });
    figures.extend(measured.await.context("a measurement ended early")??);
    Ok(())
}

/// Does what the message says, and tells when a turn begins.
#[derive(Debug)]
struct BenchAgent {
    base: Instant,
    begun: mpsc::UnboundedSender<(u32, Instant)>,
    window: Duration,
    chunks: AtomicU64,
}

#[async_trait]
impl Agent for BenchAgent {
    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        // Nobody listens any more when a measurement has ended.
        let _ = self.begun.send((turn.attempt(), Instant::now()));
        match turn.message().text().as_str() {
            "chunks" => self.write_chunks(turn).await?,
            "hang" => std::future::pending().await,
            _ => {}
        }
        Ok(Outcome::Complete(None))
    }
}

impl BenchAgent {
    async fn write_chunks(&self, turn: &Turn) -> Result<(), AgentError> {
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(CHUNK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut append = false;
        while begun.elapsed() < self.window {
            ticks.tick().await;
            let text = format!("at={};", self.base.elapsed().as_nanos());
            let artifact = wire::Artifact {
                artifact_id: "chunks".to_owned(),
                parts: vec![text_part(text)],
                ..wire::Artifact::default()
            };
            turn.artifact(ArtifactPiece { artifact, append, ..ArtifactPiece::default() }).await?;
            append = true;
            self.chunks.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A store, and how many commits its writer has taken in how many batches.
struct OpenStore {
    store: Arc<dyn Store>,
    sqlite: Option<Arc<SqliteStore>>,
    clock: Arc<SystemClock>,
}

fn open(kind: StoreKind, dir: &Path) -> Result<OpenStore> {
    let clock = SystemClock::new();
    let now = longhaul_engine::Clock::now(&clock);
    let sqlite = match kind {
        StoreKind::Memory => None,
        StoreKind::Sqlite => {
            let config = SqliteConfig { directory: dir.to_owned(), ..SqliteConfig::default() };
            Some(Arc::new(SqliteStore::open(&config, now)?))
        }
    };
    let store: Arc<dyn Store> = match &sqlite {
        Some(sqlite) => Arc::clone(sqlite) as Arc<dyn Store>,
        None => Arc::new(MemoryStore::new()),
    };
    Ok(OpenStore { store, sqlite, clock: Arc::new(clock) })
}

struct Bench {
    engine: Engine,
    agent: Arc<BenchAgent>,
    begun: mpsc::UnboundedReceiver<(u32, Instant)>,
}

/// An engine that works.
async fn engine(open: &OpenStore, config: Config, window: Duration) -> Result<Bench> {
    let bench = unstarted(open, config, window);
    bench.engine.start().await?;
    Ok(bench)
}

/// An engine whose loops do not run: it takes tasks that are sent to it, and renews nothing.
fn unstarted(open: &OpenStore, config: Config, window: Duration) -> Bench {
    #[expect(clippy::disallowed_methods, reason = "a bounded channel would hold up the agent that is measured")]
    let (sender, begun) = mpsc::unbounded_channel();
    let agent = Arc::new(BenchAgent { base: Instant::now(), begun: sender, window, chunks: AtomicU64::new(0) });
    let parts = EngineParts {
        store: Arc::clone(&open.store),
        agent: Arc::clone(&agent) as Arc<dyn Agent>,
        clock: Arc::clone(&open.clock) as Arc<dyn longhaul_engine::Clock>,
        ids: Arc::new(RandomIds::default()),
        config,
    };
    Bench { engine: Engine::new(parts), agent, begun }
}

fn send(text: &str, return_immediately: bool) -> Result<SendRequest> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let message = wire::Message {
        message_id: format!("inside-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        role: Role::User.into(),
        parts: vec![text_part(text)],
        ..wire::Message::default()
    };
    let message = Message::new(message).map_err(|violations| anyhow::anyhow!("{violations:?}"))?;
    let (scope, request) = (Scope::default(), TurnRequest::default());
    Ok(SendRequest {
        scope,
        message,
        request,
        history: HistoryLimit::All,
        return_immediately,
        push: None,
        version: "1.0",
    })
}

/// From the call of a send until its turn begins, one after the other, with idle workers; and from one turn of a line to
/// the next with one worker.
fn starts(kind: StoreKind, dir: &Path) -> Result<Vec<Figure>> {
    Runtime::new()?.block_on(async {
        let name = kind.name();
        let opened = open(kind, dir)?;
        let mut bench = engine(&opened, Config::default(), Duration::ZERO).await?;
        let mut latencies = Latencies::default();
        for _ in 0..STARTS {
            let called = Instant::now();
            let reply = bench.engine.send_message(send("done", true)?).await?;
            if !matches!(reply, SendReply::Task(_)) {
                bail!("a send made no task");
            }
            let (_, begun) = bench.begun.recv().await.context("the agent is gone")?;
            latencies.push(begun - called);
        }
        bench.engine.shutdown(Duration::from_secs(5)).await?;
        let mut line = engine(&opened, Config { workers_max: 1, ..Config::default() }, Duration::ZERO).await?;
        let mut gaps = Latencies::default();
        for _ in 0..STARTS {
            line.engine.send_message(send("done", true)?).await?;
        }
        let mut before = None;
        for _ in 0..STARTS {
            let (_, begun) = line.begun.recv().await.context("the agent is gone")?;
            if let Some(before) = before.replace(begun) {
                gaps.push(begun - before);
            }
        }
        line.engine.shutdown(Duration::from_secs(5)).await?;
        opened.store.close().await?;
        let figure = |what: &str, value| Figure::new(format!("{name}: {what}"), value, "ms");
        Ok(vec![
            figure("send to start, idle workers, p50", latencies.p50_ms()).limit("ms", Bound::AtMost, START_P50_MS),
            figure("send to start, idle workers, p99", latencies.p99_ms()).limit("ms", Bound::AtMost, START_P99_MS),
            figure("from start to start in a line of instant turns, one worker, p50", gaps.p50_ms()),
            figure("the same, p99", gaps.p99_ms()),
        ])
    })
}

/// From the write of a chunk until its subscriber has it, many tasks at token rate at once.
fn chunks(kind: StoreKind, dir: &Path, window: Duration) -> Result<Vec<Figure>> {
    Runtime::new()?.block_on(async {
        let name = kind.name();
        let opened = open(kind, dir)?;
        let bench = engine(&opened, Config::default(), window).await?;
        let latencies = Arc::new(Mutex::new(Latencies::default()));
        let before = opened.sqlite.as_ref().map(|sqlite| sqlite.writer_stats());
        let begun = Instant::now();
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..WRITERS {
            let mut stream = bench.engine.send_streaming_message(send("chunks", false)?).await?;
            let (base, latencies) = (bench.agent.base, Arc::clone(&latencies));
            readers.spawn(async move {
                let mut mine = Latencies::default();
                while let Some(items) = stream.next().await {
                    for item in items? {
                        let text = String::from_utf8_lossy(&item.payload);
                        let Some((_, rest)) = text.split_once("at=") else { continue };
                        let nanos = rest.split(';').next().and_then(|digits| digits.parse().ok());
                        let written = Duration::from_nanos(nanos.context("a chunk without its time")?);
                        mine.push(base.elapsed().saturating_sub(written));
                    }
                }
                latencies.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
                anyhow::Ok(())
            });
        }
        while let Some(reader) = readers.join_next().await {
            reader.context("a reader ended early")??;
        }
        let elapsed = begun.elapsed();
        let after = opened.sqlite.as_ref().map(|sqlite| sqlite.writer_stats());
        bench.engine.shutdown(Duration::from_secs(5)).await?;
        opened.store.close().await?;
        let mut latencies = std::mem::take(&mut *latencies.lock().unwrap_or_else(PoisonError::into_inner));
        let written = usize::try_from(bench.agent.chunks.load(Ordering::Relaxed))?;
        if latencies.len() != written {
            bail!("of {written} chunks {} reached their subscribers", latencies.len());
        }
        let what = |what: &str| format!("{name}: {WRITERS} tasks at token rate: {what}");
        let mut figures = vec![
            Figure::new(what("chunks"), rate(written, elapsed), "/s"),
            Figure::new(what("chunk to subscriber p50"), latencies.p50_ms(), "ms"),
            Figure::new(what("chunk to subscriber p99"), latencies.p99_ms(), "ms").limit(
                "ms",
                Bound::AtMost,
                CHUNK_P99_MS,
            ),
        ];
        if let (Some(before), Some(after)) = (before, after) {
            let batches = usize::try_from(after.batches - before.batches)?;
            figures.push(Figure::new(what("transactions"), rate(batches, elapsed), "/s"));
            figures.push(Figure::new(what("chunks a transaction"), as_f64(written) / as_f64(batches.max(1)), ""));
        }
        Ok(figures)
    })
}

/// From the death of one engine until another on the same store runs its turn: at the latest when its lease has run out.
fn reclaim(kind: StoreKind, dir: &Path) -> Result<Vec<Figure>> {
    let heir_runtime = Runtime::new()?;
    let opened = open(kind, dir)?;
    let config = Config { lease_duration: LEASE, ..Config::default() };
    let mut heir = heir_runtime.block_on(engine(&opened, config.clone(), Duration::ZERO))?;
    let mut latencies = Latencies::default();
    for round in 0..RECLAIMS {
        let runtime = Runtime::new()?;
        // Started once, by the heir: another start would end the leases of all.
        let died = runtime.block_on(async {
            let mut victim = unstarted(&opened, config.clone(), Duration::ZERO);
            victim.engine.send_message(send("hang", true)?).await?;
            victim.begun.recv().await.context("the agent is gone")?;
            // At different moments of the lease.
            tokio::time::sleep(Duration::from_millis(130 * round)).await;
            anyhow::Ok(Instant::now())
        })?;
        runtime.shutdown_background();
        let (attempt, begun) = heir_runtime.block_on(heir.begun.recv()).context("the agent is gone")?;
        if attempt != 2 {
            bail!("the heir runs attempt {attempt}");
        }
        latencies.push(begun - died);
    }
    heir_runtime.block_on(async {
        heir.engine.shutdown(Duration::ZERO).await?;
        opened.store.close().await.context("cannot close the store")
    })?;
    let name = kind.name();
    let limit = (LEASE + Duration::from_secs(1)).as_secs_f64() * 1e3;
    let figure = |what: &str, value| Figure::new(format!("{name}: {what}"), value, "ms");
    Ok(vec![
        figure("death of a worker to its turn at another, lease of 1 s, p50", latencies.p50_ms()),
        figure("the same, longest", latencies.quantile_ms(1.0)).limit("ms", Bound::AtMost, limit),
    ])
}
