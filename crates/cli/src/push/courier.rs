//! Brings notifications to receivers, over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_engine::{Clock, Content, Courier, Parcel, Secrets, Verdict};
use longhaul_protocol::{Timestamp, from_json, v0_3, wire};
use longhaul_push::breaker::{Breaker, BreakerPolicy};
use longhaul_push::schedule::{Failed, Next, Schedule};
use longhaul_push::sender::{Health, check_fields};
use longhaul_push::sign::SigningSecret;
use longhaul_push::{Answer, Delivery, Secret, Sender};
use longhaul_store::HostState;

/// How much longer than its time limit an attempt may take: to throw an answer's body away, and for want of a processor.
const ATTEMPT_MARGIN: Duration = Duration::from_secs(5);
/// How often connections are closed that nobody has used for a while.
const TIDY_INTERVAL: Duration = Duration::from_secs(15);

/// Sends by HTTP, and is patient as the settings say.
pub struct HttpCourier {
    sender: Sender,
    /// How long one attempt may take.
    timeout: Duration,
    schedule: Schedule,
    breaker: BreakerPolicy,
    signing: Arc<[SigningSecret]>,
    clock: Arc<dyn Clock>,
}

impl HttpCourier {
    /// A courier that sends with `sender`, whose attempts take `timeout` at the most.
    pub fn new(
        sender: Sender,
        timeout: Duration,
        schedule: Schedule,
        signing: Vec<SigningSecret>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { sender, timeout, schedule, breaker: BreakerPolicy::default(), signing: signing.into(), clock }
    }

    /// How many authorities are trusted.
    pub fn roots(&self) -> usize {
        self.sender.roots()
    }

    /// Closes connections that are not used, for as long as it is polled.
    pub async fn tidy(&self) {
        loop {
            self.clock.sleep(TIDY_INTERVAL).await;
            self.sender.close_idle(self.clock.now());
        }
    }
}

#[async_trait]
impl Courier for HttpCourier {
    fn check_url(&self, url: &str) -> Result<String, String> {
        match self.sender.guard().check_url(url) {
            Ok(target) => Ok(format!("{}:{}", target.host_name(), target.port())),
            Err(refused) => Err(refused.to_string()),
        }
    }

    fn check_secrets(&self, scheme: Option<&str>, secrets: &Secrets) -> Result<(), (&'static str, String)> {
        let (credentials, token) = (secret(&secrets.credentials), secret(&secrets.token));
        check_fields(scheme, credentials.as_ref(), token.as_ref())
            .map_err(|refused| (refused.field, refused.must.to_owned()))
    }

    fn content(&self, version: &str) -> Content {
        match form(version) {
            Form::V1_0 => Content::Event,
            Form::V0_3 => Content::Task,
        }
    }

    async fn deliver(&self, parcel: Parcel) -> Verdict {
        let Parcel { url, scheme, secrets, version, id, body } = parcel;
        let (media_type, body) = match form(&version) {
            Form::V1_0 => ("application/a2a+json", body),
            Form::V0_3 => match task_of_v0_3(&body) {
                Some(body) => ("application/json", body),
                None => return Verdict::Refused { why: "its task cannot be told in version 0.3".to_owned() },
            },
        };
        let delivery = Delivery {
            url,
            body,
            id,
            version,
            media_type,
            scheme,
            credentials: secret(&secrets.credentials),
            token: secret(&secrets.token),
            signing: Arc::clone(&self.signing),
        };
        verdict(self.sender.send(&delivery, self.clock.now()).await)
    }

    fn attempt_max(&self) -> Duration {
        self.timeout + ATTEMPT_MARGIN
    }

    fn next_attempt(
        &self,
        attempts: u32,
        first_attempt_at: Timestamp,
        after: Option<Duration>,
        jitter: f64,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let jitter = whole(jitter);
        let failed = Failed { attempts, first_failure_at: first_attempt_at, now, retry_after: after, jitter };
        match self.schedule.next(failed) {
            Next::At(at) => Some(at),
            Next::Dead => None,
        }
    }

    fn after_failure(&self, failures: u32, _: f64, now: Timestamp) -> HostState {
        // A failure counts whether or not the host was sent to at the time: who keeps the state lets nothing through meanwhile but
        // what left before.
        let known = Breaker { failures, open_until: None, is_probing: false };
        let Breaker { failures, open_until, .. } = known.on_failure(&self.breaker, now);
        HostState { failures, open_until }
    }
}

/// What an answer means for its delivery.
fn verdict(answer: Answer) -> Verdict {
    let host_is_down = answer.health() == Health::Down;
    match answer {
        Answer::Delivered => Verdict::Delivered,
        Answer::Gone => Verdict::Gone,
        Answer::Retry { after, why } => Verdict::Failed { after, why: why.to_string(), host_is_down },
        Answer::Final { why, .. } => Verdict::Refused { why: why.to_string() },
    }
}

fn secret(text: &str) -> Option<Secret> {
    (!text.is_empty()).then(|| Secret::new(text))
}

/// A share from 0 to 1 of all numbers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float is cast to the nearest number")]
fn whole(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

/// How a notification is written.
enum Form {
    /// As an event of a stream (A2A §4.3.3).
    V1_0,
    /// As the whole task: v0.3 tells no more and no less.
    V0_3,
}

fn form(version: &str) -> Form {
    if version == v0_3::card::VERSION { Form::V0_3 } else { Form::V1_0 }
}

/// The task that an event of a stream begins with, in v0.3.
fn task_of_v0_3(body: &[u8]) -> Option<Bytes> {
    match from_json::<wire::StreamResponse>(body).ok()?.payload? {
        wire::StreamResponsePayload::Task(task) => Some(v0_3::to_json::<v0_3::json_rpc::Task, _>(task)),
        wire::StreamResponsePayload::Message(_)
        | wire::StreamResponsePayload::StatusUpdate(_)
        | wire::StreamResponsePayload::ArtifactUpdate(_) => None,
    }
}

impl fmt::Debug for HttpCourier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCourier")
            .field("sender", &self.sender)
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use longhaul_engine::SystemClock;
    use longhaul_push::guard::UrlRefused;
    use longhaul_push::sender::Failure;
    use longhaul_push::{Guard, Policy, SenderConfig};

    use super::*;

    fn courier() -> HttpCourier {
        let sender = Sender::new(SenderConfig::default(), Guard::new(Policy::default())).expect("it is made");
        let clock = Arc::new(SystemClock::new());
        HttpCourier::new(sender, Duration::from_secs(15), Schedule::default(), Vec::new(), clock)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + seconds * 1000)
    }

    #[test]
    fn who_speaks_v0_3_is_told_the_task_and_nothing_else() {
        let task = wire::Task {
            id: "t-1".to_owned(),
            context_id: "c-1".to_owned(),
            status: Some(wire::TaskStatus {
                state: longhaul_protocol::TaskState::AuthRequired.into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let body = |payload| longhaul_protocol::to_json(&wire::StreamResponse { payload: Some(payload) });
        let told = task_of_v0_3(&body(wire::StreamResponsePayload::Task(task))).expect("it is told");
        let told: serde_json::Value = serde_json::from_slice(&told).expect("it is JSON");
        let wanted = serde_json::json!({
            "kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": "auth-required"},
        });
        assert_eq!(told, wanted);
        assert_eq!(task_of_v0_3(&body(wire::StreamResponsePayload::StatusUpdate(Default::default()))), None);
        let courier = courier();
        assert_eq!((courier.content("1.0"), courier.content("0.3")), (Content::Event, Content::Task));
    }

    #[test]
    fn an_answer_is_a_verdict() {
        let after = Some(Duration::from_secs(9));
        let failed = |after, why: &str, host_is_down| Verdict::Failed { after, why: why.to_owned(), host_is_down };
        let refused = |why: &str| Verdict::Refused { why: why.to_owned() };
        let status = |code| format!("the receiver answered with status {code}");
        #[rustfmt::skip]
        let cases = [
            (Answer::Delivered, Verdict::Delivered),
            (Answer::Gone, Verdict::Gone),
            (Answer::Retry { after, why: Failure::Status(429) }, failed(after, &status(429), false)),
            (Answer::Retry { after, why: Failure::Status(503) }, failed(after, &status(503), true)),
            (Answer::Retry { after: None, why: Failure::Status(500) }, failed(None, &status(500), false)),
            (Answer::Retry { after: None, why: Failure::Timeout }, failed(None, "got no answer in time", true)),
            (Answer::Final { status: Some(404), why: Failure::Status(404) }, refused(&status(404))),
            (Answer::Final { status: None, why: Failure::Url(UrlRefused::Scheme) }, refused("url must begin with https://")),
        ];
        for (answer, wanted) in cases {
            assert_eq!(verdict(answer.clone()), wanted, "{answer:?}");
        }
    }

    #[test]
    fn hosts_are_named_with_their_port_and_what_is_inside_is_refused() {
        let courier = courier();
        assert_eq!(courier.check_url("https://Hooks.example./a?b"), Ok("hooks.example:443".to_owned()));
        assert_eq!(courier.check_url("https://[2606:4700::1111]/"), Ok("2606:4700::1111:443".to_owned()));
        for url in ["https://127.0.0.1/", "https://[::1]/", "http://hooks.example/", "https://a:b@hooks.example/"] {
            let why = courier.check_url(url).expect_err("it is refused");
            assert!(why.starts_with("must "), "{url}: {why}");
        }
    }

    #[test]
    fn a_field_that_is_no_header_is_named_and_not_shown() {
        let secrets = |credentials: &str, token: &str| Secrets { credentials: credentials.into(), token: token.into() };
        let courier = courier();
        assert_eq!(courier.check_secrets(None, &Secrets::default()), Ok(()));
        assert_eq!(courier.check_secrets(Some("Bearer"), &secrets("hunter2", "t")), Ok(()));
        let (field, why) = courier.check_secrets(Some("Bearer"), &secrets("hunter2\r\nX: y", "")).expect_err("refused");
        assert!(field == "authentication.credentials" && !why.contains("hunter2"), "{why}");
        assert_eq!(courier.check_secrets(None, &secrets("", "a\nb")).expect_err("refused").0, "token");
    }

    #[test]
    fn waits_grow_and_end_after_a_day() {
        let courier = courier();
        let next = |attempts, now, after| courier.next_attempt(attempts, at(0), after, 0.0, at(now));
        assert_eq!(next(1, 0, None), Some(at(1)));
        assert_eq!(next(5, 0, None), Some(at(16)));
        assert_eq!(next(1, 0, Some(Duration::from_secs(120))), Some(at(120)));
        assert_eq!(next(99, 86_400, None), None);
        let latest = courier.next_attempt(20, at(0), None, 1.0, at(0)).expect("it is tried again");
        assert!(latest > at(899) && latest <= at(900), "{latest}");
    }

    #[test]
    fn a_host_that_fails_five_times_in_a_row_is_left_alone_for_longer_and_longer() {
        let courier = courier();
        let after = |failures| courier.after_failure(failures, 0.5, at(0));
        assert_eq!(after(3), HostState { failures: 4, open_until: None });
        assert_eq!(after(4), HostState { failures: 5, open_until: Some(at(10)) });
        assert_eq!(after(5), HostState { failures: 6, open_until: Some(at(20)) });
        assert_eq!(after(500), HostState { failures: 501, open_until: Some(at(300)) });
    }
}
