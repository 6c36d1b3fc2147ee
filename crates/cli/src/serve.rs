//! Runs a server from its start to its orderly end.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_engine::{Agent, Engine, EngineParts, RandomIds};
use longhaul_server::{Metrics, Server, ServerConfig, ServerError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::admin::AdminServer;
use crate::agents::{CommandSpec, DemoAgent, ExecAgent, ExecJsonlAgent};
use crate::failure::Attempt;
use crate::push;
use crate::settings::{
    AgentCommand, ConfigError, LogFormat, LogSettings, PushOffer, ServedAgent, Settings, StoreKind, resolve,
};
use crate::store::{self, Opened, PASSWORD_VARIABLE};

/// Which agent is to be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Served {
    /// The command of the settings.
    Command,
    /// The built-in one.
    Demo,
}

/// Serves until a signal ends it.
pub fn run(served: Served, settings: Settings) -> anyhow::Result<()> {
    start_logging(&settings.log)?;
    // The number of threads is `TOKIO_WORKER_THREADS`, or that of the cores.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context(Attempt::new("cannot start the runtime"))?;
    runtime.block_on(serve(served, settings))
}

async fn serve(served: Served, settings: Settings) -> anyhow::Result<()> {
    let (agent, card_of) = agent(served, &settings)?;
    let address = resolve(&settings.server.listen)
        .context(Attempt::new(format!("cannot listen on {}", settings.server.listen)))?;
    let mut signals = Signals::new().context(Attempt::new("cannot wait for signals"))?;
    let Opened { store, clock } = tokio::select! {
        biased;
        () = signals.next() => {
            tracing::info!("ended before the store was open");
            return Ok(());
        }
        opened = store::open(&settings.store) => opened?,
    };
    let setup = push::set_up(&settings.push, &settings.store, &clock)?;
    let parts =
        EngineParts { store, agent, clock, ids: Arc::new(RandomIds::default()), config: settings.engine(card_of) };
    let mut engine = Engine::new(parts);
    match &setup {
        Some(setup) => {
            engine = engine.with_push(setup.parts());
            push::check_key(&engine, &settings.push, &settings.store).await?;
        }
        None => push::tell_what_waits(&engine).await,
    }
    let push_offer = if setup.is_some() { PushOffer::Sent } else { PushOffer::Off };
    let config = server_config(&settings, card_of, push_offer);
    let server = Server::bind(address, config, engine.clone()).await.map_err(bind_failed)?;
    engine.start().await.context(Attempt::new("cannot start the engine"))?;
    let admin = open_admin(&settings, &engine);
    announce(&server, &settings);

    let shutdown = CancellationToken::new();
    let watch = async {
        signals.next().await;
        shutdown.cancel();
        signals.next().await;
    };
    let tidy = async {
        match &setup {
            Some(setup) => setup.tidy().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ended = server.run(shutdown.clone()) => ended.context(Attempt::new("cannot end in order"))?,
        () = watch => {
            tracing::warn!("a second signal came, ending at once");
            std::process::exit(1);
        }
        () = tidy => {}
    }
    // While the store is held: the next holder has a socket of the same name.
    if let Some(admin) = admin {
        admin.close().await;
    }
    engine.close().await.context(Attempt::new("cannot end in order"))?;
    tracing::info!("ended");
    Ok(())
}

/// Lets operators reach the store that only this process can open. Without that, all else works.
fn open_admin(settings: &Settings, engine: &Engine) -> Option<AdminServer> {
    match settings.store.kind {
        StoreKind::Sqlite => {}
        StoreKind::Memory | StoreKind::Postgres(_) => return None,
    }
    let opened = AdminServer::open(&settings.store.data, engine.clone());
    let failed = |error: &std::io::Error| {
        tracing::warn!(error = error as &dyn std::error::Error, "operators' commands cannot reach this server");
    };
    opened.inspect_err(failed).ok()
}

fn agent(served: Served, settings: &Settings) -> Result<(Arc<dyn Agent>, ServedAgent<'_>), ConfigError> {
    let spec = |command: &str| CommandSpec {
        command: command.to_owned(),
        working_dir: settings.agent.working_dir.clone(),
        env_hidden: match settings.store.kind {
            StoreKind::Postgres(_) => Some(PASSWORD_VARIABLE),
            StoreKind::Sqlite | StoreKind::Memory => None,
        },
        env_pass: settings.agent.env_pass.clone(),
        env: settings.agent.env.clone(),
        cancel_grace: settings.agent.cancel_grace,
    };
    match (served, &settings.agent.command) {
        (Served::Demo, _) => Ok((Arc::new(DemoAgent::new()), ServedAgent::Demo)),
        (Served::Command, Some(AgentCommand::Exec(command))) => {
            Ok((Arc::new(ExecAgent::new(spec(command))), ServedAgent::Exec(command)))
        }
        (Served::Command, Some(AgentCommand::ExecJsonl(command))) => {
            Ok((Arc::new(ExecJsonlAgent::new(spec(command))), ServedAgent::ExecJsonl(command)))
        }
        (Served::Command, None) => {
            let hint = "name one: longhaul serve --exec 'tr a-z A-Z'; or try longhaul demo-server, which needs none";
            Err(ConfigError::new(
                "longhaul serve",
                "there is no agent to serve: neither --exec nor --exec-jsonl is given",
                hint,
            ))
        }
    }
}

fn server_config(settings: &Settings, served: ServedAgent<'_>, push: PushOffer) -> ServerConfig {
    let server = &settings.server;
    ServerConfig {
        versions: server.versions.clone(),
        drafts_path: server.drafts_path.clone(),
        metrics: if server.metrics { Metrics::Served } else { Metrics::Off },
        public_url: server.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        prefix: server.prefix.clone(),
        grpc_interface: settings.card.grpc,
        body_bytes_max: server.body_bytes_max,
        keep_alive: server.keep_alive,
        streams_max: server.streams_max,
        header_timeout: server.header_timeout,
        drain_timeout: server.drain_timeout,
        card_max_age: server.card_max_age,
        ..ServerConfig::new(settings.card.to_card(served, push))
    }
}

fn bind_failed(error: ServerError) -> anyhow::Error {
    // The error says what was attempted by itself, so only the next step is added.
    let attempt = Attempt::new("cannot start the server");
    let attempt = match error {
        ServerError::Bind { .. } => attempt.hint("choose another address with --listen; port 0 takes a free one"),
        _ => attempt,
    };
    anyhow::Error::new(error).context(attempt)
}

/// Says where the server is: a line for people, or an entry of the log.
fn announce(server: &Server, settings: &Settings) {
    let url = format!("http://{}", server.local_addr());
    let card = format!("{url}/.well-known/agent-card.json");
    match settings.log.format {
        // Nobody may be there to read it, or no space left on the disk: the server listens all the same.
        LogFormat::Text => drop(writeln!(std::io::stderr(), "longhaul: listening on {url} (card: {card})")),
        LogFormat::Json => tracing::info!(url, card, "listening"),
    }
    if settings.server.public_url.is_none() && server.local_addr().ip().is_unspecified() {
        tracing::warn!("the card names the address {url}, which callers can't use: set --public-url");
    }
}

fn start_logging(log: &LogSettings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level).context(Attempt::new("cannot read the log filter"))?;
    // A line that cannot be written is lost. Complaining about it would go to stderr as well, and panic.
    let logging = tracing_subscriber::fmt().log_internal_errors(false);
    let logging = logging.with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => logging.init(),
        LogFormat::Json => logging.json().flatten_event(true).init(),
    }
    Ok(())
}

/// The signals that end a server.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
