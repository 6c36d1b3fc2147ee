//! Reads `text/event-stream`, strictly: what this server has no reason to send is an error.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};

use crate::http::Connection;

/// One item of an event stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Item {
    /// A comment line.
    Comment(String),
    /// An event.
    Event {
        /// The value of its `id:` line.
        id: Option<String>,
        /// Its data.
        data: String,
    },
}

/// The items of an answer's body.
#[derive(Debug)]
pub struct Items {
    connection: Connection,
    text: Vec<u8>,
    ready: VecDeque<Item>,
    ended: bool,
}

impl Items {
    /// Reads the body of the answer whose head was read from `connection`.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection, text: Vec::new(), ready: VecDeque::new(), ended: false }
    }

    /// The next item; `None` when the stream has ended in order.
    ///
    /// # Errors
    ///
    /// When the connection is cut, or the stream is no event stream.
    pub async fn next(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            match self.connection.piece().await? {
                Some(piece) => {
                    self.text.extend_from_slice(&piece);
                    self.take_blocks()?;
                }
                None => {
                    self.ended = true;
                    if !self.text.is_empty() {
                        let rest = String::from_utf8_lossy(&self.text).into_owned();
                        return Err(broken(format!("the stream ended within an event: {rest:?}")));
                    }
                }
            }
        }
    }

    fn take_blocks(&mut self) -> Result<()> {
        while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.text.drain(..end + 2).collect();
            let block = String::from_utf8(block).map_err(|error| broken(error.to_string()))?;
            self.ready.extend(read_block(block.trim_end_matches('\n'))?);
        }
        Ok(())
    }
}

fn read_block(block: &str) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let (mut id, mut data) = (None, Vec::new());
    for line in block.split('\n') {
        if let Some(comment) = line.strip_prefix(':') {
            items.push(Item::Comment(comment.trim().to_owned()));
        } else if let Some(value) = line.strip_prefix("id:") {
            id = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push(value.strip_prefix(' ').unwrap_or(value));
        } else if !line.is_empty() {
            return Err(broken(format!("a line that nobody asked for: {line:?}")));
        }
    }
    if !data.is_empty() {
        let data = data.join("\n");
        items.push(Item::Event { id, data });
    }
    Ok(items)
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_has_its_comments_and_one_event() {
        let event = |id: Option<&str>, data: &str| Item::Event { id: id.map(str::to_owned), data: data.to_owned() };
        assert_eq!(read_block("id: 7\ndata: {}").unwrap(), [event(Some("7"), "{}")]);
        assert_eq!(read_block("data:a\ndata: b").unwrap(), [event(None, "a\nb")]);
        assert_eq!(read_block(": still here").unwrap(), [Item::Comment("still here".to_owned())]);
        assert!(read_block("nonsense").is_err());
    }
}
