//! An agent that shows the behaviours which public conformance kits ask for: `a2a-tck` chooses one by the message's id,
//! the ACTS suites by the message's text. `tests/tck/README.md` says how to run the kit against it.

mod agent;
mod behaviour;
mod card;
mod push;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use longhaul_engine::{Clock, Config, Engine, EngineParts, RandomIds, Store, SystemClock};
use longhaul_server::{Server, ServerConfig, Version, Versions};
use longhaul_store::MemoryStore;
use longhaul_store_postgres::{PostgresConfig, PostgresStore};
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::agent::ConformanceAgent;
use crate::card::Profile;

/// Serves the conformance agent until it is told to end.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9999")]
    listen: SocketAddr,
    /// What the card offers; one card can't reach all tests of a kit.
    #[arg(long, value_enum, default_value_t = Profile::Plain)]
    profile: Profile,
    /// The version of the protocol that is served, alone: kits of v1.0 take no card that holds more.
    #[arg(long, default_value = "1.0", value_parser = parse_version)]
    version: Version,
    /// The path below which the bindings are served, such as `/a2a/v1`.
    #[arg(long, default_value = "", value_parser = parse_prefix)]
    prefix: String,
    /// Keep the tasks in SQLite in this folder, instead of in memory.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Keep the tasks in this PostgreSQL database, such as `postgres://user@host/database`, instead of in memory.
    #[arg(long, conflicts_with = "data")]
    postgres: Option<String>,
}

fn parse_prefix(text: &str) -> Result<String, &'static str> {
    let prefix = text.trim_end_matches('/');
    match prefix.is_empty() || prefix.starts_with('/') {
        true => Ok(prefix.to_owned()),
        false => Err("a prefix begins with a slash"),
    }
}

fn parse_version(text: &str) -> Result<Version, &'static str> {
    Version::ALL.iter().copied().find(|version| version.name() == text).ok_or("a version is 1.0 or 0.3")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { listen, profile, version, prefix, data, postgres } = Arguments::parse();
    let card = card::card(profile);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let store: Arc<dyn Store> = match (data, postgres) {
        (Some(directory), _) => {
            Arc::new(SqliteStore::open(&SqliteConfig { directory, ..SqliteConfig::default() }, clock.now())?)
        }
        // One instance on the database's machine: their clocks are the same.
        (None, Some(url)) => Arc::new(PostgresStore::open(&PostgresConfig { url, ..PostgresConfig::default() }).await?),
        (None, None) => Arc::new(MemoryStore::new()),
    };
    // The kit sends the same message id dozens of times and means new tasks: no retry is recognized unless it is asked for.
    let config = Config { input_modes: card.default_input_modes.clone(), ..Config::default() };
    let mut engine = Engine::new(EngineParts {
        store,
        agent: Arc::new(ConformanceAgent),
        clock: Arc::clone(&clock),
        ids: Arc::new(RandomIds::default()),
        config,
    });
    if profile == Profile::Full {
        engine = engine.with_push(push::parts(&clock)?);
    }
    let versions = Versions::new([version]).context("one version is served")?;
    let config = ServerConfig { prefix, versions, ..ServerConfig::new(card) };
    let server = Server::bind(listen, config, engine.clone()).await?;
    engine.start().await?;
    eprintln!("listening on http://{}", server.local_addr());
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let shutdown = CancellationToken::new();
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        shutdown.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = server.run(shutdown.clone()) => ended?,
        () = told => {}
    }
    engine.close().await?;
    Ok(())
}
