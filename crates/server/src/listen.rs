use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use longhaul_engine::{Engine, EngineError};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ServerConfig;
use crate::card::{Card, with_interfaces};
use crate::grpc::Grpc;
use crate::operation::Operations;
use crate::requests::Requests;
use crate::route::App;

/// How long to wait before accepting again when the system has no file descriptors left, or the like.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How long connections may take to send their last answer when all work has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Why a server did not start or end in order.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address can't be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Turns could not be handed back to the store.
    #[error("cannot shut down in order")]
    Shutdown(#[source] EngineError),
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    engine: Engine,
    config: ServerConfig,
}

impl Server {
    /// Listens on `address`; connections wait until [`Server::run`].
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`].
    pub async fn bind(address: SocketAddr, config: ServerConfig, engine: Engine) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let base_url = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
        let card = with_interfaces(&config, &base_url);
        let operations = Arc::new(Operations::new(engine.clone(), &card, config.streams_max));
        let requests = Arc::new(Requests::default());
        #[expect(clippy::disallowed_methods, reason = "the time at which the card was made is for HTTP caches alone")]
        let made_at = std::time::SystemTime::now();
        let app = App {
            card: Card::new(&card, &config.versions, made_at, config.card_max_age),
            grpc: Grpc::new(&operations, &requests, &card, &config),
            operations,
            versions: config.versions.clone(),
            prefix: config.prefix.clone(),
            drafts_path: config.drafts_path.clone(),
            body_bytes_max: config.body_bytes_max,
            keep_alive: config.keep_alive,
            requests,
            metrics: config.metrics,
        };
        Ok(Self { listener, address, app: Arc::new(app), engine, config })
    }

    /// The address that was bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is canceled; then accepts nothing more, ends streams, lets running turns end for the
    /// drain timeout and hands the others back. The engine's store is left open.
    ///
    /// # Errors
    ///
    /// [`ServerError::Shutdown`].
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ServerError> {
        let connections = TaskTracker::new();
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.serve(stream, &connections, &graceful),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
        drop(self.listener);
        tracing::info!("going down");
        self.engine.begin_shutdown();
        connections.close();
        let mut closed = pin!(async {
            graceful.shutdown().await;
            connections.wait().await;
        });
        let mut drained = pin!(self.engine.shutdown(self.config.drain_timeout));
        let result = tokio::select! {
            result = &mut drained => result,
            () = &mut closed => return drained.await.map_err(ServerError::Shutdown),
        };
        if tokio::time::timeout(LAST_ANSWERS, closed).await.is_err() {
            tracing::warn!("some connections do not close");
        }
        result.map_err(ServerError::Shutdown)
    }

    fn serve(&self, stream: TcpStream, connections: &TaskTracker, graceful: &GracefulShutdown) {
        // Without this, an answer of several pieces waits for the peer's delayed acknowledgment.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot set TCP_NODELAY");
        }
        let app = Arc::clone(&self.app);
        let service = service_fn(move |request: Request<Incoming>| {
            let app = Arc::clone(&app);
            async move { Ok::<_, Infallible>(app.answer(request).await) }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.config.header_timeout).pipeline_flush(true);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1024);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}

/// Whether an accept failed because of the connection that it was for.
fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
