//! An agent that holds its thread: nothing can stop it, and its task goes on without it.
#![expect(clippy::expect_used, reason = "tests say what they expect")]

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{
    Agent, AgentError, Config, Engine, EngineParts, Outcome, RandomIds, SendReply, SystemClock, Turn, text_part,
};
use longhaul_protocol::TaskState;
use longhaul_store::MemoryStore;
use longhaul_testkit::send;

/// Its first attempt waits on its thread, and not on the runtime.
#[derive(Debug)]
struct Stuck {
    released: Mutex<Receiver<()>>,
}

#[async_trait]
impl Agent for Stuck {
    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        if turn.attempt() == 1 {
            let released = self.released.lock().expect("one attempt waits");
            let _ = released.recv();
        }
        Ok(Outcome::Complete(Some(vec![text_part(format!("attempt {}", turn.attempt()))])))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_turn_that_does_not_listen_loses_its_lease_and_its_task_goes_on() {
    let (release, released) = channel();
    let config = Config {
        lease_duration: Duration::from_millis(600),
        turn_duration_max: Duration::from_millis(200),
        ..Config::default()
    };
    let engine = Engine::new(EngineParts {
        store: Arc::new(MemoryStore::new()),
        agent: Arc::new(Stuck { released: Mutex::new(released) }),
        clock: Arc::new(SystemClock::new()),
        ids: Arc::new(RandomIds::default()),
        config,
    });
    engine.start().await.expect("a start");
    let SendReply::Task(task) = engine.send_message(send("go").immediately().build()).await.expect("a task") else {
        panic!("a task")
    };
    let scope = longhaul_engine::Scope::default();
    let rests = async {
        loop {
            let task = engine.get_task(&scope, &task.id, longhaul_engine::HistoryLimit::All).await.expect("the task");
            let status = task.status.expect("a status");
            if status.state.known() == Some(TaskState::Completed) {
                return status.message.expect("a word").parts;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let said = tokio::time::timeout(Duration::from_secs(20), rests).await.expect("the task rests");
    assert_eq!(said.first().and_then(longhaul_protocol::wire::Part::as_text), Some("attempt 2"));
    release.send(()).expect("the first attempt still waits");
    engine.shutdown(Duration::from_secs(5)).await.expect("a shutdown");
}
