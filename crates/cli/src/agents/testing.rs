//! A real engine on a memory store around an agent under test.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul_engine::{
    Agent, Config, Engine, EngineParts, EventStream, HistoryLimit, RandomIds, Scope, SendReply, SendRequest,
    SubscribeRequest, SystemClock, TurnRequest,
};
use longhaul_protocol::wire::{self, Part, PartContent};
use longhaul_protocol::{Message, Role};
use longhaul_store::MemoryStore;

use super::CommandSpec;

/// How long anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn spec(command: &str) -> CommandSpec {
    CommandSpec {
        command: command.to_owned(),
        working_dir: None,
        env_hidden: None,
        env_pass: None,
        env: std::collections::BTreeMap::new(),
        cancel_grace: Duration::from_secs(3),
    }
}

/// A folder of the test's own.
pub fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("longhaul-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

#[derive(Debug)]
pub struct Bench {
    pub engine: Engine,
    next: AtomicU64,
}

impl Bench {
    pub async fn new(agent: impl Agent + 'static) -> Self {
        Self::with(agent, Config::default()).await
    }

    /// With attempts that come one right after the other.
    pub async fn hasty(agent: impl Agent + 'static) -> Self {
        let soon = Duration::from_millis(1);
        Self::with(agent, Config { backoff_min: soon, backoff_max: soon, ..Config::default() }).await
    }

    pub async fn with(agent: impl Agent + 'static, config: Config) -> Self {
        let engine = Engine::new(EngineParts {
            store: Arc::new(MemoryStore::new()),
            agent: Arc::new(agent),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds::default()),
            config,
        });
        engine.start().await.expect("it starts");
        Self { engine, next: AtomicU64::new(1) }
    }

    pub fn request(&self, task_id: &str, parts: Vec<Part>) -> SendRequest {
        let message = wire::Message {
            message_id: format!("message-{}", self.next.fetch_add(1, Ordering::Relaxed)),
            task_id: task_id.to_owned(),
            role: Role::User.into(),
            parts,
            ..wire::Message::default()
        };
        SendRequest {
            scope: Scope::default(),
            message: Message::new(message).expect("it is valid"),
            request: TurnRequest {
                accepted_output_modes: vec!["text/plain".to_owned(), "image/*".to_owned()],
                ..TurnRequest::default()
            },
            history: HistoryLimit::All,
            return_immediately: false,
            push: None,
            version: "1.0",
        }
    }

    pub async fn reply(&self, send: SendRequest) -> SendReply {
        let reply = tokio::time::timeout(PATIENCE, self.engine.send_message(send)).await;
        reply.expect("it comes in time").expect("it is taken")
    }

    pub async fn parts(&self, parts: Vec<Part>) -> wire::Task {
        task(self.reply(self.request("", parts)).await)
    }

    pub async fn say(&self, text: &str) -> wire::Task {
        self.parts(vec![Part::text(text)]).await
    }

    pub async fn answer(&self, task_id: &str, text: &str) -> wire::Task {
        task(self.reply(self.request(task_id, vec![Part::text(text)])).await)
    }

    /// Sends without waiting.
    pub async fn begin(&self, text: &str) -> wire::Task {
        let send = SendRequest { return_immediately: true, ..self.request("", vec![Part::text(text)]) };
        task(self.reply(send).await)
    }

    pub async fn cancel(&self, task_id: &str) -> wire::Task {
        let canceled = tokio::time::timeout(PATIENCE, self.engine.cancel_task(&Scope::default(), task_id)).await;
        canceled.expect("it is answered in time").expect("it is taken")
    }

    pub async fn get(&self, task_id: &str) -> wire::Task {
        self.engine.get_task(&Scope::default(), task_id, HistoryLimit::All).await.expect("it is there")
    }

    pub async fn subscribe(&self, task_id: &str) -> EventStream {
        let request = SubscribeRequest { scope: Scope::default(), task_id: task_id.to_owned(), after: None };
        self.engine.subscribe_to_task(request).await.expect("it is taken")
    }

    /// Reads a task until it is as wanted.
    pub async fn until(&self, task_id: &str, wanted: impl Fn(&wire::Task) -> bool) -> wire::Task {
        let looking = async {
            loop {
                let task = self.get(task_id).await;
                if wanted(&task) {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it comes to that in time")
    }
}

fn task(reply: SendReply) -> wire::Task {
    match reply {
        SendReply::Task(task) => task,
        SendReply::Message(message) => panic!("a message without a task: {message:?}"),
    }
}

pub fn state(task: &wire::Task) -> &'static str {
    let state = task.status.as_ref().and_then(|status| status.state.known());
    state.expect("it has a state").wire_name().trim_start_matches("TASK_STATE_")
}

/// What the status says.
pub fn said(task: &wire::Task) -> String {
    let message = task.status.as_ref().and_then(|status| status.message.as_ref());
    message.map(|message| texts(&message.parts).concat()).unwrap_or_default()
}

pub fn texts(parts: &[Part]) -> Vec<String> {
    let text = |part: &Part| match &part.content {
        Some(PartContent::Text(text)) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

/// Whether a process is there.
pub fn is_running(pid: i32) -> bool {
    // A process that has ended and was not waited for is not running, so its state is looked at.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !matches!(rest.split_whitespace().next(), None | Some("Z" | "X")))
}

/// Waits until every one of these processes is gone.
pub async fn gone(pids: &[i32]) {
    let looking = async {
        while pids.iter().any(|pid| is_running(*pid)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("they end in time");
}

/// The process ids that a command has written into a file, one a line.
pub fn pids(file: &std::path::Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}
