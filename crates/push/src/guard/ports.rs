//! Ports at which no receiver of pushes listens, but something listens that a POST could talk to.

/// The blocked ports of the Fetch standard from 1024 on, with some databases and caches that take lines of text.
const REFUSED: &[u16] = &[
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 9200, 9300, 10080, 10250, 10255, 11211,
];

/// Whether a push may go to `port`. Below 1024 these are 80 and 443; a host that the operator listed may use any but 0.
pub(super) fn may_use(port: u16, is_listed: bool) -> bool {
    match port {
        0 => false,
        _ if is_listed => true,
        80 | 443 => true,
        1..1024 => false,
        _ => !REFUSED.contains(&port),
    }
}
