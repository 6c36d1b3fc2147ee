//! A receiver of push notifications that answers as it is told, and remembers what it was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::support::{PATIENCE, poll};

/// One request.
#[derive(Clone, Debug)]
pub struct Received {
    head: String,
    pub body: String,
}

impl Received {
    /// The value of a header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("it is JSON")
    }

    /// The state that it tells of, if it does.
    pub fn state(&self) -> Option<String> {
        let json = self.json();
        let state = json["statusUpdate"]["status"]["state"].as_str().or(json["task"]["status"]["state"].as_str())?;
        Some(state.to_owned())
    }
}

#[derive(Debug)]
struct State {
    status: AtomicU16,
    received: Mutex<Vec<Received>>,
}

/// It listens on a port of its own, until the process ends.
#[derive(Debug)]
pub struct Receiver {
    port: u16,
    state: Arc<State>,
}

impl Receiver {
    /// One that answers with this status.
    pub fn answering(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let state = Arc::new(State { status: status.into(), received: Mutex::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { port, state }
    }

    /// Answers with another status from now on.
    pub fn answer(&self, status: u16) {
        self.state.status.store(status, Ordering::SeqCst);
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?key=in-the-url", self.port)
    }

    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it was told of a state, and answers with all that it received.
    pub fn until(&self, state: &str) -> Vec<Received> {
        let wanted = Some(format!("TASK_STATE_{state}"));
        poll(|| {
            let received = self.received();
            let told = received.iter().any(|one| one.state() == wanted);
            if told { Ok(received) } else { Err(format!("it was not told of {state}: {received:?}")) }
        })
    }
}

/// Takes one request and answers it.
fn serve(stream: TcpStream, state: &State) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut received = Received { head, body: String::new() };
    let length = received.header("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8(body).ok()?;
    state.received.lock().unwrap_or_else(PoisonError::into_inner).push(received);
    let status = state.status.load(Ordering::SeqCst);
    let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).ok()
}
