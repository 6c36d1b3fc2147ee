//! Version 0.3 beside v1.0: vectors of the reference SDK, what is read and what is refused, and what survives both ways.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails as the test does")]

mod any;
mod descriptor;
mod errors;
mod reading;
mod round_trip;
mod vectors;
