//! Where one logs in, and where not.

use longhaul_client::FoundCard;
use longhaul_client::card::{CardOrigin, Interfaces, OriginPolicy};
use longhaul_client::oauth::{AgentUrl, OAuthError};
use serde_json::{Value, json};

use super::support::*;

async fn refused(card: &FoundCard) -> OAuthError {
    authorizer(&ManualClock::new()).discover(card, None).await.unwrap_err()
}

fn token_at(url: &str) -> Value {
    flow("clientCredentials", &json!({ "tokenUrl": url, "scopes": {} }))
}

#[tokio::test]
async fn metadata_says_what_the_card_leaves_out() {
    let server = Server::new(|_, seen| {
        let base = format!("http://{}", seen.headers["host"]);
        reply(200, &json!({
            "issuer": base, "token_endpoint": format!("{base}/t"), "device_authorization_endpoint": format!("{base}/d"),
        }))
    })
    .await;
    let authorizer = authorizer(&ManualClock::new());
    let metadata = server.at("/.well-known/oauth-authorization-server");
    let oauth2 = json!({ "login": { "oauth2SecurityScheme": {
        "oauth2MetadataUrl": metadata,
        "flows": { "authorizationCode": {
            "authorizationUrl": server.at("/a"), "tokenUrl": server.at("/own"), "scopes": {},
        } },
    } } });
    let found = authorizer.discover(&card_at(CARD, &oauth2), None).await.unwrap();
    assert!(found.offers_device_login());
    assert_eq!(found.host(), server.url.trim_start_matches("http://"));
    let url = server.at("/.well-known/openid-configuration");
    let openid = json!({ "connect": { "openIdConnectSecurityScheme": { "openIdConnectUrl": url } } });
    let found = authorizer.discover(&card_at(CARD, &openid), Some("connect")).await.unwrap();
    assert!(found.offers_device_login());
    assert_eq!((found.scheme(), found.declared()), ("connect", None));
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].method.as_str(), seen[0].authorization()), (2, "GET", None));
}

#[tokio::test]
async fn metadata_of_another_issuer_does_not_count() {
    let server = Server::new(|_, seen| {
        let base = format!("http://{}/other", seen.headers["host"]);
        reply(200, &json!({ "issuer": base, "token_endpoint": format!("{base}/t") }))
    })
    .await;
    let url = server.at("/.well-known/openid-configuration");
    let openid = json!({ "connect": { "openIdConnectSecurityScheme": { "openIdConnectUrl": url } } });
    let error = refused(&card_at(CARD, &openid)).await;
    assert!(matches!(error, OAuthError::InvalidAnswer { .. }), "{error}");
}

#[tokio::test]
async fn metadata_leads_no_further_inside_than_its_card() {
    // What the card says is fine; what it points at is not.
    let server = Server::new(|_, seen| {
        let base = format!("http://{}", seen.headers["host"]);
        reply(200, &json!({ "issuer": base, "token_endpoint": "http://login.example/token" }))
    })
    .await;
    let url = server.at("/.well-known/openid-configuration");
    let openid = json!({ "connect": { "openIdConnectSecurityScheme": { "openIdConnectUrl": url } } });
    let error = refused(&card_at(CARD, &openid)).await;
    assert!(matches!(&error, OAuthError::Endpoint { url, .. } if url == "http://login.example/token"), "{error}");
}

#[tokio::test]
async fn an_endpoint_has_tls_and_is_as_far_out_as_the_card() {
    let internet = "https://agent.example/.well-known/agent-card.json";
    let private = "https://10.0.0.7/card.json";
    for (card, url) in [
        (internet, "http://login.example/token"),
        (internet, "http://127.0.0.1:9/token"),
        (internet, "https://127.0.0.1/token"),
        (internet, "https://localhost/token"),
        (internet, "https://10.0.0.1/token"),
        (internet, "https://169.254.169.254/token"),
        (internet, "https://[::ffff:10.0.0.1]/token"),
        (internet, "https://user:pass@login.example/token"),
        (internet, "file:///etc/passwd"),
        (private, "https://127.0.0.1/token"),
        (private, "http://10.0.0.8/token"),
        (CARD, "http://login.example/token"),
        (CARD, "https://169.254.169.254/token"),
    ] {
        let error = refused(&card_at(card, &token_at(url))).await;
        assert!(matches!(error, OAuthError::Endpoint { .. }), "{card} {url}: {error}");
    }
    let authorizer = authorizer(&ManualClock::new());
    for (card, url) in [
        (internet, "https://login.example/token"),
        (private, "https://10.0.0.8/token"),
        (private, "https://login.example/token"),
        (CARD, "https://10.0.0.8/token"),
        (CARD, "http://localhost:9/token"),
    ] {
        authorizer.discover(&card_at(card, &token_at(url)), None).await.unwrap();
    }
    let anywhere = OriginPolicy { interfaces: Interfaces::Any, ..OriginPolicy::default() };
    let authorizer = authorizer.origins(anywhere);
    authorizer.discover(&card_at(internet, &token_at("https://10.0.0.1/token")), None).await.unwrap();
    assert!(authorizer.discover(&card_at(internet, &token_at("http://10.0.0.1/token")), None).await.is_err());
}

#[tokio::test]
async fn a_card_without_a_scheme_to_log_in_by_says_what_it_has() {
    let schemes = json!({
        "key": { "apiKeySecurityScheme": { "location": "header", "name": "x-key" } },
        "http": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
    });
    let card = card_at(CARD, &schemes);
    let error = refused(&card).await;
    let text = error.to_string();
    assert!(text.contains("\"key\", \"http\""), "{text}");
    // Where the caller knows the server, a bearer scheme is enough.
    let authorizer = authorizer(&ManualClock::new());
    let found = authorizer.server_at(&card, None, "https://login.example/token", None).unwrap();
    assert_eq!((found.scheme(), found.offers_device_login()), ("http", false));
    assert!(authorizer.server_at(&card, Some("key"), "https://login.example/token", None).is_err());
}

#[tokio::test]
async fn a_scheme_without_a_token_url_is_not_offered() {
    for name in ["implicit", "password"] {
        let urls = json!({ "authorizationUrl": "https://a.example/", "tokenUrl": "https://a.example/", "scopes": {} });
        let error = refused(&card_at(CARD, &flow(name, &urls))).await;
        assert!(matches!(error, OAuthError::NotOffered { what: "token URL", .. }), "{error}");
    }
}

#[test]
fn an_agent_is_told_by_its_card_and_not_by_its_host() {
    let schemes = json!({});
    let of = |url| AgentUrl::of(&card_at(url, &schemes)).unwrap();
    assert_eq!(of("HTTPS://Agent.Example:443/a/card.json#x"), of("https://agent.example/a/card.json"));
    assert_ne!(of("https://agent.example/a/card.json"), of("https://agent.example/b/card.json"));
    assert_ne!(of("https://agent.example/card?agent=a"), of("https://agent.example/card?agent=b"));
    assert_eq!(of("https://agent.example/card?key=s3cret").to_string(), "https://agent.example/card");
    let file = FoundCard { origin: CardOrigin::caller(), ..card_at(CARD, &schemes) };
    assert_eq!(AgentUrl::of(&file).unwrap().as_str(), "http://127.0.0.1:1/");
}
