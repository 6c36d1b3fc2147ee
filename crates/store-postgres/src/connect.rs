//! The way to the database.

use std::time::Duration;

use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};
use tokio_util::task::TaskTracker;

use crate::fault::Fault;
use crate::{OpenError, PostgresConfig};

/// How long a silent network is trusted.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Opens connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    config: Config,
}

impl Connector {
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self, OpenError> {
        let mut parsed: Config =
            config.url.parse().map_err(|error: tokio_postgres::Error| OpenError::Url { source: error.into() })?;
        if parsed.get_application_name().is_none() {
            parsed.application_name("longhaul");
        }
        // Of several hosts only the one that takes writes is of use: after a failover that is another one.
        if parsed.get_target_session_attrs() == TargetSessionAttrs::Any && parsed.get_hosts().len() > 1 {
            parsed.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        parsed.connect_timeout(config.connect_timeout);
        parsed.keepalives_idle(SILENCE_MAX).tcp_user_timeout(SILENCE_MAX);
        Ok(Self { config: parsed })
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

    /// Opens a connection, which works in the background until its client is dropped.
    pub(crate) async fn connect(&self, tracker: &TaskTracker) -> Result<Client, Fault> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tracker.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "a connection to the database has ended");
            }
        });
        Ok(client)
    }
}
