//! Bytes of a pipe as lines.

use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use super::process::read_some;

const READ_BYTES: usize = 16 * 1024;

/// Cuts what a pipe gives into lines, each with its newline; the last one may lack it.
#[derive(Debug)]
pub struct Lines<R> {
    pipe: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// How much behind `start` is known to hold no newline.
    searched: usize,
    bytes_max: usize,
    at_end: bool,
}

/// One line.
#[derive(Debug, Eq, PartialEq)]
pub enum Line<'a> {
    /// A line with its newline, or the pipe's end without one.
    Whole(&'a [u8]),
    /// As much of a line as may be held, or a little less so that no character is cut.
    Part(&'a [u8]),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `bytes_max` bytes.
    pub fn new(pipe: R, bytes_max: usize) -> Self {
        Self { pipe, buffer: Vec::new(), start: 0, searched: 0, bytes_max: bytes_max.max(4), at_end: false }
    }

    /// The next line, or part of one that is too long; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// What was read is kept.
    pub async fn next(&mut self, ended: &CancellationToken) -> Option<Line<'_>> {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let unsearched = rest.get(self.searched..).unwrap_or_default();
            let newline = unsearched.iter().position(|byte| *byte == b'\n').map(|at| self.searched + at + 1);
            self.searched = rest.len();
            if let Some(length) = newline.filter(|length| *length <= self.bytes_max) {
                return Some(Line::Whole(self.take(length)));
            }
            if rest.len() >= self.bytes_max {
                let length = whole_characters(rest.get(..self.bytes_max).unwrap_or(rest));
                return Some(Line::Part(self.take(length)));
            }
            if self.at_end {
                let length = rest.len();
                return if length == 0 { None } else { Some(Line::Whole(self.take(length))) };
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.reserve(READ_BYTES);
            self.at_end = read_some(&mut self.pipe, &mut self.buffer, ended).await.is_none();
        }
    }

    /// Reads to the end and keeps nothing.
    pub async fn discard(&mut self, ended: &CancellationToken) {
        while !self.at_end {
            self.buffer.clear();
            self.buffer.reserve(READ_BYTES);
            self.at_end = read_some(&mut self.pipe, &mut self.buffer, ended).await.is_none();
        }
    }

    fn take(&mut self, length: usize) -> &[u8] {
        let from = self.start;
        self.start += length;
        self.searched = 0;
        self.buffer.get(from..from + length).unwrap_or_default()
    }
}

/// The length of `bytes` without a character at its end that is not complete.
fn whole_characters(bytes: &[u8]) -> usize {
    let continuations = bytes.iter().rev().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    let Some(lead_at) = bytes.len().checked_sub(continuations + 1) else { return bytes.len() };
    let length = match bytes.get(lead_at) {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => 1,
    };
    if lead_at > 0 && continuations + 1 < length { lead_at } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(bytes: &[u8], bytes_max: usize) -> Vec<(bool, String)> {
        let ended = CancellationToken::new();
        let mut lines = Lines::new(bytes, bytes_max);
        let mut all = Vec::new();
        while let Some(line) = lines.next(&ended).await {
            let (whole, bytes) = match line {
                Line::Whole(bytes) => (true, bytes),
                Line::Part(bytes) => (false, bytes),
            };
            all.push((whole, String::from_utf8_lossy(bytes).into_owned()));
        }
        all
    }

    #[tokio::test]
    async fn lines_keep_their_newline_and_the_last_may_lack_it() {
        let whole = |text: &str| (true, text.to_owned());
        assert_eq!(lines_of(b"a\n\nb", 100).await, [whole("a\n"), whole("\n"), whole("b")]);
        assert_eq!(lines_of(b"", 100).await, []);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_between_characters() {
        let got = lines_of("ääääää\nx\n".as_bytes(), 5).await;
        let texts: Vec<&str> = got.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["ää", "ää", "ää\n", "x\n"]);
        assert_eq!(got.iter().map(|(whole, _)| *whole).collect::<Vec<_>>(), [false, false, true, true]);
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_cut_too() {
        let got = lines_of(&[0xBF; 12], 5).await;
        assert_eq!(got.len(), 3);
    }
}
