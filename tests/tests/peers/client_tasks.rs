//! Tasks at other people's servers: read, listed, canceled, subscribed to.

use longhaul_client::follow::{FollowOptions, Until};
use longhaul_client::{ClientError, Outcome, WaitOptions};
use longhaul_protocol::{ErrorCode, TaskState, Timestamp, wire};
use longhaul_tests::{PATIENCE, Sdk, until, within};

use crate::client_support::{
    Case, answer, artifact, cancel, chunks, each, get, parts, say, state, states, texts, told,
};

/// One pair of servers for all of them: starting one takes longer than asking it.
#[tokio::test]
async fn tasks_are_read_listed_canceled_and_followed() {
    each(async |case| {
        task_is_got_with_as_much_history_as_asked_for(case).await;
        tasks_are_listed_page_by_page(case).await;
        list_shows_what_its_filters_let_pass(case).await;
        task_is_canceled_and_a_second_cancel_changes_nothing(case).await;
        cancel_ends_the_stream_of_whoever_follows(case).await;
        ended_task_is_followed_to_the_task_as_it_is(case).await;
        waiting_task_is_followed_to_its_question_and_on_when_somebody_answers(case).await;
        strange_ids_lead_to_no_other_task(case).await;
    })
    .await;
}

async fn task_is_got_with_as_much_history_as_asked_for(case: &Case<'_>) {
    let Outcome::NeedsInput { task, .. } = case.delegate(say("input")).await else { panic!("{}", case.name()) };
    let outcome = case.delegate(answer(&task, "echo it")).await;
    assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
    let all = case.task(&task.id).await;
    assert!(all.history.len() > 1, "{}: {all:?}", case.name());
    for length in [0, 1] {
        let request = wire::GetTaskRequest { history_length: Some(length), ..get(&task.id) };
        let short = case.ok("GetTask", case.client.get_task(request).await);
        let length = usize::try_from(length).unwrap();
        assert_eq!(short.history, all.history[all.history.len() - length..], "{}", case.name());
    }
}

async fn tasks_are_listed_page_by_page(case: &Case<'_>) {
    let context_id = format!("a context/of {}", case.name());
    for _ in 0..5 {
        let mut request = say("echo x");
        request.message.as_mut().unwrap().context_id.clone_from(&context_id);
        let outcome = case.delegate(request).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
    }
    let mut request = wire::ListTasksRequest { context_id, page_size: Some(2), ..Default::default() };
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = case.ok("ListTasks", case.client.list_tasks(request.clone()).await);
        assert_eq!(page.total_size, 5, "{}", case.name());
        sizes.push(page.tasks.len());
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1], "{}", case.name());
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 5, "{}", case.name());
}

async fn list_shows_what_its_filters_let_pass(case: &Case<'_>) {
    let context_id = format!("context of {}", case.name());
    let say_here = |text: &str| {
        let mut request = say(text);
        request.message.as_mut().unwrap().context_id.clone_from(&context_id);
        request
    };
    let Outcome::Completed(first) = case.delegate(say_here("echo x")).await else { panic!("{}", case.name()) };
    let Outcome::Failed(second) = case.delegate(say_here("fail")).await else { panic!("{}", case.name()) };
    let here = wire::ListTasksRequest { context_id: context_id.clone(), ..Default::default() };
    let list = async |request: wire::ListTasksRequest| {
        let page = case.ok("ListTasks", case.client.list_tasks(request).await);
        page.tasks
    };
    let ids = |tasks: &[wire::Task]| tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&list(here.clone()).await), [second.id.clone(), first.id.clone()], "{}", case.name());
    let failed = wire::ListTasksRequest { status: TaskState::Failed.into(), ..here.clone() };
    assert_eq!(ids(&list(failed).await), std::slice::from_ref(&second.id), "{}", case.name());
    let millis = second.status.clone().unwrap().timestamp.unwrap().unix_millis();
    // The JavaScript SDK takes "after" to the letter: a task with that very time is not in the list.
    for (since, wanted) in [(millis - 1, true), (millis + 1, false)] {
        let after = Some(Timestamp::from_unix_millis(since));
        let late = wire::ListTasksRequest { status_timestamp_after: after, ..here.clone() };
        assert_eq!(ids(&list(late).await).contains(&second.id), wanted, "{}", case.name());
    }
    let of = |tasks: Vec<wire::Task>| tasks.into_iter().find(|task| task.id == first.id).unwrap();
    assert!(of(list(here.clone()).await).artifacts.is_empty(), "{}", case.name());
    let whole = wire::ListTasksRequest { include_artifacts: Some(true), ..here };
    assert_eq!(texts(&artifact(&of(list(whole).await), "echo").parts), ["echo x"], "{}", case.name());
}

async fn task_is_canceled_and_a_second_cancel_changes_nothing(case: &Case<'_>) {
    let task = case.begin("slow 600").await;
    let canceled = case.ok("CancelTask", case.client.cancel_task(cancel(&task.id)).await);
    assert_eq!(state(&canceled), Some(TaskState::Canceled), "{}", case.name());
    // The Python SDK refuses the second one, the JavaScript SDK answers with the task.
    match case.client.cancel_task(cancel(&task.id)).await {
        Ok(again) => assert_eq!(state(&again), Some(TaskState::Canceled), "{}", case.name()),
        Err(error) => assert_eq!(error.code(), Some(ErrorCode::TaskNotCancelable), "{}", case.name()),
    }
    assert_eq!(state(&case.task(&task.id).await), Some(TaskState::Canceled), "{}", case.name());
    let ended = case.delegate(say("echo x")).await;
    let error = case.refusal("a cancel", case.client.cancel_task(cancel(&ended.task().unwrap().id)).await);
    assert_eq!(error.code, Some(ErrorCode::TaskNotCancelable), "{}", case.name());
}

async fn cancel_ends_the_stream_of_whoever_follows(case: &Case<'_>) {
    let task = case.begin("slow 600").await;
    let mut stream = case.client.follow(&task.id, FollowOptions::default());
    let first = within(PATIENCE, "the task", stream.next()).await.unwrap();
    let mut events = vec![case.ok("the task", first)];
    case.ok("CancelTask", case.client.cancel_task(cancel(&task.id)).await);
    events.extend(case.rest(stream).await);
    assert_eq!(states(&events).last(), Some(&TaskState::Canceled), "{}: {events:?}", case.name());
}

async fn ended_task_is_followed_to_the_task_as_it_is(case: &Case<'_>) {
    let Outcome::Completed(task) = case.delegate(say("chunks 3")).await else { panic!("{}", case.name()) };
    let events = case.rest(case.client.follow(&task.id, FollowOptions::default())).await;
    assert_eq!((events.len(), states(&events)), (1, vec![TaskState::Completed]), "{}", case.name());
    assert_eq!(told(&events, "chunks").len(), 3, "{}", case.name());
    let outcome = case.ok("waiting", case.client.wait(&task.id, WaitOptions::default()).await);
    assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
}

async fn waiting_task_is_followed_to_its_question_and_on_when_somebody_answers(case: &Case<'_>) {
    let Outcome::NeedsInput { task, .. } = case.delegate(say("input")).await else { panic!("{}", case.name()) };
    let events = case.rest(case.client.follow(&task.id, FollowOptions::default())).await;
    assert_eq!(states(&events), [TaskState::InputRequired], "{}: {events:?}", case.name());
    let mut options = FollowOptions::default();
    options.until = Until::Terminal;
    options.poll_interval = std::time::Duration::from_millis(100);
    let stream = case.client.follow(&task.id, options);
    let (events, outcome) = tokio::join!(case.rest(stream), answer_late(case, &task));
    assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
    assert_eq!(states(&events).first(), Some(&TaskState::InputRequired), "{}: {events:?}", case.name());
    assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}: {events:?}", case.name());
    assert_eq!(told(&events, "echo"), ["echo it"], "{}: {events:?}", case.name());
}

/// Answers once somebody else has had the time to subscribe.
async fn answer_late(case: &Case<'_>, task: &wire::Task) -> Outcome {
    for _ in 0..20 {
        case.task(&task.id).await;
        tokio::task::yield_now().await;
    }
    case.delegate(answer(task, "echo it")).await
}

#[tokio::test]
async fn task_in_work_is_followed_with_each_chunk_once() {
    each(async |case| {
        let task = case.begin("chunks 400").await;
        until(PATIENCE, "the first chunks", async || (!case.task(&task.id).await.artifacts.is_empty()).then_some(()))
            .await;
        let events = case.rest(case.client.follow(&task.id, FollowOptions::default())).await;
        assert_eq!(told(&events, "chunks"), chunks(400), "{}", case.name());
        assert_eq!(parts(&events), 400, "{}: some were told anew", case.name());
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
    })
    .await;
}

async fn strange_ids_lead_to_no_other_task(case: &Case<'_>) {
    for id in ["../tasks", "a/b?c#d", "..", "x:cancel", "\u{fc} %2F"] {
        match case.client.get_task(get(id)).await {
            Err(ClientError::Agent(error)) => {
                assert_eq!(error.code, Some(ErrorCode::TaskNotFound), "{} {id}: {error:?}", case.name());
            }
            // The Python SDK's routes do not match an escaped slash.
            Err(ClientError::Http { status: 404, .. }) => {
                assert_eq!(case.sdk, Sdk::Python, "{} {id}", case.name());
                assert!(id.contains('/') || id.contains("%2F"), "{} {id}", case.name());
            }
            other => panic!("{} {id}: {other:?}", case.name()),
        }
    }
}
