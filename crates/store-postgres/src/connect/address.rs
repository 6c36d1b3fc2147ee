//! What a database's address says about TLS, which the driver does not know, apart from the rest, which it does.

use percent_encoding::percent_decode_str;

/// The parameters of libpq that are read here and not by the driver.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TlsParams {
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
    pub(super) sslcert: Option<String>,
    pub(super) sslkey: Option<String>,
}

impl TlsParams {
    /// Takes a parameter that is one of ours. The last of a name counts, as for libpq.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let place = match name {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "sslcert" => &mut self.sslcert,
            "sslkey" => &mut self.sslkey,
            _ => return false,
        };
        *place = Some(value.to_owned());
        true
    }
}

/// Splits an address, be it a URL or `key=value` pairs, into what the driver reads and what is read here. One that makes no
/// sense is left whole: the driver says what is wrong with it.
pub(super) fn split(address: &str) -> (String, TlsParams) {
    match ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme)) {
        true => split_url(address),
        false => split_pairs(address),
    }
}

fn split_url(url: &str) -> (String, TlsParams) {
    let mut ours = TlsParams::default();
    // A password may hold a question mark: as for the driver, whatever comes before the first @ is a user and a password.
    let from = url.find('@').unwrap_or(0);
    let Some(at) = url.get(from..).and_then(|rest| rest.find('?')).map(|at| from + at) else {
        return (url.to_owned(), ours);
    };
    let (before, query) = url.split_at(at);
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
    let theirs: Vec<_> = query
        .trim_start_matches('?')
        .split('&')
        .filter(|param| {
            let (name, value) = param.split_once('=').unwrap_or((param, ""));
            !param.is_empty() && !ours.take(&decoded(name), &decoded(value))
        })
        .collect();
    let mark = if theirs.is_empty() { "" } else { "?" };
    (format!("{before}{mark}{}", theirs.join("&")), ours)
}

fn split_pairs(text: &str) -> (String, TlsParams) {
    let mut ours = TlsParams::default();
    let Some(pairs) = pairs(text) else { return (text.to_owned(), ours) };
    let theirs: Vec<_> = pairs
        .into_iter()
        .filter(|(name, value)| !ours.take(name, value))
        .map(|(name, value)| format!("{name}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")))
        .collect();
    (theirs.join(" "), ours)
}

/// The pairs of `key = value` with values as libpq quotes them; `None` when there is something else.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('\'') {
            Some(quoted) => {
                value(quoted, |c| c == '\'').and_then(|(value, after)| Some((value, after.strip_prefix('\'')?)))?
            }
            None => value(after, char::is_whitespace)?,
        };
        pairs.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Some(pairs)
}

/// A value until `ends`, with a backslash before what would not stand for itself, and what follows it.
fn value(text: &str, ends: impl Fn(char) -> bool) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            char if ends(char) => return Some((value, text.get(at..)?)),
            char => value.push(char),
        }
    }
    Some((value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(list: &[(&str, &str)]) -> TlsParams {
        let mut params = TlsParams::default();
        assert!(list.iter().all(|(name, value)| params.take(name, value)));
        params
    }

    /// An address, what of it the driver reads, and what is read here.
    type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

    #[test]
    fn what_is_ours_is_taken_out_of_an_address() {
        #[rustfmt::skip]
        let cases: [Case; 11] = [
            ("postgres://h/d", "postgres://h/d", &[]),
            ("postgres://h/d?sslmode=verify-full", "postgres://h/d", &[("sslmode", "verify-full")]),
            ("postgresql://u:p@h:1,g:2/d?connect_timeout=3&sslrootcert=/a%20b.pem&options=-c%20x%3D1",
             "postgresql://u:p@h:1,g:2/d?connect_timeout=3&options=-c%20x%3D1", &[("sslrootcert", "/a b.pem")]),
            ("postgres://u:p?sslmode=x@h/d?sslmode=require", "postgres://u:p?sslmode=x@h/d", &[("sslmode", "require")]),
            ("postgres://h?sslmode=a&sslmode=b&sslcert=c&sslkey=k", "postgres://h",
             &[("sslmode", "b"), ("sslcert", "c"), ("sslkey", "k")]),
            ("postgres://h?x", "postgres://h?x", &[]),
            ("host=h sslmode=require", "host='h'", &[("sslmode", "require")]),
            ("sslrootcert = '/a b.pem'  password='it\\'s \\\\'", "password='it\\'s \\\\'", &[("sslrootcert", "/a b.pem")]),
            ("host=a\\ b", "host='a b'", &[]),
            ("nonsense", "nonsense", &[]),
            ("host='open", "host='open", &[]),
        ];
        for (address, theirs, ours) in cases {
            assert_eq!(split(address), (theirs.to_owned(), params(ours)), "{address}");
        }
    }
}
