//! Finding out what became of a message whose answer was lost, at an agent that would take it for a new one.

use std::time::Duration;

use longhaul_protocol::{ErrorCode, Timestamp, wire};
use tokio::time::sleep;

use super::{Driver, Pass, Stop, running};
use crate::error::explain;
use crate::ledger::News;
use crate::{ClientError, Outcome};

/// How often the agent's tasks are looked through: a task may show only a while after its message was taken.
const LOOKS: u32 = 3;
/// How long it is waited between two looks.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// How many pages of tasks one look reads.
const PAGES_MAX: u32 = 20;
/// How many tasks a page has.
const PAGE_SIZE: i32 = 50;
/// How many messages of each task are looked at, the newest ones.
const HISTORY_LENGTH: i32 = 100;
/// How far the agent's clock may be behind ours.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(10 * 60);

/// What a look came to.
enum Looked {
    Found {
        task_id: String,
        context_id: String,
    },
    /// All of the agent's list, as far as it shows it.
    NotThere,
    /// There is more than is looked at.
    TooMany,
}

impl Driver {
    /// Looks for the task that came of the message. What is not found is uncertain and never taken for not sent: an agent may
    /// hide its history, or have answered without a task.
    pub(super) async fn search(&mut self) -> Result<Pass, Stop> {
        let mut why = String::new();
        for look in 0..LOOKS {
            if look > 0 {
                sleep(LOOK_PAUSE).await;
            }
            match self.look_through().await {
                Ok(Looked::Found { task_id, context_id }) => {
                    self.told(running(&task_id, &context_id), None).await?;
                    return self.look(&task_id).await;
                }
                Ok(Looked::NotThere) => why = format!("no task that it lists has message {}", self.entry.message_id),
                Ok(Looked::TooMany) => {
                    let count = i64::from(PAGES_MAX) * i64::from(PAGE_SIZE);
                    why = format!("none of the newest {count} tasks has message {}", self.entry.message_id);
                }
                Err(Stop::Agent(error)) if is_its_answer(&error) => {
                    why = format!("the agent's tasks can't be listed: {}", explain(&error));
                    break;
                }
                Err(stop) => return Err(stop),
            }
        }
        self.record(News::Unresolved { why: format!("the answer was lost, and {why}") }).await?;
        Ok(self.pass())
    }

    async fn look_through(&self) -> Result<Looked, Stop> {
        let mut request = self.list_request();
        for _ in 0..PAGES_MAX {
            let page = self.setup.client.list_tasks(request.clone()).await?;
            for task in &page.tasks {
                if mentions(task, &self.entry.message_id) && !self.is_of_another(&task.id).await? {
                    return Ok(Looked::Found { task_id: task.id.clone(), context_id: task.context_id.clone() });
                }
            }
            if page.next_page_token.is_empty() || page.next_page_token == request.page_token {
                return Ok(Looked::NotThere);
            }
            request.page_token = page.next_page_token;
        }
        Ok(Looked::TooMany)
    }

    /// In the context of the message, or else of the time since it was written down.
    fn list_request(&self) -> wire::ListTasksRequest {
        let skew = i64::try_from(CLOCK_SKEW_MAX.as_millis()).unwrap_or(0);
        let since = Timestamp::from_unix_millis(self.entry.created_at.unix_millis().saturating_sub(skew));
        let context_id = self.entry.context_id.clone().unwrap_or_default();
        wire::ListTasksRequest {
            status_timestamp_after: context_id.is_empty().then_some(since),
            context_id,
            page_size: Some(PAGE_SIZE),
            history_length: Some(HISTORY_LENGTH),
            ..wire::ListTasksRequest::default()
        }
    }

    /// Whether another entry has this task already: callers may have given two messages one id.
    async fn is_of_another(&self, task_id: &str) -> Result<bool, Stop> {
        let found = self.setup.ledger.find_by_task(task_id).await?;
        Ok(found.entries.iter().any(|other| other.id != self.entry.id && other.route == self.entry.route))
    }

    /// Finds out whether the task has a reply whose answer was lost.
    pub(super) async fn look_for_reply(&mut self, task_id: &str) -> Result<Pass, Stop> {
        let request = wire::GetTaskRequest { id: task_id.to_owned(), ..wire::GetTaskRequest::default() };
        let task = match self.setup.client.get_task(request).await {
            Ok(task) => task,
            Err(error) if error.code() == Some(ErrorCode::TaskNotFound) => {
                self.record(News::NotFound { error: explain(&error) }).await?;
                return Ok(self.pass());
            }
            Err(error) => return Err(error.into()),
        };
        let has_it = mentions(&task, &self.entry.message_id);
        let outcome = Outcome::of_task(task);
        let is_over = outcome.state().is_some_and(|state| state.is_terminal());
        if has_it || is_over {
            self.told(outcome, None).await?;
        } else {
            let why = format!("the answer was lost, and the task does not show message {}", self.entry.message_id);
            self.record(News::Unresolved { why }).await?;
        }
        Ok(self.pass())
    }
}

/// Whether the error is what the agent has to say about being asked for a list, today and tomorrow.
fn is_its_answer(error: &ClientError) -> bool {
    match error {
        ClientError::Agent(_) | ClientError::Http { .. } => !error.is_transient(),
        ClientError::InvalidAnswer { .. } | ClientError::TooLarge { .. } | ClientError::NotOffered { .. } => true,
        ClientError::Unauthorized { .. }
        | ClientError::Connect { .. }
        | ClientError::Broken { .. }
        | ClientError::Timeout { .. }
        | ClientError::Card(_)
        | ClientError::Invalid { .. }
        | ClientError::Forbidden { .. }
        | ClientError::Credential { .. }
        | ClientError::Setup { .. } => false,
    }
}

fn mentions(task: &wire::Task, message_id: &str) -> bool {
    let said = task.status.as_ref().and_then(|status| status.message.as_ref());
    task.history.iter().chain(said).any(|message| message.message_id == message_id)
}
