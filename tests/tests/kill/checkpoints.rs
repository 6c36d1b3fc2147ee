//! Agents that store where they are, and fail now and then, on a server that is killed all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_tests::task::{assert_numbered, fold, id_of, is_terminal, say_and_leave, state_of, text_of};
use longhaul_tests::{Binding, Call, Client, Launch, Operation, Server, TestAgent, seed, until};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);
const TASKS: usize = 6;
const KILLS: u32 = 16;
const STEPS: u32 = 40;

/// Counts its steps, stores each, goes on where its checkpoint says, and asks for another attempt at every tenth step once.
const AGENT: &str = r#"
# A server that dies before it has said what to do leaves nothing to do.
read -r line || exit 1
step=$(printf '%s\n' "$line" | sed -n 's/.*"checkpoint":{"step":\([0-9]*\)}.*/\1/p')
step=${step:-0}
echo "$LONGHAUL_TASK_ID $LONGHAUL_ATTEMPT $step" >> attempts
while [ "$step" -lt 40 ]; do
    step=$((step + 1))
    append=true
    [ "$step" = 1 ] && append=false
    printf '{"type":"artifact","artifactId":"steps","text":"%s ","append":%s}\n' "$step" "$append"
    printf '{"type":"checkpoint","data":{"step":%s}}\n' "$step"
    if [ $((step % 10)) = 0 ] && [ $((LONGHAUL_ATTEMPT % 2)) = 1 ]; then
        echo '{"type":"retry","text":"a break"}'
        exit 0
    fi
    sleep 0.03
done
echo '{"type":"complete"}'
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_go_on_where_they_were_after_kills_and_failures() {
    let mut dice = StdRng::seed_from_u64(seed());
    let config = "[agent]\nattempts_max = 100\nbackoff_min = \"10ms\"\nbackoff_max = \"50ms\"\n";
    let launch = Launch::sqlite(config).agent(TestAgent::ExecJsonl(AGENT.to_owned()));
    let mut server = Server::launch(launch).await;
    let mut client = Client::new(Binding::HttpJson, server.addr());
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(id_of(&client.ask(Operation::SendMessage, say_and_leave("go")).await));
    }
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(dice.random_range(20..250))).await;
        server.kill().await;
        server.run().await;
    }
    let mut client = Client::new(Binding::HttpJson, server.addr());
    for id in &ids {
        let task = until(PATIENCE, "all tasks end", async || {
            let task = client.ask(Operation::GetTask, json!({"id": id})).await;
            is_terminal(state_of(&task)).then_some(task)
        })
        .await;
        assert_eq!(state_of(&task), "COMPLETED", "{task}");
        let call = Call::new(Operation::SubscribeToTask, json!({"id": id})).after(1);
        let log = client.follow(&call).await.rest().await;
        assert_numbered(&log, 1);
        assert_eq!(fold(&log).get("artifacts"), task.get("artifacts"));
        check_steps(&text_of(&task));
    }
    let attempts = std::fs::read_to_string(server.folder().join("attempts")).unwrap();
    check_attempts(&attempts);
    println!("{} attempts of {TASKS} tasks, {KILLS} kills", attempts.lines().count());
}

/// Each step is there, in order; the step that was written but whose checkpoint was not stored is there twice.
fn check_steps(text: &str) {
    let steps: Vec<u32> = text.split_whitespace().map(|step| step.parse().unwrap()).collect();
    assert!(steps.is_sorted(), "{text}");
    assert_eq!(steps.iter().copied().collect::<BTreeSet<_>>(), (1..=STEPS).collect(), "{text}");
}

/// A checkpoint is never older than the one before, and most attempts had one.
fn check_attempts(attempts: &str) {
    let mut tasks: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
    for line in attempts.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        tasks.entry(words[0]).or_default().push((words[1].parse().unwrap(), words[2].parse().unwrap()));
    }
    assert_eq!(tasks.len(), TASKS);
    for (task, begun) in tasks {
        assert!(begun.is_sorted_by(|one, next| one.0 < next.0), "an attempt was begun twice: {task} {begun:?}");
        assert!(begun.is_sorted_by_key(|attempt| attempt.1), "a checkpoint was lost: {task} {begun:?}");
        assert!(begun.iter().any(|attempt| attempt.1 > 0), "there was no checkpoint: {task} {begun:?}");
    }
}
