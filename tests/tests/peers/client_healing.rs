//! Our client at other people's servers, with a link between them that fails: nothing is lost, nothing is told twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::follow::{FollowOptions, Until};
use longhaul_client::{ClientError, Outcome, WaitOptions};
use longhaul_protocol::{TaskState, wire};
use longhaul_tests::asked::Asked;
use longhaul_tests::hostile::operation;
use longhaul_tests::{LinkFault, PATIENCE, Peer, Sdk, until, within};

use crate::client_links::{Decide, Link, by_number, opens_stream};
use crate::client_support::{
    Case, Counter, artifact, builder, cancel, chunks, connect, parts, said, say, sends, state, states, texts, told,
};

/// How many chunks a stream has that is cut.
const CHUNKS: usize = 300;

/// Runs a test over each binding of each SDK, over a link that fails as `decide` says of each binding for itself. The links
/// are given back.
async fn each(decide: impl Fn() -> Decide, test: impl AsyncFn(&Case<'_>)) -> [Link; 2] {
    let over_each = async |sdk| {
        let link = Link::new(sdk, &decide).await;
        let over = async |binding| {
            let client = connect(binding, &link.peer).await;
            test(&Case { peer: &link.peer, sdk, binding, client }).await;
        };
        tokio::join!(over(Binding::JsonRpc), over(Binding::HttpJson), over(Binding::Grpc));
        link
    };
    let [python, js] = Sdk::ALL;
    tokio::join!(over_each(python), over_each(js)).into()
}

#[tokio::test]
async fn stream_that_is_cut_again_and_again_tells_each_chunk_once() {
    // Each goes a bit further than the one before: a subscription begins with all that there was.
    let decide = || {
        by_number(|number| match u64::try_from(number) {
            Ok(number @ 0..6) => LinkFault::CutAfter((number + 1) * 7_000),
            _ => LinkFault::None,
        })
    };
    let links = each(decide, async |case| {
        let events = case.events(&format!("chunks {CHUNKS}")).await;
        assert_eq!(told(&events, "chunks"), chunks(CHUNKS), "{}", case.name());
        // Not by telling the whole anew: whoever prints what comes has printed each once.
        assert_eq!(parts(&events), CHUNKS, "{}", case.name());
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        let Some(wire::StreamResponsePayload::Task(first)) = &events[0].payload.payload else { panic!("{events:?}") };
        let task = case.task(&first.id).await;
        assert_eq!(told(&events, "chunks"), texts(&artifact(&task, "chunks").parts), "{}", case.name());
    })
    .await;
    links.iter().for_each(Link::assert_failed);
}

#[tokio::test]
async fn statuses_of_a_stream_that_is_cut_are_told_once_and_in_order() {
    let decide = || by_number(|number| if number < 4 { LinkFault::CutAfter(9_000) } else { LinkFault::None });
    let links = each(decide, async |case| {
        let events = case.events("burst 200").await;
        let said: Vec<String> = events.iter().filter_map(|event| said(&event.payload)).collect();
        assert_eq!(said, (1..=200).map(|number| format!("{number} of 200")).collect::<Vec<_>>(), "{}", case.name());
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
    })
    .await;
    links.iter().for_each(Link::assert_failed);
}

#[tokio::test]
async fn stream_that_comes_byte_by_byte_is_the_same() {
    each(
        || by_number(|_| LinkFault::SingleBytes),
        async |case| {
            let events = case.events("burst 3 chunks 6").await;
            assert_eq!(told(&events, "chunks"), chunks(6), "{}", case.name());
            let wanted = [TaskState::Submitted, TaskState::Working, TaskState::Completed];
            assert_eq!(states(&events), wanted, "{}", case.name());
        },
    )
    .await;
}

#[tokio::test]
async fn stream_that_is_cut_whenever_it_is_silent_comes_to_its_end() {
    let links = each(
        || by_number(|_| LinkFault::IdleCut(Duration::from_millis(300))),
        async |case| {
            let events = case.events("slow 1.5 chunks 5").await;
            assert_eq!(told(&events, "chunks"), chunks(5), "{}", case.name());
            assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        },
    )
    .await;
    links.iter().for_each(Link::assert_failed);
}

#[tokio::test]
async fn waiting_goes_on_when_the_link_breaks() {
    let links = each(
        || by_number(|number| if number < 3 { LinkFault::CutAfter(3_000) } else { LinkFault::None }),
        async |case| {
            let outcome = case.delegate(say("burst 50 slow 0.3 chunks 20 input")).await;
            let Outcome::NeedsInput { task, question } = outcome else { panic!("{}: {outcome:?}", case.name()) };
            assert_eq!(texts(&question.unwrap().parts), ["what else?"], "{}", case.name());
            assert_eq!(texts(&artifact(&task, "chunks").parts), chunks(20), "{}", case.name());
        },
    )
    .await;
    links.iter().for_each(Link::assert_failed);
}

#[tokio::test]
async fn message_whose_answer_is_lost_is_not_sent_again() {
    // Neither server knows a message that it has seen, so a second one would be a second task.
    let links = each(
        || {
            Box::new(|asked| match opens_stream(asked) || is_send(asked) {
                true => LinkFault::LostAnswer,
                false => LinkFault::None,
            })
        },
        async |case| {
            let (log, client) = sends(builder(case.binding), case).await;
            let mut request = say("echo x");
            request.message.as_mut().unwrap().context_id = case.name();
            let sent = client.send_message(request.clone()).await;
            assert!(matches!(sent, Err(ClientError::Broken { .. })), "{}: {sent:?}", case.name());
            let delegated = client.delegate(request, WaitOptions::default()).await;
            assert!(matches!(delegated, Err(ClientError::Broken { .. })), "{}: {delegated:?}", case.name());
            assert_eq!(log_of(&log), (1, 1), "{}", case.name());
            let direct = direct(case.peer).await;
            until(PATIENCE, "both tasks", async || {
                let here = wire::ListTasksRequest { context_id: case.name(), ..Default::default() };
                let page = direct.list_tasks(here).await.unwrap();
                assert!(page.total_size <= 2, "{}: {page:?}", case.name());
                (page.total_size == 2).then_some(())
            })
            .await;
        },
    )
    .await;
    links.iter().for_each(Link::assert_failed);
}

fn log_of(log: &Counter) -> (usize, usize) {
    (log.count("SendMessage"), log.count("SendStreamingMessage"))
}

fn is_send(asked: &Asked) -> bool {
    operation(asked) == "SendMessage"
}

/// A client that asks the peer itself, whatever its card names.
async fn direct(peer: &Peer) -> longhaul_client::Client {
    let mut card = peer.card().clone();
    card["supportedInterfaces"][0]["url"] = format!("http://{}/a2a/rpc", peer.http()).into();
    let document = longhaul_client::card::CardDocument::parse(card.to_string().as_bytes(), "a test").unwrap().into();
    let origin = longhaul_client::card::CardOrigin::url(&peer.card_url()).unwrap();
    builder(Binding::JsonRpc).with_card(longhaul_client::FoundCard { document, origin }).unwrap()
}

#[tokio::test]
async fn what_is_safe_to_ask_again_is_asked_again() {
    // Over gRPC a connection is lost, over the others a request: every second one.
    let links = each(
        || {
            let count = AtomicUsize::new(0);
            Box::new(move |asked| match is_send(asked) || !count.fetch_add(1, Ordering::AcqRel).is_multiple_of(2) {
                true => LinkFault::None,
                false => LinkFault::LostAnswer,
            })
        },
        async |case| {
            let direct = direct(case.peer).await;
            let mut request = say("slow 600");
            request.configuration.get_or_insert_default().return_immediately = true;
            let answer = direct.send_message(request).await.unwrap();
            let Some(wire::SendMessageResponsePayload::Task(task)) = answer.payload else { panic!("{answer:?}") };
            assert_eq!(state(&case.task(&task.id).await), Some(TaskState::Working), "{}", case.name());
            // The first cancel is done and its answer lost; that the second finds it done is no failure.
            let canceled = case.ok("CancelTask", case.client.cancel_task(cancel(&task.id)).await);
            assert_eq!(state(&canceled), Some(TaskState::Canceled), "{}", case.name());
            let here = wire::ListTasksRequest { context_id: task.context_id, ..Default::default() };
            let page = case.ok("ListTasks", case.client.list_tasks(here).await);
            assert_eq!(page.total_size, 1, "{}", case.name());
        },
    )
    .await;
    links.iter().for_each(Link::assert_failed);
}

#[tokio::test]
async fn subscription_that_arrives_twice_is_read_once() {
    each(
        || {
            Box::new(|asked| match opens_stream(asked) && !asked.is_http2() {
                true => LinkFault::Repeated,
                false => LinkFault::None,
            })
        },
        async |case| {
            let task = case.begin("slow 0.3 chunks 30").await;
            let mut options = FollowOptions::default();
            options.until = Until::Terminal;
            let events = case.rest(case.client.follow(&task.id, options)).await;
            assert_eq!(told(&events, "chunks"), chunks(30), "{}", case.name());
        },
    )
    .await;
}

#[tokio::test]
async fn peer_that_is_gone_is_told_after_so_much_patience() {
    let [python, js] = Sdk::ALL;
    tokio::join!(is_gone(python), is_gone(js));
}

async fn is_gone(sdk: Sdk) {
    let mut peer = Peer::start(sdk).await;
    let mut streams = Vec::new();
    for binding in Binding::ALL {
        let client = connect(binding, &peer).await;
        let mut options = FollowOptions::default();
        options.patience = Duration::from_millis(300);
        let mut stream = client.send_streaming_message(say("slow 600"), options).unwrap();
        stream.next().await.unwrap().unwrap();
        streams.push((binding, stream));
    }
    peer.kill().await;
    for (binding, mut stream) in streams {
        let error = loop {
            match within(PATIENCE, "an end", stream.next()).await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("{sdk:?} {binding}: the task has not ended"),
            }
        };
        let is_gone = matches!(error, ClientError::Connect { .. } | ClientError::Broken { .. });
        assert!(is_gone, "{sdk:?} {binding}: {error:?}");
    }
}
