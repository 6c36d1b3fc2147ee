//! What pushing stands on in these tests: an engine with a scripted courier, and what its receivers were given.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Config, Engine, Outcome, Parcel, PushConfigsQuery, PushParts, Scope, Verdict};
use longhaul_protocol::{json, wire};
use longhaul_store::PushBacklog;
use longhaul_testkit::{Gate, PlainVault, ScriptedAgent, ScriptedCourier, piece};

use crate::world::*;

/// How long the sender sleeps when nothing tells it of anything: so long that a ring that is missed makes a test hang, and that
/// nobody else sleeps for it.
pub const PATIENCE: Duration = Duration::from_secs(2000);

/// Nobody but the sender wakes in the time of a test.
pub fn pushing_config() -> Config {
    let never = Duration::from_secs(7 * 24 * 60 * 60);
    Config { push_poll: PATIENCE, sweep_interval: never, housekeeping_interval: never, ..config() }
}

pub fn parts(courier: &Arc<ScriptedCourier>) -> PushParts {
    PushParts { courier: Arc::clone(courier) as _, vault: Arc::new(PlainVault::new("key")) }
}

/// A running engine that pushes.
pub async fn pushing_with(
    place: &Place,
    agent: ScriptedAgent,
    courier: &Arc<ScriptedCourier>,
    config: Config,
) -> World {
    let agent = Arc::new(agent);
    let engine = place.idle(&agent, config).with_push(parts(courier));
    engine.start().await.expect("an engine starts");
    World { engine, store: Arc::clone(&place.store), clock: Arc::clone(&place.clock), agent }
}

pub async fn pushing(place: &Place, agent: ScriptedAgent, courier: &Arc<ScriptedCourier>) -> World {
    pushing_with(place, agent, courier, pushing_config()).await
}

/// An engine on a runtime of its own that pushes.
pub async fn mortal_pushing(place: &Place, agent: ScriptedAgent, courier: &Arc<ScriptedCourier>) -> Mortal {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let agent = Arc::new(agent);
    let engine = place.idle(&agent, pushing_config()).with_push(parts(courier));
    let starting = engine.clone();
    runtime.spawn(async move { starting.start().await }).await.expect("it runs").expect("an engine starts");
    Mortal { runtime, engine, agent }
}

/// Completes at once: three events.
pub fn quick() -> ScriptedAgent {
    ScriptedAgent::new(|_| Box::pin(async { Ok(Outcome::Complete(None)) }))
}

/// Says what it has to say in seven pieces: ten events.
pub fn talkative() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        Box::pin(async move {
            for number in 0..7 {
                turn.artifact(piece("a", number.to_string(), number > 0)).await?;
            }
            Ok(Outcome::Complete(None))
        })
    })
}

/// The same, when the gate is open.
pub fn talkative_after(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |turn| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            for number in 0..7 {
                turn.artifact(piece("a", number.to_string(), number > 0)).await?;
            }
            Ok(Outcome::Complete(None))
        })
    })
}

/// The task that a parcel tells.
pub fn told_task(parcel: &Parcel) -> wire::Task {
    let told: wire::StreamResponse = json::from_json(&parcel.body).expect("a stream response");
    match told.payload {
        Some(wire::StreamResponsePayload::Task(task)) => task,
        other => panic!("this is no task: {other:?}"),
    }
}

/// Completes when the gate is open.
pub fn patient(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |_| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            Ok(Outcome::Complete(None))
        })
    })
}

/// A courier that delivers all at once.
pub fn swift() -> Arc<ScriptedCourier> {
    Arc::new(ScriptedCourier::answering(|_, _| Verdict::Delivered))
}

/// A courier that delivers at once, but what is for this host only when the gate is open.
pub fn held(host: &'static str, gate: &Gate) -> Arc<ScriptedCourier> {
    let gate = gate.clone();
    Arc::new(ScriptedCourier::new(move |parcel, _| {
        let gate = is_for(parcel, host).then(|| gate.clone());
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Verdict::Delivered
        })
    }))
}

pub fn failed(why: &str) -> Verdict {
    Verdict::Failed { after: None, why: why.to_owned(), host_is_down: false }
}

pub fn down() -> Verdict {
    Verdict::Failed { after: None, why: "no answer".to_owned(), host_is_down: true }
}

/// A config of this id, at a host.
pub fn hook(host: &str, id: &str) -> wire::TaskPushNotificationConfig {
    wire::TaskPushNotificationConfig { id: id.to_owned(), url: format!("https://{host}/{id}"), ..Default::default() }
}

pub fn hook_of(task: &wire::Task, host: &str, id: &str) -> wire::TaskPushNotificationConfig {
    wire::TaskPushNotificationConfig { task_id: task.id.clone(), ..hook(host, id) }
}

pub fn is_for(parcel: &Parcel, host: &str) -> bool {
    parcel.url.starts_with(&format!("https://{host}/"))
}

/// The sequence that the id of a parcel tells.
pub fn sequence(parcel: &Parcel) -> u64 {
    parcel.id.split('_').nth(1).and_then(|sequence| sequence.parse().ok()).expect("an id tells the sequence")
}

/// The sequences that went to a URL's last part, in order.
pub fn order(courier: &ScriptedCourier, id: &str) -> Vec<u64> {
    let end = format!("/{id}");
    courier.parcels().iter().filter(|parcel| parcel.url.ends_with(&end)).map(sequence).collect()
}

pub async fn backlog(engine: &Engine) -> PushBacklog {
    engine.push_backlog().await.expect("it can be read")
}

/// Waits until nothing is to be delivered any more.
pub async fn all_delivered(engine: &Engine) {
    waits_for(engine, 0).await;
}

/// Waits until so many configs have something to be delivered.
pub async fn waits_for(engine: &Engine, configs: u64) {
    while backlog(engine).await.configs != configs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The ids of a task's configs.
pub async fn config_ids(engine: &Engine, task_id: &str) -> Vec<String> {
    let page = engine.push_configs(all_of(task_id)).await.expect("they can be listed");
    page.configs.into_iter().map(|config| config.id).collect()
}

pub fn all_of(task_id: &str) -> PushConfigsQuery {
    PushConfigsQuery { scope: Scope::default(), task_id: task_id.to_owned(), page_size: 100, page_token: String::new() }
}
