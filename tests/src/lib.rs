//! What the black-box tests share: the real binary as a process, and clients of its three bindings.
//!
//! - [`server`] starts `longhaul` on a free port and a folder of its own, kills it, stops it and starts
//!   it again.
//! - [`fleet`] starts several on one PostgreSQL database; [`proxy`] stands between one of them and it, or a client and a server.
//! - [`http`] is a connection of HTTP/1.1 that shows each byte; [`sse`] reads event streams from it.
//! - [`client`] is one face for JSON-RPC, HTTP+JSON and gRPC: the same operation with the same
//!   parameters, answered in the same JSON or refused in the same terms.
//! - [`old`] speaks v0.3 behind the same face.
//! - [`refusal`] is the error table of §5.4 as a peer sees it, written down a second time on purpose.
//! - [`promises`] has callers who write down what they are told, and checks that it holds.
//! - [`peers`] are other people's servers, [`hostile`] are those that a client must survive, both for our client to be tested
//!   against; [`asked`] is what they were asked.
//! - [`receiver`] receives push notifications, and fails by script.
//! - [`normal`] makes results comparable; [`task`] builds messages and folds streams; [`steps`] are what tests do often.
//!
//! A harness fails a test by panicking, with a message that says what it waited for.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a harness fails the test by panicking"
)]

pub mod asked;
pub mod client;
pub mod fleet;
mod grpc;
pub mod hostile;
pub mod http;
pub mod http_binding;
mod instances;
pub mod normal;
pub mod old;
pub mod peers;
pub mod promises;
pub mod proxy;
pub mod receiver;
pub mod refusal;
pub mod server;
pub mod sse;
pub mod steps;
pub mod task;

use std::future::Future;
use std::time::Duration;

pub use client::{Binding, Call, CallError, Client, Event, Operation, Stream, contents};
pub use fleet::Fleet;
pub use grpc::Channel;
pub use hostile::Hostile;
pub use instances::{Instances, seed, setting};
pub use old::Speech;
pub use peers::{Peer, Sdk};
pub use proxy::{FaultProxy, LinkFault};
pub use refusal::Refusal;
pub use server::{Launch, Server, Store, TestAgent};

/// How long anything may take that has no limit of its own.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `future`, at most so long; `what` is told when it takes longer.
pub async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing within {limit:?}"),
    }
}

/// Asks again and again, every 20 ms, until `probe` gives a value.
pub async fn until<T>(limit: Duration, what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    within(limit, what, async {
        loop {
            if let Some(value) = probe().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}
