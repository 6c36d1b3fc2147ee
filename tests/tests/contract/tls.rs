//! An agent behind TLS with a certificate that nobody knows (§6.5, §12.1).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use longhaul_tests::Hostile;
use longhaul_tests::hostile::{CARD_PATH, Script, card, task};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::agents::{bearer, operations, require_scheme, with_task};
use crate::cli::Cli;

/// An agent whose card and interfaces are at `https://`.
struct Secure {
    agent: Hostile,
    addr: SocketAddr,
    certificate: String,
    _serving: JoinSet<()>,
}

async fn secure() -> Secure {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![key.cert.der().clone()], private);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let agent = Hostile::start(move |asked| match asked.path() {
        CARD_PATH => {
            let mut card = card(&format!("https://{addr}"));
            require_scheme(&mut card, "tokens", bearer());
            Script::json(200, &card)
        }
        _ => with_task(asked, &task("TASK_STATE_COMPLETED")),
    })
    .await;
    let behind = agent.addr();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                // A client that refuses the certificate ends its connection, and nothing else.
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let mut server = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    Secure { agent, addr, certificate: key.cert.pem(), _serving: serving }
}

#[tokio::test]
async fn a2acli_auth_003_insecure_is_said_aloud_and_only_then_are_certificates_not_verified() {
    let secure = secure().await;
    let cli = Cli::of(&format!("https://{}", secure.addr)).with("A2ACLI_BEARER", "s3cret");
    // By default it is verified, and nothing reaches the agent.
    cli.run(&["send", "hello", "-o", "json"]).await.fails(3, "A2ACLI_ERR_UNREACHABLE");
    assert_eq!(secure.agent.count(), 0);

    for form in [&[][..], &["-o", "json"], &["-o", "json", "--stream"]] {
        let done = cli.run(&[&["send", "hello", "--insecure"], form].concat()).await;
        let warning = done.exits(0).stderr.to_lowercase();
        for word in ["warning", "insecure", "credential"] {
            assert!(warning.contains(word), "{word}\n{}", done.told());
        }
        assert!(!done.stdout.to_lowercase().contains("warning"), "{}", done.told());
    }
    let sent = operations(&secure.agent);
    assert!(!sent.is_empty() && sent.iter().all(|asked| asked.header("authorization") == Some("Bearer s3cret")));
}

#[tokio::test]
async fn a2acli_auth_003_a_certificate_that_the_caller_trusts_needs_no_warning() {
    let secure = secure().await;
    let cli = Cli::of(&format!("https://{}", secure.addr));
    let file = cli.file("ca.pem", &secure.certificate);
    let done = cli.run(&["send", "hello", "--ca", file.to_str().unwrap()]).await;
    assert!(!done.exits(0).stderr.to_lowercase().contains("warning"), "{}", done.told());
}

#[tokio::test]
async fn a2acli_auth_003_insecure_by_a_variable_is_said_aloud_too() {
    let secure = secure().await;
    let cli = Cli::of(&format!("https://{}", secure.addr)).with("A2ACLI_INSECURE", "true");
    let done = cli.run(&["send", "hello"]).await;
    assert!(done.exits(0).stderr.to_lowercase().contains("warning"), "{}", done.told());
    cli.run(&["send", "hello", "--insecure=false"]).await.exits(3);
}
