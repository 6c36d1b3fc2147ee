//! A login by a code that a person enters elsewhere.

use longhaul_client::oauth::{Authorizer, Grant, OAuthError, RefusedCode, StoredToken};
use serde_json::{Value, json};

use super::support::*;

fn code() -> Value {
    json!({
        "device_code": "the-device-code", "user_code": "WDJB-\u{7}MJHT", "verification_uri": "https://login.example/device",
        "verification_uri_complete": "https://login.example/device?user_code=WDJB-MJHT", "expires_in": 600, "interval": 2,
    })
}

/// A server that gives this code, and answers the questions after it by their number.
async fn server(code: Value, answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
    Server::new(move |number, seen| match seen.path.as_str() {
        "/device" => reply(200, &code),
        _ => answer(number - 1),
    })
    .await
}

async fn finished(authorizer: &Authorizer, server: &Server) -> Result<StoredToken, OAuthError> {
    let found = authorizer.discover(&device_card(server), None).await?;
    let login = authorizer.start_device_login(&found, &public(), &scopes("b a")).await?;
    authorizer.finish_device_login(login).await
}

#[tokio::test]
async fn a_person_sees_the_code_and_the_token_comes_when_it_was_entered() {
    let server = server(code(), |question| match question {
        0 | 1 => refusal("authorization_pending"),
        _ => token("t", 3600, Some("r")),
    })
    .await;
    let clock = ManualClock::new();
    let authorizer = authorizer(&clock);
    let found = authorizer.discover(&device_card(&server), None).await.unwrap();
    assert_eq!((found.declared(), found.offers_device_login()), (Some(Grant::DeviceCode), true));
    assert_eq!(found.scopes().to_string(), "call");
    let login = authorizer.start_device_login(&found, &public(), &scopes("b a")).await.unwrap();
    assert_eq!(login.user_code, "WDJB- MJHT");
    assert_eq!(login.verification_uri, "https://login.example/device");
    assert_eq!(login.verification_uri_complete.as_deref(), Some("https://login.example/device?user_code=WDJB-MJHT"));
    assert_eq!(login.expires_at.unix_millis(), START + 600_000);
    assert!(!format!("{login:?}").contains("the-device-code"));
    let token = authorizer.finish_device_login(login).await.unwrap();

    assert_eq!(clock.slept(), [2, 2, 2]);
    assert_eq!((token.access_token.reveal(), token.refresh_token.as_ref().unwrap().reveal()), ("t", "r"));
    assert_eq!(token.expires_at.unwrap().unix_millis(), START + 6_000 + 3_600_000);
    assert_eq!((token.grant, token.scheme.as_str(), token.key.agent.as_str()), (Grant::DeviceCode, "login", CARD));
    let seen = server.seen();
    assert_eq!((seen[0].get("client_id"), seen[0].get("scope")), (Some("cli"), Some("a b")));
    for question in &seen[1..] {
        assert_eq!(question.path, "/token");
        assert_eq!(question.get("grant_type"), Some("urn:ietf:params:oauth:grant-type:device_code"));
        assert_eq!((question.get("device_code"), question.get("client_id")), (Some("the-device-code"), Some("cli")));
    }
}

#[tokio::test]
async fn a_client_with_a_secret_says_who_it_is_once_in_each_request() {
    let server = Server::new(|_, seen| match (seen.path.as_str(), seen.get("client_secret")) {
        (_, None) => reply(401, &json!({ "error": "invalid_client" })),
        ("/device", Some(_)) => reply(200, &code()),
        (_, Some(_)) => token("t", 3600, None),
    })
    .await;
    let authorizer = authorizer(&ManualClock::new());
    let found = authorizer.discover(&device_card(&server), None).await.unwrap();
    let login = authorizer.start_device_login(&found, &confidential(), &scopes("")).await.unwrap();
    authorizer.finish_device_login(login).await.unwrap();
    let seen = server.seen();
    let ids: Vec<_> = seen.iter().map(|seen| (seen.get("client_id"), seen.authorization().is_some())).collect();
    assert_eq!(ids, [(Some("cli:1"), true), (Some("cli:1"), false), (Some("cli:1"), true), (Some("cli:1"), false)]);
    assert_eq!((seen[3].get("device_code"), seen[1].get("scope")), (Some("the-device-code"), None));
}

#[tokio::test]
async fn a_server_that_is_asked_too_often_is_asked_less_often_from_then_on() {
    let server = server(code(), |question| match question {
        0 | 2 => refusal("slow_down"),
        1 | 3 => refusal("authorization_pending"),
        _ => token("t", 3600, None),
    })
    .await;
    let clock = ManualClock::new();
    finished(&authorizer(&clock), &server).await.unwrap();
    assert_eq!(clock.slept(), [2, 7, 7, 12, 12]);
}

#[tokio::test]
async fn a_server_that_names_no_interval_is_asked_every_five_seconds() {
    let mut code = code();
    code["interval"] = Value::Null;
    let server = server(code, |_| token("t", 3600, None)).await;
    let clock = ManualClock::new();
    finished(&authorizer(&clock), &server).await.unwrap();
    assert_eq!(clock.slept(), [5]);
}

#[tokio::test]
async fn a_login_that_was_denied_or_came_too_late_says_so() {
    let clock = ManualClock::new();
    let denied = server(code(), |_| refusal("access_denied")).await;
    assert!(matches!(finished(&authorizer(&clock), &denied).await, Err(OAuthError::Denied { .. })));
    let expired = server(code(), |_| refusal("expired_token")).await;
    assert!(matches!(finished(&authorizer(&clock), &expired).await, Err(OAuthError::CodeExpired)));
    let other = server(code(), |_| refusal("invalid_scope")).await;
    let error = finished(&authorizer(&clock), &other).await.unwrap_err();
    assert!(matches!(&error, OAuthError::Refused { code: RefusedCode::InvalidScope, .. }), "{error}");
    assert!(error.to_string().ends_with("refused: invalid_scope: as the [31m test wants it"), "{error}");
}

#[tokio::test]
async fn a_code_is_not_waited_for_beyond_its_end_whatever_the_server_says() {
    let mut code = code();
    code["expires_in"] = 1e12.into();
    code["interval"] = 600.into();
    let server = server(code, |_| refusal("authorization_pending")).await;
    let clock = ManualClock::new();
    let error = finished(&authorizer(&clock), &server).await.unwrap_err();
    assert!(matches!(error, OAuthError::CodeExpired), "{error}");
    assert_eq!(clock.slept(), [600; 6]);
}

#[tokio::test]
async fn a_server_at_fault_is_asked_again_and_more_slowly() {
    let server = server(code(), |question| match question {
        0 => (503, String::new(), "<html>".to_owned()),
        1 => (429, String::new(), String::new()),
        _ => token("t", 3600, None),
    })
    .await;
    let clock = ManualClock::new();
    finished(&authorizer(&clock), &server).await.unwrap();
    assert_eq!(clock.slept(), [2, 4, 8]);
}

#[tokio::test]
async fn a_person_is_sent_to_no_place_without_tls() {
    let clock = ManualClock::new();
    for (member, value) in [
        ("verification_uri", json!("http://login.example/device")),
        ("verification_uri", json!("javascript:alert(1)")),
        ("verification_uri", json!("https://user@login.example/")),
        ("user_code", json!("\r\n")),
        ("user_code", json!("x".repeat(65))),
        ("device_code", json!("")),
        ("expires_in", json!("soon")),
        ("interval", json!(-1)),
    ] {
        let mut code = code();
        code[member] = value;
        let server = server(code, |_| token("t", 3600, None)).await;
        let error = finished(&authorizer(&clock), &server).await.unwrap_err();
        assert!(matches!(error, OAuthError::InvalidAnswer { .. }), "{member}: {error}");
    }
}

#[tokio::test]
async fn a_card_without_device_login_offers_none() {
    let server = server(code(), |_| token("t", 3600, None)).await;
    let clock = ManualClock::new();
    let authorizer = authorizer(&clock);
    let found = authorizer.discover(&client_credentials_card(&server), None).await.unwrap();
    let error = authorizer.start_device_login(&found, &public(), &scopes("")).await.unwrap_err();
    assert!(matches!(error, OAuthError::NotOffered { .. }), "{error}");
    assert_eq!((server.seen().len(), found.declared()), (0, Some(Grant::ClientCredentials)));
}
