//! A receiver as its framework sees it: headers and body in, a delivery or a status out.
#![expect(clippy::unwrap_used, reason = "a test that is broken has to fail")]

use http::{HeaderMap, HeaderName, HeaderValue};
use longhaul_client::push::{Delivery, Expectations, Order, Receiver, Refused, SigningSecret, Unprotected};
use longhaul_protocol::wire::StreamResponsePayload;
use longhaul_protocol::{TaskState, Timestamp};
use longhaul_push::Secret;

const NOW: i64 = 1_800_000_000;
const TOKEN: &str = "a long and secret token";

fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW * 1000)
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/a2a+json"));
    for (name, value) in pairs {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    }
    headers
}

fn body(task: &str) -> Vec<u8> {
    let status = r#"{"state":"TASK_STATE_WORKING"}"#;
    format!(r#"{{"statusUpdate":{{"taskId":"{task}","contextId":"c","status":{status}}}}}"#).into_bytes()
}

fn status(result: Result<Option<Delivery>, Refused>) -> u16 {
    match result {
        Ok(Some(delivery)) => {
            delivery.done();
            204
        }
        Ok(None) => 200,
        Err(refused) => refused.status().as_u16(),
    }
}

fn first_secret() -> SigningSecret {
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap()
}

fn second_secret() -> SigningSecret {
    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".parse().unwrap()
}

fn open() -> Receiver {
    Receiver::new(Expectations { is_open: true, ..Expectations::default() }).unwrap()
}

#[test]
fn a_receiver_that_asks_for_nothing_is_refused() {
    assert_eq!(Receiver::new(Expectations::default()).unwrap_err(), Unprotected);
}

#[test]
fn the_token_is_taken_from_either_header_and_must_be_the_one() {
    let receiver = Receiver::new(Expectations::token(TOKEN)).unwrap();
    let given = |pairs: &[(&str, &str)]| status(receiver.receive(&headers(pairs), &body("t"), now()));
    assert_eq!(given(&[("x-a2a-notification-token", TOKEN)]), 204);
    assert_eq!(given(&[("a2a-notification-token", TOKEN)]), 204);
    assert_eq!(given(&[("a2a-notification-token", TOKEN), ("x-a2a-notification-token", TOKEN)]), 204);
    assert_eq!(given(&[("a2a-notification-token", "other"), ("x-a2a-notification-token", TOKEN)]), 401);
    assert_eq!(given(&[("x-a2a-notification-token", TOKEN), ("x-a2a-notification-token", "other")]), 401);
    for wrong in ["", "a long and secret toke", "a long and secret token ", "A long and secret token"] {
        assert_eq!(given(&[("x-a2a-notification-token", wrong)]), 401, "{wrong:?}");
    }
    assert_eq!(given(&[]), 401);
}

#[test]
fn the_authorization_must_be_the_one() {
    let authorization = Some(("Bearer".to_owned(), Secret::new("hush")));
    let receiver = Receiver::new(Expectations { authorization, ..Expectations::default() }).unwrap();
    let given = |value: &str| status(receiver.receive(&headers(&[("authorization", value)]), &body("t"), now()));
    assert_eq!((given("Bearer hush"), given("bearer hush")), (204, 204));
    for wrong in ["", "Bearer", "Bearer ", "Bearer hus", "Bearer hush2", "Basic hush", "Bearerhush", "hush"] {
        assert_eq!(given(wrong), 401, "{wrong:?}");
    }
    assert_eq!(status(receiver.receive(&headers(&[]), &body("t"), now())), 401);
}

#[test]
fn a_signature_by_any_of_the_secrets_is_taken_within_its_time() {
    let receiver = Receiver::new(Expectations::signed(vec![first_secret(), second_secret()])).unwrap();
    let signed = |secret: &SigningSecret, id: &str, seconds: i64, signed: &[u8], sent: &[u8]| {
        let signature = secret.sign(id, seconds, signed);
        let timestamp = seconds.to_string();
        let headers =
            headers(&[("webhook-id", id), ("webhook-timestamp", &timestamp), ("webhook-signature", &signature)]);
        status(receiver.receive(&headers, sent, now()))
    };
    let (good, other) = (body("t"), body("other"));
    assert_eq!(signed(&first_secret(), "t_1_c", NOW, &good, &good), 204);
    assert_eq!(signed(&second_secret(), "t_2_c", NOW - 300, &good, &good), 204);
    assert_eq!(signed(&first_secret(), "t_2_c", NOW, &good, &good), 200, "it was handled before");
    assert_eq!(signed(&first_secret(), "t_3_c", NOW - 301, &good, &good), 401, "a replay");
    assert_eq!(signed(&first_secret(), "t_3_c", NOW + 301, &good, &good), 401);
    assert_eq!(signed(&first_secret(), "t_3_c", NOW, &good, &other), 401, "another body");
    let stranger: SigningSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".parse().unwrap();
    assert_eq!(signed(&stranger, "t_3_c", NOW, &good, &good), 401);
    assert_eq!(status(receiver.receive(&headers(&[("webhook-id", "t_3_c")]), &good, now())), 401);
    assert_eq!(signed(&first_secret(), "t_3_c", NOW, &good, &good), 204, "what was refused was not handled");
}

#[test]
fn what_can_not_be_read_is_refused_by_its_status() {
    let receiver = Receiver::new(Expectations { body_bytes_max: 200, ..Expectations::token(TOKEN) }).unwrap();
    let with = |pairs: &[(&str, &str)], body: &[u8]| {
        let mut all = headers(&[("x-a2a-notification-token", TOKEN)]);
        for (name, value) in pairs {
            all.insert(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
        }
        status(receiver.receive(&all, body, now()))
    };
    assert_eq!(with(&[], &body("t")), 204);
    for json in ["application/json", "application/json; charset=utf-8", "Application/A2A+JSON"] {
        assert_eq!(with(&[("content-type", json)], &body("t")), 204, "{json}");
    }
    for other in ["text/plain", "", "application/jsonx"] {
        assert_eq!(with(&[("content-type", other)], &body("t")), 415, "{other}");
    }
    for (version, wanted) in [("1.0", 204), ("1.0.1", 204), ("0.3", 400), ("2.0", 400), ("1.01", 400)] {
        assert_eq!(with(&[("a2a-version", version)], &body("t")), wanted, "{version}");
    }
    for bad in ["", "{", "[]", "{}", r#"{"statusUpdate":7}"#, r#"{"task":{"id":"a"},"message":{}}"#] {
        assert_eq!(with(&[], bad.as_bytes()), 400, "{bad}");
    }
    assert_eq!(with(&[], &[b' '; 201]), 413);
}

#[test]
fn only_the_tasks_that_are_expected_are_taken() {
    let receiver = open();
    let of = |task: &str| status(receiver.receive(&headers(&[]), &body(task), now()));
    assert_eq!(of("any"), 204);
    receiver.expect("mine");
    assert_eq!((of("mine"), of("any")), (204, 404));
    receiver.forget("mine");
    assert_eq!(of("mine"), 404);
}

#[test]
fn each_event_is_handed_over_once_and_in_order() {
    let receiver = open();
    let receive = |id: &str| receiver.receive(&headers(&[("webhook-id", id)]), &body("t"), now());
    let delivery = receive("t_4_c").unwrap().unwrap();
    assert_eq!((delivery.sequence, delivery.order.clone(), delivery.task_id.as_str()), (Some(4), Order::Next, "t"));
    let Err(Refused::Busy) = receive("t_5_c") else { panic!("it overtakes") };
    let Err(Refused::Busy) = receive("t_4_c") else { panic!("it is handled twice at once") };
    assert!(receive("t_1_other").unwrap().is_some(), "another config does not wait");
    drop(delivery);
    receive("t_4_c").unwrap().expect("it was not handled").done();
    assert!(receive("t_4_c").unwrap().is_none());
    let delivery = receive("t_7_c").unwrap().unwrap();
    assert_eq!(delivery.order, Order::AfterGap { first_missing: 5 });
    delivery.done();
    let delivery = receive("t_5_c").unwrap().unwrap();
    assert_eq!((delivery.sequence, delivery.order.clone()), (Some(5), Order::Late));
    delivery.done();
    assert!(receive("t_5_c").unwrap().is_none());
}

#[test]
fn ids_of_other_senders_are_told_apart() {
    let receiver = open();
    let receive = |pairs: &[(&str, &str)]| status(receiver.receive(&headers(pairs), &body("t"), now()));
    assert_eq!((receive(&[("webhook-id", "msg_1")]), receive(&[("webhook-id", "msg_1")])), (204, 200));
    assert_eq!((receive(&[]), receive(&[])), (204, 204), "without an id nobody knows");
}

#[test]
fn a_receiver_that_starts_again_goes_on_where_it_was() {
    let receiver = open();
    receiver.restore("t", "t_9_c");
    let receive = |id: &str| receiver.receive(&headers(&[("webhook-id", id)]), &body("t"), now()).unwrap();
    assert!(receive("t_9_c").is_none() && receive("t_3_c").is_none());
    assert_eq!(receive("t_10_c").unwrap().order, Order::Next);
}

#[test]
fn nothing_that_is_expected_is_shown() {
    let authorization = Some(("Bearer".to_owned(), Secret::new("hush")));
    let receiver = Receiver::new(Expectations { authorization, ..Expectations::token(TOKEN) }).unwrap();
    let refused = receiver.receive(&headers(&[]), &body("t"), now()).unwrap_err();
    let shown = format!("{receiver:?} {refused:?} {refused}");
    assert!(!shown.contains("hush") && !shown.contains(TOKEN), "{shown}");
}

#[test]
fn what_an_agent_of_v0_3_pushes_is_the_same_news() {
    let status = r#"{"state":"input-required"}"#;
    let task = format!(r#"{{"kind":"task","id":"t","contextId":"c","status":{status}}}"#);
    let update = format!(r#"{{"kind":"status-update","taskId":"t","contextId":"c","status":{status},"final":true}}"#);
    for body in [task, update] {
        let delivery = open().receive(&headers(&[]), body.as_bytes(), now()).unwrap().unwrap();
        assert_eq!(delivery.task_id, "t");
        let status = match &delivery.payload {
            StreamResponsePayload::Task(task) => task.status.as_ref(),
            StreamResponsePayload::StatusUpdate(update) => update.status.as_ref(),
            other => unreachable!("{other:?}"),
        };
        assert_eq!(status.unwrap().state.known(), Some(TaskState::InputRequired));
        delivery.done();
    }
    for nothing in ["{}", r#"{"kind":"other","id":"t"}"#] {
        let refused = open().receive(&headers(&[]), nothing.as_bytes(), now());
        assert!(matches!(refused, Err(Refused::Empty)), "{nothing}: {refused:?}");
    }
}
