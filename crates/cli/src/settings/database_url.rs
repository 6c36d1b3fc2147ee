//! The address of a PostgreSQL database, which may hold a password.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// What stands where a password is not shown.
const HIDDEN: &str = "***";

/// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`. What is written of it holds no password.
#[derive(Clone, Eq, PartialEq)]
pub struct DatabaseUrl(String);

/// What is wrong with an address, without repeating it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WrongUrl {
    pub message: &'static str,
    pub hint: &'static str,
}

/// An address in the parts that may hold a password.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    password: Option<&'a str>,
    /// Hosts, ports and database.
    place: &'a str,
    query: Option<&'a str>,
}

impl DatabaseUrl {
    /// Whether a text is meant to be one.
    pub fn is_meant_by(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads one. The driver looks at the rest of it when it connects.
    pub fn parse(text: &str) -> Result<Self, WrongUrl> {
        // A host that begins in the middle of a password would be shown.
        let end = text
            .split_once("://")
            .map_or(text.len(), |(scheme, rest)| scheme.len() + 3 + rest.find(['/', '?']).unwrap_or(rest.len()));
        let (authority, rest) = text.split_at(end);
        if authority.matches('@').count() > 1 || rest.contains('@') || text.contains(char::is_whitespace) {
            return Err(WrongUrl {
                message: "is not the address of a database: something in it must be percent-encoded",
                hint: "write @ as %40, / as %2F, ? as %3F and a space as %20 in user, password and parameters; or leave \
                       the password out, and set PGPASSWORD or store.postgres.password_file",
            });
        }
        let url = Self(text.to_owned());
        // What was meant for a password stands there when the host is missing.
        if !url.hosts().all(|host| port(host).bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(WrongUrl {
                message: "is not the address of a database: a port in it is no number",
                hint: "write it as postgres://USER@HOST:PORT/DATABASE",
            });
        }
        if url.passwords().any(|password| password == HIDDEN) {
            return Err(WrongUrl {
                message: "holds *** for a password, which longhaul config shows instead of one",
                hint: "write the password, or leave it out and set PGPASSWORD or store.postgres.password_file",
            });
        }
        Ok(url)
    }

    fn parts(&self) -> Parts<'_> {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", &self.0));
        let (user, rest) = match rest.split_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (user, password) = match user.and_then(|user| user.split_once(':')) {
            Some((user, password)) => (Some(user), Some(password)),
            None => (user, None),
        };
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        Parts { scheme, user, password, place, query }
    }

    fn hosts(&self) -> impl Iterator<Item = &str> {
        let place = self.parts().place;
        place.split('/').next().unwrap_or_default().split(',')
    }

    fn passwords(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts();
        let pairs = parts.query.into_iter().flat_map(|query| query.split('&'));
        parts.password.into_iter().chain(pairs.filter_map(secret).map(|(_, value)| value))
    }

    /// Whether it holds a password.
    pub fn has_password(&self) -> bool {
        self.passwords().next().is_some()
    }

    /// The address for the driver, with a password from elsewhere where it holds none.
    pub fn with_password(&self, password: Option<&str>) -> String {
        let Some(password) = password.filter(|_| !self.has_password()) else { return self.0.clone() };
        let joint = match self.parts().query {
            None => "?",
            Some(query) if query.is_empty() || query.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{}{joint}password={}", self.0, utf8_percent_encode(password, NON_ALPHANUMERIC))
    }

    /// Where the database is, for messages: without password and parameters.
    pub fn place(&self) -> String {
        let Parts { scheme, user, place, .. } = self.parts();
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        format!("{scheme}://{user}{place}")
    }
}

/// The port of a host, empty when it has none. An IPv6 address stands in brackets.
fn port(host: &str) -> &str {
    let name = host.rfind(']').map_or(host, |end| host.get(end..).unwrap_or_default());
    name.split_once(':').map_or("", |(_, port)| port)
}

/// A parameter that holds a password, as its name and value.
fn secret(pair: &str) -> Option<(&str, &str)> {
    let (name, value) = pair.split_once('=')?;
    let decoded: Cow<'_, str> = percent_decode_str(name).decode_utf8_lossy();
    decoded.to_ascii_lowercase().contains("password").then_some((name, value))
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { scheme, user, password, place, query } = self.parts();
        write!(f, "{scheme}://{}", user.unwrap_or_default())?;
        if password.is_some() {
            write!(f, ":{HIDDEN}")?;
        }
        let at = if user.is_some() { "@" } else { "" };
        write!(f, "{at}{place}")?;
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        for (pair, joint) in pairs.zip(std::iter::once('?').chain(std::iter::repeat('&'))) {
            match secret(pair) {
                Some((name, _)) => write!(f, "{joint}{name}={HIDDEN}")?,
                None => write!(f, "{joint}{pair}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> DatabaseUrl {
        DatabaseUrl::parse(text).expect("it is one")
    }

    #[test]
    fn what_is_written_holds_no_password() {
        #[rustfmt::skip]
        let cases = [
            ("postgres://ada:hunter2@db:5432/tasks", "postgres://ada:***@db:5432/tasks", "postgres://ada@db:5432/tasks"),
            ("postgres://ada:hu:nter2@db", "postgres://ada:***@db", "postgres://ada@db"),
            ("postgres://:hunter2@db/x", "postgres://:***@db/x", "postgres://@db/x"),
            ("postgres://ada@db/x?password=hunter2&sslmode=require", "postgres://ada@db/x?password=***&sslmode=require", "postgres://ada@db/x"),
            ("postgres://ada@db/x?sslmode=require&%70assword=hunter2", "postgres://ada@db/x?sslmode=require&%70assword=***", "postgres://ada@db/x"),
            ("postgresql://db?sslPassword=hunter2", "postgresql://db?sslPassword=***", "postgresql://db"),
        ];
        for (text, shown, place) in cases {
            let url = url(text);
            assert_eq!((url.to_string().as_str(), url.place().as_str()), (shown, place));
            assert!(url.has_password() && !format!("{url:?}").contains("hunter2"), "{url:?}");
            assert_eq!(url.with_password(Some("other")), text);
            assert!(DatabaseUrl::parse(shown).expect_err("it is no password").message.contains("***"));
        }
    }

    #[test]
    fn what_holds_no_password_is_written_as_it_is_and_takes_one() {
        let cases = [
            ("postgres://ada@db:1,db2:2/x", "?password=s%3A%40%2F"),
            ("postgres://db", "?password=s%3A%40%2F"),
            ("postgres:///x?host=%2Fvar%2Frun", "&password=s%3A%40%2F"),
            ("postgres://ada@db/x?sslmode=require&", "password=s%3A%40%2F"),
            ("postgres://ada@db/x?", "password=s%3A%40%2F"),
        ];
        for (text, more) in cases {
            let url = url(text);
            assert!(!url.has_password());
            assert_eq!(url.to_string(), text);
            assert_eq!(url.with_password(None), text);
            assert_eq!(url.with_password(Some("s:@/")), format!("{text}{more}"));
        }
    }

    #[test]
    fn an_address_whose_parts_are_not_clear_is_refused() {
        for text in [
            "postgres://ada:hun@ter2@db/x",
            "postgres://ada:hun/ter2@db/x",
            "postgres://ada:hun?ter2@db/x",
            "postgres://ada:hun ter2@db/x",
            "postgres://ada@db/x?user=a@b",
        ] {
            assert!(DatabaseUrl::parse(text).expect_err(text).hint.contains("%40"));
        }
        for text in ["postgres://ada:hunter2/x", "postgres://db,ada:hunter2/x", "postgres://[::1]:x"] {
            assert!(DatabaseUrl::parse(text).expect_err(text).message.contains("port"));
        }
        assert!(DatabaseUrl::parse("postgres://ada@[::1]:5432,db/x").is_ok());
    }
}
