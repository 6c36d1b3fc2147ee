//! An agent that answers JSON-RPC, and forms beside it, as a test tells it to, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// What is answered to a request with this head, to a method with these params, the n-th time from 0: `Ok` is a result, `Err` an
/// error.
type Answer = dyn Fn(&str, &str, &Value, usize) -> Result<Value, Value> + Send + Sync;

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
        Self::guarded(card, move |_, method, params, nth| answer(method, params, nth))
    }

    /// One that looks at the heads of requests too.
    pub fn guarded(
        card: Value,
        answer: impl Fn(&str, &str, &Value, usize) -> Result<Value, Value> + Send + Sync + 'static,
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
        let (status, json) = if head.starts_with("GET ") {
            (200, card.to_owned())
        } else if body.starts_with('{') {
            called(head, &body, asked, answer)
        } else {
            filled_in(head, &body, asked, answer)
        };
        let length = json.len();
        let written = write!(
            &mut { stream },
            "HTTP/1.1 {status} As told\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        );
        if written.is_err() {
            return;
        }
    }
}

fn called(head: String, body: &str, asked: &Mutex<Vec<Asked>>, answer: &Answer) -> (u16, String) {
    let call: Value = serde_json::from_str(body).expect("it is JSON");
    let (method, params) = (call["method"].as_str().expect("it has a method").to_owned(), call["params"].clone());
    let (member, value) = match answered(Asked { head, method, params }, asked, answer) {
        Ok(result) => ("result", result),
        // Who calls is not let in.
        Err(Value::Null) => return (401, String::new()),
        Err(error) => ("error", error),
    };
    (200, json!({"jsonrpc": "2.0", "id": call["id"], member: value}).to_string())
}

/// A form, as OAuth has them: its method is the path, its params are its members.
fn filled_in(head: String, body: &str, asked: &Mutex<Vec<Asked>>, answer: &Answer) -> (u16, String) {
    let path = head.split(' ').nth(1).expect("it has a path").to_owned();
    let members = body.split('&').filter_map(|pair| pair.split_once('='));
    let params = members.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    match answered(Asked { head, method: path, params: Value::Object(params) }, asked, answer) {
        Ok(answer) => (200, answer.to_string()),
        Err(error) => (400, error.to_string()),
    }
}

fn answered(one: Asked, asked: &Mutex<Vec<Asked>>, answer: &Answer) -> Result<Value, Value> {
    let (head, method, params) = (one.head.clone(), one.method.clone(), one.params.clone());
    let before = {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.iter().filter(|other| other.method == method).count();
        asked.push(one);
        before
    };
    answer(&head, &method, &params, before)
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
