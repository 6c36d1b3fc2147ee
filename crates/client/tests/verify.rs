//! Clients that insist on a verified card.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[path = "verify/key_server.rs"]
mod key_server;
#[expect(dead_code, reason = "the tests of signatures use more of it")]
#[path = "signature/signer.rs"]
mod signer;

use std::sync::Arc;

use longhaul_client::card::{CardDocument, CardOrigin, Preference, ProtocolVersion};
use longhaul_client::signature::{Finding, Form, JwkSet, Overall, Reason, Report, TrustStore, Verifier};
use longhaul_client::{CardError, Client, ClientBuilder, ClientError, FoundCard, Proxy, TransportConfig, Verification};
use serde_json::{Value, json};
use url::Url;

use key_server::KeyServer;
use signer::{Signer, plain_card, with, with_signatures};

const PLACE: &str = "https://a.example/.well-known/agent-card.json";

fn found(card: &Value) -> FoundCard {
    let document = CardDocument::parse(card.to_string().as_bytes(), PLACE).unwrap();
    FoundCard { document: Arc::new(document), origin: CardOrigin::url(PLACE).unwrap() }
}

fn signed(signer: &Signer, card: &Value) -> Value {
    with_signatures(card, &[signer.entry(card)])
}

fn builder(verification: Verification) -> ClientBuilder {
    let mut config = TransportConfig::default();
    config.proxy = Proxy::Direct;
    config.verification = verification;
    Client::builder().transport(config)
}

async fn connect(verifier: Verifier, card: &Value) -> Result<Client, ClientError> {
    builder(Verification::Full).require_verified_card(verifier).connect_card(found(card)).await
}

/// What is said of a card that is not verified.
async fn unverified(verifier: Verifier, card: &Value) -> String {
    match connect(verifier, card).await.unwrap_err() {
        ClientError::Card(CardError::Unverified { place, report }) => {
            assert_eq!(place, PLACE);
            report
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_client_takes_a_card_that_a_trusted_key_signed_and_no_other() {
    let signer = Signer::ed_dsa("k");
    let verifier = Verifier::new(signer.trusted());
    let card = signed(&signer, &plain_card());
    let client = connect(verifier.clone(), &card).await.unwrap();
    assert_eq!((client.card().name.as_str(), client.interface().url.as_str()), ("n", "https://a.example/"));

    assert_eq!(unverified(verifier.clone(), &plain_card()).await, "it carries no signature");
    let changed = with(&card, "name", "other".into());
    let report = unverified(verifier.clone(), &changed).await;
    assert!(report.starts_with("wrong: does not fit key \"k\""), "{report}");
    let report = unverified(verifier, &signed(&Signer::ed_dsa("other"), &plain_card())).await;
    assert!(report.starts_with("unverifiable: no trusted key"), "{report}");
}

#[tokio::test]
async fn a_card_of_a_file_is_verified_as_well() {
    let signer = Signer::ed_dsa("k");
    let path = std::env::temp_dir().join(format!("longhaul-verify-{}.json", std::process::id()));
    let reference = path.to_str().unwrap();
    std::fs::write(&path, signed(&signer, &plain_card()).to_string()).unwrap();
    let connected = |verifier| builder(Verification::Full).require_verified_card(verifier).connect(reference);
    let good = connected(Verifier::new(signer.trusted())).await;
    // A key for an origin says nothing about a file.
    let mut trust = TrustStore::default();
    trust.trust_for_origin(&Url::parse(PLACE).unwrap(), signer.set());
    let bad = connected(Verifier::new(trust)).await;
    std::fs::remove_file(&path).unwrap();
    good.unwrap();
    assert!(matches!(bad, Err(ClientError::Card(CardError::Unverified { .. }))), "{bad:?}");
}

#[tokio::test]
async fn a_key_for_an_origin_counts_only_where_the_connection_proved_it() {
    let signer = Signer::ed_dsa("k");
    let card = found(&signed(&signer, &plain_card()));
    let mut trust = TrustStore::default();
    trust.trust_for_origin(&Url::parse(PLACE).unwrap(), signer.set());
    let verifier = Verifier::new(trust);
    for (verification, wanted) in [(Verification::Full, Overall::Verified), (Verification::Off, Overall::Unverifiable)]
    {
        let report = builder(verification).verify_card(&card, &verifier).await.unwrap();
        assert_eq!(report.overall(), wanted);
        let client = builder(verification).require_verified_card(verifier.clone()).with_card(card.clone());
        assert_eq!(client.is_ok(), wanted == Overall::Verified);
    }
}

#[tokio::test]
async fn what_a_signature_does_not_cover_is_not_used() {
    let signer = Signer::ed_dsa("k");
    let schemes = json!({ "login": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } });
    let card = with(&plain_card(), "securitySchemes", schemes);
    let entry = signer.entry(&card);
    // Somebody on the way adds a requirement and a scheme, which the reference form drops.
    let open = with(&card, "securityRequirements", json!([{}, { "schemes": { "login": { "list": [] } } }]));
    let open = with_signatures(&with(&open, "documentationUrl", "".into()), &[entry]);
    let report =
        builder(Verification::Full).verify_card(&found(&open), &Verifier::new(signer.trusted())).await.unwrap();
    let Finding::Verified { form, uncovered, .. } = &report.signatures[0].finding else { panic!("{report:?}") };
    assert_eq!(
        (*form, uncovered.as_slice()),
        (Form::Reference, ["securityRequirements", "documentationUrl"].map(str::to_owned).as_slice())
    );

    let client = connect(Verifier::new(signer.trusted()), &open).await.unwrap();
    assert_eq!((client.card().security_requirements.len(), client.card().security_schemes.len()), (0, 1));
    assert_eq!((client.card().documentation_url.as_deref(), client.document().place()), (None, PLACE));
    // Who wants all of it covered can say so.
    let strict = Verifier::new(signer.trusted()).with_weakest_form(Form::Specification);
    let report = unverified(strict, &open).await;
    assert!(report.contains("form reference") && report.contains("securityRequirements"), "{report}");
}

#[tokio::test]
async fn a_member_that_the_protocol_does_not_know_leads_nowhere() {
    let signer = Signer::ed_dsa("k");
    let interfaces = json!([{ "url": "https://a.example/", "protocolBinding": "SMTP", "protocolVersion": "1.0" }]);
    let card = with(&plain_card(), "supportedInterfaces", interfaces);
    let entry = signer.entry(&card);
    // Members of v0.3, which are used where none of v1.0's interfaces can be.
    let evil = with(&with(&card, "url", "https://evil.example/".into()), "preferredTransport", "JSONRPC".into());
    let evil = with_signatures(&evil, &[entry]);
    let preference =
        || Preference { versions: vec![ProtocolVersion::V1_0, ProtocolVersion::V0_3], ..Preference::default() };
    let unsure = builder(Verification::Full).preference(preference()).with_card(found(&evil)).unwrap();
    assert_eq!(unsure.interface().url, "https://evil.example/");
    let verifier = Verifier::new(signer.trusted()).with_weakest_form(Form::ReferenceOfKnown);
    let sure = builder(Verification::Full).preference(preference()).require_verified_card(verifier);
    let error = sure.with_card(found(&evil)).unwrap_err();
    assert!(matches!(error, ClientError::Card(CardError::NoInterface { .. })), "{error}");
}

/// A card whose signature names the key set of this server, and a verifier that may follow it.
fn pointing(signer: &Signer, server: &KeyServer) -> (Value, Verifier) {
    let header = with(&signer.header(), "jku", server.url.as_str().into());
    let card = plain_card();
    let card = with_signatures(&card, &[signer.entry_with_header(&card, &header)]);
    (card, Verifier::new(TrustStore::default()).with_jku_allow(server.url.parse().unwrap()))
}

fn problem(report: &Report) -> &str {
    match &report.signatures[0].finding {
        Finding::Unverifiable { reason: Reason::JkuFailed { problem, .. } } => problem,
        other => panic!("{other}"),
    }
}

async fn report(server: &KeyServer, verification: Verification, card: &Value, verifier: &Verifier) -> Report {
    let mut config = TransportConfig::default();
    config.proxy = Proxy::Direct;
    config.verification = verification;
    config.extra_roots = Some(server.root.clone());
    Client::builder().transport(config).verify_card(&found(card), verifier).await.unwrap()
}

#[tokio::test]
async fn the_key_set_that_a_signature_names_is_fetched_where_that_is_allowed() {
    let signer = Signer::ed_dsa("k");
    let server = KeyServer::new("200 OK", "", &json!({ "keys": [signer.jwk()] }).to_string());
    let (card, verifier) = pointing(&signer, &server);
    let verified = report(&server, Verification::Full, &card, &verifier).await;
    assert_eq!((verified.overall(), server.requests()), (Overall::Verified, 1));
    let mut config = TransportConfig::default();
    config.proxy = Proxy::Direct;
    config.extra_roots = Some(server.root.clone());
    let client = Client::builder().transport(config).require_verified_card(verifier);
    client.connect_card(found(&card)).await.unwrap();
    assert_eq!(server.requests(), 2);

    let strange = Verifier::new(TrustStore::default());
    let refused = report(&server, Verification::Full, &card, &strange).await;
    assert_eq!((refused.overall(), server.requests()), (Overall::Unverifiable, 2));
}

#[tokio::test]
async fn a_key_set_is_not_taken_from_whom_no_certificate_proves() {
    let signer = Signer::ed_dsa("k");
    let server = KeyServer::new("200 OK", "", &json!({ "keys": [signer.jwk()] }).to_string());
    let (card, verifier) = pointing(&signer, &server);
    let blind = report(&server, Verification::Off, &card, &verifier).await;
    assert_eq!((problem(&blind), server.requests()), ("the peer's certificate would not be verified", 0));
    let unknown = builder(Verification::Full).verify_card(&found(&card), &verifier).await.unwrap();
    assert!(problem(&unknown).contains("certificate"), "{unknown:?}");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn what_is_no_key_set_is_in_the_report() {
    let signer = Signer::ed_dsa("k");
    let good = json!({ "keys": [signer.jwk()] }).to_string();
    let large = format!("{good}{}", " ".repeat(JwkSet::BYTES_MAX));
    for (status, header, body, wanted) in [
        ("302 Found", "location: https://localhost/keys\r\n", good.as_str(), "HTTP status 302"),
        ("404 Not Found", "", good.as_str(), "HTTP status 404"),
        ("200 OK", "", large.as_str(), "more than 262144 bytes"),
        ("200 OK", "", "<html>", "not JSON"),
    ] {
        let server = KeyServer::new(status, header, body);
        let (card, verifier) = pointing(&signer, &server);
        let report = report(&server, Verification::Full, &card, &verifier).await;
        assert!(problem(&report).contains(wanted), "{wanted}: {report:?}");
        assert_eq!(server.requests(), 1);
    }
}
