use std::net::IpAddr;

use thiserror::Error;

use super::address::Kind;
use super::target::URL_BYTES_MAX;

/// Why no push may go to a URL, as what the URL must be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UrlRefused {
    /// Longer than [`URL_BYTES_MAX`].
    #[error("must be at most {URL_BYTES_MAX} bytes long")]
    TooLong,
    /// Neither `https://` nor `http://`.
    #[error("must begin with https://")]
    Scheme,
    /// `http`, which the policy does not take.
    #[error("must begin with https:// (hint: the setting push.allow_http lets http in)")]
    Http,
    /// Spaces, control characters or backslashes, which programs read in different ways.
    #[error("must hold no spaces, control characters or backslashes")]
    Characters,
    /// `user@` or `user:password@`.
    #[error("must name no user or password (hint: use authentication.credentials)")]
    UserInfo,
    /// No host, or one that is no name and no address.
    #[error("must name a host")]
    Host,
    /// A port that no receiver of pushes uses.
    #[error("must not use port {0} (hint: use 443, or list the host in push.allow)")]
    Port(u16),
    /// Not a URL in another way.
    #[error("must be a URL such as https://example.com/hook")]
    Syntax,
    /// An address that is refused, written in the URL.
    // Not its source: a caller is told one sentence, and this is the half that tells what to do.
    #[error("must be reachable from the internet: {0}")]
    Address(AddressRefused),
}

impl UrlRefused {
    /// The field that this is about (`TaskPushNotificationConfig.url`).
    pub const FIELD: &'static str = "url";
}

/// Why no push may go to an address.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("host {host} in url has the address {address}, which is {kind} (hint: {})", kind.next_step())]
pub struct AddressRefused {
    /// The address.
    pub address: IpAddr,
    /// What kind of address it is.
    pub kind: Kind,
    /// The host whose address it is.
    pub host: String,
}
