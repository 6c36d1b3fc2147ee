//! A connection that knows whether a proxy reads the requests on it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as Described};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A TCP connection. Requests that a proxy reads name the whole URL, and are not for the pool of the host.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TokioIo<TcpStream>,
    reader: Reader,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reader {
    Peer,
    /// The peer, at the end of a tunnel.
    PeerThroughProxy,
    Proxy,
}

impl Connection {
    pub fn direct(stream: TokioIo<TcpStream>) -> Self {
        Self { stream, reader: Reader::Peer }
    }

    pub fn tunnel(stream: TokioIo<TcpStream>) -> Self {
        Self { stream, reader: Reader::PeerThroughProxy }
    }

    pub fn by_proxy(stream: TokioIo<TcpStream>) -> Self {
        Self { stream, reader: Reader::Proxy }
    }
}

impl Described for Connection {
    fn connected(&self) -> Connected {
        match self.reader {
            Reader::Peer => self.stream.connected(),
            // The address at the other end is the proxy's, and would be taken for the peer's.
            Reader::PeerThroughProxy => Connected::new(),
            Reader::Proxy => Connected::new().proxy(true),
        }
    }
}

impl Read for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }
}
