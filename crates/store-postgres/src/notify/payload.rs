//! What is said by NOTIFY: lines of fields between tabs, which no id holds.
//!
//! ```text
//! SENDER <TAB> FORMAT <TAB> KIND
//! TASK ID <TAB> VERSION <TAB> LAST SEQUENCE
//! ...
//! ```

use std::fmt::{self, Write as _};

use longhaul_protocol::TaskId;
use longhaul_store::{Heard, TaskMark};

/// PostgreSQL takes fewer than 8000 bytes.
const BYTES_MAX: usize = 7900;
/// How many payloads one batch has at the most; what does not fit into them is told as "anything".
const PAYLOADS_MAX: usize = 8;
/// Raised when what a listener of this release makes of a payload would be wrong. It takes another's for "anything".
const FORMAT: &str = "1";

const TASKS: &str = "t";
const TASKS_DUE: &str = "d";
const ANYTHING: &str = "a";
const PROBE: &str = "p";

/// A process as its payloads name it: made up at its start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sender(u64);

impl Sender {
    pub(super) fn new() -> Self {
        Self(rand::random())
    }

    fn parse(text: &str) -> Option<Self> {
        let is_number = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// What a payload says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Said {
    News(Heard),
    /// A sender asks whether its listener hears.
    Probe(u64),
}

/// The payloads that tell `news`.
pub(super) fn payloads(sender: Sender, news: &Heard) -> Vec<String> {
    let Heard::Tasks { marks, due } = news else { return vec![header(sender, ANYTHING)] };
    let mut payloads = vec![header(sender, if *due { TASKS_DUE } else { TASKS })];
    for TaskMark { task_id, version, last_sequence } in marks {
        let line = format!("\n{task_id}\t{version}\t{last_sequence}");
        match payloads.pop() {
            Some(last) if last.len() + line.len() <= BYTES_MAX => payloads.push(last + &line),
            Some(full) if payloads.len() + 1 < PAYLOADS_MAX => payloads.extend([full, header(sender, TASKS) + &line]),
            _ => return vec![header(sender, ANYTHING)],
        }
    }
    payloads
}

pub(super) fn probe(sender: Sender, number: u64) -> String {
    let mut payload = header(sender, PROBE);
    // Writing to a string does not fail.
    let _ = write!(payload, "\n{number}");
    payload
}

fn header(sender: Sender, kind: &str) -> String {
    format!("{sender}\t{FORMAT}\t{kind}")
}

/// Reads a payload: who sent it, if that can be told, and what it says. What can't be understood may mean anything.
pub(super) fn read(payload: &str) -> (Option<Sender>, Said) {
    let (header, lines) = payload.split_once('\n').map_or((payload, None), |(header, lines)| (header, Some(lines)));
    let sender = header.split('\t').next().and_then(Sender::parse);
    let said = understood(header, lines).filter(|_| sender.is_some());
    (sender, said.unwrap_or(Said::News(Heard::Anything)))
}

fn understood(header: &str, lines: Option<&str>) -> Option<Said> {
    let (_, format, kind) = three(header)?;
    match (kind, lines) {
        _ if format != FORMAT => None,
        (TASKS | TASKS_DUE, lines) => {
            let marks = lines.map(|lines| lines.split('\n').map(mark).collect()).unwrap_or(Some(Vec::new()))?;
            Some(Said::News(Heard::Tasks { marks, due: kind == TASKS_DUE }))
        }
        (ANYTHING, None) => Some(Said::News(Heard::Anything)),
        (PROBE, Some(number)) => number.parse().ok().map(Said::Probe),
        _ => None,
    }
}

fn mark(line: &str) -> Option<TaskMark> {
    let (id, version, last_sequence) = three(line)?;
    Some(TaskMark {
        task_id: TaskId::new(id).ok()?,
        version: version.parse().ok()?,
        last_sequence: last_sequence.parse().ok()?,
    })
}

/// The fields of a line that has three.
fn three(line: &str) -> Option<(&str, &str, &str)> {
    let mut fields = line.split('\t');
    let three = (fields.next()?, fields.next()?, fields.next()?);
    fields.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Sender = Sender(0xAB);
    const ME_TEXT: &str = "00000000000000ab";

    fn mark(id: &str, version: u64, last_sequence: u64) -> TaskMark {
        TaskMark { task_id: TaskId::new(id).unwrap(), version, last_sequence }
    }

    fn tasks(marks: Vec<TaskMark>, due: bool) -> Said {
        Said::News(Heard::Tasks { marks, due })
    }

    #[test]
    fn the_form_is_what_other_releases_read() {
        let news = Heard::Tasks { marks: vec![mark("a b/ü", 3, 12), mark("c", 0, u64::MAX)], due: true };
        let text = format!("{ME_TEXT}\t1\td\na b/ü\t3\t12\nc\t0\t18446744073709551615");
        assert_eq!(payloads(ME, &news), [text]);
        assert_eq!(payloads(ME, &Heard::Anything), [format!("{ME_TEXT}\t1\ta")]);
        assert_eq!(probe(ME, 7), format!("{ME_TEXT}\t1\tp\n7"));
    }

    #[test]
    fn what_is_read_is_what_was_said_and_what_makes_no_sense_is_anything() {
        let anything = || Said::News(Heard::Anything);
        #[rustfmt::skip]
        let cases = [
            ("00000000000000ab\t1\tt\na\t1\t2",       Some(ME), tasks(vec![mark("a", 1, 2)], false)),
            ("00000000000000AB\t1\td",                Some(ME), tasks(vec![], true)),
            ("00000000000000ab\t1\ta",                Some(ME), anything()),
            ("00000000000000ab\t1\tp\n9",             Some(ME), Said::Probe(9)),
            // Of a release to come.
            ("00000000000000ab\t2\tt\na\t1\t2",       Some(ME), anything()),
            ("00000000000000ab\t1\tx",                Some(ME), anything()),
            ("00000000000000ab\t1\tt\tnew\na\t1\t2",  Some(ME), anything()),
            // Of anyone.
            ("",                                      None,     anything()),
            ("\n",                                    None,     anything()),
            ("hello",                                 None,     anything()),
            ("+0000000000000ab\t1\tt",                None,     anything()),
            ("ab\t1\tp\n9",                           None,     anything()),
            ("00000000000000ab",                      Some(ME), anything()),
            ("00000000000000ab\t1\tt\n",              Some(ME), anything()),
            ("00000000000000ab\t1\tt\na\t1",          Some(ME), anything()),
            ("00000000000000ab\t1\tt\na\t1\t2\t3",    Some(ME), anything()),
            ("00000000000000ab\t1\tt\na\t1\t-2",      Some(ME), anything()),
            ("00000000000000ab\t1\tt\na\t1\t2\n",     Some(ME), anything()),
            ("00000000000000ab\t1\tt\n\t1\t2",        Some(ME), anything()),
            ("00000000000000ab\t1\tt\na\u{1}\t1\t2",  Some(ME), anything()),
            ("00000000000000ab\t1\tt\r\na\t1\t2",     Some(ME), anything()),
            ("00000000000000ab\t1\ta\nmore",          Some(ME), anything()),
            ("00000000000000ab\t1\tp",                Some(ME), anything()),
            ("00000000000000ab\t1\tp\nx",             Some(ME), anything()),
        ];
        for (payload, sender, said) in cases {
            assert_eq!(read(payload), (sender, said), "{payload:?}");
        }
        let long = "x".repeat(129);
        assert_eq!(read(&format!("{ME_TEXT}\t1\tt\n{long}\t1\t2")).1, anything());
    }

    #[test]
    fn many_tasks_are_told_in_several_payloads_that_postgres_takes() {
        let marks: Vec<_> = (0..1000).map(|n| mark(&format!("01234567-89ab-7def-8123-{n:012}"), n, n * 2)).collect();
        let told = payloads(ME, &Heard::Tasks { marks: marks.clone(), due: true });
        assert!(told.len() > 1 && told.iter().all(|payload| payload.len() < 8000));
        let mut read_marks = Vec::new();
        for (n, payload) in told.iter().enumerate() {
            let (Some(ME), Said::News(Heard::Tasks { marks, due })) = read(payload) else { panic!("{payload}") };
            assert_eq!(due, n == 0);
            read_marks.extend(marks);
        }
        assert_eq!(read_marks, marks);
    }

    #[test]
    fn more_than_fits_is_told_as_anything() {
        let long = "x".repeat(TaskId::BYTES_MAX - 4);
        let marks = (0..1000).map(|n| mark(&format!("{long}{n:04}"), 1, 1)).collect();
        assert_eq!(payloads(ME, &Heard::Tasks { marks, due: false }), payloads(ME, &Heard::Anything));
    }
}
