//! The card (§8) and the health routes.

use longhaul_tests::Server;
use longhaul_tests::Store;
use longhaul_tests::http::{Connection, Request};

use crate::{exchange, server};

const PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

#[tokio::test]
async fn card_is_cached_and_revalidated() {
    let (_server, mut connection) = server().await;
    for path in PATHS {
        let answer = exchange(&mut connection, &Request::get(path)).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.media_type().ends_with("json"), "{answer:?}");
        assert!(answer.header("cache-control").unwrap().contains("max-age="));
        let etag = answer.header("etag").unwrap().to_owned();
        let modified = answer.header("last-modified").unwrap().to_owned();
        assert!(modified.ends_with(" GMT"), "{modified}");
        let weak = format!("W/{etag}");
        let list = format!("\"x\", {etag}");
        for (name, value) in [
            ("If-None-Match", etag.as_str()),
            ("If-None-Match", &weak),
            ("If-None-Match", &list),
            ("If-None-Match", "*"),
            ("If-Modified-Since", &modified),
            ("If-Modified-Since", "Tue, 01 Jan 2999 00:00:00 GMT"),
        ] {
            let again = exchange(&mut connection, &Request::get(path).with(name, value)).await;
            assert_eq!(again.status, 304, "{name}: {value}");
            assert!(again.body.is_empty());
            assert_eq!(again.header("etag"), Some(etag.as_str()));
            assert!(again.header("cache-control").is_some());
        }
        for request in [
            Request::get(path).with("If-None-Match", "\"x\""),
            Request::get(path).with("If-None-Match", "\"x\"").with("If-Modified-Since", &modified),
            Request::get(path).with("If-Modified-Since", "Thu, 01 Jan 1998 00:00:00 GMT"),
            Request::get(path).with("If-Modified-Since", "nonsense"),
        ] {
            let again = exchange(&mut connection, &request).await;
            assert_eq!((again.status, &again.body), (200, &answer.body), "{request:?}");
        }
        let head = exchange(&mut connection, &Request::new("HEAD", path)).await;
        assert_eq!((head.status, head.header("etag")), (200, Some(etag.as_str())));
    }
}

#[tokio::test]
async fn card_names_the_three_interfaces_of_this_address() {
    let (server, mut connection) = server().await;
    let request =
        Request::get(PATHS[0]).with("X-Forwarded-Host", "evil.example").with("Forwarded", "host=evil.example");
    let answer = exchange(&mut connection, &request).await;
    let card = answer.json();
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let told: Vec<(&str, &str, &str)> = interfaces
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap();
            (text("protocolBinding"), text("url").trim_end_matches('/'), text("protocolVersion"))
        })
        .collect();
    let (host, url) = (server.addr().to_string(), format!("http://{}", server.addr()));
    assert_eq!(
        told,
        [
            ("JSONRPC", url.as_str(), "1.0"),
            ("HTTP+JSON", url.as_str(), "1.0"),
            ("GRPC", host.as_str(), "1.0"),
            ("JSONRPC", url.as_str(), "0.3"),
            ("HTTP+JSON", url.as_str(), "0.3"),
            ("GRPC", host.as_str(), "0.3"),
        ]
    );
    for member in ["name", "description", "version"] {
        assert!(!card[member].as_str().unwrap().is_empty(), "{member}");
    }
    for member in ["defaultInputModes", "defaultOutputModes", "skills"] {
        assert!(!card[member].as_array().unwrap().is_empty(), "{member}");
    }
    assert_eq!(card["capabilities"]["streaming"], true);
    let extensions = card["capabilities"]["extensions"].to_string();
    for name in ["artifact-versions", "stream-resume", "idempotent-send"] {
        assert!(extensions.contains(&format!("urn:longhaul:ext:{name}:v1")), "{extensions}");
    }
}

#[tokio::test]
async fn public_url_is_what_the_card_says() {
    let server = Server::start_with(Store::Memory, &["--public-url", "https://agent.example"]).await;
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let card = exchange(&mut connection, &Request::get(PATHS[0])).await.json();
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert!(url.starts_with("https://agent.example"), "{card}");
    assert!(!card.to_string().contains("127.0.0.1"), "{card}");
}

#[tokio::test]
async fn card_and_health_ask_for_no_version() {
    let (_server, mut connection) = server().await;
    for path in ["/healthz", "/readyz", PATHS[0], PATHS[1]] {
        for request in [Request::get(path), Request::get(path).with("A2A-Version", "9.9")] {
            let answer = exchange(&mut connection, &request).await;
            assert_eq!(answer.status, 200, "{request:?}");
        }
    }
}
