//! A2A from the other side of the wire. For now: receiving push notifications ([`push`]).
//!
//! Nothing here opens a socket or reads a clock: requests, and the time, come in as arguments, so it fits into any framework.

pub mod push;
