//! An agent that answers JSON-RPC as a test tells it to, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// What is answered to a method with these params, the n-th time from 0: `Ok` is a result, `Err` an error.
type Answer = dyn Fn(&str, &Value, usize) -> Result<Value, Value> + Send + Sync;

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub head: String,
    pub method: String,
    pub params: Value,
}

/// It listens on a port of its own, until the process ends.
pub struct Scripted {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// One whose card has these members besides, or in place of its own.
    pub fn new(
        card: Value,
        answer: impl Fn(&str, &Value, usize) -> Result<Value, Value> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (shared, answer): (_, Arc<Answer>) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (card, asked, answer) = (whole_card(port, &card), Arc::clone(&shared), Arc::clone(&answer));
                thread::spawn(move || serve(&stream, &card, &asked, &*answer));
            }
        });
        Self { port, asked }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All that it was asked by this method.
    pub fn asked(&self, method: &str) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|asked| asked.method == method).cloned().collect()
    }
}

fn whole_card(port: u16, more: &Value) -> String {
    let mut card = json!({
        "name": "Scripted", "description": "As told", "version": "1",
        "supportedInterfaces": [{"url": format!("http://127.0.0.1:{port}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
    });
    for (name, value) in more.as_object().expect("it is an object") {
        card[name] = value.clone();
    }
    card.to_string().replace("PORT", &port.to_string())
}

fn serve(stream: &TcpStream, card: &str, asked: &Mutex<Vec<Asked>>, answer: &Answer) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = request(&mut reader) {
        let json = if head.starts_with("GET ") { card.to_owned() } else { called(head, &body, asked, answer) };
        let length = json.len();
        let written = write!(
            &mut { stream },
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        );
        if written.is_err() {
            return;
        }
    }
}

fn called(head: String, body: &str, asked: &Mutex<Vec<Asked>>, answer: &Answer) -> String {
    let call: Value = serde_json::from_str(body).expect("it is JSON");
    let (method, params) = (call["method"].as_str().expect("it has a method").to_owned(), call["params"].clone());
    let before = {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.iter().filter(|asked| asked.method == method).count();
        asked.push(Asked { head, method: method.clone(), params: params.clone() });
        before
    };
    let (member, value) = match answer(&method, &params, before) {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    json!({"jsonrpc": "2.0", "id": call["id"], member: value}).to_string()
}

fn request(reader: &mut BufReader<&TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length =
        lower.lines().find_map(|line| line.strip_prefix("content-length:")).map(|length| length.trim().parse());
    let mut body = vec![0; length.transpose().ok()?.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}
