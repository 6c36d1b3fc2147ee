//! What a server of v0.3 refuses, typed as v1.0's errors are; and that v0.3 is spoken by those only who allow it.

use longhaul_client::ClientError;
use longhaul_client::card::Binding;
use longhaul_client::follow::FollowOptions;
use longhaul_protocol::{ErrorCode, wire};
use longhaul_tests::{PATIENCE, Peer, Sdk, within};

use crate::client_support::{answer, builder, cancel, get, say};
use crate::each;

#[tokio::test]
async fn task_that_nobody_knows_is_not_found_by_any_operation() {
    each(async |case| {
        let client = &case.client;
        let nobody = wire::Task { id: "nobody".to_owned(), ..Default::default() };
        let mut followed = client.follow("nobody", FollowOptions::default());
        let followed = within(PATIENCE, "a refusal", followed.next()).await.expect("it is refused");
        let refusals = [
            case.refusal("GetTask", client.get_task(get("nobody")).await),
            case.refusal("CancelTask", client.cancel_task(cancel("nobody")).await),
            case.refusal("SendMessage", client.send_message(answer(&nobody, "hello")).await),
            case.refusal("SubscribeToTask", followed),
        ];
        for error in refusals {
            assert_eq!(error.code, Some(ErrorCode::TaskNotFound), "{}: {error:?}", case.name());
            assert_eq!(error.name(), "TaskNotFoundError");
        }
    })
    .await;
}

#[tokio::test]
async fn ended_task_is_not_canceled() {
    each(async |case| {
        let outcome = case.delegate(say("echo x")).await;
        let task = outcome.task().unwrap();
        let error = case.refusal("CancelTask", case.client.cancel_task(cancel(&task.id)).await);
        assert_eq!(error.code, Some(ErrorCode::TaskNotCancelable), "{}: {error:?}", case.name());
    })
    .await;
}

#[tokio::test]
async fn agent_of_v0_3_is_not_called_unless_that_is_allowed() {
    let peer = Peer::start(Sdk::PythonOld).await;
    for binding in Binding::ALL {
        let refused = builder(binding).connect(&peer.card_url()).await;
        let Err(ClientError::Card(error)) = refused else { panic!("{binding}: {refused:?}") };
        let wanted = "the agent speaks 0.3, and 1.0 is allowed (hint: allow 0.3)";
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
