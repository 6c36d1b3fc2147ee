//! An agent behind TLS with a certificate that nobody knows (§6.5, §12.1).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use longhaul_tests::Hostile;
use longhaul_tests::hostile::{CARD_PATH, Script, card, task};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

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
    serve_tls(None).await
}

/// With these roots it takes only callers that show a certificate of them.
async fn serve_tls(callers: Option<RootCertStore>) -> Secure {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let builder = ServerConfig::builder();
    let builder = match callers {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            builder.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
        }
    };
    let config = builder.with_single_cert(vec![key.cert.der().clone()], private);
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

#[tokio::test]
async fn a2acli_auth_009_a_client_certificate_opens_what_is_closed_without_one() {
    let authority = rcgen::generate_simple_self_signed(vec!["caller".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.cert.der().clone()).unwrap();
    let secure = serve_tls(Some(roots)).await;
    let cli = Cli::of(&format!("https://{}", secure.addr));
    cli.file("ca.pem", &secure.certificate);
    cli.file("caller.pem", authority.cert.pem());
    cli.file("caller.key", authority.signing_key.serialize_pem());
    let base = ["send", "hello", "--ca", "ca.pem", "--debug"];
    cli.run(&base).await.exits(3);
    assert_eq!(secure.agent.count(), 0);
    let done = cli.run(&[&base[..], &["--client-cert", "caller.pem", "--client-key", "caller.key"]].concat()).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
    assert!(!done.all().contains("PRIVATE KEY"), "{}", done.told());
    let other = rcgen::generate_simple_self_signed(vec!["somebody".to_owned()]).unwrap();
    cli.file("caller.pem", other.cert.pem());
    cli.file("caller.key", other.signing_key.serialize_pem());
    cli.run(&[&base[..], &["--client-cert", "caller.pem", "--client-key", "caller.key"]].concat()).await.exits(3);
    cli.run(&[&base[..], &["--client-cert", "caller.pem"]].concat()).await.exits(2);
    let variables = cli.with("A2ACLI_CLIENT_CERT", "no-such.pem").with("A2ACLI_CLIENT_KEY", "caller.key");
    variables.run(&base).await.exits(2);
}
