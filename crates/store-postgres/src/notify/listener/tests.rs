use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul_pgtest::Database as Fresh;
use longhaul_protocol::TaskId;
use longhaul_store::TaskMark;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::*;
use crate::PostgresConfig;
use crate::connect::Connector;

/// How long a machine that is busy with other tests may take.
const LIMIT: Duration = Duration::from_secs(20);

struct Instance {
    notifier: Notifier,
    listener: Listener,
    closing: CancellationToken,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl Instance {
    /// One that listens.
    async fn start(config: &PostgresConfig) -> Self {
        let instance = Self::start_with(config, RHYTHM);
        assert_eq!(instance.heard().await, Heard::Anything, "a new connection may have missed something");
        instance
    }

    fn start_with(config: &PostgresConfig, rhythm: Rhythm) -> Self {
        let closing = CancellationToken::new();
        let database = Database::new(config.clone(), Connector::new(config).unwrap(), TaskTracker::new());
        let notifier = Notifier::start(database.clone(), closing.clone());
        let listener = Listener::start_with(database, &notifier, closing.clone(), rhythm);
        Self { notifier, listener, closing }
    }

    async fn heard(&self) -> Heard {
        timeout(LIMIT, self.listener.heard()).await.expect("something is heard in time")
    }

    fn ring(&self, ids: impl IntoIterator<Item = String>, due: bool) {
        self.notifier.ring(ids.into_iter().map(|id| mark(&id, 1, 2)), due);
    }

    /// Rings until `other` hears it, and answers what it heard before.
    async fn ring_until_heard_by(&self, other: &Self) -> Vec<Heard> {
        let mut before = Vec::new();
        // Another each time, as the last of the one before may still be on its way.
        let again = format!("again {}", rand::random::<u64>());
        let hears = async {
            loop {
                match other.listener.heard().await {
                    Heard::Tasks { marks, .. } if marks.iter().any(|mark| mark.task_id.as_str() == again) => return,
                    heard => before.push(heard),
                }
            }
        };
        let rings = async {
            loop {
                self.ring([again.clone()], false);
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = hears => {}
            () = rings => {}
            () = sleep(LIMIT) => panic!("it was not heard, only {before:?}"),
        }
        before
    }
}

fn mark(id: &str, version: u64, last_sequence: u64) -> TaskMark {
    TaskMark { task_id: TaskId::new(id).unwrap(), version, last_sequence }
}

fn config(fresh: &Fresh) -> PostgresConfig {
    PostgresConfig { url: fresh.url().to_owned(), ..PostgresConfig::default() }
}

/// Ends the backends whose last statement is like `statement`, of which there has to be one.
fn end_backends(fresh: &Fresh, statement: &str) {
    let ended = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '{statement}'"
    );
    let ended = fresh.query(&ended).unwrap();
    assert!(!ended.is_empty(), "no backend says {statement}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_hear_each_other_and_not_themselves() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    one.notifier.ring([mark("a", 3, 7)], true);
    assert_eq!(two.heard().await, Heard::Tasks { marks: vec![mark("a", 3, 7)], due: true });
    two.notifier.ring([mark("b", 1, 1)], false);
    // What one had said of itself would have come first.
    assert_eq!(one.heard().await, Heard::Tasks { marks: vec![mark("b", 1, 1)], due: false });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_heard_whole() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    for n in 0..1000 {
        one.ring([format!("01234567-89ab-7def-8123-{n:012}")], false);
    }
    // A thousand times the same is one.
    (0..1000).for_each(|n| one.notifier.ring([mark("last", 1, n)], false));
    let mut heard = BTreeMap::new();
    while heard.len() < 1001 || heard.get("last") != Some(&999) {
        let Heard::Tasks { marks, due: false } = two.heard().await else { panic!("it was not too much") };
        heard.extend(marks.into_iter().map(|mark| (mark.task_id.as_str().to_owned(), mark.last_sequence)));
    }
    assert_eq!(heard.len(), 1001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_can_be_told_is_heard_as_anything() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    one.ring((0..5000).map(|n| n.to_string()), true);
    assert_eq!(two.heard().await, Heard::Anything);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_lost_its_connection_hears_anything_and_goes_on() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    end_backends(&fresh, "LISTEN %");
    assert_eq!(one.heard().await, Heard::Anything);
    assert_eq!(two.heard().await, Heard::Anything);
    one.ring_until_heard_by(&two).await;
    two.ring_until_heard_by(&one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notifier_that_lost_its_connection_gets_another() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    one.ring_until_heard_by(&two).await;
    end_backends(&fresh, "%notify::notify%");
    one.ring_until_heard_by(&two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_notifier_could_not_tell_is_heard_as_anything() {
    let fresh = Fresh::fresh().unwrap();
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    one.ring_until_heard_by(&two).await;
    one.notifier.flush().await;
    let allow = |how| format!("ALTER DATABASE {} ALLOW_CONNECTIONS {how}", fresh.name());
    end_backends(&fresh, "%notify::notify%");
    fresh.server().execute("postgres", &allow("false")).unwrap();
    one.ring(["lost".to_owned()], true);
    // For as long as it waits there is no connection.
    one.notifier.flush().await;
    fresh.server().execute("postgres", &allow("true")).unwrap();
    let before = one.ring_until_heard_by(&two).await;
    assert!(before.contains(&Heard::Anything), "{before:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_in_two_schemas_do_not_hear_each_other() {
    let fresh = Fresh::fresh().unwrap();
    let other = PostgresConfig { schema: "other".to_owned(), ..config(&fresh) };
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start(&config(&fresh)).await);
    let stranger = Instance::start(&other).await;
    stranger.ring(["strange".to_owned()], true);
    timeout(LIMIT, stranger.notifier.flush()).await.unwrap();
    one.ring(["known".to_owned()], false);
    assert_eq!(two.heard().await, Heard::Tasks { marks: vec![mark("known", 1, 2)], due: false });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_notifications_nothing_is_said_or_heard() {
    let fresh = Fresh::fresh().unwrap();
    let off = Instance::start_with(&PostgresConfig { notify: false, ..config(&fresh) }, RHYTHM);
    let on = Instance::start(&config(&fresh)).await;
    off.ring(["a".to_owned()], true);
    off.notifier.flush().await;
    on.ring(["b".to_owned()], true);
    timeout(LIMIT, on.notifier.flush()).await.unwrap();
    assert!(timeout(Duration::from_millis(300), off.listener.heard()).await.is_err());
    let backends = fresh
        .query("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'longhaul'");
    assert_eq!(backends.unwrap().len(), 2, "only the one with notifications has connections");
}

const QUICK: Rhythm = Rhythm {
    probe_interval: Duration::from_millis(50),
    probe_limit: Duration::from_millis(300),
    misses_max: 2,
    deaf_interval: Duration::from_millis(100),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_fell_silent_is_replaced() {
    let fresh = Fresh::fresh().unwrap();
    let pooler = Pooler::start(&fresh).await;
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start_with(&pooler.config(&fresh), QUICK));
    assert_eq!(two.heard().await, Heard::Anything);
    one.ring_until_heard_by(&two).await;
    pooler.swallow(true);
    while two.heard().await != Heard::Anything {}
    pooler.swallow(false);
    one.ring_until_heard_by(&two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_is_ever_heard_another_connection_is_tried_again_and_again() {
    let fresh = Fresh::fresh().unwrap();
    let pooler = Pooler::start(&fresh).await;
    pooler.swallow(true);
    let (one, two) = (Instance::start(&config(&fresh)).await, Instance::start_with(&pooler.config(&fresh), QUICK));
    for _ in 0..3 {
        assert_eq!(two.heard().await, Heard::Anything);
    }
    pooler.swallow(false);
    one.ring_until_heard_by(&two).await;
}

/// Stands before the server and loses notifications, as one that shares connections between transactions does.
struct Pooler {
    port: u16,
    swallows: Arc<AtomicBool>,
    _runs: DropGuard,
}

impl Pooler {
    async fn start(fresh: &Fresh) -> Self {
        let before = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = before.local_addr().unwrap().port();
        let server = fresh.server().address().rsplit('@').next().unwrap().to_owned();
        let (swallows, ends) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let (flag, runs) = (Arc::clone(&swallows), ends.clone().drop_guard());
        let tracker = TaskTracker::new();
        let serve = async move {
            while let Ok((client, _)) = before.accept().await {
                let behind = TcpStream::connect(&server).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), behind.into_split());
                let (forth, back) =
                    (pass(from_client, to_server), pass_messages(from_server, to_client, Arc::clone(&flag)));
                tracker.spawn(async move {
                    tokio::select! { _ = forth => {} _ = back => {} }
                });
            }
        };
        TaskTracker::new().spawn(ends.run_until_cancelled_owned(serve));
        Self { port, swallows, _runs: runs }
    }

    fn config(&self, fresh: &Fresh) -> PostgresConfig {
        // Encrypted it could not tell what to lose.
        let url = format!("postgres://postgres@127.0.0.1:{}/{}?sslmode=disable", self.port, fresh.name());
        PostgresConfig { url, ..PostgresConfig::default() }
    }

    fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let bytes = from.read(&mut buffer).await?;
        if bytes == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..bytes]).await?;
    }
}

/// Each message of a server is a letter, its length without that, and what it says. `A` is a notification.
async fn pass_messages(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallows: Arc<AtomicBool>) -> io::Result<()> {
    loop {
        let letter = from.read_u8().await?;
        let length = from.read_u32().await?;
        let mut said = vec![0; length as usize - 4];
        from.read_exact(&mut said).await?;
        if letter != b'A' || !swallows.load(Ordering::SeqCst) {
            let message = [&[letter], length.to_be_bytes().as_slice(), &said].concat();
            to.write_all(&message).await?;
        }
    }
}
