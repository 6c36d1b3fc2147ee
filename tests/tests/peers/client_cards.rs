//! Other people's cards: found, kept, and followed to an interface.

use std::sync::Arc;

use longhaul_client::Client;
use longhaul_client::card::{Binding, CardCache};
use longhaul_tests::{FaultProxy, LinkFault, Peer, Sdk};

use crate::client_support::{builder, get};

#[tokio::test]
async fn host_alone_leads_to_the_card_and_its_first_interface() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        for reference in [peer.http().to_string(), format!("http://{}", peer.http()), peer.card_url()] {
            let client = Client::connect(&reference).await.unwrap();
            assert_eq!(client.binding(), Binding::JsonRpc, "{sdk:?} {reference}");
            assert_eq!(client.interface().url, format!("http://{}/a2a/rpc", peer.http()), "{sdk:?} {reference}");
            assert!(client.streams(), "{sdk:?}");
        }
    }
}

#[tokio::test]
async fn card_that_is_fresh_is_not_asked_for_again() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let proxy = FaultProxy::before(peer.http(), |_| LinkFault::None).await;
        let cache = Arc::new(CardCache::default());
        for binding in Binding::ALL {
            let client =
                builder(binding).cache(cache.clone()).connect(&format!("http://{}", proxy.addr())).await.unwrap();
            assert_eq!(client.binding(), binding, "{sdk:?}");
            assert!(client.get_task(get("nobody")).await.is_err());
        }
        // The interfaces are not behind the proxy, so all that it saw is for the card.
        assert_eq!(proxy.asked(), 1, "{sdk:?}");
    }
}
