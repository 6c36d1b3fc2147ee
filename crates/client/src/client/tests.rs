//! What goes with a call, and whether it may be repeated; without a connection.

use longhaul_protocol::wire;

use super::*;
use crate::card::CardOrigin;
use crate::{Secret, StaticCredentials};

const CARD: &str = r#"{
    "name": "one", "description": "", "version": "1", "skills": [],
    "defaultInputModes": [], "defaultOutputModes": [],
    "capabilities": {"extensions": [{"uri": "urn:longhaul:ext:idempotent-send:v1"}]},
    "supportedInterfaces": [
        {"url": "INTERFACE", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ]
}"#;

/// The card of `https://agent.example`, whose interface is at this URL.
fn card(interface: &str) -> FoundCard {
    let text = CARD.replace("INTERFACE", interface);
    let place = "https://agent.example/card.json";
    let document = Arc::new(CardDocument::parse(text.as_bytes(), place).unwrap());
    FoundCard { document, origin: CardOrigin::url(place).unwrap() }
}

async fn sent(client: &Client) -> HeaderMap {
    client.exchange(&client.inner.transport, "GetTask", 0, None).await.unwrap().headers
}

fn with_secrets() -> ClientBuilder {
    let bearer = Some(Secret::new("s3cret-token".to_owned()));
    let credentials = Arc::new(StaticCredentials { bearer, ..StaticCredentials::default() });
    Client::builder().credentials(credentials).header("x-api-key", "s3cret-key").unwrap()
}

#[tokio::test]
async fn secrets_go_to_the_host_of_the_card_and_to_no_other() {
    let own = with_secrets().with_card(card("https://agent.example/rpc")).unwrap();
    let headers = sent(&own).await;
    assert!(headers.contains_key("x-api-key") && headers.contains_key("authorization"), "{headers:?}");
    let other = with_secrets().with_card(card("https://other.example/rpc")).unwrap();
    let headers = sent(&other).await;
    assert!(!headers.contains_key("x-api-key") && !headers.contains_key("authorization"), "{headers:?}");
    assert_eq!(headers.get("a2a-version").unwrap(), "1.0");
}

#[tokio::test]
async fn a_client_shows_none_of_its_secrets() {
    let client = with_secrets().with_card(card("https://agent.example/rpc")).unwrap();
    let exchange = client.exchange(&client.inner.transport, "GetTask", 0, None).await.unwrap();
    let shown = format!("{client:?} {exchange:?} {:?}", with_secrets());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn only_a_send_is_told_from_its_repetition_by_a_message_id() {
    let client = Client::builder().with_card(card("https://agent.example/rpc")).unwrap();
    let repetition = |declared| client.repetition(declared);
    assert_eq!(repetition(wire::SendMessageRequest::REPETITION), Repetition::Safe);
    assert_eq!(repetition(wire::TaskPushNotificationConfig::REPETITION), Repetition::Asks);
    assert_eq!(repetition(wire::GetTaskRequest::REPETITION), Repetition::Safe);
}

#[tokio::test]
async fn an_extension_that_no_header_can_name_is_refused() {
    for uri in ["", "urn:a,urn:b", "urn:a b", "urn:a\r\nx: y"] {
        let made = Client::builder().extension(uri).with_card(card("https://agent.example/rpc"));
        assert!(matches!(made, Err(ClientError::Invalid { .. })), "{uri:?}");
    }
}

/// A card may have a megabyte, and a stranger writes it.
#[tokio::test]
async fn a_card_of_very_many_interfaces_and_schemes_is_read_and_used_in_little_time() {
    const MANY: usize = 4_000;
    let interface =
        |n: usize| format!(r#"{{"url":"https://h{n}.example/","protocolBinding":"X{n}","protocolVersion":"1.0"}}"#);
    let scheme = |n: usize| format!(r#""s{n}":{{"httpAuthSecurityScheme":{{"scheme":"Digest"}}}}"#);
    let requirement = |n: usize| format!(r#"{{"schemes":{{"s{n}":{{}}}}}}"#);
    let list = |one: &dyn Fn(usize) -> String| (0..MANY).map(one).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"name":"n","description":"","version":"1","skills":[],"capabilities":{{}},"defaultInputModes":[],
        "defaultOutputModes":[],"supportedInterfaces":[{},{{"url":"https://agent.example/","protocolBinding":"JSONRPC",
        "protocolVersion":"1.0"}}],"securitySchemes":{{{}}},"securityRequirements":[{}]}}"#,
        list(&interface),
        list(&scheme),
        list(&requirement)
    );
    assert!(text.len() < crate::card::CARD_BYTES_MAX, "{}", text.len());
    let begun = tokio::time::Instant::now();
    let place = "https://agent.example/card.json";
    let document = Arc::new(CardDocument::parse(text.as_bytes(), place).unwrap());
    assert!(document.validate().len() > 100, "what is wrong with it is told");
    let found = FoundCard { document, origin: CardOrigin::url(place).unwrap() };
    let client = with_secrets().with_card(found).unwrap();
    assert_eq!(client.interface().index, MANY);
    sent(&client).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_tenant_is_exactly_that_of_the_card() {
    for (named, wanted) in [("", ""), (r#""tenant": "acme", "#, "acme")] {
        let card = card(&format!(r#"https://agent.example/rpc", {named}"description": ""#));
        let client = Client::builder().with_card(card).unwrap();
        for own in ["", "mine"] {
            let mut request = wire::GetTaskRequest { tenant: own.to_owned(), ..wire::GetTaskRequest::default() };
            let of_path = client.set_tenant(request.tenant_mut());
            assert_eq!((request.tenant.as_str(), of_path.as_str()), (wanted, wanted));
        }
    }
}

#[derive(Debug)]
struct Adds(&'static str);

#[async_trait::async_trait]
impl Interceptor for Adds {
    async fn before(&self, call: &mut Call<'_>) -> Result<(), ClientError> {
        call.headers.insert(self.0, HeaderValue::from_static("s3cret"));
        Ok(())
    }
}

#[tokio::test]
async fn what_an_interceptor_adds_is_not_logged() {
    let builder = Client::builder().interceptor(Arc::new(Adds("x-mine")));
    let client = builder.with_card(card("https://agent.example/rpc")).unwrap();
    let exchange = client.exchange(&client.inner.transport, "GetTask", 0, None).await.unwrap();
    assert_eq!(exchange.headers.get("x-mine").unwrap(), "s3cret");
    let shown = crate::interceptor::redacted(&exchange.headers, &exchange.secret);
    assert_eq!(shown.get("x-mine").unwrap(), "[redacted]");
    assert_eq!(shown.get("a2a-version").unwrap(), "1.0");
}

#[tokio::test]
async fn a_key_that_grpc_has_no_place_for_is_said_to_be_missing() {
    let text = r#"{"name": "n", "description": "", "version": "1", "skills": [], "capabilities": {},
        "defaultInputModes": [], "defaultOutputModes": [],
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "query", "name": "key"}}},
        "supportedInterfaces": [
            {"url": "https://agent.example:50051", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ]}"#;
    let place = "https://agent.example/card.json";
    let document = Arc::new(CardDocument::parse(text.as_bytes(), place).unwrap());
    let found = FoundCard { document, origin: CardOrigin::url(place).unwrap() };
    for (binding, is_sent) in [(Binding::Grpc, false), (Binding::JsonRpc, true)] {
        let key = StaticCredentials { api_key: Some(Secret::new("k3y")), ..StaticCredentials::default() };
        let preference = crate::card::Preference { bindings: vec![binding], ..Default::default() };
        let builder = Client::builder().credentials(Arc::new(key)).preference(preference);
        let client = builder.with_card(found.clone()).unwrap();
        let exchange = client.exchange(&client.inner.transport, "GetTask", 0, None).await;
        assert_eq!(exchange.map(|exchange| exchange.query).ok(), is_sent.then(|| "key=k3y".to_owned()));
    }
}

#[derive(Debug)]
struct NeverAnswers;

#[async_trait::async_trait]
impl CredentialSource for NeverAnswers {
    async fn credential(&self, _: &str, _: &wire::SecurityScheme) -> Result<Option<crate::Credential>, crate::Cause> {
        std::future::pending().await
    }

    async fn undeclared(&self) -> Result<Option<crate::Credential>, crate::Cause> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_source_of_credentials_has_no_more_time_than_an_attempt() {
    let builder = Client::builder().credentials(Arc::new(NeverAnswers)).timeout(Duration::from_millis(20));
    let client = builder.with_card(card("https://agent.example/rpc")).unwrap();
    let called = timeout(Duration::from_secs(10), client.get_task(wire::GetTaskRequest::default())).await;
    let error = called.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Credential { .. }) && error.is_before_acting(), "{error}");
    assert_eq!(error.to_string(), "cannot get a credential");
}

/// Answers one request: with the head of a stream after a while, and with the agent's only word after another.
async fn hesitates(listener: tokio::net::TcpListener, pause: Duration) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut asked).await.unwrap(), 0);
    }
    sleep(pause).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await.unwrap();
    sleep(pause).await;
    let word = r#"data: {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}}"#;
    stream.write_all(format!("{word}\n\n").as_bytes()).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_thinks_before_its_first_word_is_waited_for() {
    let short = Duration::from_millis(100);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        r#"{{"name": "n", "description": "", "version": "1", "skills": [], "capabilities": {{"streaming": true}},
        "defaultInputModes": [], "defaultOutputModes": [], "supportedInterfaces": [
            {{"url": "http://{}", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}}]}}"#,
        listener.local_addr().unwrap()
    );
    let document = Arc::new(CardDocument::parse(text.as_bytes(), "card.json").unwrap());
    let found = FoundCard { document, origin: CardOrigin::caller() };
    let mut transport = crate::TransportConfig::default();
    (transport.stream_silence_max, transport.proxy) = (short, crate::Proxy::Direct);
    let client = Client::builder().transport(transport).timeout(short).with_card(found).unwrap();
    let mut agent = tokio::task::JoinSet::new();
    agent.spawn(hesitates(listener, 4 * short));
    let message = wire::Message { parts: vec![wire::Part::text("hello")], ..wire::Message::default() };
    let request = wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() };
    let answered = timeout(Duration::from_secs(20), client.delegate(request, crate::WaitOptions::default())).await;
    let answer = answered.unwrap().unwrap();
    assert!(matches!(&answer, crate::Outcome::Answered(said) if said.parts.len() == 1), "{answer:?}");
}
