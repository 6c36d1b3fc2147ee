//! TCP, straight or through a proxy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::time::timeout;
use tower_service::Service;

use super::proxied::Connection;
use super::resolver::Resolver;
use super::{AddressPolicy, AnyAddress, Proxy, TransportConfig};
use crate::error::Cause;

/// How long a connection may be silent before TCP itself asks.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Makes the TCP connection for a URL.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    direct: HttpConnector<Resolver>,
    /// To the proxy, which the operator chose: no policy stands before it.
    to_proxy: HttpConnector<Resolver>,
    proxies: Option<Arc<Matcher>>,
    connect_timeout: Duration,
}

impl Connector {
    pub fn new(config: &TransportConfig, policy: Arc<dyn AddressPolicy>) -> Self {
        let connector = |policy| {
            let mut connector = HttpConnector::new_with_resolver(Resolver { policy });
            connector.enforce_http(false);
            connector.set_nodelay(true);
            connector.set_keepalive(Some(TCP_KEEPALIVE));
            connector
        };
        Self {
            direct: connector(policy),
            to_proxy: connector(Arc::new(AnyAddress)),
            proxies: match config.proxy {
                Proxy::Environment => Some(Arc::new(Matcher::from_env())),
                Proxy::Direct => None,
            },
            connect_timeout: config.connect_timeout,
        }
    }

    async fn connect(mut self, uri: Uri) -> Result<Connection, Cause> {
        let Some(proxy) = self.proxies.as_ref().and_then(|proxies| proxies.intercept(&uri)) else {
            return Ok(Connection::direct(self.direct.call(uri).await?));
        };
        // Spoken to as a plain one it would get the password in the clear, or not understand.
        if proxy.uri().scheme() != Some(&Scheme::HTTP) {
            let scheme = proxy.uri().scheme_str().unwrap_or_default();
            return Err(format!("the proxy of the environment is one of {scheme}, and only http:// is spoken").into());
        }
        if uri.scheme() == Some(&Scheme::HTTPS) {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy);
            if let Some(credentials) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            return Ok(Connection::tunnel(tunnel.call(uri).await?));
        }
        if proxy.basic_auth().is_some() {
            return Err("a proxy with a password is used for https:// only, where it does not see the request".into());
        }
        Ok(Connection::by_proxy(self.to_proxy.call(proxy.uri().clone()).await?))
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = Cause;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, Cause>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // What is called has to be what was polled ready; these are always.
        let connector = self.clone();
        Box::pin(async move {
            let within = connector.connect_timeout;
            match timeout(within, connector.connect(uri)).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection within {} s", within.as_secs_f64()).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_that_is_not_spoken_to_as_it_wants_is_refused_before_it_gets_the_password() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for scheme in ["https", "socks5"] {
            let connector = Connector {
                proxies: Some(Arc::new(Matcher::builder().all(format!("{scheme}://me:s3cret@{address}")).build())),
                ..Connector::new(&TransportConfig::default(), Arc::new(AnyAddress))
            };
            for to in ["https://agent.example/", "http://agent.example/"] {
                let refused = timeout(Duration::from_secs(10), connector.clone().connect(to.parse().unwrap())).await;
                let refused = refused.unwrap().unwrap_err().to_string();
                assert!(refused.contains(&format!("one of {scheme},")) && !refused.contains("s3cret"), "{refused}");
            }
        }
        let came = timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(came.is_err(), "the proxy was not called");
    }
}
