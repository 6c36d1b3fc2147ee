//! A server that numbers nothing, made of one that does.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Passes HTTP/1.1 on. Each `id:` of an event becomes a comment, and `Last-Event-ID` another header, without a change of
/// length.
#[derive(Debug)]
pub struct Unnumbered {
    addr: SocketAddr,
    _accepting: JoinSet<()>,
}

impl Unnumbered {
    /// Listens, and passes on to `target`.
    pub async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut links = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                links.spawn(link(near, target));
                while links.try_join_next().is_some() {}
            }
        });
        Self { addr, _accepting: accepting }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

async fn link(near: TcpStream, target: SocketAddr) {
    let Ok(far) = TcpStream::connect(target).await else { return };
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    // No header of a request but this one begins with an `l`, and no line of an event but `id:` with an `i`.
    tokio::select! {
        () = pass(near_read, far_write, (b'l', b'x')) => {}
        () = pass(far_read, near_write, (b'i', b':')) => {}
    }
}

/// Passes bytes on, of which this one is replaced at the start of each line.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, (old, new): (u8, u8)) {
    let mut bytes = vec![0; 64 * 1024];
    let mut before = 0;
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        for byte in &mut bytes[..read] {
            if before == b'\n' && *byte == old {
                *byte = new;
            }
            before = *byte;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
