//! The words that choose what the demo agent does.

use std::time::Duration;

use longhaul_protocol::wire::Part;

const SLOW_MAX: f64 = 24.0 * 60.0 * 60.0;
const COUNT_MAX: u64 = 10_000_000;

/// What a message asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    pub echo: bool,
    pub slow: Option<Duration>,
    pub chunks: u64,
    pub burst: u64,
    pub input: bool,
    pub auth: bool,
    pub reject: bool,
    pub fail: bool,
    pub msg: bool,
    pub stubborn: bool,
    pub late: bool,
}

/// Reads the words at the beginning of the text, up to the first that means nothing. Text that begins with none of them,
/// and a message without text, is echoed.
pub fn words_of(parts: &[Part]) -> Words {
    let mut words = Words::default();
    let mut rest = parts.iter().filter_map(Part::as_text).flat_map(str::split_whitespace).peekable();
    let mut known = 0;
    while let Some(word) = rest.next() {
        let mut count = || rest.next_if(|next| next.parse::<u64>().is_ok()).and_then(|next| next.parse::<u64>().ok());
        match word {
            "echo" => words.echo = true,
            "input" => words.input = true,
            "auth" => words.auth = true,
            "reject" => words.reject = true,
            "fail" => words.fail = true,
            "msg" => words.msg = true,
            "stubborn" => words.stubborn = true,
            "late" => words.late = true,
            "chunks" => match count() {
                Some(number) => words.chunks = number.min(COUNT_MAX),
                None => break,
            },
            "burst" => match count() {
                Some(number) => words.burst = number.min(COUNT_MAX),
                None => break,
            },
            "slow" => match rest.next_if(|next| seconds(next).is_some()).and_then(seconds) {
                Some(time) => words.slow = Some(time),
                None => break,
            },
            _ => break,
        }
        known += 1;
        if words.echo {
            break;
        }
    }
    words.echo |= known == 0;
    words
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok().filter(|_| text.starts_with(|first: char| first.is_ascii_digit()))?;
    Duration::try_from_secs_f64(seconds.min(SLOW_MAX)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_combine_and_other_text_is_echoed() {
        let echo = Words { echo: true, ..Words::default() };
        #[rustfmt::skip]
        let cases = [
            ("echo", echo.clone()),
            ("echo fail", echo.clone()),
            ("hello", echo.clone()),
            ("", echo.clone()),
            ("slow food", echo.clone()),
            ("here it is: input", echo.clone()),
            ("slow 3", Words { slow: Some(Duration::from_secs(3)), ..Words::default() }),
            ("slow 0.25", Words { slow: Some(Duration::from_millis(250)), ..Words::default() }),
            ("slow 1e99", Words { slow: Some(Duration::from_secs(86_400)), ..Words::default() }),
            ("slow -1", echo.clone()),
            ("stubborn slow 60", Words { stubborn: true, slow: Some(Duration::from_secs(60)), ..Words::default() }),
            ("slow 1 chunks 5", Words { slow: Some(Duration::from_secs(1)), chunks: 5, ..Words::default() }),
            ("chunks 200", Words { chunks: 200, ..Words::default() }),
            ("burst 20", Words { burst: 20, ..Words::default() }),
            ("fail late hunter2", Words { fail: true, late: true, ..Words::default() }),
            ("msg", Words { msg: true, ..Words::default() }),
        ];
        for (text, wanted) in cases {
            assert_eq!(words_of(&[Part::text(text)]), wanted, "{text}");
        }
        assert_eq!(words_of(&[Part::data(1)]), echo);
    }
}
