//! Connections that are kept, and those that are secured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Names, Receiver, Step, config, deaf, delivery, guard, now, ok, sender, status, until};
use longhaul_protocol::Timestamp;
use longhaul_push::sender::{Failure, Health, TlsSetupError};
use longhaul_push::{Answer, Resolver, Sender, SenderConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(now().unix_millis() + seconds * 1000)
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let receiver = Receiver::start([ok(), status("500 Oops"), status("204 No Content"), ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    for _ in 0..10 {
        sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await;
    }
    assert_eq!((receiver.seen().len(), receiver.connections()), (10, 1));
}

#[tokio::test]
async fn a_connection_is_kept_for_its_host_alone() {
    let receiver = Receiver::start([ok()]).await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let sender = sender(&names, config());
    for host in ["a.test", "b.test", "A.test", "b.test."] {
        assert_eq!(sender.send(&delivery(&receiver.url(host)), now()).await, Answer::Delivered);
    }
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_the_receiver_closes_costs_no_delivery() {
    let close = || Step::Close("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let told = || Step::Answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned());
    let receiver = Receiver::start([close(), told(), close(), ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    for sent in 1..=4 {
        assert_eq!(sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await, Answer::Delivered);
        until("it was closed", || receiver.closed() == sent || sent == 4).await;
    }
    assert_eq!(receiver.connections(), 4);
}

#[tokio::test]
async fn a_request_that_an_old_connection_swallows_is_sent_on_a_new_one() {
    let receiver = Receiver::start([ok(), Step::Close(String::new()), ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    for _ in 0..2 {
        assert_eq!(sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await, Answer::Delivered);
    }
    let seen: Vec<_> = receiver.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(seen, [1, 1, 2]);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_the_next() {
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".to_owned();
    let receiver = Receiver::start([Step::Answer(two), status("500 Oops")]).await;
    let sender = sender(&Names::new(&[]), config());
    let delivery = delivery(&receiver.url("127.0.0.1"));
    assert_eq!(sender.send(&delivery, now()).await, Answer::Delivered);
    let answer = sender.send(&delivery, now()).await;
    assert_eq!(answer, Answer::Retry { after: None, why: Failure::Status(500) });
}

#[tokio::test]
async fn a_connection_is_not_used_past_its_time() {
    let receiver = Receiver::start([ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    let delivery = delivery(&receiver.url("127.0.0.1"));
    // Idle for 14 s, then for 16 s; then in use until it is 60 s old.
    let mut connections = Vec::new();
    for at in [0, 14, 30, 44, 58, 72, 86, 89, 91] {
        sender.send(&delivery, later(at)).await;
        connections.push(receiver.connections());
    }
    assert_eq!(connections, [1, 1, 2, 2, 2, 2, 2, 2, 3]);
}

#[tokio::test]
async fn idle_connections_are_closed_in_quiet_times() {
    let receiver = Receiver::start([ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await;
    sender.close_idle(later(14));
    assert_eq!(receiver.closed(), 0);
    sender.close_idle(later(16));
    until("it was closed", || receiver.closed() == 1).await;
}

#[tokio::test]
async fn only_so_many_connections_are_kept() {
    let receiver = Receiver::start([ok()]).await;
    let sender = Arc::new(sender(&Names::new(&[]), SenderConfig { idle_per_origin_max: 2, ..config() }));
    let mut sends = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (sender, delivery) = (Arc::clone(&sender), delivery(&receiver.url("127.0.0.1")));
        sends.spawn(async move { sender.send(&delivery, now()).await });
    }
    while let Some(answer) = sends.join_next().await {
        assert_eq!(answer.unwrap(), Answer::Delivered);
    }
    until("the others were closed", || receiver.connections() - receiver.closed() <= 2).await;
}

/// An authority that a test has made, as a file, and receivers that it vouches for.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = std::env::temp_dir().join(format!("longhaul-push-{name}-{}.pem", std::process::id()));
        std::fs::write(&file, issuer.pem()).unwrap();
        Self { issuer, file }
    }

    fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    async fn receiver(&self, names: &[&str]) -> Receiver {
        Receiver::listen("127.0.0.1:0".parse().unwrap(), [ok()], Some(self.acceptor(names))).await
    }

    fn config(&self) -> SenderConfig {
        SenderConfig { extra_roots: Some(self.file.clone()), timeout: Duration::from_secs(5), ..config() }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn secured(receiver: &Receiver, host: &str) -> longhaul_push::Delivery {
    delivery(&format!("https://{host}:{}/hook", receiver.address.port()))
}

#[tokio::test]
async fn a_secured_receiver_is_reached_by_name_and_by_address() {
    let authority = Authority::new("good");
    let receiver = authority.receiver(&["hooks.test", "127.0.0.1"]).await;
    let sender = sender(&Names::new(&[&["127.0.0.1"]]), authority.config());
    assert!(sender.roots() > 0);
    for host in ["hooks.test", "hooks.test.", "127.0.0.1", "hooks.test"] {
        assert_eq!(sender.send(&secured(&receiver, host), now()).await, Answer::Delivered, "{host}");
    }
    assert_eq!((receiver.seen().len(), receiver.connections()), (4, 2));
}

#[tokio::test]
async fn a_certificate_for_another_name_or_by_another_authority_is_refused() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let named = ours.receiver(&["other.test"]).await;
    let signed = theirs.receiver(&["hooks.test"]).await;
    for receiver in [named, signed] {
        let sender = sender(&Names::new(&[&["127.0.0.1"]]), ours.config());
        let answer = sender.send(&secured(&receiver, "hooks.test"), now()).await;
        assert!(matches!(answer, Answer::Retry { why: Failure::Tls(_), .. }), "{answer:?}");
        assert_eq!(answer.health(), Health::Down);
        assert_eq!(receiver.seen().len(), 0);
    }
}

#[tokio::test]
async fn an_address_that_never_answers_leaves_time_for_the_next() {
    let authority = Authority::new("turns");
    let receiver = authority.receiver(&["hooks.test"]).await;
    let (deaf, _) = deaf(([127, 0, 0, 2], receiver.address.port()).into()).await;
    let resolver: Arc<dyn Resolver> = Names::new(&[&["127.0.0.2", "127.0.0.1"]]);
    let config = SenderConfig { connect_timeout: Duration::from_millis(200), ..authority.config() };
    let sender = Sender::with_resolver(config, guard(&["127.0.0.0/8"]), resolver).unwrap();
    assert_eq!(sender.send(&secured(&receiver, "hooks.test"), now()).await, Answer::Delivered);
    deaf.accept().await.unwrap();
}

#[tokio::test]
async fn plain_text_where_tls_is_wanted_is_refused() {
    let authority = Authority::new("plain");
    let (listener, address) = deaf("127.0.0.1:0".parse().unwrap()).await;
    let sender = sender(&Names::new(&[]), authority.config());
    let sent = delivery(&format!("https://127.0.0.1:{}/", address.port()));
    let greet = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example ESMTP\r\n").await.unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        said
    };
    let (answer, said) = tokio::join!(sender.send(&sent, now()), greet);
    assert!(matches!(answer, Answer::Retry { why: Failure::Tls(_), .. }), "{answer:?}");
    assert!(!said.windows(4).any(|bytes| bytes == b"POST"));
}

#[test]
fn a_file_without_authorities_is_refused_at_the_start() {
    let new =
        |path: PathBuf| Sender::new(SenderConfig { extra_roots: Some(path), ..config() }, guard(&[])).unwrap_err();
    assert!(matches!(new(PathBuf::from("/nowhere.pem")), TlsSetupError::File { .. }));
    assert!(matches!(new(PathBuf::from("Cargo.toml")), TlsSetupError::Empty { .. }));
}
