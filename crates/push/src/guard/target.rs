use std::net::IpAddr;

use http::uri::PathAndQuery;
use url::Url;

use super::error::UrlRefused;

/// The longest URL that is taken, in bytes.
pub const URL_BYTES_MAX: usize = 2048;
/// The longest name that DNS can hold.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Where a push goes: a URL that was read and checked, in one spelling.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    is_tls: bool,
    host: Host,
    host_name: String,
    port: u16,
    authority: String,
    path_and_query: PathAndQuery,
}

/// The host of a URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Host {
    /// A name in its ASCII form and lower case, with the dot at its end if it was written with one.
    Name(String),
    /// An address, however it was spelled.
    Address(IpAddr),
}

impl Target {
    /// Reads a URL by the rules of WHATWG, which know every spelling of an address, but none of their leniency about what is
    /// between the scheme and the host: where readers differ, one of them is led astray.
    ///
    /// It asks no policy: [`Guard`](super::Guard) does.
    ///
    /// # Errors
    ///
    /// [`UrlRefused`] says what the URL must be instead: its length, scheme, characters, user, host or syntax.
    pub fn parse(text: &str) -> Result<Self, UrlRefused> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlRefused::TooLong);
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(UrlRefused::Characters);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlRefused::Scheme)?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlRefused::Scheme),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(UrlRefused::Host);
        }
        if authority.contains('@') {
            return Err(UrlRefused::UserInfo);
        }
        let url = Url::parse(text).map_err(|error| match error {
            url::ParseError::EmptyHost
            | url::ParseError::IdnaError
            | url::ParseError::InvalidIpv4Address
            | url::ParseError::InvalidIpv6Address
            | url::ParseError::InvalidDomainCharacter => UrlRefused::Host,
            _ => UrlRefused::Syntax,
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefused::UserInfo);
        }
        let host = match url.host().ok_or(UrlRefused::Host)? {
            url::Host::Domain(name) if is_name(name) => Host::Name(name.to_owned()),
            url::Host::Domain(_) => return Err(UrlRefused::Host),
            url::Host::Ipv4(address) => Host::Address(address.into()),
            url::Host::Ipv6(address) => Host::Address(address.into()),
        };
        Self::of(is_tls, host, &url)
    }

    fn of(is_tls: bool, host: Host, url: &Url) -> Result<Self, UrlRefused> {
        let host_name = match &host {
            Host::Name(name) => name.strip_suffix('.').unwrap_or(name).to_owned(),
            Host::Address(address) => address.to_string(),
        };
        let written = match &host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            Host::Name(_) | Host::Address(IpAddr::V4(_)) => host_name.clone(),
        };
        let default_port = if is_tls { 443 } else { 80 };
        let port = url.port().unwrap_or(default_port);
        let authority = if port == default_port { written } else { format!("{written}:{port}") };
        let path_and_query = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let path_and_query = PathAndQuery::try_from(path_and_query).map_err(|_| UrlRefused::Syntax)?;
        Ok(Self { is_tls, host, host_name, port, authority, path_and_query })
    }

    /// Whether it is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host as text, in lower case, without a dot at its end and without brackets: one host has one name, by which turns
    /// are kept fair and breakers told apart.
    #[must_use]
    pub fn host_name(&self) -> &str {
        &self.host_name
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the request's `Host` says: the host, and the port if it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path and the query, as the request names them. A fragment is never sent.
    #[must_use]
    pub fn path_and_query(&self) -> &PathAndQuery {
        &self.path_and_query
    }
}

/// Whether DNS can hold it: labels of 1 to 63 bytes, 253 in all.
fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)
}
