//! Logins: how tokens are got, kept, renewed, and given to calls.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[path = "oauth/device.rs"]
mod device;
#[path = "oauth/discovery.rs"]
mod discovery;
#[path = "oauth/grants.rs"]
mod grants;
#[path = "oauth/source.rs"]
mod source;
#[path = "oauth/store.rs"]
mod store;
#[path = "oauth/support.rs"]
mod support;
