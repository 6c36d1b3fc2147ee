//! Names to addresses, those left out that policy forbids.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::AddressPolicy;

/// The system's resolver, and a policy on what it answers.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    pub policy: Arc<dyn AddressPolicy>,
}

/// All addresses of a name are forbidden.
#[derive(Debug)]
pub(super) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let policy = self.policy.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut passed = Vec::new();
            let mut refused = None;
            for address in found {
                match policy.check(name.as_str(), address.ip().to_canonical()) {
                    Ok(()) => passed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if passed.is_empty() => Err(std::io::Error::other(Refused(why))),
                _ => Ok(passed.into_iter()),
            }
        })
    }
}
