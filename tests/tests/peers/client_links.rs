//! A link between our client and one of their servers, which fails as a test says.

use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_tests::asked::Asked;
use longhaul_tests::hostile::operation;
use longhaul_tests::peers::Named;
use longhaul_tests::{FaultProxy, LinkFault, Peer, Sdk};

/// Decides about the requests of one binding.
pub type Decide = Box<dyn Fn(&Asked) -> LinkFault + Send + Sync>;

/// A peer whose card names proxies, and the proxies.
pub struct Link {
    http: FaultProxy,
    grpc: FaultProxy,
    pub peer: Peer,
}

impl Link {
    /// A link that fails as `decide` says of each binding for itself.
    pub async fn new(sdk: Sdk, decide: &impl Fn() -> Decide) -> Self {
        let (rpc, rest, grpc) = (decide(), decide(), decide());
        let http =
            FaultProxy::start(move |asked| if asked.path().ends_with("/rpc") { rpc(asked) } else { rest(asked) });
        let (http, grpc) = tokio::join!(http, FaultProxy::start(grpc));
        let peer = behind(sdk, &http, &grpc).await;
        Self { http, grpc, peer }
    }

    /// It has failed, once for each binding at least.
    pub fn assert_failed(&self) {
        let (http, grpc) = (self.http.faults(), self.grpc.faults());
        assert!(http > 1 && grpc > 0, "{:?}: {http} faults over HTTP, {grpc} over gRPC", self.peer.sdk());
    }
}

/// A peer that names these proxies in its card.
pub async fn behind(sdk: Sdk, http: &FaultProxy, grpc: &FaultProxy) -> Peer {
    let peer = Peer::named(sdk, Named { http: Some(http.addr()), grpc: Some(grpc.addr()) }).await;
    http.aim(peer.http());
    grpc.aim(peer.grpc());
    peer
}

/// Whether it opens a stream, in either version, or is a connection of gRPC.
pub fn opens_stream(asked: &Asked) -> bool {
    let streams = ["SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"];
    streams.contains(&operation(asked).as_str()) || asked.is_http2()
}

/// Counts what it is asked about, and fails as `fault` says of each.
pub fn by_number(fault: impl Fn(usize) -> LinkFault + Send + Sync + 'static) -> Decide {
    let count = AtomicUsize::new(0);
    Box::new(move |asked| match opens_stream(asked) {
        true => fault(count.fetch_add(1, Ordering::AcqRel)),
        false => LinkFault::None,
    })
}
