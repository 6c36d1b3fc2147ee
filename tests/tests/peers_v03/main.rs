//! Our client at the server of the Python SDK of v0.3, over each of its bindings: every operation, and streams over links that
//! fail. What is asked for and what is expected is what `tests/peers` asks of servers of v1.0.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../peers/client_links.rs"]
mod client_links;
#[path = "../peers/client_support.rs"]
#[expect(dead_code, reason = "tests/peers uses more of it")]
mod client_support;
mod command;
mod letter;
mod operations;
mod outcomes;
mod own;
mod refusals;
mod streams;

use client_support::{Case, builder, connect_by};
use longhaul_client::ClientBuilder;
use longhaul_client::card::{Binding, Preference, ProtocolVersion};
use longhaul_tests::{Peer, Sdk};

/// A builder of clients that may speak v0.3, and take this binding.
fn old(binding: Binding) -> ClientBuilder {
    let versions = vec![ProtocolVersion::V1_0, ProtocolVersion::V0_3];
    builder(binding).preference(Preference { bindings: vec![binding], versions })
}

/// A client of the peer by this binding.
async fn case(peer: &Peer, binding: Binding) -> Case<'_> {
    let client = connect_by(old(binding), binding, peer).await;
    assert_eq!(client.interface().version, ProtocolVersion::V0_3);
    Case { peer, sdk: Sdk::PythonOld, binding, client }
}

/// Runs a test over each binding, all at once.
async fn each(test: impl AsyncFn(&Case<'_>)) {
    let peer = Peer::start(Sdk::PythonOld).await;
    over_each(&peer, test).await;
}

/// The same at a peer that runs already.
async fn over_each(peer: &Peer, test: impl AsyncFn(&Case<'_>)) {
    let [rpc, rest, grpc] = Binding::ALL;
    let over = async |binding| test(&case(peer, binding).await).await;
    tokio::join!(over(rpc), over(rest), over(grpc));
}
