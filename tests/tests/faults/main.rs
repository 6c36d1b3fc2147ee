//! What a machine, its clock and its disk do to a server, and what it promises all the same: the real binary, paused,
//! killed by its own agent, on a full disk, with a clock that jumps, and at its limits.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod attempts;
mod clock;
mod disk;
mod drain;
mod fair;
mod limits;
mod operator;
mod poison;
mod races;
mod zombie;
