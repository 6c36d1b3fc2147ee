//! One struct for each message of `a2a.proto` (package `lf.a2a.v1`), with its names.
//!
//! They hold whatever a peer sent: an empty string is an absent one, an enum may hold a number that
//! nobody knows. [`rules`](crate::rules) says what a request must hold.

mod build;
mod card;
mod data;
mod extension;
mod request;

pub use card::*;
pub use data::*;
pub use extension::*;
pub use request::*;
