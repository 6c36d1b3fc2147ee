//! Logins as credentials of calls.

use std::sync::Arc;
use std::time::Duration;

use longhaul_client::card::CardDocument;
use longhaul_client::oauth::{Authorizer, Logins, OAuthError, StoredCredentials, TokenStore};
use longhaul_client::{Client, Credential, CredentialSource, FoundCard, Secret, StaticCredentials};
use longhaul_protocol::wire::{GetTaskRequest, SecurityScheme};
use serde_json::json;
use tokio::task::JoinSet;

use super::support::*;

const HOUR: Duration = Duration::from_secs(3600);

struct Setup {
    folder: Folder,
    clock: Arc<ManualClock>,
    server: Server,
    card: FoundCard,
}

impl Setup {
    /// A login that is valid for an hour, at a server that answers what comes after it by its number.
    async fn new(refresh_token: Option<&'static str>, answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let server = Server::new(move |number, _| match number {
            0 => token("t0", 3600, refresh_token),
            number => answer(number),
        })
        .await;
        let clock = ManualClock::new();
        let setup = Self { folder: Folder::new(), clock, card: client_credentials_card(&server), server };
        setup.store().put(login(&setup.authorizer(), &setup.card, "a").await).await.unwrap();
        setup
    }

    fn store(&self) -> TokenStore {
        self.folder.store()
    }

    fn authorizer(&self) -> Authorizer {
        authorizer(&self.clock)
    }

    fn logins(&self) -> Logins {
        Logins { store: self.store(), authorizer: self.authorizer(), client: None }
    }

    fn source(&self) -> StoredCredentials {
        StoredCredentials::new(self.logins(), &self.card, None)
    }

    /// What a source has for the card's scheme.
    async fn token(&self, source: &StoredCredentials) -> Result<Option<String>, OAuthError> {
        let scheme = &self.card.document.card().security_schemes["login"];
        bearer(source, "login", scheme).await
    }
}

async fn bearer(source: &StoredCredentials, name: &str, scheme: &SecurityScheme) -> Result<Option<String>, OAuthError> {
    match source.credential(name, scheme).await {
        Ok(None) => Ok(None),
        Ok(Some(Credential::Bearer(token))) => Ok(Some(token.reveal().to_owned())),
        Ok(Some(other)) => panic!("{other:?}"),
        Err(error) => Err(*error.downcast().unwrap()),
    }
}

#[tokio::test]
async fn a_token_goes_to_the_agent_of_its_login_alone() {
    let setup = Setup::new(None, |_| panic!()).await;
    assert_eq!(setup.token(&setup.source()).await.unwrap().as_deref(), Some("t0"));
    let schemes = &setup.card.document.card().security_schemes;
    let text = json!(setup.card.document.members()["securitySchemes"]);
    for other in ["http://127.0.0.1:1/other/agent-card.json", "http://127.0.0.1:2/.well-known/agent-card.json"] {
        let source = StoredCredentials::new(setup.logins(), &card_at(other, &text), None);
        assert_eq!(bearer(&source, "login", &schemes["login"]).await.unwrap(), None, "{other}");
    }
    // Nor does it go with a scheme of another name, of another kind, or with another token URL.
    let source = setup.source();
    assert_eq!(bearer(&source, "other", &schemes["login"]).await.unwrap(), None);
    let others = json!({
        "key": { "apiKeySecurityScheme": { "location": "header", "name": "x-key" } },
        "basic": { "httpAuthSecurityScheme": { "scheme": "basic" } },
        "moved": { "oauth2SecurityScheme": { "flows": { "clientCredentials": { "tokenUrl": "https://b.example/" } } } },
    });
    for scheme in card_at(CARD, &others).document.card().security_schemes.values() {
        assert_eq!(bearer(&source, "login", scheme).await.unwrap(), None);
    }
    assert!(source.undeclared().await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_sends_the_token_of_a_login_with_each_call() {
    let answer = |_| reply(200, &json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" } }));
    let mut setup = Setup::new(None, answer).await;
    let mut members = setup.card.document.members().clone();
    let interface = json!([{ "url": setup.server.url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" }]);
    members.insert("supportedInterfaces".to_owned(), interface);
    let document = CardDocument::parse(&serde_json::to_vec(&members).unwrap(), CARD).unwrap();
    setup.card.document = Arc::new(document);
    let client = || Client::builder().transport(transport()).logins(setup.logins());
    let get = || GetTaskRequest { id: "t".to_owned(), ..GetTaskRequest::default() };
    client().with_card(setup.card.clone()).unwrap().get_task(get()).await.unwrap();
    let given = StaticCredentials { bearer: Some(Secret::new("given")), ..Default::default() };
    let with_own = client().credentials(Arc::new(given)).connect_card(setup.card.clone()).await.unwrap();
    with_own.get_task(get()).await.unwrap();
    let seen = setup.server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!((seen[1].path.as_str(), seen[1].authorization()), ("/tasks/t", Some("Bearer t0")));
    assert_eq!(seen[2].authorization(), Some("Bearer given"));
}

#[tokio::test]
async fn what_the_caller_gives_goes_before_a_login() {
    let setup = Setup::new(None, |_| panic!()).await;
    let given = |bearer: Option<&str>| StaticCredentials { bearer: bearer.map(Secret::new), ..Default::default() };
    let source = StoredCredentials::new(setup.logins(), &setup.card, Some(Arc::new(given(Some("given")))));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("given"));
    let source = StoredCredentials::new(setup.logins(), &setup.card, Some(Arc::new(given(None))));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t0"));
}

#[tokio::test]
async fn a_logout_counts_at_once() {
    let setup = Setup::new(None, |_| panic!()).await;
    let source = setup.source();
    assert!(setup.token(&source).await.unwrap().is_some());
    setup.store().remove_all().await.unwrap();
    assert_eq!(setup.token(&source).await.unwrap(), None);
}

#[tokio::test]
async fn a_token_is_renewed_in_its_last_minute_and_not_before() {
    let setup = Setup::new(Some("r0"), |number| token(&format!("t{number}"), 3600, None)).await;
    let source = setup.source();
    setup.clock.advance(HOUR - Duration::from_secs(61));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t0"));
    setup.clock.advance(Duration::from_secs(1));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t1"));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t1"));
    // A refresh token that is not replaced stays good.
    setup.clock.advance(HOUR * 2);
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t2"));
    let seen = setup.server.seen();
    assert_eq!(seen.len(), 3);
    for refresh in &seen[1..] {
        assert_eq!((refresh.get("grant_type"), refresh.get("refresh_token")), (Some("refresh_token"), Some("r0")));
        assert_eq!((refresh.get("client_id"), refresh.authorization()), (Some("cli:1"), None));
    }
    assert_eq!(setup.store().tokens().await.unwrap()[0].access_token.reveal(), "t2");
}

#[tokio::test]
async fn a_client_with_a_secret_renews_with_it() {
    let setup = Setup::new(Some("r0"), |number| match number {
        1 => token("t1", 3600, Some("r1")),
        // The refresh token has run out as well.
        2 => refusal("invalid_grant"),
        _ => token("t3", 3600, None),
    })
    .await;
    let logins = Logins { client: Some(confidential()), ..setup.logins() };
    let source = StoredCredentials::new(logins, &setup.card, None);
    for wanted in ["t1", "t3"] {
        setup.clock.advance(HOUR);
        assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some(wanted));
    }
    let seen = setup.server.seen();
    assert!(seen[1..].iter().all(|seen| seen.authorization().is_some()));
    assert_eq!((seen[2].get("refresh_token"), seen[3].get("grant_type")), (Some("r1"), Some("client_credentials")));
    assert_eq!(seen[3].get("scope"), Some("a"));
    // A login of another client is not used.
    let logins = Logins { client: Some(public()), ..setup.logins() };
    assert_eq!(setup.token(&StoredCredentials::new(logins, &setup.card, None)).await.unwrap(), None);
}

#[tokio::test]
async fn many_calls_renew_a_token_once() {
    let setup = Setup::new(Some("r0"), |number| match number {
        1 => token("t1", 3600, Some("r1")),
        _ => refusal("invalid_grant"),
    })
    .await;
    setup.clock.advance(HOUR);
    // Two sources stand for two processes: only the file is between them.
    let sources = [Arc::new(setup.source()), Arc::new(setup.source())];
    let mut calls = JoinSet::new();
    for call in 0..20 {
        let (source, card) = (sources[call % 2].clone(), setup.card.clone());
        calls.spawn(async move { bearer(&source, "login", &card.document.card().security_schemes["login"]).await });
    }
    for token in calls.join_all().await {
        assert_eq!(token.unwrap().as_deref(), Some("t1"));
    }
    assert_eq!(setup.server.seen().len(), 2);
}

#[tokio::test]
async fn a_renewal_goes_on_when_its_call_is_given_up() {
    let setup = Setup::new(Some("r0"), |_| token("t1", 3600, Some("r1"))).await;
    setup.clock.advance(HOUR);
    let source = setup.source();
    {
        let call = setup.token(&source);
        tokio::pin!(call);
        // Once the server has the request, the call is dropped.
        while setup.server.seen().len() < 2 {
            tokio::select! {
                biased;
                _ = &mut call => break,
                () = tokio::task::yield_now() => {}
            }
        }
    }
    let is_kept = async {
        while setup.store().tokens().await.unwrap()[0].access_token.reveal() != "t1" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_kept).await.unwrap();
}

#[tokio::test]
async fn a_failure_to_renew_does_no_harm_while_the_token_is_valid() {
    let setup = Setup::new(Some("r0"), |_| (503, String::new(), String::new())).await;
    let source = setup.source();
    setup.clock.advance(HOUR - Duration::from_secs(30));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t0"));
    setup.clock.advance(Duration::from_secs(30));
    let error = setup.token(&source).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let OAuthError::NotRenewed { source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, OAuthError::Status { status: 503, .. }), "{source}");
}

#[tokio::test]
async fn a_server_in_trouble_is_not_asked_by_each_call() {
    let setup = Setup::new(Some("r0"), |number| match number {
        1 | 2 => (503, String::new(), String::new()),
        _ => token("t3", 3600, None),
    })
    .await;
    let source = Arc::new(setup.source());
    setup.clock.advance(HOUR);
    let mut calls = JoinSet::new();
    for _ in 0..10 {
        let (source, card) = (source.clone(), setup.card.clone());
        calls.spawn(async move { bearer(&source, "login", &card.document.card().security_schemes["login"]).await });
    }
    for answer in calls.join_all().await {
        assert!(matches!(answer, Err(OAuthError::NotRenewed { .. })), "{answer:?}");
    }
    setup.clock.advance(Duration::from_secs(4));
    assert!(setup.token(&source).await.is_err());
    assert_eq!(setup.server.seen().len(), 2);
    setup.clock.advance(Duration::from_secs(1));
    assert!(setup.token(&source).await.is_err());
    assert_eq!(setup.server.seen().len(), 3);
    setup.clock.advance(Duration::from_secs(5));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t3"));
}

#[tokio::test]
async fn a_login_that_has_run_out_says_so() {
    let refused = Setup::new(Some("r0"), |_| refusal("invalid_grant")).await;
    let without = Setup::new(None, |_| panic!()).await;
    without.clock.advance(HOUR - Duration::from_secs(1));
    assert_eq!(without.token(&without.source()).await.unwrap().as_deref(), Some("t0"));
    for setup in [refused, without] {
        setup.clock.advance(HOUR);
        let error = setup.token(&setup.source()).await.unwrap_err();
        assert!(matches!(error, OAuthError::LoginNeeded { .. }), "{error}");
        assert!(error.to_string().contains("hint: log in again"));
    }
}

#[tokio::test]
async fn a_token_of_half_a_minute_is_not_renewed_at_each_call() {
    let server = Server::new(|number, _| token(&format!("t{number}"), 30, Some("r"))).await;
    let clock = ManualClock::new();
    let setup = Setup { folder: Folder::new(), clock, card: client_credentials_card(&server), server };
    setup.store().put(login(&setup.authorizer(), &setup.card, "a").await).await.unwrap();
    let source = setup.source();
    setup.clock.advance(Duration::from_secs(14));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t0"));
    setup.clock.advance(Duration::from_secs(1));
    assert_eq!(setup.token(&source).await.unwrap().as_deref(), Some("t1"));
}
