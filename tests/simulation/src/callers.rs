//! What callers asked and were told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use longhaul_engine::{
    Engine, EngineError, EventStream, HistoryLimit, IDEMPOTENT_SEND, Scope, SendReply, SendRequest, StreamItem,
    SubscribeRequest, TurnRequest, text_part,
};
use longhaul_protocol::{Message, MessageId, Role, TaskId, wire};

use crate::Mode;

/// A message as it is sent, maybe more than once.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub scope: Scope,
    pub id: MessageId,
    pub text: String,
    pub task: Option<TaskId>,
    pub context: String,
    pub idempotent: bool,
}

impl Letter {
    fn request(&self, mode: Mode) -> Option<SendRequest> {
        let message = Message::new(wire::Message {
            message_id: self.id.as_str().to_owned(),
            role: Role::User.into(),
            task_id: self.task.as_ref().map(|task| task.as_str().to_owned()).unwrap_or_default(),
            context_id: self.context.clone(),
            parts: vec![text_part(&self.text)],
            ..wire::Message::default()
        });
        let mut request = TurnRequest::default();
        if self.idempotent {
            request.extensions.push(IDEMPOTENT_SEND.to_owned());
        }
        Some(SendRequest {
            scope: self.scope.clone(),
            message: message.ok()?,
            request,
            history: HistoryLimit::All,
            return_immediately: mode == Mode::Immediately,
            push: None,
            version: "1.0",
        })
    }
}

/// What a caller asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Send {
        letter: Letter,
        mode: Mode,
    },
    Cancel {
        scope: Scope,
        task: TaskId,
    },
    /// `known` if the log held that event when the caller asked.
    Subscribe {
        scope: Scope,
        task: TaskId,
        after: Option<u64>,
        known: bool,
    },
    Read {
        scope: Scope,
        task: TaskId,
    },
    Resume {
        scope: Scope,
        task: TaskId,
    },
    Snoop {
        scope: Scope,
        task: TaskId,
    },
}

/// What it was told in the end.
#[derive(Debug)]
pub(crate) enum Answer {
    Task(Box<wire::Task>),
    /// A message, for which there is no task.
    Direct,
    Done,
    /// The stream came to its end.
    StreamEnded,
    /// The stream could not be read on.
    StreamBroke,
    Refused(EngineError),
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub instance: u64,
    pub asked: Asked,
    pub items: Vec<StreamItem>,
    pub answer: Option<Answer>,
    /// The caller left, or the instance died: there will be no answer.
    pub over: bool,
    /// The instance was going down at some time, when streams may end early.
    pub going_down: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Callers {
    calls: Mutex<Vec<Call>>,
}

impl Callers {
    pub fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. Answers its number.
    pub fn begin(&self, instance: u64, asked: Asked, going_down: bool) -> usize {
        let mut calls = self.calls();
        calls.push(Call { instance, asked, items: Vec::new(), answer: None, over: false, going_down });
        calls.len() - 1
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.calls().get_mut(number) {
            change(call);
        }
    }

    pub fn answered(&self, number: usize, answer: Answer) {
        self.change(number, |call| call.answer = Some(answer));
    }
}

/// Makes one call, and writes down what it is told.
pub(crate) async fn call(callers: &Callers, number: usize, engine: Engine, asked: Asked) {
    let answer = match asked {
        Asked::Send { letter, mode } => send(callers, number, &engine, &letter, mode).await,
        Asked::Cancel { scope, task } => task_or_not(engine.cancel_task(&scope, task.as_str()).await),
        Asked::Read { scope, task } => task_or_not(engine.get_task(&scope, task.as_str(), HistoryLimit::All).await),
        Asked::Resume { scope, task } => match engine.resume_task(&scope, task.as_str()).await {
            Ok(_) => Answer::Done,
            Err(error) => Answer::Refused(error),
        },
        Asked::Subscribe { scope, task, after, .. } => {
            let request = SubscribeRequest { scope, task_id: task.as_str().to_owned(), after };
            follow(callers, number, engine.subscribe_to_task(request).await).await
        }
        Asked::Snoop { scope, task } => snoop(&engine, scope, task).await,
    };
    callers.answered(number, answer);
}

fn task_or_not(told: Result<wire::Task, EngineError>) -> Answer {
    match told {
        Ok(task) => Answer::Task(Box::new(task)),
        Err(error) => Answer::Refused(error),
    }
}

async fn send(callers: &Callers, number: usize, engine: &Engine, letter: &Letter, mode: Mode) -> Answer {
    let Some(request) = letter.request(mode) else { return Answer::Done };
    if mode == Mode::Stream {
        return follow(callers, number, engine.send_streaming_message(request).await).await;
    }
    match engine.send_message(request).await {
        Ok(SendReply::Task(task)) => Answer::Task(Box::new(task)),
        Ok(SendReply::Message(_)) => Answer::Direct,
        Err(error) => Answer::Refused(error),
    }
}

async fn follow(callers: &Callers, number: usize, stream: Result<EventStream, EngineError>) -> Answer {
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Answer::Refused(error),
    };
    while let Some(items) = stream.next().await {
        match items {
            Ok(items) => callers.change(number, |call| call.items.extend(items)),
            Err(_) => return Answer::StreamBroke,
        }
    }
    Answer::StreamEnded
}

/// Tries everything; the answer is the first thing that was not refused as unknown.
async fn snoop(engine: &Engine, scope: Scope, task: TaskId) -> Answer {
    let request = SubscribeRequest { scope: scope.clone(), task_id: task.as_str().to_owned(), after: Some(1) };
    let letter = Letter {
        scope: scope.clone(),
        id: MessageId::new("snoop").unwrap_or_else(|_| unreachable!("it is an id")),
        text: "snoop".to_owned(),
        task: Some(task.clone()),
        context: String::new(),
        idempotent: false,
    };
    let sent = match letter.request(Mode::Immediately) {
        Some(request) => engine.send_message(request).await.map(drop),
        None => Ok(()),
    };
    let tried = [
        sent,
        engine.get_task(&scope, task.as_str(), HistoryLimit::All).await.map(drop),
        engine.subscribe_to_task(request).await.map(drop),
        engine.cancel_task(&scope, task.as_str()).await.map(drop),
    ];
    for tried in tried {
        match tried {
            Err(EngineError::TaskNotFound(_) | EngineError::Unavailable { .. }) => {}
            Err(error) => return Answer::Refused(error),
            Ok(()) => return Answer::StreamEnded,
        }
    }
    Answer::Done
}
