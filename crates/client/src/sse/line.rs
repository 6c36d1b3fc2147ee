use std::time::Duration;

/// The fields that mean something, and the two sorts of line that mean nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A field that the specification does not name.
    Unknown,
    Comment,
}

impl Field {
    /// The longest name that means something.
    const NAME_BYTES_MAX: usize = 5;

    fn named(name: &[u8]) -> Self {
        match name {
            b"data" => Self::Data,
            b"event" => Self::Event,
            b"id" => Self::Id,
            b"retry" => Self::Retry,
            b"" => Self::Comment,
            _ => Self::Unknown,
        }
    }
}

/// A line that has not ended: of it only what still counts is kept.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: usize,
    /// The name, until its field is known: never more than [`Field::NAME_BYTES_MAX`] bytes.
    name: Vec<u8>,
    field: Option<Field>,
    /// Whether the next byte comes right behind the colon: one space there is not part of the value.
    after_colon: bool,
    value: Vec<u8>,
}

impl Line {
    /// Takes in more of the line; gives back what of it belongs to the value of the field.
    pub fn extend<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        self.bytes = self.bytes.saturating_add(piece.len());
        let value = if self.field.is_none() { self.extend_name(piece) } else { piece };
        match value.split_first() {
            Some((b' ', rest)) if self.after_colon => {
                self.after_colon = false;
                rest
            }
            Some(_) => {
                self.after_colon = false;
                value
            }
            None => value,
        }
    }

    /// Takes in more of the name; gives back what stands behind its colon.
    fn extend_name<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        // A name that does not end within these bytes is not one of ours.
        let room = Field::NAME_BYTES_MAX.saturating_sub(self.name.len());
        let colon = piece.iter().take(room + 1).position(|byte| *byte == b':');
        let (name, behind) = piece.split_at(colon.unwrap_or(piece.len()));
        if name.len() > room {
            self.field = Some(Field::Unknown);
            return &[];
        }
        self.name.extend_from_slice(name);
        if let Some((_colon, value)) = behind.split_first() {
            self.field = Some(Field::named(&self.name));
            self.after_colon = true;
            return value;
        }
        &[]
    }

    /// Keeps a piece of the value.
    pub fn keep(&mut self, value: &[u8]) {
        self.value.extend_from_slice(value);
    }

    /// The bytes of the line so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many of them count as the event's.
    pub fn event_bytes(&self) -> usize {
        if self.field == Some(Field::Comment) { 0 } else { self.bytes }
    }

    /// The field, once it is known.
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// The field of a line that ended: without a colon the whole of it is the name.
    pub fn finished_field(&self) -> Field {
        self.field.unwrap_or_else(|| Field::named(&self.name))
    }

    /// The value that was kept, with U+FFFD for what is no UTF-8.
    pub fn into_text(self) -> String {
        String::from_utf8(self.value).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// The value that was kept as milliseconds, if it consists of digits.
    pub fn milliseconds(&self) -> Option<Duration> {
        if self.value.is_empty() || !self.value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let millis = self.value.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')))
        });
        Some(Duration::from_millis(millis))
    }
}
