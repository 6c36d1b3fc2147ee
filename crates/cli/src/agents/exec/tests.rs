use super::*;
use crate::agents::process::STDERR_CHARS_MAX;
use crate::agents::testing::{Bench, folder, gone, pids, said, spec, state, texts};

async fn bench(command: &str) -> Bench {
    Bench::new(ExecAgent::new(spec(command))).await
}

fn output(task: &wire::Task) -> Vec<String> {
    task.artifacts.iter().flat_map(|artifact| texts(&artifact.parts)).collect()
}

#[tokio::test]
async fn text_goes_in_and_lines_come_out() {
    let task = bench("tr a-z A-Z").await.say("one\ntwo").await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(output(&task), ["ONE\n", "TWO"]);
    assert_eq!(task.artifacts[0].artifact_id, "output");
}

#[tokio::test]
async fn without_output_there_is_no_artifact() {
    let task = bench("true").await.say("x").await;
    assert_eq!((state(&task), task.artifacts.len()), ("COMPLETED", 0));
}

#[tokio::test]
async fn text_parts_are_joined_and_others_left_out() {
    let parts = vec![Part::text("a"), Part::data(1), Part::text("b")];
    assert_eq!(output(&bench("cat").await.parts(parts).await).concat(), "a\nb");
}

#[tokio::test]
async fn another_exit_code_fails_with_the_end_of_stderr() {
    let task = bench("echo out; echo first >&2; echo last >&2; exit 3").await.say("x").await;
    assert_eq!(state(&task), "FAILED");
    assert_eq!(said(&task), "the command ended with exit code 3: first\nlast");
    assert_eq!(output(&task), ["out\n"]);
}

#[tokio::test]
async fn stderr_is_cut_to_its_end() {
    let task = bench("yes 'ä23456789' | head -c 1000000 >&2; echo END >&2; exit 1").await.say("x").await;
    let said = said(&task);
    assert!(said.ends_with("END"), "{said}");
    assert_eq!(said.chars().count(), "the command ended with exit code 1: ".len() + STDERR_CHARS_MAX);
}

#[tokio::test]
async fn death_by_a_signal_is_named() {
    let task = bench("kill -SEGV $$").await.say("x").await;
    assert_eq!((state(&task), said(&task).as_str()), ("FAILED", "the command was killed by signal 11 (SIGSEGV)"));
}

#[tokio::test]
async fn a_command_that_is_not_there_fails_the_task() {
    let task = bench("/no/such/command").await.say("x").await;
    assert_eq!(state(&task), "FAILED");
    assert!(said(&task).contains("127"), "{}", said(&task));
}

#[tokio::test]
async fn the_turn_is_in_the_environment() {
    let bench = bench("echo $LONGHAUL_TASK_ID $LONGHAUL_CONTEXT_ID $LONGHAUL_MESSAGE_ID $LONGHAUL_ATTEMPT $LONGHAUL_LEASE_EPOCH $LONGHAUL_ACCEPTED_OUTPUT_MODES").await;
    let task = bench.say("x").await;
    assert_eq!(output(&task).concat(), format!("{} {} message-1 1 1 text/plain,image/*\n", task.id, task.context_id));
}

#[tokio::test]
async fn only_the_variables_that_are_passed_are_seen() {
    let mut spec = spec("env");
    spec.env_pass = Some(vec!["PATH".to_owned()]);
    spec.env.insert("COLOUR".to_owned(), "blue".to_owned());
    let task = Bench::new(ExecAgent::new(spec)).await.say("x").await;
    let output = output(&task).concat();
    assert!(output.contains("COLOUR=blue") && output.contains("PATH="), "{output}");
    assert!(!output.contains("HOME="), "{output}");
}

#[tokio::test]
async fn exit_code_75_is_tried_again_and_in_the_end_each_attempt_is_told() {
    let command = "echo attempt $LONGHAUL_ATTEMPT, epoch $LONGHAUL_LEASE_EPOCH >&2; exit 75";
    let task = Bench::hasty(ExecAgent::new(spec(command))).await.say("x").await;
    assert_eq!(state(&task), "FAILED");
    let said = said(&task);
    assert!(said.starts_with("given up after 3 attempts; attempt 1 ended at "), "{said}");
    for number in 1..=3 {
        let each = format!(": the agent failed: exit code 75: attempt {number}, epoch {number}");
        assert!(said.contains(&each), "{said}");
    }
}

#[tokio::test]
async fn exit_code_75_may_be_past_at_the_next_attempt() {
    let bench = Bench::hasty(ExecAgent::new(spec("[ $LONGHAUL_ATTEMPT = 3 ] && echo done || exit 75"))).await;
    let task = bench.say("x").await;
    assert_eq!((state(&task), output(&task).concat().as_str()), ("COMPLETED", "done\n"));
}

#[tokio::test]
async fn what_must_not_run_twice_is_not_tried_again() {
    let file = folder().join("runs");
    let agent = ExecAgent::new(spec(&format!("echo 1 >> {}; echo busy >&2; exit 75", file.display())));
    let config = longhaul_engine::Config { attempts_max: 1, ..longhaul_engine::Config::default() };
    let task = Bench::with(agent, config).await.say("x").await;
    assert_eq!((state(&task), pids(&file).len()), ("FAILED", 1));
    assert!(said(&task).starts_with("given up after 1 attempt; "), "{}", said(&task));
    assert!(said(&task).ends_with(": the agent failed: exit code 75: busy"), "{}", said(&task));
}

#[tokio::test]
async fn what_is_kept_of_an_attempt_is_short() {
    let command = "yes 'ä23456789' | head -c 100000 >&2; echo END >&2; exit 75";
    let task = Bench::hasty(ExecAgent::new(spec(command))).await.say("x").await;
    let said = said(&task);
    assert!(said.ends_with("END") && said.chars().count() < 3 * 450, "{said}");
}

#[tokio::test]
async fn a_command_that_does_not_read_stdin_is_no_failure() {
    let megabytes = "x".repeat(4 * 1024 * 1024);
    for command in ["true", "exec <&-; echo done", "sleep 0.1"] {
        assert_eq!(state(&bench(command).await.say(&megabytes).await), "COMPLETED", "{command}");
    }
}

#[tokio::test]
async fn much_output_comes_whole_and_in_order() {
    let task = bench("seq 1 20000").await.say("x").await;
    let wanted: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(output(&task).len(), 20_000);
    assert_eq!(output(&task).concat(), wanted);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_split() {
    let task = bench("head -c 200000 /dev/zero | tr '\\0' x").await.say("x").await;
    let chunks = output(&task);
    assert_eq!(chunks.iter().map(String::len).collect::<Vec<_>>(), [65_536, 65_536, 65_536, 3_392]);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    assert_eq!(output(&bench("printf 'a\\377b'").await.say("x").await), ["a\u{FFFD}b"]);
}

#[tokio::test]
async fn cancel_ends_the_whole_group() {
    let file = folder().join("pids");
    let command = format!(
        "echo $$ >> {0}; sh -c 'echo $$ >> {0}; sleep 600' & sleep 600 & echo $! >> {0}; echo ready; wait",
        file.display()
    );
    let bench = bench(&command).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| !task.artifacts.is_empty() && pids(&file).len() == 3).await;
    let canceled = bench.cancel(&task.id).await;
    assert_eq!((state(&canceled), output(&canceled).concat().as_str()), ("CANCELED", "ready\n"));
    gone(&pids(&file)).await;
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed_within_the_grace() {
    let file = folder().join("pids");
    let command = format!("trap '' TERM; echo $$ > {}; echo ready; sleep 600; echo never", file.display());
    let bench = bench(&command).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| !task.artifacts.is_empty()).await;
    assert_eq!(state(&bench.cancel(&task.id).await), "CANCELED");
    gone(&pids(&file)).await;
}

#[tokio::test]
async fn what_is_said_on_sigterm_is_kept() {
    let bench = bench("trap 'echo cleaned; exit 0' TERM; echo ready; sleep 600 & wait").await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| !task.artifacts.is_empty()).await;
    let canceled = bench.cancel(&task.id).await;
    assert_eq!((state(&canceled), output(&canceled).concat().as_str()), ("CANCELED", "ready\ncleaned\n"));
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_is_ended() {
    let file = folder().join("pids");
    let task = bench(&format!("sleep 600 & echo $! > {}; echo done", file.display())).await.say("x").await;
    assert_eq!((state(&task), output(&task).concat().as_str()), ("COMPLETED", "done\n"));
    gone(&pids(&file)).await;
}

#[tokio::test]
async fn shutdown_leaves_no_process() {
    let file = folder().join("pids");
    let bench = bench(&format!("echo $$ > {}; echo ready; sleep 600", file.display())).await;
    let task = bench.begin("x").await;
    bench.until(&task.id, |task| !task.artifacts.is_empty()).await;
    bench.engine.shutdown(std::time::Duration::from_millis(50)).await.expect("it ends");
    gone(&pids(&file)).await;
}
