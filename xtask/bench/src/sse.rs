//! Reads one stream of server-sent events from a keep-alive connection.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::http::{Connection, Framing, excerpt};

/// Sends `request` and calls `event` with the data of each event and the time at which its last
/// byte was there, until the stream has ended. The connection can be used again afterwards.
pub async fn run(connection: &mut Connection, request: &[u8], mut event: impl FnMut(&[u8], Instant)) -> Result<()> {
    let head = connection.begin(request).await?;
    if head.status != 200 || !head.event_stream || head.framing != Framing::Chunked {
        let body = connection.read_some(excerpt).await.unwrap_or_default();
        bail!("status {} without a stream of events: {body}", head.status);
    }
    let mut chunks = Dechunker::default();
    let mut events = EventReader::default();
    let mut plain = Vec::new();
    loop {
        plain.clear();
        let ended = connection.read_some(|bytes| chunks.feed(bytes, &mut plain)).await??;
        let now = Instant::now();
        events.feed(&plain, |data| event(data, now));
        if ended {
            return Ok(());
        }
    }
}

/// Undoes the chunked transfer coding, a piece at a time.
#[derive(Debug, Default)]
struct Dechunker {
    state: ChunkState,
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    Data(usize),
    AfterData,
    Trailer,
    Ended,
}

impl Dechunker {
    /// Appends the content of `bytes` to `plain`; true once the last chunk was seen.
    fn feed(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<bool> {
        while !bytes.is_empty() {
            match self.state {
                ChunkState::Data(left) => {
                    let (taken, rest) = bytes.split_at(left.min(bytes.len()));
                    plain.extend_from_slice(taken);
                    bytes = rest;
                    let left = left - taken.len();
                    self.state = if left == 0 { ChunkState::AfterData } else { ChunkState::Data(left) };
                }
                ChunkState::Ended => bail!("bytes after the end of the stream"),
                ChunkState::Size | ChunkState::AfterData | ChunkState::Trailer => {
                    let Some(line_end) = bytes.iter().position(|byte| *byte == b'\n') else {
                        self.line.extend_from_slice(bytes);
                        break;
                    };
                    let (line, rest) = bytes.split_at(line_end + 1);
                    self.line.extend_from_slice(line);
                    bytes = rest;
                    self.end_of_line()?;
                }
            }
        }
        Ok(matches!(self.state, ChunkState::Ended))
    }

    fn end_of_line(&mut self) -> Result<()> {
        let line = std::str::from_utf8(&self.line).context("a chunk's size is not text")?.trim();
        self.state = match self.state {
            ChunkState::AfterData => ChunkState::Size,
            ChunkState::Trailer if line.is_empty() => ChunkState::Ended,
            ChunkState::Size => {
                let digits = line.split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(digits, 16).with_context(|| format!("bad chunk size {line:?}"))?;
                if size == 0 { ChunkState::Trailer } else { ChunkState::Data(size) }
            }
            state @ (ChunkState::Trailer | ChunkState::Data(_) | ChunkState::Ended) => state,
        };
        self.line.clear();
        Ok(())
    }
}

/// Finds the events in a stream of lines; comments and other fields than `data` are skipped.
#[derive(Debug, Default)]
struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
}

impl EventReader {
    fn feed(&mut self, bytes: &[u8], mut event: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if !self.line.ends_with(b"\n") {
                return;
            }
            let line = self.line.trim_ascii_end();
            if let Some(data) = line.strip_prefix(b"data:") {
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            } else if line.is_empty() && !self.data.is_empty() {
                event(&self.data);
                self.data.clear();
            }
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"id: 1\ndata: {\"a\":1}\n\n: still here\n\nid: 2\r\ndata:{\"b\":2}\r\n\r\n";

    fn chunked(plain: &[u8], size: usize) -> Vec<u8> {
        let mut coded = Vec::new();
        for chunk in plain.chunks(size) {
            coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            coded.extend_from_slice(chunk);
            coded.extend_from_slice(b"\r\n");
        }
        coded.extend_from_slice(b"0\r\n\r\n");
        coded
    }

    #[test]
    fn events_do_not_depend_on_how_the_bytes_are_cut() {
        for chunk in [1, 7, 1000] {
            let coded = chunked(STREAM, chunk);
            for read in [1, 3, 1000] {
                let (mut chunks, mut reader) = (Dechunker::default(), EventReader::default());
                let (mut seen, mut ended) = (Vec::new(), false);
                for bytes in coded.chunks(read) {
                    let mut plain = Vec::new();
                    ended = chunks.feed(bytes, &mut plain).unwrap();
                    reader.feed(&plain, |data| seen.push(String::from_utf8(data.to_vec()).unwrap()));
                }
                assert!(ended);
                assert_eq!(seen, ["{\"a\":1}", "{\"b\":2}"]);
            }
        }
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        let mut chunks = Dechunker::default();
        assert!(chunks.feed(b"0\r\n\r\n", &mut Vec::new()).unwrap());
        assert!(chunks.feed(b"x", &mut Vec::new()).is_err());
    }
}
