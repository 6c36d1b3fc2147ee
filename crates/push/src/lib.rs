//! Push notifications on the wire (A2A §4.3, §13.2): where they may go, how they are sent, and what an answer means.
//!
//! This crate speaks HTTP and holds keys. It decides nothing about tasks: whoever owns the outbox claims a delivery, hands it to a
//! [`Sender`], and writes down the [`Answer`]. What it promises:
//!
//! - No connection is made to an address that the [`Guard`] did not pass, and the address that was checked is the one that is
//!   dialled. Nothing looks a name up twice, follows a redirect, or asks the environment for a proxy.
//! - An attempt ends within its time limit, and keeps no more of an answer than its limits allow.
//! - Secrets are sealed to the config that they belong to ([`seal`]), and print as nothing.
//! - [`schedule`] and [`breaker`] are functions from values to values: time and chance come in as arguments.

pub mod breaker;
pub mod guard;
pub mod schedule;
pub mod seal;
mod secret;
pub mod sender;
pub mod sign;
mod time;

pub use guard::{Guard, Policy, Target};
pub use secret::Secret;
pub use sender::{Answer, Delivery, Resolver, Sender, SenderConfig};
