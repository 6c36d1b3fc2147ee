//! A network between two processes that fails when it is told to.
//!
//! [`Proxy`] fails as a whole, from one moment on; [`FaultProxy`] fails one request or connection in one way.

mod faulty;
mod frames;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use faulty::{FaultProxy, LinkFault};

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Network {
    /// They arrive.
    Whole,
    /// They arrive at the target, and what it answers waits.
    Deaf,
    /// They wait; nobody is told, and what waits arrives when the network is whole again.
    Silent,
    /// Connections are closed, and new ones too.
    Cut,
}

/// Passes on what comes to its port. Dropping it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    network: watch::Sender<Network>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Listens, and passes on to `target`.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let (network, now) = watch::channel(Network::Whole);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, now));
        Self { addr, network, _accepting: accepting }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on the network is like this.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, now: watch::Receiver<Network>) {
    let mut relays = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        if *now.borrow() != Network::Cut {
            relays.spawn(relay(near, target, now.clone()));
        }
        while relays.try_join_next().is_some() {}
    }
}

/// Passes on in both directions until one side closes, or the network is cut.
async fn relay(near: TcpStream, target: SocketAddr, mut now: watch::Receiver<Network>) {
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let (there, back) = (now.clone(), now.clone());
    tokio::select! {
        _ = now.wait_for(|network| *network == Network::Cut) => {}
        () = pass(near_read, far_write, there, |network| network != Network::Silent) => {}
        () = pass(far_read, near_write, back, |network| network == Network::Whole) => {}
    }
}

/// Passes on in one direction, while the network lets it.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut now: watch::Receiver<Network>,
    lets: fn(Network) -> bool,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
        if now.wait_for(|network| lets(*network)).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
