//! Callers that do what callers do until the server is gone.

use std::net::SocketAddr;

use longhaul_tests::task::{id_of, say, say_to, state_of};
use longhaul_tests::{Binding, Call, CallError, Client, Operation};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::CHUNKS;
use crate::ledger::Ledger;

/// One caller.
pub struct Caller {
    addr: SocketAddr,
    client: Client,
    context: String,
    dice: StdRng,
    ledger: Ledger,
    mine: Vec<String>,
}

impl Caller {
    pub fn new(addr: SocketAddr, number: u64, context: String, dice: StdRng, ledger: Ledger) -> Self {
        let binding = Binding::ALL[usize::try_from(number % 3).unwrap()];
        Self { addr, client: Client::new(binding, addr), context, dice, ledger, mine: Vec::new() }
    }

    /// Works until the connection is cut.
    pub async fn run(mut self) {
        loop {
            match self.step().await {
                Ok(()) => {}
                Err(CallError::Cut(_)) => return,
                Err(CallError::Refused(refusal)) => panic!("{refusal:?}"),
            }
        }
    }

    async fn step(&mut self) -> Result<(), CallError> {
        let chunks = CHUNKS[self.dice.random_range(0..CHUNKS.len())];
        match self.dice.random_range(0..40) {
            0..12 => self.send("echo", false).await.map(drop),
            12..18 => self.stream(&format!("chunks {chunks}")).await,
            18..20 => self.stream("burst 50").await,
            20..25 => self.leave_and_follow(&format!("chunks {chunks}")).await,
            25..31 => self.ask_and_answer().await,
            31 => self.send("fail", false).await.map(drop),
            32 => self.send("reject", false).await.map(drop),
            33..35 => self.cancel().await,
            35 => self.send("slow 1", true).await.map(drop),
            _ => self.read().await,
        }
    }

    fn params(&self, text: &str, leave: bool) -> Value {
        let mut params = say(text);
        params["message"]["contextId"] = self.context.as_str().into();
        if leave {
            params["configuration"] = json!({"returnImmediately": true});
        }
        params
    }

    /// Sends, and notes what is acknowledged.
    async fn send(&mut self, text: &str, leave: bool) -> Result<Value, CallError> {
        let params = self.params(text, leave);
        let answer = self.client.call(&Call::new(Operation::SendMessage, params.clone())).await?;
        let message = params["message"]["messageId"].as_str().unwrap();
        self.ledger.note(&self.context, Some((text, message)), &answer["task"]);
        self.mine.push(id_of(&answer));
        Ok(answer["task"].clone())
    }

    /// Sends and follows the stream to its end. HTTP+JSON: its events are the stored bytes.
    async fn stream(&mut self, text: &str) -> Result<(), CallError> {
        let params = self.params(text, false);
        let call = Call::new(Operation::SendStreamingMessage, params.clone());
        let mut stream = Client::new(Binding::HttpJson, self.addr).open(&call).await?;
        let mut id = None;
        while let Some(event) = stream.next().await? {
            if let Some(task) = event.data.get("task") {
                let message = params["message"]["messageId"].as_str().unwrap();
                self.ledger.note(&self.context, Some((text, message)), task);
                id = Some(id_of(task));
            }
            self.ledger.note_event(id.as_deref().expect("the task comes first"), &event);
        }
        let id = id.expect("a stream has items");
        assert!(self.ledger.get(&id).ended.is_some(), "the stream of {id} ended before its task");
        Ok(())
    }

    /// Sends without waiting, and follows the task from outside.
    async fn leave_and_follow(&mut self, text: &str) -> Result<(), CallError> {
        let task = self.send(text, true).await?;
        let id = id_of(&task);
        let call = Call::new(Operation::SubscribeToTask, json!({"id": id})).after(1);
        let mut stream = Client::new(Binding::HttpJson, self.addr).open(&call).await?;
        while let Some(event) = stream.next().await? {
            self.ledger.note_event(&id, &event);
        }
        Ok(())
    }

    /// Lets the agent ask, and answers half of its questions.
    async fn ask_and_answer(&mut self) -> Result<(), CallError> {
        let task = self.send("input", false).await?;
        assert_eq!(state_of(&task), "INPUT_REQUIRED", "{task}");
        if self.dice.random() {
            return Ok(());
        }
        let id = id_of(&task);
        self.ledger.will_answer(&id);
        let params = say_to(&id, "more");
        let answer = self.client.call(&Call::new(Operation::SendMessage, params.clone())).await?;
        assert_eq!(state_of(&answer), "COMPLETED", "{answer}");
        let message = params["message"]["messageId"].as_str().unwrap();
        self.ledger.note(&self.context, Some(("more", message)), &answer["task"]);
        Ok(())
    }

    /// Cancels a task that works, or has just ended.
    async fn cancel(&mut self) -> Result<(), CallError> {
        let text = ["chunks 200", "slow 1"][self.dice.random_range(0..2)];
        let task = self.send(text, true).await?;
        let call = Call::new(Operation::CancelTask, json!({"id": task["id"]}));
        match self.client.call(&call).await {
            Ok(task) => self.ledger.note(&self.context, None, &task),
            Err(CallError::Refused(refusal)) if refusal.reason == "TASK_NOT_CANCELABLE" => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads one of its tasks.
    async fn read(&mut self) -> Result<(), CallError> {
        if self.mine.is_empty() {
            return Ok(());
        }
        let id = &self.mine[self.dice.random_range(0..self.mine.len())];
        let call = Call::new(Operation::GetTask, json!({"id": id}));
        let task = self.client.call(&call).await?;
        self.ledger.note(&self.context, None, &task);
        Ok(())
    }
}
