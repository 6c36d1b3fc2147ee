//! The way to the database.

mod address;
mod explain;
mod tls;

use std::error::Error as StdError;
use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::TaskTracker;

use self::tls::{Mode, Tls};
use crate::fault::Fault;
use crate::{OpenError, PostgresConfig};

/// How long a silent network is trusted.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often it is asked then whether it is still there.
const SILENCE_PROBES: u32 = 3;

type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Opens connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    config: Config,
    tls: Tls,
}

impl Connector {
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self, OpenError> {
        let (address, params) = address::split(&config.url);
        let mut parsed: Config =
            address.parse().map_err(|error: tokio_postgres::Error| OpenError::Url { source: error.into() })?;
        let tls = Tls::new(&params).map_err(|error| OpenError::Tls { source: error.into() })?;
        parsed.ssl_mode(tls.mode.of_driver());
        if parsed.get_hosts().is_empty() {
            // A server known by its number alone is called by that.
            let numbers: Vec<_> = parsed.get_hostaddrs().iter().map(ToString::to_string).collect();
            let hosts = if numbers.is_empty() { vec!["localhost".to_owned()] } else { numbers };
            hosts.into_iter().for_each(|host| _ = parsed.host(host));
        }
        if parsed.get_application_name().is_none() {
            parsed.application_name("longhaul");
        }
        // Of several hosts only the one that takes writes is of use: after a failover that is another one.
        if parsed.get_target_session_attrs() == TargetSessionAttrs::Any && parsed.get_hosts().len() > 1 {
            parsed.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        parsed.connect_timeout(config.connect_timeout);
        parsed.keepalives_idle(SILENCE_MAX).tcp_user_timeout(SILENCE_MAX);
        parsed.keepalives_interval(SILENCE_MAX / SILENCE_PROBES).keepalives_retries(SILENCE_PROBES);
        Ok(Self { config: parsed, tls })
    }

    /// Where the database is, without secrets.
    pub(crate) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(n, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            };
            let port = ports.get(n).or_else(|| ports.first()).copied().unwrap_or(5432);
            format!("{host}:{port}")
        });
        let hosts: Vec<_> = hosts.collect();
        let name = self.config.get_dbname().or_else(|| self.config.get_user()).unwrap_or_default();
        format!("{name} at {}", hosts.join(","))
    }

    /// Opens a connection, which works in the background until its client is dropped. `hear` is called there for each
    /// notification, must not block, and is dropped when the connection has ended.
    pub(crate) async fn connect(
        &self,
        tracker: &TaskTracker,
        hear: impl FnMut(Notification) + Send + 'static,
    ) -> Result<Client, Fault> {
        let (client, driver) = self.open().await.map_err(|error| match explain::explained(&error, self.tls.mode) {
            Some(explanation) => Fault::Insecure(explanation),
            None => Fault::Database(error),
        })?;
        tracker.spawn(async move {
            if let Err(error) = drive(driver, hear).await {
                tracing::debug!(error = &error as &dyn StdError, "a connection to the database has ended");
            }
        });
        Ok(client)
    }

    async fn open(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        let opened = self.config.connect(self.tls.make.clone()).await;
        match opened {
            Err(error) if self.tls.mode == Mode::Prefer && explain::is_about_tls(&error) => {
                let mut plain = self.config.clone();
                plain.ssl_mode(SslMode::Disable);
                // Of two refusals the first says more.
                plain.connect(self.tls.make.clone()).await.map_err(|_| error)
            }
            opened => opened,
        }
    }
}

/// Does a connection's work until it has ended.
async fn drive(mut driver: Driver, mut hear: impl FnMut(Notification)) -> Result<(), tokio_postgres::Error> {
    poll_fn(move |context| {
        loop {
            match ready!(driver.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(notification))) => hear(notification),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests;
