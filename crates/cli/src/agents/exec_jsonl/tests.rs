use serde_json::json;

use super::*;
use crate::agents::testing::{Bench, PATIENCE, folder, gone, pids, said, spec, state, texts};
use longhaul_protocol::wire::{Part, Task};

async fn bench(command: &str) -> Bench {
    Bench::new(ExecJsonlAgent::new(spec(command))).await
}

/// A shell script that reads the turn and then writes these lines.
fn script(lines: &[&str]) -> String {
    let writes: Vec<String> = lines.iter().map(|line| format!("printf '%s\\n' '{line}'")).collect();
    format!("read turn; {}", writes.join("; "))
}

async fn run(lines: &[&str]) -> Task {
    bench(&script(lines)).await.say("x").await
}

#[tokio::test]
async fn the_example_asks_reports_and_delivers() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agent.py");
    let bench = bench(&format!("python3 {example}")).await;
    let asked = bench.say("hello").await;
    assert_eq!((state(&asked), said(&asked).as_str()), ("INPUT_REQUIRED", "How often shall I repeat it?"));
    let again = bench.answer(&asked.id, "often").await;
    assert_eq!((state(&again), said(&again).as_str()), ("INPUT_REQUIRED", "A number from 1 to 1000, please."));

    let mut events = bench.subscribe(&asked.id).await;
    let done = bench.answer(&asked.id, "3").await;
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "done"));
    assert_eq!(done.artifacts.len(), 2);
    assert_eq!(texts(&done.artifacts[0].parts).concat(), "hello\nhello\nhello\n");
    assert_eq!(done.artifacts[1].parts, [Part::data(json!({"lines": 3, "characters": 15}))]);
    let mut all = String::new();
    while let Some(items) = tokio::time::timeout(PATIENCE, events.next()).await.expect("it ends in time") {
        items.expect("they are read").iter().for_each(|item| all.push_str(&String::from_utf8_lossy(&item.payload)));
    }
    assert!(all.contains("repeating 3 times"), "{all}");
}

#[test]
fn the_example_is_short_and_is_the_one_in_the_documentation() {
    let example = include_str!("../../../../../examples/agent.py");
    let documentation = include_str!("../../../../../docs/exec.md");
    assert!(example.lines().count() < 40);
    assert!(documentation.contains(&format!("```python\n{example}```\n")));
}

#[tokio::test]
async fn the_turn_is_told_in_one_line() {
    // The line goes back as the text of an artifact, encoded as JSON by jq's work in the shell.
    let command = r#"python3 -c 'import json,sys; turn=sys.stdin.readline(); print(json.dumps({"type":"artifact","artifactId":"turn","parts":[{"data":json.loads(turn)}]}))'"#;
    let task = bench(command).await.say("hello").await;
    assert_eq!(state(&task), "COMPLETED", "{}", said(&task));
    let Some(longhaul_protocol::wire::PartContent::Data(turn)) = &task.artifacts[0].parts[0].content else {
        panic!("no data")
    };
    let message = json!({
        "messageId": "message-1", "contextId": task.context_id, "taskId": task.id, "role": "ROLE_USER", "parts": [{"text": "hello"}],
    });
    let wanted = json!({
        "type": "turn", "taskId": task.id, "contextId": task.context_id, "attempt": 1, "epoch": 1, "first": true, "resumed": false, "message": message,
        "history": [message], "acceptedOutputModes": ["text/plain", "image/*"], "extensions": [],
    });
    assert_eq!(turn, &wanted);
}

#[tokio::test]
async fn each_end_is_carried_out() {
    #[rustfmt::skip]
    let cases = [
        (r#"{"type":"complete","text":"a"}"#, "COMPLETED", "a"),
        (r#"{"type":"complete"}"#, "COMPLETED", ""),
        (r#"{"type":"fail","text":"b"}"#, "FAILED", "b"),
        (r#"{"type":"reject","text":"c"}"#, "REJECTED", "c"),
        (r#"{"type":"input_required","text":"d"}"#, "INPUT_REQUIRED", "d"),
        (r#"{"type":"auth_required","text":"e"}"#, "AUTH_REQUIRED", "e"),
    ];
    for (line, wanted, text) in cases {
        let task = run(&[line]).await;
        assert_eq!((state(&task), said(&task).as_str()), (wanted, text), "{line}");
    }
}

#[tokio::test]
async fn an_authorization_that_comes_another_way_resumes_the_turn() {
    let asks = r#"{"type":"auth_required","text":"log in","resumeAfterMs":50}"#;
    let done = r#"{"type":"complete"}"#;
    let command = format!("read turn; case $turn in *'\"resumed\":true'*) echo '{done}';; *) echo '{asks}';; esac");
    let bench = bench(&command).await;
    let task = bench.say("x").await;
    assert_eq!(state(&task), "AUTH_REQUIRED");
    bench.until(&task.id, |task| state(task) == "COMPLETED").await;
}

#[tokio::test]
async fn exit_without_an_end_completes_or_fails_by_its_code() {
    assert_eq!(state(&bench("read turn").await.say("x").await), "COMPLETED");
    let task = bench("read turn; echo broken >&2; exit 4").await.say("x").await;
    assert_eq!((state(&task), said(&task).as_str()), ("FAILED", "the command ended with exit code 4: broken"));
}

/// A script that does one thing in each attempt, and asks, and does the last thing in the turn after that.
fn attempts(each: [&str; 3]) -> String {
    let [first, second, next_turn] = each;
    format!(
        "read -r turn; case $turn in *'\"first\":false'*) {next_turn};; *'\"attempt\":1,'*) {first};; *) {second};; esac"
    )
}

#[tokio::test]
async fn a_checkpoint_comes_back_in_the_next_attempt_and_the_next_turn() {
    let echo = |line: &str| format!("printf '%s\\n' '{line}'");
    let store = |step: &str| echo(&format!(r#"{{"type":"checkpoint","data":{{"step": {step}, "of":[null,1.50]}}}}"#));
    let found = |step: &str| format!(r#"case $turn in *'"checkpoint":{{"step": {step}, "of":[null,1.50]}}'*)"#);
    let ask = echo(r#"{"type":"input_required","text":"more?"}"#);
    let done = echo(r#"{"type":"complete","text":"found it twice"}"#);
    // The first attempt stores twice and is killed by the agent's wish; nothing was there before.
    let first = format!("case $turn in *checkpoint*) exit 1;; esac; {}; {}; exit 75", store("0"), store("1"));
    let second = format!("{} {}; {ask};; esac", found("1"), store("2"));
    let next_turn = format!("{} {done};; esac", found("2"));
    let bench = Bench::hasty(ExecJsonlAgent::new(spec(&attempts([&first, &second, &next_turn])))).await;
    let asked = bench.say("x").await;
    assert_eq!((state(&asked), said(&asked).as_str()), ("INPUT_REQUIRED", "more?"));
    let done = bench.answer(&asked.id, "yes").await;
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "found it twice"));
}

#[tokio::test]
async fn the_example_in_steps_goes_on_behind_the_last_one() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/steps.py");
    // Of the first attempt only two steps are heard, and the first half of a third.
    let cut = format!("python3 {example} 2>&- | head -n 5; exit 75");
    let command = format!("if [ $LONGHAUL_ATTEMPT = 1 ]; then {cut}; else exec python3 {example}; fi");
    let task = Bench::hasty(ExecJsonlAgent::new(spec(&command))).await.say("x").await;
    assert_eq!((state(&task), said(&task).as_str()), ("COMPLETED", "5 steps"));
    let results: Vec<String> = task.artifacts.iter().flat_map(|artifact| texts(&artifact.parts)).collect();
    assert_eq!(results, ["result 1\n", "result 2\n", "result 3\n", "result 4\n", "result 5\n"]);
    let told = task.history.iter().flat_map(|message| texts(&message.parts));
    assert_eq!(told.collect::<Vec<_>>(), ["x", "attempt 2 goes on behind step 2"]);
}

#[tokio::test]
async fn a_checkpoint_that_is_too_large_is_the_agents_error() {
    let config = longhaul_engine::Config { checkpoint_bytes_max: 8, ..longhaul_engine::Config::default() };
    let fits = r#"{"type":"checkpoint","data":"123456"}"#;
    let agent = ExecJsonlAgent::new(spec(&script(&[fits, r#"{"type":"checkpoint","data":"1234567"}"#])));
    let task = Bench::with(agent, config).await.say("x").await;
    let wanted = "line 2 of the agent is not valid: data is 9 bytes long, 8 are allowed";
    assert_eq!((state(&task), said(&task).as_str()), ("FAILED", wanted));
}

#[tokio::test]
async fn an_agent_may_ask_for_another_attempt() {
    let retry = r#"printf '{"type":"retry","text":"busy"}\n'"#;
    for again in [retry, "echo busy >&2; exit 75"] {
        let script = attempts([again, r#"printf '{"type":"complete","text":"done"}\n'"#, "true"]);
        let task = Bench::hasty(ExecJsonlAgent::new(spec(&script))).await.say("x").await;
        assert_eq!((state(&task), said(&task).as_str()), ("COMPLETED", "done"), "{again}");
        let script = attempts([again, again, "true"]);
        let task = Bench::hasty(ExecJsonlAgent::new(spec(&script))).await.say("x").await;
        assert_eq!(state(&task), "FAILED", "{again}");
        assert!(said(&task).starts_with("given up after 3 attempts; attempt 1 ended at "), "{}", said(&task));
        assert_eq!(said(&task).matches("busy").count(), 3, "{}", said(&task));
    }
}

#[tokio::test]
async fn a_bad_line_fails_the_task_and_says_which() {
    #[rustfmt::skip]
    let cases = [
        (vec!["hello"], "line 1 of the agent is not valid: expected value"),
        (vec![r#"{"type":"progress","text":"a"}"#, "", r#"{"type":"finish"}"#], "line 3 of the agent is not valid: there is no type"),
        (vec![r#"{"type":"artifact","artifactId":"a","text":"x","append":true}"#], "line 1 of the agent is not valid: "),
        (vec![r#"{"type":"artifact","artifactId":"","text":"x"}"#], "line 1 of the agent is not valid: the artifact is not valid"),
        (vec![r#"{"type":"canceled"}"#], "line 1 of the agent is not valid: nobody asked"),
    ];
    for (lines, wanted) in cases {
        let task = run(&lines).await;
        assert_eq!(state(&task), "FAILED", "{lines:?}");
        assert!(said(&task).starts_with(wanted), "{}", said(&task));
    }
}

#[tokio::test]
async fn an_agent_that_does_not_exit_after_its_end_is_killed() {
    let file = folder().join("pids");
    let command = format!("echo $$ > {}; echo '{{\"type\":\"complete\",\"text\":\"ok\"}}'; sleep 600", file.display());
    let task = bench(&command).await.say("x").await;
    assert_eq!((state(&task), said(&task).as_str()), ("COMPLETED", "ok"));
    gone(&pids(&file)).await;
}

#[tokio::test]
async fn cancel_is_told_and_the_agent_may_say_how_it_ended() {
    #[rustfmt::skip]
    let cases = [
        (r#"echo '{"type":"canceled","text":"stopped"}'"#, "CANCELED", "stopped"),
        (r#"echo '{"type":"complete","text":"was done"}'"#, "COMPLETED", "was done"),
        ("exit 0", "CANCELED", ""),
        (r#"echo '{"type":"retry","text":"later"}'"#, "CANCELED", ""),
        ("exit 75", "CANCELED", ""),
    ];
    for (then, wanted, text) in cases {
        let ready = r#"echo '{"type":"progress","text":"ready"}'"#;
        let bench = bench(&format!("read turn; {ready}; read line; case $line in *cancel*) {then};; esac")).await;
        let task = bench.begin("x").await;
        bench.until(&task.id, |task| said(task) == "ready").await;
        let ended = bench.cancel(&task.id).await;
        assert_eq!((state(&ended), said(&ended).as_str()), (wanted, text), "{then}");
    }
}

#[tokio::test]
async fn an_agent_that_does_not_heed_a_cancel_is_killed() {
    let file = folder().join("pids");
    let ready = r#"echo '{"type":"progress","text":"ready"}'"#;
    let bench = bench(&format!("trap '' TERM; echo $$ > {}; {ready}; sleep 600", file.display())).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| said(task) == "ready").await;
    assert_eq!(state(&bench.cancel(&task.id).await), "CANCELED");
    gone(&pids(&file)).await;
}

#[tokio::test]
async fn messages_are_handed_to_an_agent_that_asks_for_them() {
    let say = |text: &str| format!("echo '{{\"type\":\"progress\",\"text\":\"{text}\"}}'");
    let command = format!(
        "read turn; echo '{{\"type\":\"inbox\"}}'; {}; read line; case $line in *'\"more\"'*) echo '{{\"type\":\"complete\",\"text\":\"heard\"}}';; esac",
        say("ready")
    );
    let bench = bench(&command).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| said(task) == "ready").await;
    let done = bench.answer(&task.id, "more").await;
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "heard"));
}

#[tokio::test]
async fn messages_wait_for_the_next_turn_of_an_agent_that_does_not_ask() {
    let go = folder().join("go");
    let first = "echo '{\"type\":\"progress\",\"text\":\"ready\"}'";
    let command = format!(
        "read turn; case $turn in *'\"first\":true'*) {first}; while [ ! -e {0} ]; do sleep 0.02; done; echo '{{\"type\":\"input_required\",\"text\":\"which?\"}}';; \
         *) echo '{{\"type\":\"complete\",\"text\":\"second\"}}';; esac",
        go.display()
    );
    let bench = bench(&command).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| said(task) == "ready").await;
    let answer = bench.answer(&task.id, "more");
    let release = async {
        bench.until(&task.id, |task| task.history.iter().any(|message| texts(&message.parts) == ["more"])).await;
        std::fs::write(&go, "").expect("it can be written");
    };
    let (done, ()) = tokio::join!(answer, release);
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "second"));
}
