//! A request of HTTP/1.1 as the harness reads it when it plays the server, or stands between.

use std::io::{Error, ErrorKind, Result};

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The longest head.
const HEAD_BYTES_MAX: usize = 256 * 1024;
/// The longest body.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request, whole.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// How many requests had come before.
    pub nth: usize,
    /// The method; `PRI` when the client speaks HTTP/2 without having asked.
    pub method: String,
    /// The request target, as it came.
    pub target: String,
    /// The headers, in their order.
    pub headers: Vec<(String, String)>,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// All of it, as it came.
    pub bytes: Vec<u8>,
}

impl Asked {
    /// The value of a header; its name is compared without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The URL of the server as the client has it, without a path.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.header("host").unwrap_or_default())
    }

    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as JSON; `null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The `id` of a request of JSON-RPC; `null` in others.
    #[must_use]
    pub fn rpc_id(&self) -> Value {
        self.json().get("id").cloned().unwrap_or_default()
    }

    /// The `method` of a request of JSON-RPC; empty in others.
    #[must_use]
    pub fn rpc_method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether these are the first bytes of HTTP/2: no request, and more follows that is not HTTP/1.1.
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.method == "PRI"
    }
}

/// Reads the next request; none when the client has closed its side.
pub(crate) async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Asked>> {
    let mut asked = Asked::default();
    let Some(first) = line(stream, &mut asked.bytes, HEAD_BYTES_MAX).await? else { return Ok(None) };
    let mut words = first.split(' ');
    asked.method = words.next().unwrap_or_default().to_owned();
    asked.target = words.next().unwrap_or_default().to_owned();
    loop {
        let left = HEAD_BYTES_MAX.saturating_sub(asked.bytes.len());
        let header = line(stream, &mut asked.bytes, left).await?.ok_or_else(cut)?;
        match header.split_once(':') {
            Some((name, value)) => asked.headers.push((name.to_owned(), value.trim().to_owned())),
            None if header.is_empty() => break,
            None => return Err(broken(format!("no header: {header:?}"))),
        }
    }
    if asked.header("transfer-encoding").is_some() {
        chunks(stream, &mut asked).await?;
    } else if let Some(length) = asked.header("content-length") {
        let length = length.parse().map_err(|_| broken(format!("content length {length:?}")))?;
        asked.body = exactly(stream, &mut asked.bytes, length).await?;
    }
    Ok(Some(asked))
}

async fn chunks(stream: &mut (impl AsyncBufRead + Unpin), asked: &mut Asked) -> Result<()> {
    loop {
        let size = line(stream, &mut asked.bytes, HEAD_BYTES_MAX).await?.ok_or_else(cut)?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| broken(format!("a chunk of {size:?} bytes")))?;
        let left = BODY_BYTES_MAX.saturating_sub(asked.body.len());
        if size > left {
            return Err(broken("the body is too long".to_owned()));
        }
        let chunk = exactly(stream, &mut asked.bytes, size).await?;
        asked.body.extend(chunk);
        line(stream, &mut asked.bytes, HEAD_BYTES_MAX).await?.ok_or_else(cut)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Reads so many bytes, and appends them to `bytes` too.
async fn exactly(stream: &mut (impl AsyncBufRead + Unpin), bytes: &mut Vec<u8>, length: usize) -> Result<Vec<u8>> {
    if length > BODY_BYTES_MAX {
        return Err(broken(format!("a body of {length} bytes")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    bytes.extend_from_slice(&body);
    Ok(body)
}

/// Reads a line and appends it to `bytes`; none at the end.
async fn line(
    stream: &mut (impl AsyncBufRead + Unpin),
    bytes: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<Option<String>> {
    let before = bytes.len();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if stream.take(limit).read_until(b'\n', bytes).await? == 0 {
        return Ok(None);
    }
    let line = bytes[before..].strip_suffix(b"\n").ok_or_else(cut)?;
    Ok(Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()))
}

fn cut() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the connection was cut, or a line is too long")
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn all(bytes: &[u8]) -> Vec<Asked> {
        let mut stream = BufReader::new(bytes);
        let mut all = Vec::new();
        while let Some(asked) = read(&mut stream).await.unwrap() {
            all.push(asked);
        }
        all
    }

    #[tokio::test]
    async fn requests_follow_each_other_and_keep_their_bytes() {
        let first = b"POST /rpc?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n{\"id\":7}";
        let second = b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n";
        let third = b"GET /c HTTP/1.1\r\n\r\n";
        let all = all(&[first.as_slice(), second, third].concat()).await;
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].bytes.as_slice(), all[0].path()), (first.as_slice(), "/rpc"));
        assert_eq!((all[0].rpc_id(), all[0].header("HOST")), (7.into(), Some("a")));
        assert_eq!((all[1].bytes.as_slice(), all[1].body.as_slice()), (second.as_slice(), b"abcd".as_slice()));
        assert_eq!((all[2].method.as_str(), all[2].rpc_id()), ("GET", Value::Null));
    }

    #[tokio::test]
    async fn first_bytes_of_http2_are_known() {
        let mut stream = BufReader::new(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice());
        let asked = read(&mut stream).await.unwrap().unwrap();
        assert!(asked.is_http2());
        assert_eq!(stream.buffer(), b"SM\r\n\r\n");
    }

    #[tokio::test]
    async fn cut_request_is_an_error() {
        for bytes in ["GET / HT", "GET / HTTP/1.1\r\nA: b", "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"] {
            assert!(read(&mut BufReader::new(bytes.as_bytes())).await.is_err(), "{bytes}");
        }
    }
}
