//! Client credentials, what counts as a token, and what must not happen to a secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_client::oauth::{OAuthError, RefusedCode, StoredToken, TOKEN_BYTES_MAX};
use serde_json::{Value, json};

use super::support::*;

async fn asked(server: &Server) -> Result<StoredToken, OAuthError> {
    let authorizer = authorizer(&ManualClock::new());
    let found = authorizer.discover(&client_credentials_card(server), None).await.unwrap();
    authorizer.client_credentials(&found, &confidential(), &scopes("call")).await
}

#[tokio::test]
async fn a_client_says_who_it_is_by_basic_and_gets_a_token() {
    let server = Server::new(|_, _| token("t", 60, None)).await;
    let token = asked(&server).await.unwrap();
    assert_eq!(token.access_token.reveal(), "t");
    assert_eq!(token.expires_at.unwrap().unix_millis(), START + 60_000);
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].method.as_str(), seen[0].path.as_str()), (1, "POST", "/token"));
    assert_eq!(seen[0].headers["content-type"], "application/x-www-form-urlencoded");
    // Both parts are encoded as in a form, so that a colon in the id is none of the pair.
    let wanted = format!("Basic {}", STANDARD.encode("cli%3A1:p%2Bw+%25"));
    assert_eq!(seen[0].authorization(), Some(wanted.as_str()));
    assert_eq!((seen[0].get("grant_type"), seen[0].get("scope")), (Some("client_credentials"), Some("call")));
    assert_eq!(seen[0].get("client_secret"), None);
}

#[tokio::test]
async fn a_server_that_does_not_take_basic_gets_the_secret_in_the_body_once() {
    let server = Server::new(|_, seen| match seen.get("client_secret") {
        Some("p+w %") => token("t", 60, None),
        _ => reply(401, &json!({ "error": "invalid_client" })),
    })
    .await;
    asked(&server).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.len(), seen[1].get("client_id"), seen[1].authorization()), (2, Some("cli:1"), None));
    assert_eq!((seen[1].get("grant_type"), seen[1].get("scope")), (Some("client_credentials"), Some("call")));

    let never = Server::new(|_, _| reply(401, &json!({ "error": "invalid_client" }))).await;
    let error = asked(&never).await.unwrap_err();
    assert!(matches!(error, OAuthError::Refused { code: RefusedCode::InvalidClient, .. }), "{error}");
    assert_eq!(never.seen().len(), 2);
}

#[tokio::test]
async fn no_redirect_is_followed_with_a_secret() {
    let elsewhere = Server::new(|_, _| token("t", 60, None)).await;
    let location = format!("location: {}\r\n", elsewhere.at("/token"));
    let server = Server::new(move |_, _| (307, location.clone(), String::new())).await;
    let error = asked(&server).await.unwrap_err();
    assert!(matches!(error, OAuthError::Status { status: 307, .. }), "{error}");
    assert_eq!(elsewhere.seen().len(), 0);
}

#[tokio::test]
async fn what_is_no_bearer_token_is_refused_and_never_repeated() {
    const SECRET: &str = "s3cr3t-token";
    let long = "x".repeat(TOKEN_BYTES_MAX + 1);
    for body in [
        json!({ "access_token": SECRET, "token_type": "mac" }).to_string(),
        json!({ "access_token": SECRET }).to_string(),
        json!({ "access_token": "", "token_type": "Bearer" }).to_string(),
        json!({ "access_token": format!("{SECRET}\r\nx: y"), "token_type": "Bearer" }).to_string(),
        json!({ "access_token": long, "token_type": "Bearer" }).to_string(),
        json!({ "access_token": SECRET, "token_type": "Bearer", "expires_in": SECRET }).to_string(),
        json!({ "access_token": SECRET, "token_type": "Bearer", "refresh_token": [SECRET] }).to_string(),
        json!({ "access_token": { "a": SECRET }, "token_type": "Bearer" }).to_string(),
        format!(r#"{{"access_token":"{SECRET}","token_type":"Bearer","access_token":"{SECRET}"}}"#),
        format!("access_token={SECRET}&token_type=bearer"),
    ] {
        let server = Server::new(move |_, _| (200, String::new(), body.clone())).await;
        let error = asked(&server).await.unwrap_err();
        assert!(matches!(error, OAuthError::InvalidAnswer { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_has_no_end_is_cut_off() {
    let server = Server::new(|_, _| (200, String::new(), " ".repeat(64 * 1024 + 1))).await;
    let error = asked(&server).await.unwrap_err();
    let OAuthError::Unreachable { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**source, longhaul_client::ClientError::TooLarge { .. }), "{source}");
}

#[tokio::test]
async fn a_lifetime_is_read_as_servers_write_it() {
    for (written, seconds) in [
        (json!(3600), Some(3600)),
        (json!("3600"), Some(3600)),
        (json!(3599.9), Some(3599)),
        (Value::Null, None),
        (json!(1e300), Some(10 * 365 * 24 * 60 * 60)),
    ] {
        let body = json!({ "access_token": "t", "token_type": "BEARER", "expires_in": written, "refresh_token": "" });
        let server = Server::new(move |_, _| reply(200, &body)).await;
        let token = asked(&server).await.unwrap();
        assert_eq!(token.expires_at.map(|at| (at.unix_millis() - START) / 1000), seconds);
        assert_eq!(token.refresh_token, None);
    }
}

#[tokio::test]
async fn a_client_without_a_secret_or_an_id_is_not_sent() {
    let server = Server::new(|_, _| token("t", 60, None)).await;
    let authorizer = authorizer(&ManualClock::new());
    let found = authorizer.discover(&client_credentials_card(&server), None).await.unwrap();
    let mut nameless = confidential();
    nameless.id.clear();
    for client in [public(), nameless] {
        let error = authorizer.client_credentials(&found, &client, &scopes("")).await.unwrap_err();
        assert!(matches!(error, OAuthError::Invalid { .. }), "{error}");
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn what_is_no_scope_is_refused() {
    use longhaul_client::oauth::Scopes;
    assert_eq!("b  a b".parse::<Scopes>().unwrap().to_string(), "a b");
    for text in ["a\"", "\u{e9}", "a\\b", &"x".repeat(501)] {
        assert!(text.parse::<Scopes>().is_err(), "{text}");
    }
    assert!(Scopes::new(["a b"]).is_err());
    assert!(Scopes::new((0..101).map(|number| number.to_string())).is_err());
}
