//! The one document for readers of both versions.

use longhaul_protocol::{from_json, v0_3, wire};
use longhaul_tests::http::Request;
use serde_json::{Value, json};

use crate::{exchange, server};

const PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

fn interfaces(card: &wire::AgentCard) -> Vec<(&str, &str, &str)> {
    let interfaces = card.supported_interfaces.iter();
    interfaces.map(|it| (it.protocol_binding.as_str(), it.url.as_str(), it.protocol_version.as_str())).collect()
}

#[tokio::test]
async fn readers_of_each_version_find_their_interfaces() {
    let (server, mut connection) = server("").await;
    let (url, host) = (format!("http://{}", server.addr()), server.addr().to_string());
    let of = |version: &'static str| {
        [("JSONRPC", url.as_str(), version), ("HTTP+JSON", url.as_str(), version), ("GRPC", host.as_str(), version)]
    };
    for path in PATHS {
        let answer = exchange(&mut connection, &Request::get(path)).await;
        let new: wire::AgentCard = from_json(&answer.body).unwrap();
        assert_eq!(interfaces(&new), [of("1.0"), of("0.3")].concat());
        let old = v0_3::card::card_from_json(&answer.body).unwrap();
        assert_eq!(interfaces(&old), of("0.3"));
        assert_eq!((&old.skills, &old.capabilities), (&new.skills, &new.capabilities));
        let card = answer.json();
        assert_eq!(card["supportedProtocolVersions"], json!(["1.0", "0.3"]));
        assert_eq!((&card["protocolVersion"], &card["preferredTransport"]), (&json!("0.3"), &json!("JSONRPC")));
    }
    // By HTTP+JSON's own path as well.
    let card = exchange(&mut connection, &Request::get(PATHS[0])).await;
    let own = exchange(&mut connection, &Request::get("/v1/card")).await;
    assert_eq!((own.header("a2a-version"), &own.body), (Some("0.3"), &card.body));
}

#[tokio::test]
async fn a_version_that_is_off_leaves_nothing_in_the_card() {
    const OLD: [&str; 5] =
        ["protocolVersion", "url", "preferredTransport", "additionalInterfaces", "supportedProtocolVersions"];
    let members = |card: &Value| card.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (config, version) in [("server.versions = [\"1.0\"]", "1.0"), ("server.versions = [\"0.3\"]", "0.3")] {
        let (_server, mut connection) = server(config).await;
        for path in PATHS {
            let card = exchange(&mut connection, &Request::get(path)).await.json();
            let told = card["supportedInterfaces"].as_array().unwrap();
            assert!(told.len() == 3 && told.iter().all(|it| it["protocolVersion"] == version), "{card}");
            for member in OLD {
                assert_eq!(members(&card).iter().any(|known| known == member), version == "0.3", "{member}: {card}");
            }
        }
    }
}

#[tokio::test]
async fn grpc_can_be_left_out_for_both() {
    let (_server, mut connection) = server("card.grpc = false").await;
    let answer = exchange(&mut connection, &Request::get(PATHS[0])).await;
    assert!(!answer.text().contains("GRPC"), "{}", answer.text());
    assert_eq!(v0_3::card::card_from_json(&answer.body).unwrap().supported_interfaces.len(), 2);
}
