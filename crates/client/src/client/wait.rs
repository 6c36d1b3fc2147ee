//! Waiting until a task rests.

use std::time::Duration;

use longhaul_protocol::wire;
use tokio::time::timeout;

use super::Client;
use crate::error::ClientError;
use crate::follow::{FollowOptions, Until};
use crate::outcome::Outcome;

/// How long a task is waited for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WaitOptions {
    /// The time after which the outcome is whatever it is then. Default none: for as long as it takes.
    pub timeout: Option<Duration>,
    /// How the task is followed meanwhile; [`Until::Waiting`] whatever it says.
    pub follow: FollowOptions,
}

impl Client {
    /// Sends a message, and waits until the task has ended or waits for its caller, however long that takes and whatever
    /// happens to the connection meanwhile.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. After [`Broken`](ClientError::Broken) and [`Timeout`](ClientError::Timeout) it is not known whether the
    /// agent has the message; a [`Ledger`](crate::ledger::Ledger) finds out.
    pub async fn delegate(
        &self,
        request: wire::SendMessageRequest,
        options: WaitOptions,
    ) -> Result<Outcome, ClientError> {
        let within = options.timeout;
        let follow = FollowOptions { until: Until::Waiting, ..options.follow };
        let mut events = self.send_streaming_message(request, follow)?;
        let mut answer = None;
        let to_its_rest = async {
            while let Some(event) = events.next().await {
                if let Some(wire::StreamResponsePayload::Message(message)) = event?.payload.payload {
                    answer = Some(message);
                }
            }
            Ok::<(), ClientError>(())
        };
        let is_over = match within {
            None => to_its_rest.await.map(|()| true)?,
            Some(limit) => match timeout(limit, to_its_rest).await {
                Ok(rest) => rest.map(|()| true)?,
                Err(_) => false,
            },
        };
        if let Some(message) = answer {
            return Ok(Outcome::Answered(Box::new(message)));
        }
        match events.task_id() {
            Some(id) => self.outcome(id).await,
            None => Err(ClientError::Timeout {
                whom: self.interface().url.clone(),
                after: if is_over { Duration::ZERO } else { within.unwrap_or_default() },
            }),
        }
    }

    /// How a task stands now.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn outcome(&self, task_id: &str) -> Result<Outcome, ClientError> {
        let request = wire::GetTaskRequest { id: task_id.to_owned(), ..wire::GetTaskRequest::default() };
        self.get_task(request).await.map(Outcome::of_task)
    }

    /// Waits until a task has ended or waits for its caller, and answers how it stands. When the time is over the outcome may
    /// be [`Running`](Outcome::Running).
    ///
    /// # Errors
    ///
    /// [`ClientError`], as [`EventStream::next`](crate::follow::EventStream::next).
    pub async fn wait(&self, task_id: &str, options: WaitOptions) -> Result<Outcome, ClientError> {
        let mut events = self.follow(task_id, FollowOptions { until: Until::Waiting, ..options.follow });
        let to_its_rest = async {
            while let Some(event) = events.next().await {
                event?;
            }
            Ok::<(), ClientError>(())
        };
        match options.timeout {
            None => to_its_rest.await?,
            Some(limit) => {
                if let Ok(rest) = timeout(limit, to_its_rest).await {
                    rest?;
                }
            }
        }
        self.outcome(task_id).await
    }
}
