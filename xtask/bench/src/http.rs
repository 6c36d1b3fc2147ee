//! A lean HTTP/1.1 client: one keep-alive connection, requests as ready bytes.
//!
//! It does as little as a client can do, so that the generator leaves the core to what is measured,
//! and it is the same one for floor and server.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Most bytes that one answer may hold.
const BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How the body of an answer ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Framing {
    /// After so many bytes.
    Length(usize),
    /// With a chunk of no bytes.
    Chunked,
}

/// Status line and headers of an answer, as far as they matter here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// End of the body.
    pub framing: Framing,
    /// Whether the content type is `text/event-stream`.
    pub event_stream: bool,
}

/// One connection, with what was read from it and not yet used.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Connects with `TCP_NODELAY`.
    pub async fn connect(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).await.with_context(|| format!("cannot connect to {addr}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 16 * 1024], start: 0, end: 0 })
    }

    /// Sends `request`, waits for the whole answer, and gives its body; any status but 200 is an error.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        let head = self.begin(request).await?;
        let Framing::Length(length) = head.framing else {
            bail!("the answer has no Content-Length");
        };
        while self.unread().len() < length {
            self.fill().await?;
        }
        let from = self.start;
        self.start += length;
        let body = self.buffer.get(from..self.start).context("the buffer holds the body")?;
        if head.status != 200 {
            bail!("status {}: {}", head.status, excerpt(body));
        }
        Ok(body)
    }

    /// Sends `request` and reads the answer up to its body.
    pub async fn begin(&mut self, request: &[u8]) -> Result<Head> {
        self.stream.write_all(request).await.context("cannot send the request")?;
        loop {
            if let Some((head, length)) = parse_head(self.unread())? {
                self.start += length;
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// Waits until there are unread bytes, hands them to `take`, and drops them.
    pub async fn read_some<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if self.unread().is_empty() {
            self.fill().await?;
        }
        let taken = take(self.unread());
        self.start = self.end;
        Ok(taken)
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    async fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.end == self.buffer.len() {
                if self.end >= BUFFER_BYTES_MAX {
                    bail!("an answer is longer than {BUFFER_BYTES_MAX} bytes");
                }
                self.buffer.resize(self.end * 2, 0);
            }
        }
        let free = self.buffer.get_mut(self.end..).context("the end lies in the buffer")?;
        let read = self.stream.read(free).await.context("cannot read the answer")?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.end += read;
        Ok(())
    }
}

/// The first part of a body, for messages.
pub fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..400).unwrap_or(body)).into_owned()
}

/// Reads status line and headers; `None` while they are incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default()).context("headers are not text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?;
    let mut head =
        Head { status: status.parse().context("no status code")?, framing: Framing::Length(0), event_stream: false };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            head.framing = Framing::Length(value.trim().parse().context("bad Content-Length")?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            head.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-type") {
            head.event_stream = value.trim_start().starts_with("text/event-stream");
        }
    }
    Ok(Some((head, end + 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n{}";
        for cut in 0..bytes.len() - 2 {
            assert_eq!(parse_head(&bytes[..cut]).unwrap(), None);
        }
        let (head, length) = parse_head(bytes).unwrap().unwrap();
        assert_eq!(head, Head { status: 200, framing: Framing::Length(12), event_stream: false });
        assert_eq!(length, bytes.len() - 2);
    }

    #[test]
    fn a_stream_is_known_by_its_headers() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n";
        let (head, _) = parse_head(bytes).unwrap().unwrap();
        assert_eq!(head, Head { status: 200, framing: Framing::Chunked, event_stream: true });
    }
}
