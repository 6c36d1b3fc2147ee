//! A receiver that answers by script, and a resolver that says what a test wants.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::Timestamp;
use longhaul_push::{Answer, Delivery, Guard, Policy, Resolver, Sender, SenderConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The limit of each attempt in tests: long enough for a machine that is busy, and waited for where nothing answers.
pub const TIMEOUT: Duration = Duration::from_millis(800);

/// What a receiver does with one request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes and waits for the next request.
    Answer(String),
    /// Sends these bytes and closes.
    Close(String),
    /// Sends nothing, until the other side closes.
    Hang,
    /// Sends the first text at once, and then a byte of the second every 20 ms.
    Drip(&'static str, &'static str),
    /// Sends the first text, and then the second until nobody takes it any more.
    Flood(&'static str, &'static str),
}

pub fn ok() -> Step {
    Step::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned())
}

pub fn status(line: &str) -> Step {
    Step::Answer(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n"))
}

/// A request as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
    /// Which connection it came on, from 1.
    pub connection: usize,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

pub struct Receiver {
    pub address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    script: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    closed: AtomicUsize,
    sent: AtomicUsize,
    tls: Option<TlsAcceptor>,
}

impl Receiver {
    /// Takes the steps in turn; the last one stays.
    pub async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::listen("127.0.0.1:0".parse().unwrap(), steps, None).await
    }

    pub async fn listen(address: SocketAddr, steps: impl IntoIterator<Item = Step>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            script: Mutex::new(steps.into_iter().collect()),
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
            tls,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _tasks: tasks }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub fn closed(&self) -> usize {
        self.state.closed.load(Ordering::SeqCst)
    }

    pub fn bytes_sent(&self) -> usize {
        self.state.sent.load(Ordering::SeqCst)
    }

    pub fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/hook?a=b", self.address.port())
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let connection = state.connections.fetch_add(1, Ordering::SeqCst) + 1;
        let state = Arc::clone(&state);
        connections.spawn(async move {
            match &state.tls {
                None => serve(stream, &state, connection).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve(stream, &state, connection).await,
                    Err(_) => return,
                },
            }
            .unwrap_or_default();
            state.closed.fetch_add(1, Ordering::SeqCst);
        });
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: &State, connection: usize) -> io::Result<()> {
    while let Some((head, body)) = read_request(&mut stream).await? {
        state.seen.lock().unwrap().push(Seen { head, body, connection });
        match next_step(state) {
            Step::Answer(text) => stream.write_all(text.as_bytes()).await?,
            Step::Close(text) => {
                stream.write_all(text.as_bytes()).await?;
                return stream.shutdown().await;
            }
            Step::Hang => {
                stream.read_to_end(&mut Vec::new()).await?;
                return Ok(());
            }
            Step::Drip(first, rest) => {
                stream.write_all(first.as_bytes()).await?;
                for byte in rest.as_bytes() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    stream.write_all(&[*byte]).await?;
                }
            }
            Step::Flood(first, rest) => {
                stream.write_all(first.as_bytes()).await?;
                loop {
                    stream.write_all(rest.as_bytes()).await?;
                    state.sent.fetch_add(rest.len(), Ordering::SeqCst);
                }
            }
        }
    }
    Ok(())
}

fn next_step(state: &State) -> Step {
    let mut script = state.script.lock().unwrap();
    if script.len() > 1 { script.pop_front().unwrap() } else { script.front().unwrap().clone() }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .filter_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
        .map(|length| length.parse::<usize>().unwrap())
        .next()
        .unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some((head, body)))
}

/// Answers in turn; the last answer stays.
#[derive(Default)]
pub struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl fmt::Debug for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Names")
    }
}

impl Names {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { answers: Mutex::new(answers.iter().map(parse).collect()), asked: Mutex::default() })
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        match answers.len() {
            0 => Err(io::Error::other("no such name")),
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.pop_front().unwrap()),
        }
    }
}

/// Never answers.
#[derive(Debug)]
pub struct Stuck;

#[async_trait]
impl Resolver for Stuck {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

pub fn guard(allow: &[&str]) -> Guard {
    Guard::new(Policy { allow: allow.iter().map(|entry| entry.parse().unwrap()).collect(), allow_http: true })
}

pub fn config() -> SenderConfig {
    SenderConfig { timeout: TIMEOUT, ..SenderConfig::default() }
}

/// A sender for which 127.0.0.1 is outside and all else of loopback is inside.
pub fn sender(names: &Arc<Names>, config: SenderConfig) -> Sender {
    let resolver: Arc<dyn Resolver> = Arc::<Names>::clone(names);
    Sender::with_resolver(config, guard(&["127.0.0.1"]), resolver).unwrap()
}

pub fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

pub fn delivery(url: &str) -> Delivery {
    Delivery {
        url: url.to_owned(),
        body: Bytes::from_static(br#"{"statusUpdate":{}}"#),
        id: "019b-7".to_owned(),
        version: "1.0".to_owned(),
        media_type: "application/a2a+json",
        scheme: None,
        credentials: None,
        token: None,
        signing: Arc::new([]),
    }
}

/// One attempt, to a receiver with this script.
pub async fn attempt(step: Step) -> (Receiver, Answer) {
    let receiver = Receiver::start([step]).await;
    let sender = sender(&Names::new(&[]), config());
    let answer = sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await;
    (receiver, answer)
}

/// Waits until something is so, for ten seconds at most.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}

/// A port that nothing listens on.
pub fn dead_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Listens, and never takes a connection into its hands: what connects waits for TLS that never comes.
pub async fn deaf(address: SocketAddr) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
