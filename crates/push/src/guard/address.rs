//! Which addresses are not on the open internet, by the registries of special-purpose addresses (RFC 6890 and its successors).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::allow::Network;

/// A kind of address to which no push goes unless the operator lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `0.0.0.0/8`, `::`.
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `fc00::/7`, `fec0::/10`.
    Private,
    /// `100.64.0.0/10`, the networks of providers behind their NAT.
    CarrierNat,
    /// `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// An address at which clouds tell machines their secrets.
    Metadata,
    /// Networks for documentation and benchmarks.
    Documentation,
    /// `224.0.0.0/4`, `ff00::/8`.
    Multicast,
    /// `240.0.0.0/4`, `255.255.255.255`, and what else has no global use.
    Reserved,
    /// An IPv6 form that leads to an IPv4 address, and that one is refused or the way to it is local.
    Embedded,
}

impl Kind {
    pub(super) fn next_step(self) -> &'static str {
        match self {
            Self::Metadata => "an operator can list this one address in push.allow",
            _ => "an operator can list the host or its network in push.allow",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::CarrierNat => "behind a carrier's NAT",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a metadata service",
            Self::Documentation => "for documentation or benchmarks",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
            Self::Embedded => "another spelling of an inside IPv4 address",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
    Network::v4(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(head: [u16; 4], prefix: u8) -> Network {
    let [a, b, c, d] = head;
    Network::v6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

/// In clouds, one of them at an address that is otherwise public (168.63.129.16).
const METADATA: &[Network] = &[
    v4(169, 254, 169, 254, 32),
    v4(169, 254, 169, 253, 32),
    v4(169, 254, 170, 2, 32),
    v4(169, 254, 170, 23, 32),
    v4(100, 100, 100, 200, 32),
    v4(192, 0, 0, 192, 32),
    v4(168, 63, 129, 16, 32),
    Network::v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253), 128),
    Network::v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
    Network::v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), 128),
    Network::v6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    Network::v6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0xa9fe, 0xa9fe, 0, 0), 96),
    Network::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128),
    Network::v6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
];

const REFUSED_V4: &[(Network, Kind)] = &[
    (v4(0, 0, 0, 0, 8), Kind::Unspecified),
    (v4(10, 0, 0, 0, 8), Kind::Private),
    (v4(100, 64, 0, 0, 10), Kind::CarrierNat),
    (v4(127, 0, 0, 0, 8), Kind::Loopback),
    (v4(169, 254, 0, 0, 16), Kind::LinkLocal),
    (v4(172, 16, 0, 0, 12), Kind::Private),
    (v4(192, 0, 0, 0, 24), Kind::Reserved),
    (v4(192, 0, 2, 0, 24), Kind::Documentation),
    (v4(192, 88, 99, 0, 24), Kind::Reserved),
    (v4(192, 168, 0, 0, 16), Kind::Private),
    (v4(198, 18, 0, 0, 15), Kind::Documentation),
    (v4(198, 51, 100, 0, 24), Kind::Documentation),
    (v4(203, 0, 113, 0, 24), Kind::Documentation),
    (v4(224, 0, 0, 0, 4), Kind::Multicast),
    (v4(240, 0, 0, 0, 4), Kind::Reserved),
];

const REFUSED_V6: &[(Network, Kind)] = &[
    (Network::v6(Ipv6Addr::UNSPECIFIED, 128), Kind::Unspecified),
    (Network::v6(Ipv6Addr::LOCALHOST, 128), Kind::Loopback),
    (v6([0xfc00, 0, 0, 0], 7), Kind::Private),
    (v6([0xfec0, 0, 0, 0], 10), Kind::Private),
    (v6([0xfe80, 0, 0, 0], 10), Kind::LinkLocal),
    (v6([0xff00, 0, 0, 0], 8), Kind::Multicast),
    (v6([0x2001, 0xdb8, 0, 0], 32), Kind::Documentation),
    (v6([0x3fff, 0, 0, 0], 20), Kind::Documentation),
    (v6([0x2001, 2, 0, 0], 48), Kind::Documentation),
    // The translation of a local network: what it leads to is known there only.
    (v6([0x64, 0xff9b, 1, 0], 48), Kind::Embedded),
];

const COMPATIBLE: Network = v6([0, 0, 0, 0], 96);
const NAT64: Network = v6([0x64, 0xff9b, 0, 0], 96);
const SIX_TO_FOUR: Network = v6([0x2002, 0, 0, 0], 16);
const TEREDO: Network = v6([0x2001, 0, 0, 0], 32);
/// Assigned to protocols by IETF: nothing of it but Teredo can be a receiver.
const PROTOCOLS: Network = v6([0x2001, 0, 0, 0], 23);
/// All that is handed out as global unicast.
const GLOBAL: Network = v6([0x2000, 0, 0, 0], 3);

/// Why an address is not on the open internet; `None` if it is. A mapped address (`::ffff:0:0/96`) has been made IPv4 before.
pub(super) fn refused_kind(address: IpAddr) -> Option<Kind> {
    if METADATA.iter().any(|network| network.holds(address)) {
        return Some(Kind::Metadata);
    }
    match address {
        IpAddr::V4(_) => kind_in(REFUSED_V4, address),
        IpAddr::V6(v6) => kind_in(REFUSED_V6, address).or_else(|| kind_of_embedded(v6)),
    }
}

fn kind_in(table: &[(Network, Kind)], address: IpAddr) -> Option<Kind> {
    table.iter().find(|(network, _)| network.holds(address)).map(|(_, kind)| *kind)
}

/// Judges what hides an IPv4 address by that address, and refuses what is not global at all.
fn kind_of_embedded(address: Ipv6Addr) -> Option<Kind> {
    let [_, a, b, c, d, e, f, g] = address.segments();
    let last = join(f, g);
    let whole = IpAddr::V6(address);
    let (embedded, otherwise) = if COMPATIBLE.holds(whole) || NAT64.holds(whole) {
        (vec![last], None)
    } else if SIX_TO_FOUR.holds(whole) {
        (vec![join(a, b)], None)
    } else if TEREDO.holds(whole) {
        // The server's address as it is, the client's with every bit turned over.
        (vec![join(b, c), join(!f, !g)], None)
    } else if d & 0xfdff == 0 && e == 0x5efe {
        // ISATAP: the end of a tunnel over IPv4.
        (vec![last], not_global(whole))
    } else {
        (Vec::new(), not_global(whole))
    };
    embedded.into_iter().find_map(|v4| refused_kind(v4.into())).map(as_embedded).or(otherwise)
}

fn not_global(address: IpAddr) -> Option<Kind> {
    (!GLOBAL.holds(address) || PROTOCOLS.holds(address)).then_some(Kind::Reserved)
}

/// Metadata stays what it is: it is the one kind that no wide network lets in.
fn as_embedded(kind: Kind) -> Kind {
    if kind == Kind::Metadata { kind } else { Kind::Embedded }
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}
