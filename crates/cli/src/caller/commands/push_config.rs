//! `task push-config …`.

use longhaul_client::{Client, Secret};
use longhaul_protocol::wire::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig,
};

use crate::arguments::OutputForm;
use crate::caller::arguments::{CreateFlags, OneFlags, PushConfigCommand};
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::render::{Page, push_config, push_configs};
use crate::caller::session::{End, Session};

use super::pages::following;

/// How many configs one document holds.
const CONFIGS_MAX: usize = 100_000;
/// How many pages are asked for.
const PAGES_MAX: usize = 1_000;

/// Does what the command says.
///
/// # Errors
///
/// [`End`] when it came to nothing, or the agent pushes nothing.
pub async fn run(session: &Session, command: &PushConfigCommand) -> Result<(), End> {
    let wanted = match command {
        PushConfigCommand::Create(flags) => {
            session.way.hide([&flags.token, &flags.auth_credentials].into_iter().flatten().map(Secret::new));
            Some(config(flags)?)
        }
        _ => None,
    };
    let client = session.client().await?;
    match command {
        PushConfigCommand::Create(_) => {
            let made = client.create_push_config(wanted.unwrap_or_default()).await;
            let made = made.map_err(|error| session.failure(&error))?;
            session.answer(&made, |page| push_config(page, &made))
        }
        PushConfigCommand::Get(flags) => {
            let OneFlags { task_id, id, .. } = flags;
            let (task_id, id) = (task_id.clone(), id.clone());
            let request = GetTaskPushNotificationConfigRequest { task_id, id, ..Default::default() };
            let found = client.get_push_config(request).await.map_err(|error| session.failure(&error))?;
            session.answer(&found, |page| push_config(page, &found))
        }
        PushConfigCommand::List(flags) => {
            let all = all(session, &client, &flags.task_id).await?;
            session.answer(&all, |page| push_configs(page, &all.configs))
        }
        PushConfigCommand::Delete(flags) => delete(session, &client, flags).await,
    }
}

fn config(flags: &CreateFlags) -> Result<TaskPushNotificationConfig, Failure> {
    let authentication = match (&flags.auth_scheme, &flags.auth_credentials) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(Failure::usage("--auth-credentials needs --auth-scheme").hint("such as --auth-scheme Bearer"));
        }
        (Some(scheme), credentials) => {
            Some(AuthenticationInfo { scheme: scheme.clone(), credentials: credentials.clone().unwrap_or_default() })
        }
    };
    Ok(TaskPushNotificationConfig {
        id: flags.id.clone().unwrap_or_default(),
        task_id: flags.task_id.clone(),
        url: flags.url.clone(),
        token: flags.token.clone().unwrap_or_default(),
        authentication,
        ..TaskPushNotificationConfig::default()
    })
}

async fn all(
    session: &Session,
    client: &Client,
    task_id: &str,
) -> Result<ListTaskPushNotificationConfigsResponse, Failure> {
    let mut whole = ListTaskPushNotificationConfigsResponse::default();
    let mut request = ListTaskPushNotificationConfigsRequest { task_id: task_id.to_owned(), ..Default::default() };
    for _ in 0..PAGES_MAX {
        let page = client.list_push_configs(request.clone()).await.map_err(|error| session.failure(&error))?;
        whole.configs.extend(page.configs);
        if whole.configs.len() > CONFIGS_MAX {
            break;
        }
        match following(&request.page_token, &page.next_page_token)? {
            Some(next) => request.page_token = next,
            None => return Ok(whole),
        }
    }
    Err(Failure::local(
        LocalCode::AnswerTooLarge,
        format!("there are more than {CONFIGS_MAX} push configs, or more than {PAGES_MAX} pages of them"),
    ))
}

async fn delete(session: &Session, client: &Client, flags: &OneFlags) -> Result<(), End> {
    let (task_id, id) = (flags.task_id.clone(), flags.id.clone());
    let request = DeleteTaskPushNotificationConfigRequest { task_id, id, ..Default::default() };
    client.delete_push_config(request).await.map_err(|error| session.failure(&error))?;
    match session.options.output {
        // The protocol answers with nothing.
        OutputForm::Json => session.print("{}\n"),
        OutputForm::Text => {
            let mut page = Page::new();
            page.field("Deleted", &flags.id);
            page.field("Task", &flags.task_id);
            session.print(&page.into_text())
        }
    }
}
