//! A receiver of push notifications that fails by script, and otherwise takes what comes as [`longhaul_client::push`] says.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use longhaul_client::push::{Expectations, Order, Receiver, SigningSecret};
use longhaul_protocol::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::asked::{self, Asked};

/// What requests are signed with in these tests.
pub const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The token of the configs that [`HookReceiver::config`] makes.
pub const TOKEN: &str = "a-token-of-these-tests";

/// What is done with one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reply {
    /// It is taken, and answered 204.
    Take,
    /// It is answered with this status, and a further header.
    Status(u16, &'static str),
    /// It is not answered.
    Hang,
    /// The connection is closed without an answer.
    Close,
    /// It is taken, and the connection is closed within the answer's head.
    TakeAndCut,
    /// The answer's head comes byte by byte, and never ends.
    DripHead,
    /// It is taken and answered 200; the body comes byte by byte, and never ends.
    TakeAndDripBody,
    /// It is taken and answered 200; the connection is closed within the body.
    TakeAndCutBody,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Came {
    /// Its path, without the slash: the name of the config.
    pub name: String,
    /// `Webhook-Id`.
    pub id: String,
    /// When.
    pub at: tokio::time::Instant,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
}

/// What was handed over of one config, in order.
pub type Handed = Vec<(u64, Order)>;

type Script = Box<dyn Fn(&str, u64, usize) -> Reply + Send + Sync>;

/// A receiver on a port of its own, until it is dropped.
pub struct HookReceiver {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    receiver: Receiver,
    script: Script,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    came: Vec<Came>,
    handed: BTreeMap<String, Handed>,
    refused: Vec<String>,
}

impl fmt::Debug for HookReceiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HookReceiver").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl HookReceiver {
    /// A receiver that asks the script what to do: by config, sequence, and how often that was tried before.
    pub async fn start(script: impl Fn(&str, u64, usize) -> Reply + Send + Sync + 'static) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::on(any, script).await
    }

    /// The same on this address.
    #[expect(clippy::disallowed_methods, reason = "it is aborted when the receiver is dropped")]
    pub async fn on(addr: SocketAddr, script: impl Fn(&str, u64, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(addr).await.expect("a port is free");
        let addr = listener.local_addr().expect("it has an address");
        let signing = vec![SIGNING.parse::<SigningSecret>().expect("a secret")];
        let expectations = Expectations { signing, ..Expectations::token(TOKEN) };
        let receiver = Receiver::new(expectations).expect("something is asked for");
        let shared = Arc::new(Shared { receiver, script: Box::new(script), seen: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { addr, shared, accepting }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A config of this name that leads here.
    #[must_use]
    pub fn config(&self, name: &str) -> Value {
        json!({"id": name, "url": format!("http://{}/{name}", self.addr), "token": TOKEN})
    }

    /// The requests that came for this config.
    #[must_use]
    pub fn came(&self, name: &str) -> Vec<Came> {
        self.seen().came.iter().filter(|came| came.name == name).cloned().collect()
    }

    /// How many requests came in all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen().came.len()
    }

    /// What was handed over of this config, each event once.
    #[must_use]
    pub fn handed(&self, name: &str) -> Handed {
        self.seen().handed.get(name).cloned().unwrap_or_default()
    }

    /// The sequences of it.
    #[must_use]
    pub fn sequences(&self, name: &str) -> Vec<u64> {
        self.handed(name).into_iter().map(|(sequence, _)| sequence).collect()
    }

    /// What should have been taken and was not: that must be nothing.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.seen().refused.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen()
    }
}

impl Drop for HookReceiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done with a request that has just come.
    fn reply(&self, request: &Request) -> Reply {
        let id = request.headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        let sequence = id.split('_').nth(1).and_then(|sequence| sequence.parse().ok()).unwrap_or(0);
        let mut seen = self.seen();
        let tried = seen.came.iter().filter(|came| came.name == request.name && came.id == id).count();
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let (name, headers) = (request.name.clone(), request.headers.clone());
        seen.came.push(Came { name, id, at: tokio::time::Instant::now(), headers, body });
        (self.script)(&request.name, sequence, tried)
    }

    /// Takes a request as a real receiver does.
    fn take(&self, request: &Request) -> StatusCode {
        match self.receiver.receive(&request.headers, &request.body, now()) {
            Ok(Some(delivery)) => {
                let handed = (delivery.sequence.unwrap_or(0), delivery.order.clone());
                self.seen().handed.entry(request.name.clone()).or_default().push(handed);
                delivery.done();
                StatusCode::NO_CONTENT
            }
            Ok(None) => StatusCode::NO_CONTENT,
            Err(refused) => {
                self.seen().refused.push(format!("{}: {refused}: {:?}", request.name, request.headers));
                refused.status()
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a receiver has a clock of its own")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

struct Request {
    name: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl From<Asked> for Request {
    fn from(asked: Asked) -> Self {
        let name = asked.target.trim_start_matches('/').to_owned();
        let mut headers = HeaderMap::new();
        for (name, value) in asked.headers {
            let name = HeaderName::try_from(name).expect("a header's name");
            headers.append(name, HeaderValue::try_from(value).expect("a header's value"));
        }
        Self { name, headers, body: asked.body }
    }
}

#[expect(clippy::disallowed_methods, reason = "a connection ends with its peer, or with the test")]
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A peer that goes away ends its connection, and nothing else.
            let _ = serve(stream, &shared).await;
        });
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = asked::read(&mut stream).await?.map(Request::from) {
        let reply = shared.reply(&request);
        let takes = !matches!(reply, Reply::Status(..) | Reply::Hang | Reply::Close | Reply::DripHead);
        let status = if takes { shared.take(&request) } else { StatusCode::OK };
        match reply {
            Reply::Take => {
                let head = format!("HTTP/1.1 {} x\r\nContent-Length: 0\r\n\r\n", status.as_u16());
                // 204 has no length; nobody minds.
                stream.write_all(head.as_bytes()).await?;
            }
            Reply::Status(status, header) => {
                let head = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n{header}\r\n");
                stream.write_all(head.as_bytes()).await?;
            }
            Reply::Close => return Ok(()),
            Reply::TakeAndCut => return stream.write_all(b"HTTP/1.1 20").await,
            Reply::Hang => return hang(&mut stream).await,
            Reply::DripHead => return drip(&mut stream, "HTTP/1.1 200 OK\r\nX-Drip: ").await,
            Reply::TakeAndDripBody => {
                return drip(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n").await;
            }
            Reply::TakeAndCutBody => {
                return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nab").await;
            }
        }
    }
    Ok(())
}

/// Until the peer has enough of it.
async fn hang(stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.map(drop)
}

async fn drip(stream: &mut BufReader<TcpStream>, head: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes()).await?;
    loop {
        stream.write_all(b"a").await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
