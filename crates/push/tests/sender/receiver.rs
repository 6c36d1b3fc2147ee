//! Deliveries to receivers that fail by script.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    Names, Receiver, Step, Stuck, TIMEOUT, attempt, config, dead_port, delivery, guard, now, ok, sender, status, until,
};
use longhaul_push::guard::Kind;
use longhaul_push::sender::{Failure, Health, SystemResolver};
use longhaul_push::sign::{SignedHeaders, SigningSecret, TOLERANCE, verify};
use longhaul_push::{Answer, Delivery, Resolver as _, Secret, Sender, SenderConfig};
use tokio::time::Instant;

fn retry(why: Failure) -> Answer {
    Answer::Retry { after: None, why }
}

#[track_caller]
fn assert_no_answer(answer: &Answer) {
    assert!(matches!(answer, Answer::Retry { after: None, why: Failure::Exchange(_) }), "{answer:?}");
    assert_eq!(answer.health(), Health::Down);
}

#[tokio::test]
async fn the_request_is_as_the_protocol_says() {
    let receiver = Receiver::start([ok()]).await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
    let delivery = Delivery {
        scheme: Some("bearer".to_owned()),
        credentials: Some(Secret::new("abc")),
        token: Some(Secret::new("t0ken")),
        signing: Arc::new([secret.clone()]),
        ..delivery(&receiver.url("Hooks.Test."))
    };
    assert_eq!(sender(&names, config()).send(&delivery, now()).await, Answer::Delivered);
    let seen = &receiver.seen()[0];
    let host = format!("hooks.test:{}", receiver.address.port());
    assert_eq!(seen.head.lines().next().unwrap(), "POST /hook?a=b HTTP/1.1");
    for (name, value) in [
        ("Host", host.as_str()),
        ("Content-Type", "application/a2a+json"),
        ("Content-Length", "19"),
        ("Authorization", "Bearer abc"),
        ("X-A2A-Notification-Token", "t0ken"),
        ("A2A-Version", "1.0"),
        ("Webhook-Id", "019b-7"),
        ("Webhook-Timestamp", "1767323045"),
        ("User-Agent", concat!("longhaul/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.body, br#"{"statusUpdate":{}}"#);
    assert_eq!(names.asked(), ["hooks.test."]);
    let header = |name| seen.header(name).unwrap();
    let headers = SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    verify(&[secret], headers, &seen.body, now(), TOLERANCE).unwrap();
}

#[tokio::test]
async fn what_is_not_configured_is_not_sent() {
    let (receiver, answer) = attempt(ok()).await;
    assert_eq!(answer, Answer::Delivered);
    for name in ["Authorization", "X-A2A-Notification-Token", "Webhook-Signature"] {
        assert_eq!(receiver.seen()[0].header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_tried_again() {
    let sender = sender(&Names::new(&[]), config());
    let answer = sender.send(&delivery(&format!("http://127.0.0.1:{}/", dead_port())), now()).await;
    assert!(matches!(answer, Answer::Retry { after: None, why: Failure::Connect(_) }), "{answer:?}");
    assert_eq!(answer.health(), Health::Down);
}

#[tokio::test]
async fn an_attempt_ends_when_its_time_is_up() {
    let start = Instant::now();
    let (receiver, answer) = attempt(Step::Hang).await;
    assert_eq!(answer, retry(Failure::Timeout));
    assert!(start.elapsed() >= TIMEOUT && start.elapsed() < TIMEOUT * 5);
    assert_eq!(receiver.seen().len(), 1);
}

#[tokio::test]
async fn a_head_that_drips_is_cut_by_the_time_limit() {
    let (_receiver, answer) = attempt(Step::Drip("HTTP/1.1 200 OK\r\nX: ", "a".repeat(1000).leak())).await;
    assert_eq!(answer, retry(Failure::Timeout));
}

#[tokio::test]
async fn ten_times_500_and_then_it_arrives_under_one_id() {
    let steps = std::iter::repeat_n(status("500 Oops"), 10).chain([ok()]);
    let receiver = Receiver::start(steps).await;
    let sender = sender(&Names::new(&[]), config());
    let delivery = delivery(&receiver.url("127.0.0.1"));
    for _ in 0..10 {
        assert_eq!(sender.send(&delivery, now()).await, retry(Failure::Status(500)));
    }
    assert_eq!(sender.send(&delivery, now()).await, Answer::Delivered);
    let seen = receiver.seen();
    assert_eq!(seen.len(), 11);
    assert!(seen.iter().all(|seen| seen.header("Webhook-Id") == Some("019b-7")));
}

#[tokio::test]
async fn retry_after_is_handed_on() {
    for (value, seconds) in [("7", 7), ("Fri, 02 Jan 2026 03:05:05 GMT", 60)] {
        let text = format!("HTTP/1.1 429 Slow\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n");
        let (_receiver, answer) = attempt(Step::Answer(text)).await;
        let after = Some(Duration::from_secs(seconds));
        assert_eq!(answer, Answer::Retry { after, why: Failure::Status(429) });
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inside = Receiver::listen("127.0.0.2:0".parse().unwrap(), [ok()], None).await;
    let outside = Receiver::start([ok()]).await;
    for location in [inside.url("127.0.0.2"), outside.url("127.0.0.1"), "//[::1]/".to_owned()] {
        for code in [301, 302, 303, 307, 308] {
            let text = format!("HTTP/1.1 {code} There\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let (receiver, answer) = attempt(Step::Answer(text)).await;
            assert_eq!(answer, Answer::Final { status: Some(code), why: Failure::Status(code) });
            assert_eq!(receiver.seen().len(), 1);
        }
    }
    assert_eq!((inside.connections(), outside.connections()), (0, 0));
}

#[tokio::test]
async fn gone_and_final_answers_are_told_apart() {
    assert_eq!(attempt(status("410 Gone")).await.1, Answer::Gone);
    assert_eq!(attempt(status("204 No Content")).await.1, Answer::Delivered);
    for code in [400, 401, 404, 413, 426] {
        let expected = Answer::Final { status: Some(code), why: Failure::Status(code) };
        assert_eq!(attempt(status(&format!("{code} No"))).await.1, expected);
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let text =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(attempt(Step::Answer(text.to_owned())).await.1, Answer::Delivered);
    let (_receiver, answer) = attempt(Step::Flood("", "HTTP/1.1 103 Early Hints\r\n\r\n")).await;
    assert!(matches!(answer, Answer::Retry { .. }), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_is_cut_or_is_no_http_is_no_answer() {
    for text in
        ["", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-Le", "220 mail.example ESMTP\r\n", "HTTP/0.9 200 OK\r\n\r\n"]
    {
        assert_no_answer(&attempt(Step::Close(text.to_owned())).await.1);
    }
}

#[tokio::test]
async fn the_answer_counts_whatever_becomes_of_its_body() {
    let cut = Step::Close("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc".to_owned());
    assert_eq!(attempt(cut).await.1, Answer::Delivered);
    let bad = Step::Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n".to_owned());
    assert_eq!(attempt(bad).await.1, Answer::Delivered);
    let start = Instant::now();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    assert_eq!(attempt(Step::Drip(head, "a".repeat(10_000).leak())).await.1, Answer::Delivered);
    assert!(start.elapsed() < config().body_timeout * 5);
}

#[tokio::test]
async fn a_huge_body_is_not_read_to_its_end() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n";
    let receiver = Receiver::start([Step::Flood(head, "a".repeat(64 * 1024).leak())]).await;
    let sender = sender(&Names::new(&[]), config());
    assert_eq!(sender.send(&delivery(&receiver.url("127.0.0.1")), now()).await, Answer::Delivered);
    until("the receiver's connection was closed", || receiver.closed() == 1).await;
    // What the system's buffers hold, and not much more.
    assert!(receiver.bytes_sent() < 16 * 1024 * 1024, "{}", receiver.bytes_sent());
}

#[tokio::test]
async fn a_huge_head_is_no_answer() {
    let one = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "a".repeat(64 * 1024));
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "X: a\r\n".repeat(200));
    for text in [one, many] {
        assert_no_answer(&attempt(Step::Answer(text)).await.1);
    }
    let (receiver, answer) = attempt(Step::Flood("HTTP/1.1 200 OK\r\n", "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")).await;
    assert_no_answer(&answer);
    until("the receiver's connection was closed", || receiver.closed() == 1).await;
}

#[tokio::test]
async fn the_second_address_is_tried_when_the_first_is_dead() {
    let receiver = Receiver::start([ok()]).await;
    let names = Names::new(&[&["127.0.0.2", "127.0.0.1"]]);
    let sender = Sender::with_resolver(config(), guard(&["127.0.0.0/8"]), names).unwrap();
    assert_eq!(sender.send(&delivery(&receiver.url("hooks.test")), now()).await, Answer::Delivered);
}

#[tokio::test]
async fn refused_addresses_of_a_name_are_left_out() {
    let outside = Receiver::start([ok()]).await;
    let port = outside.address.port();
    let inside = Receiver::listen(([127, 0, 0, 2], port).into(), [ok()], None).await;
    for answer in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["::ffff:127.0.0.2", "::ffff:127.0.0.1"]] {
        let sender = sender(&Names::new(&[&answer]), config());
        assert_eq!(sender.send(&delivery(&outside.url("hooks.test")), now()).await, Answer::Delivered);
    }
    assert_eq!((outside.connections(), inside.connections()), (3, 0));
}

#[tokio::test]
async fn a_name_that_moves_inside_is_never_dialled_there() {
    let outside = Receiver::start([Step::Close(String::new()), ok()]).await;
    let inside = Receiver::listen(([127, 0, 0, 2], outside.address.port()).into(), [ok()], None).await;
    // It changes with every question. One attempt asks once, so what was checked is what is dialled.
    let names = Names::new(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1"], &["::ffff:7f00:2"]]);
    let sender = sender(&names, SenderConfig { idle_per_origin_max: 0, ..config() });
    let delivery = delivery(&outside.url("rebind.test"));
    assert_no_answer(&sender.send(&delivery, now()).await);
    let refused = sender.send(&delivery, now()).await;
    assert!(
        matches!(&refused, Answer::Retry { why: Failure::Address(refused), .. } if refused.kind == Kind::Loopback),
        "{refused:?}"
    );
    assert_eq!(sender.send(&delivery, now()).await, Answer::Delivered);
    assert!(matches!(sender.send(&delivery, now()).await, Answer::Retry { why: Failure::Address(_), .. }));
    assert_eq!(names.asked().len(), 4);
    assert_eq!((outside.connections(), inside.connections()), (2, 0));
}

#[tokio::test]
async fn a_name_without_an_address_is_tried_again() {
    let answer = |names| async move { sender(&names, config()).send(&delivery("http://gone.test/"), now()).await };
    assert_eq!(answer(Names::new(&[])).await, retry(Failure::Resolve("no such name".to_owned())));
    assert_eq!(answer(Names::new(&[&[]])).await, retry(Failure::NoAddress));
}

#[tokio::test]
async fn a_lookup_that_never_ends_is_cut_by_the_time_limit() {
    let sender = Sender::with_resolver(config(), guard(&[]), Arc::new(Stuck)).unwrap();
    assert_eq!(sender.send(&delivery("http://stuck.test/"), now()).await, retry(Failure::Timeout));
}

#[tokio::test]
async fn what_the_policy_refuses_is_not_looked_up() {
    let names = Names::new(&[&["127.0.0.1"]]);
    let sender = sender(&names, config());
    for url in ["http://127.0.0.2/", "http://user@hooks.test/", "ftp://hooks.test/", "http://hooks.test:25/"] {
        let answer = sender.send(&delivery(url), now()).await;
        assert!(matches!(answer, Answer::Final { status: None, why: Failure::Url(_) }), "{answer:?}");
        assert_eq!(answer.health(), Health::Unknown);
    }
    assert_eq!(names.asked().len(), 0);
}

#[tokio::test]
async fn headers_can_not_be_smuggled_in() {
    let receiver = Receiver::start([ok()]).await;
    let sender = sender(&Names::new(&[]), config());
    let plain = delivery(&receiver.url("127.0.0.1"));
    let evil = "a\r\nX-Evil: 1";
    let scheme = Some("Bearer".to_owned());
    for delivery in [
        Delivery { id: evil.to_owned(), ..plain.clone() },
        Delivery { version: evil.to_owned(), ..plain.clone() },
        Delivery { token: Some(Secret::new(evil)), ..plain.clone() },
        Delivery { scheme: Some(evil.to_owned()), credentials: Some(Secret::new("c")), ..plain.clone() },
        Delivery { scheme: scheme.clone(), credentials: Some(Secret::new(evil)), ..plain.clone() },
        Delivery { url: format!("{}\r\nX-Evil: 1", plain.url), ..plain.clone() },
    ] {
        let answer = sender.send(&delivery, now()).await;
        assert!(matches!(answer, Answer::Final { status: None, .. }), "{answer:?}");
    }
    let escaped = Delivery { url: format!("{}%0d%0aX-Evil:%201", plain.url), ..plain };
    assert_eq!(sender.send(&escaped, now()).await, Answer::Delivered);
    assert_eq!(receiver.seen().len(), 1);
    assert_eq!(receiver.seen()[0].header("X-Evil"), None);
}

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    // In a process of its own: its environment is set before it begins.
    let proxy = format!("http://127.0.0.1:{}", dead_port());
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "receiver::the_request_is_as_the_protocol_says"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, &proxy);
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = child.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn a_dropped_attempt_closes_its_connection() {
    let receiver = Receiver::start([Step::Hang]).await;
    let sender = sender(&Names::new(&[]), SenderConfig { timeout: Duration::from_secs(60), ..config() });
    let delivery = delivery(&receiver.url("127.0.0.1"));
    tokio::select! {
        answer = sender.send(&delivery, now()) => panic!("{answer:?}"),
        () = until("the request", || receiver.seen().len() == 1) => {}
    }
    until("the connection was closed", || receiver.closed() == 1).await;
}

#[tokio::test]
async fn the_system_is_asked_for_names_and_its_answers_are_checked() {
    let receiver = Receiver::start([ok()]).await;
    let delivery = delivery(&receiver.url("localhost"));
    let send = async |allow: &[&str]| Sender::new(config(), guard(allow)).unwrap().send(&delivery, now()).await;
    assert_eq!(send(&["127.0.0.0/8", "::1"]).await, Answer::Delivered);
    assert_eq!(send(&["localhost"]).await, Answer::Delivered);
    let elsewhere = SystemResolver::new().resolve("localhost").await.unwrap();
    assert!(elsewhere.iter().all(|address| address.is_loopback()));
    assert!(matches!(send(&[]).await, Answer::Final { status: None, why: Failure::Url(_) }));
    assert_eq!(receiver.connections(), 2);
}
