//! `send --ledger`: written down first, then sent.

use longhaul_client::ledger::{Deadline, Delegation, EntryId, FollowUp, Followed, Ledger, ResumeOptions};
use longhaul_client::{Client, Outcome};
use longhaul_protocol::wire::{SendMessageRequest, SendMessageResponse, SendMessageResponsePayload};

use crate::caller::arguments::Delivery;
use crate::caller::commands::ledger::delegate::{begin, follow, outcome};
use crate::caller::commands::ledger::{failure, lasting, open, response};
use crate::caller::options::Waiting;
use crate::caller::render::clean;
use crate::caller::session::{End, Session};

use super::{Sending, reply};

impl Sending<'_> {
    /// Writes the message down, sends it, and follows its task as far as was asked for.
    pub(super) async fn delegated(&self, request: SendMessageRequest) -> Result<(), End> {
        let (session, delivery) = (self.session, self.flags.stream.delivery());
        let ledger = open(session).await?;
        let followed = self.delegate(&ledger, request.clone()).await?;
        let id = followed.entry_id();
        let path = ledger.path().display();
        eprintln!("longhaul: {}", clean::line(&format!("delegation {id} is written down in {path}")));
        session.delegated(Some(id));
        if delivery == Delivery::Whole && session.send_options()?.waiting == Waiting::No {
            let finding = begin(session, followed).await?;
            return match outcome(session, &ledger, finding).await? {
                Some(outcome) => self.show(response(outcome)),
                None => self.running(),
            };
        }
        let mut finding = follow(session, followed, delivery).await?;
        loop {
            let Some(outcome) = outcome(session, &ledger, finding).await? else { return self.running() };
            let Some(next) = self.next(&ledger, id, &request, &outcome).await? else {
                return match delivery {
                    Delivery::Whole => self.show(response(outcome)),
                    Delivery::Stream => self.streamed(&outcome),
                };
            };
            finding = follow(session, next, delivery).await?;
        }
    }

    async fn delegate(&self, ledger: &Ledger, request: SendMessageRequest) -> Result<Followed, End> {
        let session = self.session;
        let mut delegation = Delegation::new(&lasting(session.options.agent()?), request);
        delegation.purpose = self.flags.purpose.clone().unwrap_or_default();
        delegation.deadline = self.flags.deadline.map(Deadline::Quiet);
        delegation.follow_up = follow_up(session);
        let followed = ledger.delegate(&self.client, delegation).await;
        Ok(followed.map_err(|error| failure(session, &error))?)
    }

    /// The delegation as it goes on with the answer of a person, if there is one.
    async fn next(
        &self,
        ledger: &Ledger,
        id: EntryId,
        request: &SendMessageRequest,
        outcome: &Outcome,
    ) -> Result<Option<Followed>, End> {
        let Some(task) = outcome.task() else { return Ok(None) };
        let Some(text) = self.reply_to(task).await else { return Ok(None) };
        let mut options = ResumeOptions::default();
        options.follow_up = follow_up(self.session);
        let client: &Client = &self.client;
        let followed = ledger.answer(id, client, reply(request, task, text), options).await;
        Ok(Some(followed.map_err(|error| failure(self.session, &error))?))
    }

    /// What is known of a task that goes on without us.
    fn running(&self) -> Result<(), End> {
        match self.session.seen() {
            Some(task) => self.show(SendMessageResponse { payload: Some(SendMessageResponsePayload::Task(task)) }),
            None => Ok(()),
        }
    }

    /// The events were written already.
    fn streamed(&self, outcome: &Outcome) -> Result<(), End> {
        let Some(task) = outcome.task() else { return Ok(()) };
        super::note(self.session, task);
        self.tell_saved(&self.save(task)?)
    }
}

fn follow_up(session: &Session) -> FollowUp {
    let mut follow_up = FollowUp::default();
    follow_up.follow = session.follow();
    follow_up
}
