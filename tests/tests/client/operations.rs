//! Each operation over each binding.

use longhaul_client::{ClientError, Outcome, WaitOptions};
use longhaul_protocol::{ErrorCode, TaskState, wire};
use longhaul_tests::{Server, Store};

use crate::support::{BINDINGS, connect, get, say, say_in};

#[tokio::test]
async fn a_delegation_completes_over_each_binding() {
    let server = Server::start(Store::Sqlite).await;
    for binding in BINDINGS {
        let client = connect(binding, server.addr()).await;
        let outcome = client.delegate(say("chunks 5"), WaitOptions::default()).await.unwrap();
        let Outcome::Completed(task) = outcome else { panic!("{binding}: {outcome:?}") };
        assert_eq!(task.artifacts.len(), 1, "{binding}");
        assert_eq!(task.artifacts[0].parts.len(), 5, "{binding}");
    }
}

#[tokio::test]
async fn a_question_is_no_end_and_its_answer_is_one() {
    let server = Server::start(Store::Memory).await;
    for binding in BINDINGS {
        let client = connect(binding, server.addr()).await;
        let outcome = client.delegate(say("input"), WaitOptions::default()).await.unwrap();
        let Outcome::NeedsInput { task, question } = outcome else { panic!("{binding}: {outcome:?}") };
        assert!(question.is_some(), "{binding}");
        let answer = say_in("echo it", &task.context_id, &task.id);
        let outcome = client.delegate(answer, WaitOptions::default()).await.unwrap();
        assert!(matches!(&outcome, Outcome::Completed(ended) if ended.id == task.id), "{binding}: {outcome:?}");
    }
}

#[tokio::test]
async fn each_way_to_stand_is_told_apart() {
    let server = Server::start(Store::Memory).await;
    for binding in BINDINGS {
        let client = connect(binding, server.addr()).await;
        let outcome = async |text: &str| client.delegate(say(text), WaitOptions::default()).await.unwrap();
        assert!(matches!(outcome("fail").await, Outcome::Failed(_)), "{binding}");
        assert!(matches!(outcome("reject").await, Outcome::Rejected(_)), "{binding}");
        assert!(matches!(outcome("auth").await, Outcome::NeedsAuthorization { .. }), "{binding}");
        assert!(matches!(outcome("msg").await, Outcome::Answered(_)), "{binding}");
    }
}

#[tokio::test]
async fn a_task_is_read_listed_and_canceled() {
    let server = Server::start(Store::Sqlite).await;
    for binding in BINDINGS {
        let client = connect(binding, server.addr()).await;
        let mut request = say("slow 60");
        request.configuration = Some(wire::SendMessageConfiguration { return_immediately: true, ..Default::default() });
        let answer = client.send_message(request).await.unwrap();
        let Some(wire::SendMessageResponsePayload::Task(task)) = answer.payload else { panic!("{answer:?}") };
        assert_eq!(client.get_task(get(&task.id)).await.unwrap().id, task.id);
        let page = client
            .list_tasks(wire::ListTasksRequest { context_id: task.context_id.clone(), ..Default::default() })
            .await
            .unwrap();
        assert_eq!((page.tasks.len(), page.total_size), (1, 1), "{binding}");
        let cancel = wire::CancelTaskRequest { id: task.id.clone(), ..Default::default() };
        let canceled = client.cancel_task(cancel.clone()).await.unwrap();
        assert_eq!(canceled.status.unwrap().state.known(), Some(TaskState::Canceled), "{binding}");
        let error = client.cancel_task(cancel).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::TaskNotCancelable), "{binding}: {error}");
    }
}

#[tokio::test]
async fn the_same_error_comes_from_each_binding() {
    let server = Server::start(Store::Memory).await;
    let mut told = Vec::new();
    for binding in BINDINGS {
        let client = connect(binding, server.addr()).await;
        let error = client.get_task(get("../tasks")).await.unwrap_err();
        let ClientError::Agent(error) = error else { panic!("{binding}: {error:?}") };
        told.push((error.name(), error.error));
        let mut request = say("");
        request.message.as_mut().unwrap().parts.clear();
        let error = client.send_message(request).await.unwrap_err();
        let ClientError::Agent(error) = error else { panic!("{binding}: {error:?}") };
        assert_eq!(error.error.violations[0].field, "message.parts", "{binding}");
        told.push((error.name(), error.error));
    }
    assert_eq!(told[0..2], told[2..4]);
    assert_eq!(told[0..2], told[4..6]);
}
