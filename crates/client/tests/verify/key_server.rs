//! A server of one answer over TLS, on a thread of its own, which ends with the test's process.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

pub struct KeyServer {
    pub url: String,
    /// The certificate, as a file.
    pub root: PathBuf,
    requests: Arc<AtomicUsize>,
}

impl KeyServer {
    /// One that answers each request with this status line, header lines and body.
    pub fn new(status: &str, header: &str, body: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("longhaul-keys-{}-{number}.pem", std::process::id()));
        std::fs::write(&root, certificate.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}/keys", listener.local_addr().unwrap().port());
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{header}\r\n{body}");
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        std::thread::spawn(move || serve(&listener, &Arc::new(config), &answer, &counted));
        Self { url, root, requests }
    }

    /// How many requests came: connections that ended before are none.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, answer: &str, requests: &AtomicUsize) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut connection = ServerConnection::new(config.clone()).unwrap();
        let mut tls = Stream::new(&mut connection, &mut stream);
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut buffer = [0; 4096];
            match tls.read(&mut buffer) {
                Ok(read) if read > 0 => request.extend(&buffer[..read]),
                _ => break,
            }
        }
        if request.is_empty() {
            continue;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let _gone = tls.write_all(answer.as_bytes());
        tls.conn.send_close_notify();
        let _gone = tls.flush();
    }
}

impl Drop for KeyServer {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.root);
    }
}
