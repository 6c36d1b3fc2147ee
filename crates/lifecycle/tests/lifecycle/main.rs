//! The lifecycle, held to its table, to its special rules one by one, and to a model under random commands.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests: what is not as expected has to fail there"
)]

mod artifacts;
mod history;
mod leases;
mod model;
mod retries;
mod rules;
mod support;
mod table;
