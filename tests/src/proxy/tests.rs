use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::hostile::{Gate, Hostile, Script, Step};
use crate::http::{Answer, Connection, Request};
use crate::{Channel, PATIENCE, until, within};

/// A server whose answers are a head of 40 bytes or so and ten bytes, and a proxy before it.
async fn pair(fault: LinkFault) -> (Hostile, FaultProxy) {
    let hostile = Hostile::start(|_| Script::whole(200, &[], "0123456789")).await;
    let proxy = FaultProxy::before(hostile.addr(), move |_| fault).await;
    (hostile, proxy)
}

async fn ask(proxy: &FaultProxy, target: &str) -> std::io::Result<Answer> {
    let answer = async { Connection::open(proxy.addr()).await?.exchange(&Request::get(target)).await };
    within(PATIENCE, "an answer", answer).await
}

#[tokio::test]
async fn answers_pass_whole_or_byte_by_byte() {
    for fault in [LinkFault::None, LinkFault::SingleBytes, LinkFault::CutAfter(10_000)] {
        let (hostile, proxy) = pair(fault).await;
        let mut connection = Connection::open(proxy.addr()).await.unwrap();
        for _ in 0..3 {
            let answer = connection.exchange(&Request::get("/")).await.unwrap();
            assert_eq!(answer.text(), "0123456789", "{fault:?}");
        }
        assert_eq!((proxy.asked(), proxy.faults(), hostile.connections()), (3, 0, 1), "{fault:?}");
        assert_eq!(proxy.passed(), hostile.written(), "{fault:?}");
    }
}

#[tokio::test]
async fn connection_is_cut_after_so_many_bytes() {
    for bytes in [0, 1, 17, 45] {
        let (_hostile, proxy) = pair(LinkFault::CutAfter(bytes)).await;
        assert!(ask(&proxy, "/").await.is_err(), "{bytes}");
        assert_eq!((proxy.passed(), proxy.faults()), (bytes, 1));
    }
}

#[tokio::test]
async fn lost_answer_was_asked_for_and_a_lost_request_was_not() {
    for (fault, arrived) in [(LinkFault::LostAnswer, 1), (LinkFault::LostRequest, 0)] {
        let (hostile, proxy) = pair(fault).await;
        assert!(ask(&proxy, "/").await.is_err(), "{fault:?}");
        assert_eq!((hostile.count(), proxy.passed(), proxy.faults()), (arrived, 0, 1), "{fault:?}");
    }
}

#[tokio::test]
async fn repeated_request_arrives_twice_and_is_answered_once() {
    let (hostile, proxy) = pair(LinkFault::Repeated).await;
    let mut connection = Connection::open(proxy.addr()).await.unwrap();
    let request = Request::new("POST", "/x").body("{\"id\":1}");
    let answer = connection.exchange(&request).await.unwrap();
    assert_eq!(answer.text(), "0123456789");
    until(PATIENCE, "the repeated request arrives", async || (proxy.repeats() == 1).then_some(())).await;
    let asked = hostile.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!((&asked[0].bytes, hostile.connections()), (&asked[1].bytes, 2));
    let mut nothing = [0; 1];
    let more = connection.socket().read(&mut nothing);
    assert!(tokio::time::timeout(Duration::from_millis(50), more).await.is_err(), "the second answer was passed on");
}

#[tokio::test]
async fn idle_connection_is_cut_and_a_busy_one_is_not() {
    let limit = Duration::from_secs(1);
    let gate = Gate::new();
    let held = gate.clone();
    let hostile = Hostile::start(move |asked| {
        match asked.path() {
            "/busy" => (0..7)
                .fold(Script::events(), |script, _| script.chunk("x").then(Step::Pause(Duration::from_millis(200)))),
            _ => Script::events().chunk("x").then(Step::Wait(held.clone())),
        }
        .end()
    })
    .await;
    let proxy = FaultProxy::before(hostile.addr(), move |_| LinkFault::IdleCut(limit)).await;
    assert_eq!(ask(&proxy, "/busy").await.unwrap().text(), "x".repeat(7));
    let begun = tokio::time::Instant::now();
    assert!(ask(&proxy, "/idle").await.is_err());
    assert!(begun.elapsed() >= limit);
    gate.open();
}

#[tokio::test]
async fn each_request_is_decided_alone() {
    let hostile = Hostile::start(|_| Script::whole(200, &[], "0123456789")).await;
    let proxy = FaultProxy::before(hostile.addr(), |asked| match asked.nth {
        1 => LinkFault::LostAnswer,
        _ => LinkFault::None,
    })
    .await;
    let mut connection = Connection::open(proxy.addr()).await.unwrap();
    assert!(connection.exchange(&Request::get("/a")).await.is_ok());
    assert!(connection.exchange(&Request::get("/b")).await.is_err());
    assert!(ask(&proxy, "/c").await.is_ok());
}

#[tokio::test]
async fn connection_made_before_it_has_a_target_waits_for_it() {
    let hostile = Hostile::start(|_| Script::whole(200, &[], "0123456789")).await;
    let proxy = Arc::new(FaultProxy::start(|_| LinkFault::None).await);
    let asking = tokio::task::JoinSet::from_iter([{
        let proxy = Arc::clone(&proxy);
        async move { ask(&proxy, "/").await }
    }]);
    proxy.aim(hostile.addr());
    assert!(asking.join_all().await.remove(0).is_ok());
}

#[tokio::test]
async fn repeated_http2_is_closed_at_once_because_it_can_not_be() {
    let (_hostile, proxy) = pair(LinkFault::Repeated).await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    assert_eq!(within(PATIENCE, "the end", stream.read(&mut [0; 1])).await.unwrap_or(0), 0);
    assert_eq!(proxy.faults(), 1);
    drop(Channel::open(proxy.addr()).await);
}
