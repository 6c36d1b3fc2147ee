//! What a client must survive: each answer that is wrong is a clear error, in bounded time and memory.

use std::time::Duration;

use longhaul_client::card::{Binding, CardDocument, CardOrigin};
use longhaul_client::{CardError, Client, ClientError, FoundCard, Outcome, RetryPolicy, TransportConfig};
use longhaul_protocol::{ErrorCode, wire};
use longhaul_tests::hostile::{
    CARD_PATH, CallFault, Deleted, Hostile, Oddity, Script, StreamFault, TASK_ID, card, card_at, items, named_state,
};
use longhaul_tests::{Server, Store, until, within};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::memory::{open_files, resident_bytes};
use crate::scripted::{HTTP, Scripted, Streams, found, snapshot, words};
use crate::stories::{collect, hasty, options, shown};
use crate::support::{BINDINGS, builder, get, say, say_in};

/// The most bytes of an answer or an event, in these tests.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much more memory than before may be resident while 1 GB is thrown at the client.
const GROWTH_MAX: u64 = 64 * 1024 * 1024;
/// How long the client waits for an answer here.
const TIMEOUT: Duration = Duration::from_millis(400);
/// How long anything may take: a wait is cut by the timeout, and limits come before 1 GB has passed.
const CALL_MAX: Duration = Duration::from_secs(10);

fn config() -> TransportConfig {
    let mut config = TransportConfig::default();
    (config.answer_bytes_max, config.event_bytes_max) = (BYTES_MAX, BYTES_MAX);
    config.stream_silence_max = TIMEOUT;
    config
}

/// A client that tries nothing twice.
async fn once(binding: Binding, hostile: &Hostile) -> Client {
    let builder = builder(binding).transport(config()).retry(RetryPolicy::never()).timeout(TIMEOUT);
    builder.blocking_timeout(TIMEOUT).connect(&hostile.url()).await.unwrap()
}

/// Whether this is the error that names what happened.
fn names(fault: CallFault, binding: Binding, error: &ClientError) -> bool {
    use CallFault as F;
    match fault {
        F::WrongRpcId
        | F::WrongTaskId
        | F::NoResult
        | F::OtherShape
        | F::DeepNesting
        | F::InvalidUtf8
        | F::NotJson
        | F::HalfJson
        | F::EmptyBody
        | F::NullBody
        | F::NoContent
        | F::LengthTooShort
        | F::HtmlOk => {
            matches!(error, ClientError::InvalidAnswer { .. })
        }
        F::ResultAndError if binding == Binding::JsonRpc => error.code() == Some(ErrorCode::TaskNotFound),
        F::ResultAndError => matches!(error, ClientError::InvalidAnswer { .. }),
        F::HugeBody | F::HugeChunkedBody => {
            matches!(error, ClientError::TooLarge { bytes_max: BYTES_MAX, what: "an answer", .. })
        }
        F::HugeHead => matches!(error, ClientError::TooLarge { what: "headers", .. }),
        F::NeverAnswers | F::StallsAfterHead | F::StallsInBody => {
            matches!(error, ClientError::Timeout { after: TIMEOUT, .. })
        }
        F::ClosesAtOnce
        | F::Resets
        | F::ClosesInHead
        | F::ClosesInBody
        | F::LengthTooLong
        | F::BadChunk
        | F::NotHttp => matches!(error, ClientError::Broken { .. }),
        F::RedirectLoop | F::RedirectInside => matches!(error, ClientError::Http { status: 307, .. }),
        F::HtmlBadGateway => {
            matches!(error, ClientError::Http { status: 502, excerpt, .. } if excerpt.contains("nginx"))
        }
        F::Unauthorized => {
            matches!(error, ClientError::Unauthorized { challenge: Some(how), .. } if how.contains("agents"))
        }
        F::Forbidden => matches!(error, ClientError::Unauthorized { challenge: None, .. }),
        F::TooManyRequests => is_to_come_again(error, 429),
        F::Unavailable => is_to_come_again(error, 503),
    }
}

fn is_to_come_again(error: &ClientError, expected: u16) -> bool {
    matches!(error, ClientError::Http { status, .. } if *status == expected)
        && error.retry_after() == Some(Duration::from_secs(7))
        && error.is_transient()
}

#[tokio::test]
async fn each_fault_of_a_call_is_an_error_that_names_it() {
    for binding in HTTP {
        for fault in CallFault::ALL.iter().copied() {
            let hostile = Hostile::agent(move |asked| fault.script(asked)).await;
            let client = once(binding, &hostile).await;
            let before = resident_bytes();
            let cancel = wire::CancelTaskRequest { id: TASK_ID.to_owned(), ..Default::default() };
            let calls = async {
                let get = client.get_task(get(TASK_ID)).await.map(|_| ());
                let cancel = client.cancel_task(cancel).await.map(|_| ());
                let send = client.send_message(say_in("x", "", TASK_ID)).await.map(|_| ());
                [get, cancel, send]
            };
            let results = within(CALL_MAX, &format!("{binding} {fault:?}"), calls).await;
            for result in results {
                let error = result.expect_err(&format!("{binding} {fault:?}"));
                assert!(names(fault, binding, &error), "{binding} {fault:?}: {error:?}");
                let text = error.to_string();
                assert!(text.len() < 600 && !text.contains(['\n', '\u{0}']), "{binding} {fault:?}: {text}");
            }
            let growth = resident_bytes().saturating_sub(before);
            assert!(growth < GROWTH_MAX, "{binding} {fault:?}: {growth} bytes more");
            assert!(hostile.written() < 3 * 8 * BYTES_MAX as u64, "{binding} {fault:?}: {}", hostile.written());
            assert_eq!(hostile.count(), 4, "{binding} {fault:?}: the card, and each call once");
        }
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_an_error_too() {
    for fault in CallFault::ALL.iter().copied() {
        let hostile = Hostile::start(move |asked| fault.script(asked)).await;
        let mut card = card("http://127.0.0.1:1");
        card["supportedInterfaces"] =
            json!([{"url": hostile.addr().to_string(), "protocolBinding": "GRPC", "protocolVersion": "1.0"}]);
        let document = CardDocument::parse(card.to_string().as_bytes(), "the test").unwrap();
        let found = FoundCard { document: document.into(), origin: CardOrigin::caller() };
        let builder = builder(Binding::Grpc).transport(config()).retry(RetryPolicy::never()).timeout(TIMEOUT);
        let client = builder.with_card(found).unwrap();
        let call = within(CALL_MAX, &format!("{fault:?}"), client.get_task(get(TASK_ID))).await;
        let error = call.expect_err(&format!("{fault:?}"));
        let is_named =
            matches!(error, ClientError::Broken { .. } | ClientError::Connect { .. } | ClientError::Timeout { .. });
        assert!(is_named, "{fault:?}: {error:?}");
    }
}

/// What becomes of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    TooLarge,
    Invalid,
    Heals,
    Waits,
}

fn fate(fault: StreamFault) -> Fate {
    use StreamFault as F;
    match fault {
        F::EndlessLine | F::EndlessEvent | F::EndlessComment => Fate::TooLarge,
        F::InvalidUtf8 | F::NotJson | F::DeepNesting | F::WrongRpcId | F::WrongTaskId => Fate::Invalid,
        F::EndsEarly | F::ClosesInEvent | F::Resets | F::Stalls | F::BadChunk => Fate::Heals,
        F::OnlyComments => Fate::Waits,
    }
}

#[tokio::test]
async fn each_fault_of_a_stream_is_an_error_or_heals_and_never_ends_the_task() {
    for binding in HTTP {
        for fault in StreamFault::ALL.iter().copied() {
            let agent = Scripted::start(Streams::Plain, move |asked, operation, _| match operation {
                "SendStreamingMessage" => fault.script(asked),
                "SubscribeToTask" => crate::scripted::refusal(asked, "UNSUPPORTED_OPERATION", -32004, 400),
                _ => found(asked, &snapshot("REJECTED", &[])),
            })
            .await;
            let client = hasty(binding).transport(config()).connect(&agent.hostile.url()).await.unwrap();
            let events = client.send_streaming_message(say("x"), options()).unwrap();
            let before = resident_bytes();
            let fate = fate(fault);
            let limit = if fate == Fate::Waits { 3 * TIMEOUT } else { CALL_MAX };
            let told = timeout(limit, collect(events)).await;
            let what = format!("{binding} {fault:?}: {told:?}");
            match (fate, told) {
                (Fate::Waits, Err(_)) => {}
                (Fate::Heals, Ok(Ok(story))) => {
                    assert_eq!(words(&story.events), ["task SUBMITTED", "REJECTED"], "{what}")
                }
                (Fate::TooLarge, Ok(Err((ClientError::TooLarge { bytes_max: BYTES_MAX, .. }, events)))) => {
                    assert_eq!(events.len(), 1, "{what}");
                }
                (Fate::Invalid, Ok(Err((ClientError::InvalidAnswer { .. }, events)))) => {
                    assert_eq!(words(&events), ["task SUBMITTED"], "{what}");
                }
                _ => panic!("{what}"),
            }
            let growth = resident_bytes().saturating_sub(before);
            assert!(growth < GROWTH_MAX, "{binding} {fault:?}: {growth} bytes more");
            assert!(agent.hostile.written() < 8 * BYTES_MAX as u64, "{binding} {fault:?}");
        }
    }
}

#[tokio::test]
async fn odd_streams_are_read_right() {
    for binding in HTTP {
        for oddity in Oddity::ALL.iter().copied() {
            let hostile = Hostile::agent(move |asked| oddity.script(asked)).await;
            let client = hasty(binding).connect(&hostile.url()).await.unwrap();
            let events = client.send_streaming_message(say("x"), options()).unwrap();
            let told = within(CALL_MAX, &format!("{binding} {oddity:?}"), collect(events)).await;
            let story = told.unwrap_or_else(|(error, _)| panic!("{binding} {oddity:?}: {error:?}"));
            let shown: Vec<Value> = story.events.iter().map(shown).collect();
            assert_eq!(shown, items().into_iter().map(canonical).collect::<Vec<_>>(), "{binding} {oddity:?}");
            assert_eq!(hostile.count(), 2, "{binding} {oddity:?}: the card, and one stream");
        }
    }
}

/// As our own writer writes it: without what is the default.
fn canonical(item: Value) -> Value {
    use longhaul_protocol::{from_json, to_json};
    let item: wire::StreamResponse = from_json(item.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&to_json(&item)).unwrap()
}

#[tokio::test]
async fn misspelt_state_is_read_and_an_unknown_one_is_no_end() {
    for binding in HTTP {
        for (name, is_expected) in [
            ("TASK_STATE_CANCELLED", (|outcome| matches!(outcome, Outcome::Canceled(_))) as fn(&Outcome) -> bool),
            ("TASK_STATE_PAUSED", |outcome| matches!(outcome, Outcome::Unknown(_))),
            ("TASK_STATE_UNSPECIFIED", |outcome| matches!(outcome, Outcome::Unknown(_))),
            ("completed", |outcome| matches!(outcome, Outcome::Unknown(_))),
            ("TASK_STATE_COMPLETED", |outcome| matches!(outcome, Outcome::Completed(_))),
        ] {
            let hostile = Hostile::agent(move |asked| named_state(asked, name)).await;
            let client = once(binding, &hostile).await;
            let outcome = client.outcome(TASK_ID).await.unwrap();
            assert!(is_expected(&outcome), "{binding} {name}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn each_way_to_say_that_a_config_is_gone_is_heard() {
    for binding in HTTP {
        for deleted in Deleted::ALL.iter().copied() {
            let hostile = Hostile::agent(move |asked| deleted.script(asked)).await;
            let client = once(binding, &hostile).await;
            let request = wire::DeleteTaskPushNotificationConfigRequest {
                task_id: TASK_ID.to_owned(),
                id: "c".to_owned(),
                ..Default::default()
            };
            let result = client.delete_push_config(request).await;
            assert!(result.is_ok(), "{binding} {deleted:?}: {result:?}");
        }
    }
}

#[tokio::test]
async fn same_request_sent_twice_is_the_same_twice() {
    for binding in HTTP {
        let hostile = Hostile::agent(|asked| named_state(asked, "TASK_STATE_COMPLETED")).await;
        let client = once(binding, &hostile).await;
        let mut request = say_in("x", "", TASK_ID);
        request.message.as_mut().unwrap().message_id = "m-1".to_owned();
        let before = request.clone();
        client.send_message(request.clone()).await.unwrap();
        client.send_message(request.clone()).await.unwrap();
        assert_eq!(request, before);
        let sent: Vec<Value> = hostile.asked()[1..]
            .iter()
            .map(|asked| match asked.json() {
                Value::Object(mut body) if binding == Binding::JsonRpc => body.remove("params").unwrap(),
                body => body,
            })
            .collect();
        assert_eq!(sent[0], sent[1], "{binding}");
        assert_eq!(sent[0]["message"]["messageId"], "m-1");
    }
}

#[tokio::test]
async fn call_is_tried_again_after_the_time_that_was_asked_for() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, _, nth| match nth {
            0 => Script::whole(429, &[("Retry-After", "1")], ""),
            _ => found(asked, &snapshot("WORKING", &[])),
        })
        .await;
        let client = builder(binding).connect(&agent.hostile.url()).await.unwrap();
        client.get_task(get(TASK_ID)).await.unwrap();
        let times = agent.times("GetTask");
        assert!(times.len() == 2 && times[1] - times[0] >= Duration::from_secs(1), "{binding}");
    }
}

#[tokio::test]
async fn card_that_leads_inside_is_refused_and_nothing_is_connected_to() {
    let inside = Hostile::agent(|asked| named_state(asked, "TASK_STATE_COMPLETED")).await;
    let port = inside.addr().port();
    let public = || CardOrigin::url("https://agents.example.com/card").unwrap().at([8, 8, 8, 8].into());
    let private = || CardOrigin::url("http://10.1.2.3/card").unwrap();
    let urls = [
        format!("http://127.0.0.1:{port}/rpc"),
        format!("https://127.0.0.1:{port}/rpc"),
        format!("http://localhost:{port}/rpc"),
        format!("http://[::1]:{port}/rpc"),
        format!("http://[::ffff:127.0.0.1]:{port}/rpc"),
        format!("http://2130706433:{port}/rpc"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "https://169.254.169.254/".to_owned(),
    ];
    for url in &urls {
        for origin in [public(), private()] {
            let document = CardDocument::parse(card_at(url).to_string().as_bytes(), "the test").unwrap();
            let made = builder(Binding::JsonRpc).with_card(FoundCard { document: document.into(), origin });
            let Err(ClientError::Card(CardError::NoInterface { reasons, .. })) = made else {
                panic!("{url}: {made:?}")
            };
            assert!(
                reasons[0].contains("may not") || reasons[0].contains("TLS") || reasons[0].contains("URL"),
                "{reasons:?}"
            );
        }
    }
    assert_eq!(inside.connections(), 0);
    // Whoever is on this machine already may lead to it, but not to where the cloud keeps its secrets.
    for (url, is_allowed) in [(urls[0].as_str(), true), (urls[6].as_str(), false)] {
        let document = card_at(url);
        let here = Hostile::start(move |_| Script::json(200, &document)).await;
        let begun = Instant::now();
        let made = builder(Binding::JsonRpc).connect(&here.url()).await;
        assert_eq!(made.is_ok(), is_allowed, "{made:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "somebody was waited for");
    }
}

#[tokio::test]
async fn redirects_of_a_card_end_and_lead_nowhere_inside() {
    let looping = Hostile::start(|asked| Script::whole(302, &[("Location", asked.target.as_str())], "")).await;
    let error = builder(Binding::JsonRpc).connect(&looping.url()).await.unwrap_err();
    assert!(matches!(error, ClientError::Card(CardError::NotFound { .. })), "{error:?}");
    assert!(looping.count() <= 8, "{}", looping.count());
    let inside = Hostile::start(|_| Script::whole(302, &[("Location", "http://169.254.169.254/card")], "")).await;
    let error = within(CALL_MAX, "an error", builder(Binding::JsonRpc).connect(&inside.url())).await.unwrap_err();
    assert!(matches!(error, ClientError::Forbidden { .. }), "{error:?}");
}

#[tokio::test]
async fn each_fault_of_a_card_is_an_error() {
    for fault in CallFault::ALL.iter().copied() {
        let hostile = Hostile::start(move |asked| match asked.path() {
            CARD_PATH => fault.script(asked),
            _ => Script::whole(404, &[], ""),
        })
        .await;
        let builder = builder(Binding::JsonRpc).transport(config()).retry(RetryPolicy::never()).timeout(TIMEOUT);
        let before = resident_bytes();
        let made = within(CALL_MAX, &format!("{fault:?}"), builder.connect(&hostile.url())).await;
        let error = made.expect_err(&format!("{fault:?}"));
        assert!(error.to_string().len() < 600, "{fault:?}: {error}");
        assert!(resident_bytes().saturating_sub(before) < GROWTH_MAX, "{fault:?}");
        assert!(hostile.written() < 8 * BYTES_MAX as u64, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_dropped_leave_nothing_behind() {
    const STREAMS: usize = 2000;
    const WARM: usize = 300;
    let server = Server::start(Store::Memory).await;
    let mut clients = Vec::new();
    for binding in BINDINGS {
        clients.push(hasty(binding).connect(&format!("http://{}", server.addr())).await.unwrap());
    }
    let mut request = say("slow 300");
    request.configuration = Some(wire::SendMessageConfiguration { return_immediately: true, ..Default::default() });
    let answer = clients[0].send_message(request).await.unwrap().payload;
    let Some(wire::SendMessageResponsePayload::Task(task)) = answer else { panic!("{answer:?}") };
    let drop_some = async |from: usize, to: usize| {
        for number in from..to {
            let mut events = clients[number % clients.len()].follow(&task.id, options());
            events.next().await.unwrap().unwrap();
        }
    };
    let begun = Instant::now();
    drop_some(0, WARM).await;
    let (memory, files) = (resident_bytes(), open_files());
    let (server_memory, server_files) = (server.resident_bytes(), server.open_files());
    drop_some(WARM, STREAMS).await;
    // A connection that was dropped is closed a moment later.
    until(CALL_MAX, "the client's files are closed", async || (open_files() <= files + 20).then_some(())).await;
    until(CALL_MAX, "the server's files are closed", async || (server.open_files() <= server_files + 20).then_some(()))
        .await;
    let growth = resident_bytes().saturating_sub(memory);
    let server_growth = server.resident_bytes().saturating_sub(server_memory);
    println!("{STREAMS} streams in {:.1?}: {growth} bytes more here, {server_growth} there", begun.elapsed());
    assert!(growth < 8 * 1024 * 1024, "{growth} bytes more");
    assert!(server_growth < 16 * 1024 * 1024, "{server_growth} bytes more at the server");
}
