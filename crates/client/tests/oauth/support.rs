//! An authorization server that answers as it is told, a clock that does as it is told, and cards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_client::card::{CardDocument, CardOrigin};
use longhaul_client::oauth::{Authorizer, Clock, OAuthClient, Scopes, StoredToken, TokenStore};
use longhaul_client::{FoundCard, Proxy, Secret, TransportConfig};
use longhaul_protocol::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The time at which tests begin, in milliseconds.
pub const START: i64 = 1_800_000_000_000;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub form: Vec<(String, String)>,
}

impl Seen {
    pub fn get(&self, name: &str) -> Option<&str> {
        let values: Vec<_> = self.form.iter().filter(|(other, _)| other == name).collect();
        assert!(values.len() < 2, "{name} is there {} times", values.len());
        values.first().map(|(_, value)| value.as_str())
    }

    pub fn authorization(&self) -> Option<&str> {
        self.headers.get("authorization").map(String::as_str)
    }
}

/// What is answered: a status, a header if there is one, and a body.
pub type Reply = (u16, String, String);

pub fn reply(status: u16, body: &Value) -> Reply {
    (status, String::new(), body.to_string())
}

pub fn refusal(error: &str) -> Reply {
    reply(400, &json!({ "error": error, "error_description": "as the\u{1b}[31m test\r\nwants it" }))
}

pub fn token(access_token: &str, expires_in: i64, refresh_token: Option<&str>) -> Reply {
    let mut token = json!({ "access_token": access_token, "token_type": "bearer", "expires_in": expires_in });
    if let Some(refresh_token) = refresh_token {
        token["refresh_token"] = refresh_token.into();
    }
    reply(200, &token)
}

/// A server on this machine.
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// One that answers each request, the first with number 0, as the function says.
    pub async fn new(answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let mut tasks = JoinSet::new();
        let all = seen.clone();
        tasks.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                serve(stream, &all, &answer).await;
            }
        });
        Self { url, seen, _tasks: tasks }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

async fn serve(mut stream: TcpStream, all: &Mutex<Vec<Seen>>, answer: &(impl Fn(usize, &Seen) -> Reply + Sync)) {
    let mut text = String::new();
    let (head, body) = loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        if read == 0 {
            return;
        }
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
    let headers =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let seen = Seen {
        method: words.next().unwrap(),
        path: words.next().unwrap(),
        headers: headers.collect(),
        form: url::form_urlencoded::parse(body.as_bytes()).into_owned().collect(),
    };
    let number = {
        let mut all = all.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    let (status, header, body) = answer(number, &seen);
    let length = body.len();
    let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n{header}\r\n");
    let _gone = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// A clock that stands until somebody sleeps.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    slept: Mutex<Vec<u64>>,
}

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { now: AtomicI64::new(START), slept: Mutex::default() })
    }

    pub fn advance(&self, duration: Duration) {
        self.now.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// How long was slept each time, in seconds.
    pub fn slept(&self) -> Vec<u64> {
        self.slept.lock().unwrap().clone()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        self.slept.lock().unwrap().push(duration.as_secs());
        self.advance(duration);
        tokio::task::yield_now().await;
    }
}

pub fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    config.proxy = Proxy::Direct;
    config
}

pub fn authorizer(clock: &Arc<ManualClock>) -> Authorizer {
    Authorizer::new(&transport()).clock(clock.clone())
}

/// Where the card of the agent on this machine is.
pub const CARD: &str = "http://127.0.0.1:1/.well-known/agent-card.json";

/// A card at a URL with these schemes, each of which is required with scope `call`.
pub fn card_at(url: &str, schemes: &Value) -> FoundCard {
    let requirements: Vec<Value> = schemes
        .as_object()
        .unwrap()
        .keys()
        .map(|name| json!({ "schemes": { (name): { "list": ["call"] } } }))
        .collect();
    let card = json!({
        "name": "n", "description": "d", "version": "1", "capabilities": {},
        "supportedInterfaces": [{ "url": "http://127.0.0.1:1/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
        "securitySchemes": schemes, "securityRequirements": requirements,
    });
    let document = CardDocument::parse(card.to_string().as_bytes(), url).unwrap();
    FoundCard { document: Arc::new(document), origin: CardOrigin::url(url).unwrap() }
}

/// Schemes with one, `login`, that has this flow.
pub fn flow(name: &str, flow: &Value) -> Value {
    json!({ "login": { "oauth2SecurityScheme": { "flows": { (name): flow } } } })
}

pub fn device_card(server: &Server) -> FoundCard {
    let urls = json!({
        "deviceAuthorizationUrl": server.at("/device"), "tokenUrl": server.at("/token"), "scopes": {},
    });
    card_at(CARD, &flow("deviceCode", &urls))
}

pub fn client_credentials_card(server: &Server) -> FoundCard {
    card_at(CARD, &flow("clientCredentials", &json!({ "tokenUrl": server.at("/token"), "scopes": {} })))
}

pub fn public() -> OAuthClient {
    OAuthClient { id: "cli".to_owned(), secret: None }
}

pub fn confidential() -> OAuthClient {
    OAuthClient { id: "cli:1".to_owned(), secret: Some(Secret::new("p+w %")) }
}

pub fn scopes(text: &str) -> Scopes {
    text.parse().unwrap()
}

/// A login of the confidential client.
pub async fn login(authorizer: &Authorizer, card: &FoundCard, asked: &str) -> StoredToken {
    let server = authorizer.discover(card, None).await.unwrap();
    authorizer.client_credentials(&server, &confidential(), &scopes(asked)).await.unwrap()
}

/// A folder that is gone with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longhaul-oauth-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn store(&self) -> TokenStore {
        TokenStore::new(self.0.join("a2a-cli").join("tokens.json"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}
