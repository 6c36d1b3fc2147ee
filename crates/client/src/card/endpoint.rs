//! The URL of an interface, in the forms in which cards write it.

use longhaul_push::guard::{Host, Target, UrlRefused};

use super::origin::{CardOrigin, Zone};

/// An interface's URL that was read.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub target: Target,
    /// The one spelling of it.
    pub url: String,
}

impl Endpoint {
    /// Reads an absolute `http` or `https` URL.
    pub(super) fn http(text: &str) -> Result<Self, UrlRefused> {
        let target = Target::parse(text)?;
        Ok(Self { url: spelling(&target), target })
    }

    /// Reads what names a gRPC server: a URL, or `host:port` as gRPC writes it.
    ///
    /// The latter does not say whether TLS is spoken. On the card's own host it is if the card came over TLS, on loopback it is
    /// not, and everywhere else it is.
    pub(super) fn grpc(text: &str, origin: &CardOrigin) -> Result<Self, UrlRefused> {
        let (scheme, rest) = match text.split_once("://") {
            Some(("grpc", rest)) => (Some("http"), rest),
            Some(("grpcs", rest)) => (Some("https"), rest),
            Some(("dns", rest)) => (None, rest.trim_start_matches('/')),
            Some(_) => return Self::http(text),
            None => (None, text.strip_prefix("dns:").unwrap_or(text)),
        };
        let secure = Self::http(&format!("https://{rest}"))?;
        let scheme = scheme.unwrap_or(if is_plain(&secure.target, origin) { "http" } else { "https" });
        match scheme {
            "https" => Ok(secure),
            scheme => {
                Self::http(&format!("{scheme}://{}{}", host_and_port(&secure.target), secure.target.path_and_query()))
            }
        }
    }
}

fn is_plain(target: &Target, origin: &CardOrigin) -> bool {
    match origin.target() {
        Some(card) if is_same_host(card, target) => !card.is_tls(),
        Some(_) | None => is_loopback(target),
    }
}

/// With the port, which would otherwise become another one with another scheme.
fn host_and_port(target: &Target) -> String {
    match target.host() {
        Host::Address(std::net::IpAddr::V6(address)) => format!("[{address}]:{}", target.port()),
        Host::Address(_) | Host::Name(_) => format!("{}:{}", target.host_name(), target.port()),
    }
}

/// A target as one URL, without a fragment.
pub(super) fn spelling(target: &Target) -> String {
    let scheme = if target.is_tls() { "https" } else { "http" };
    format!("{scheme}://{}{}", target.authority(), target.path_and_query())
}

/// Whether two targets are on one host. All names and addresses of this machine itself are one.
pub(super) fn is_same_host(one: &Target, other: &Target) -> bool {
    one.host_name() == other.host_name() || (is_loopback(one) && is_loopback(other))
}

/// Whether it is known without a lookup that the target is this machine (RFC 6761 for names).
pub(crate) fn is_loopback(target: &Target) -> bool {
    match target.host() {
        Host::Address(address) => Zone::of(*address) == Some(Zone::Machine),
        Host::Name(_) => {
            let name = target.host_name();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}
