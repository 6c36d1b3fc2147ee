//! The frames that a server of HTTP/2 sends, only so far that the first answer is seen.

/// The bytes before a frame's payload.
const HEAD_BYTES: usize = 9;
/// The type of the frame that begins an answer.
const HEADERS: u8 = 1;

/// Follows frames through pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The head of a frame, as far as it has come.
    head: Vec<u8>,
    /// How much of its payload is still to come.
    payload: usize,
}

impl Frames {
    /// Where in these bytes the first answer begins; none when it does not. Of a head that comes in two pieces, the first
    /// piece is before the answer.
    pub(super) fn answer_begins(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.payload > 0 {
                let skipped = self.payload.min(bytes.len() - at);
                self.payload -= skipped;
                at += skipped;
                continue;
            }
            let begin = at;
            let taken = (HEAD_BYTES - self.head.len()).min(bytes.len() - at);
            self.head.extend_from_slice(&bytes[at..at + taken]);
            at += taken;
            if self.head.len() == HEAD_BYTES {
                let (kind, length) = (self.head[3], &self.head[..3]);
                self.payload = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                self.head.clear();
                if kind == HEADERS {
                    return Some(begin);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, 0, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn answer_is_found_in_pieces_of_any_size() {
        let before = [frame(4, &[1; 6]), frame(8, &[1; 4]), frame(4, &[])].concat();
        let all = [before.clone(), frame(HEADERS, &[7; 20])].concat();
        assert_eq!(Frames::default().answer_begins(&all), Some(before.len()));
        for size in 1..all.len() {
            let (mut frames, mut passed) = (Frames::default(), 0);
            let found = all.chunks(size).any(|piece| {
                let begin = frames.answer_begins(piece);
                passed += begin.unwrap_or(piece.len());
                begin.is_some()
            });
            assert!(found && (before.len()..before.len() + HEAD_BYTES).contains(&passed), "{size}: {passed}");
        }
    }
}
