//! The operators' commands, through the server that holds the store or on the store itself.

mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use longhaul_engine::{Agent, AgentError, Config, Engine, EngineParts, Outcome, RandomIds, Turn};
use longhaul_store_sqlite::OpenError;

use crate::admin::{Answer, AskError, DeadRow, FILE_NAME, Operation, ask, hello, perform};
use crate::failure::Attempt;
use crate::push;
use crate::settings::{ConfigError, Settings, StoreKind};
use crate::store::{Opened, database, existing, not_opened};

use table::Table;

/// How often, and after which time again, a server is looked for that holds the store and does not listen yet.
const STARTING_TRIES: usize = 10;
const STARTING_WAIT: Duration = Duration::from_millis(200);

/// What an operator's command came to.
#[derive(Debug)]
pub struct Done {
    operation: Operation,
    answer: Answer,
    way: Way,
}

/// Who did it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// The server that holds the store.
    Server,
    /// This process, on a store that nobody held.
    Folder,
    /// This process, on a database that servers may be working on.
    Database,
}

/// Carries out a command.
///
/// # Errors
///
/// When it was not done, with the next step.
pub fn run(settings: &Settings, operation: Operation) -> anyhow::Result<Done> {
    let store = &settings.store;
    if store.kind == StoreKind::Memory {
        let hint =
            "it is for the store of a folder or a database: set store.kind to sqlite, or to the database's address";
        return Err(ConfigError::new("store.kind", "is memory, which only its own server can reach", hint).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(Attempt::new("cannot start the runtime"))?;
    let (answer, way) = runtime.block_on(async {
        match &store.kind {
            StoreKind::Postgres(url) => {
                let opened = database(url, &store.postgres).await?;
                Ok((on_the_store(settings, opened, operation.clone()).await?, Way::Database))
            }
            StoreKind::Sqlite | StoreKind::Memory => in_the_folder(settings, operation.clone()).await,
        }
    })?;
    match answer {
        Answer::Refused { message, hint } => {
            let attempt = Attempt::new(message);
            Err(anyhow::Error::msg(match hint {
                Some(hint) => attempt.hint(hint),
                None => attempt,
            }))
        }
        answer => Ok(Done { operation, answer, way }),
    }
}

/// Asks the server that holds the folder, or works on it when nobody does.
async fn in_the_folder(settings: &Settings, operation: Operation) -> anyhow::Result<(Answer, Way)> {
    let store = &settings.store;
    let directory = &store.data;
    let mut tries = 0;
    loop {
        let silence = match hello(directory).await {
            Ok(()) => return Ok((ask(directory, operation).await.map_err(not_answered)?, Way::Server)),
            Err(error @ AskError::OtherVersion { .. }) => return Err(not_answered(error)),
            Err(error) => error,
        };
        match existing(store) {
            Ok(opened) => return Ok((on_the_store(settings, opened, operation).await?, Way::Folder)),
            // It may be about to listen.
            Err(OpenError::Held { .. }) if matches!(silence, AskError::Nobody(_)) && tries < STARTING_TRIES => {
                tries += 1;
                tokio::time::sleep(STARTING_WAIT).await;
            }
            Err(OpenError::Held { pid, .. }) => return Err(held(directory, pid, silence)),
            Err(error) => return Err(not_opened(directory, error)),
        }
    }
}

fn not_answered(error: AskError) -> anyhow::Error {
    let attempt = Attempt::new("cannot ask the server that holds the store");
    let attempt = match error {
        AskError::OtherVersion { .. } => attempt.hint("use the longhaul of the release that the server is of"),
        _ => attempt.hint("it may have done it all the same: look, and run the command again if need be"),
    };
    anyhow::Error::new(error).context(attempt)
}

fn held(directory: &Path, pid: Option<u32>, silence: AskError) -> anyhow::Error {
    let socket = directory.join(FILE_NAME);
    let (holder, end) = match pid {
        Some(pid) => (format!("process {pid}"), format!("end it (kill {pid})")),
        None => ("another process".to_owned(), "end it".to_owned()),
    };
    let what =
        format!("{holder} holds the store in {}, and does not answer at {}", directory.display(), socket.display());
    let hint = match &silence {
        AskError::Failed(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "run the command as the user that runs the server".to_owned()
        }
        _ => format!("wait until it answers, or {end}; then run the command again"),
    };
    anyhow::Error::new(silence).context(Attempt::new(what).hint(hint))
}

/// Works on a store with an engine that is never started: no turn runs. Closing the store sends what rings other instances.
async fn on_the_store(settings: &Settings, opened: Opened, operation: Operation) -> anyhow::Result<Answer> {
    let Opened { store, clock } = opened;
    // Only for this is a key needed.
    let setup = match operation {
        Operation::PushRotateKey => Some(push::for_operator(&settings.push, &settings.store, &clock)?),
        _ => None,
    };
    let mut engine = Engine::new(EngineParts {
        store,
        agent: Arc::new(NoAgent),
        clock,
        ids: Arc::new(RandomIds::default()),
        config: Config::default(),
    });
    if let Some(setup) = setup {
        engine = engine.with_push(setup.parts());
    }
    let answer = perform(&engine, operation).await;
    engine.close().await.context(Attempt::new("cannot close the store in order"))?;
    Ok(answer)
}

/// Stands where an agent is asked for; it is never run.
#[derive(Debug)]
struct NoAgent;

#[async_trait]
impl Agent for NoAgent {
    async fn run(&self, _: &mut Turn) -> Result<Outcome, AgentError> {
        Err(AgentError::new("an operator's command runs no turn"))
    }
}

impl Done {
    /// For people, on stdout.
    pub fn text(&self) -> String {
        match &self.answer {
            Answer::Reclaimed { tasks, .. } if tasks.is_empty() => String::new(),
            Answer::Reclaimed { tasks, .. } => {
                let mut table = Table::new(["TASK", "CONTEXT", "STATE", "SINCE", "WHY"]);
                for task in tasks {
                    let (state, since) = (task.state.short(), task.since.to_string());
                    table.row([&task.task_id, &task.context_id, state, &since, &task.why]);
                }
                table.to_string()
            }
            Answer::Purged { states } => {
                let mut table = Table::new(["STATE", "REMOVED"]);
                for purged in states {
                    table.row([purged.state.short(), &purged.removed.to_string()]);
                }
                table.to_string()
            }
            Answer::PushDead { deliveries, .. } if deliveries.is_empty() => String::new(),
            Answer::PushDead { deliveries, .. } => dead_table(deliveries).to_string(),
            Answer::PushBacklog { configs, dead } => {
                let mut table = Table::new(["WAITING CONFIGS", "DEAD DELIVERIES"]);
                table.row([&configs.to_string(), &dead.to_string()]);
                table.to_string()
            }
            Answer::PushRetried { .. } | Answer::PushRotated { .. } => String::new(),
            Answer::Resumed | Answer::Hello { .. } | Answer::Refused { .. } => match &self.operation {
                Operation::Resume { task_id } => format!("{task_id}\n"),
                _ => String::new(),
            },
        }
    }

    /// For programs, on stdout: a list, or an object for one task.
    ///
    /// # Errors
    ///
    /// None that can happen with what is written here.
    pub fn json(&self) -> serde_json::Result<String> {
        let json = match (&self.answer, &self.operation) {
            (Answer::Reclaimed { tasks, .. }, _) => serde_json::to_string(tasks),
            (Answer::Purged { states }, _) => serde_json::to_string(states),
            (Answer::PushDead { deliveries, .. }, _) => serde_json::to_string(deliveries),
            (Answer::PushRetried { retried }, _) => serde_json::to_string(&serde_json::json!({ "retried": retried })),
            (Answer::PushBacklog { configs, dead }, _) => {
                serde_json::to_string(&serde_json::json!({ "configs": configs, "dead": dead }))
            }
            (Answer::PushRotated { resealed }, _) => {
                serde_json::to_string(&serde_json::json!({ "resealed": resealed }))
            }
            (_, Operation::Resume { task_id }) => serde_json::to_string(&serde_json::json!({ "taskId": task_id })),
            _ => Ok("null".to_owned()),
        };
        json.map(|json| json + "\n")
    }

    /// For people, on stderr: how it ended.
    pub fn note(&self) -> Option<String> {
        match (&self.answer, &self.operation) {
            (Answer::Reclaimed { tasks, left_out }, Operation::Reclaim { dry_run, .. }) => {
                let all = tasks.len() as u64 + left_out;
                let what = if *dry_run { "would be given up; this was a dry run" } else { "given up" };
                let rest = if *left_out > 0 { format!("; {left_out} of them are not shown") } else { String::new() };
                Some(format!("{} {what}{rest}", tasks_of(all)))
            }
            (Answer::Purged { states }, _) => {
                Some(format!("{} removed", tasks_of(states.iter().map(|purged| purged.removed).sum())))
            }
            (Answer::PushDead { deliveries, more }, _) => {
                let rest = if *more { ", and more that are not shown" } else { "" };
                Some(format!("{} given up{rest}", counted(deliveries.len() as u64, "delivery", "deliveries")))
            }
            (Answer::PushRetried { retried }, _) => {
                let what = match self.way {
                    Way::Server | Way::Database => "sent again",
                    Way::Folder => "sent again when a server is started",
                };
                Some(format!("{} {what}", counted(*retried, "delivery is", "deliveries are")))
            }
            (Answer::PushRotated { resealed }, _) => {
                Some(format!("the secrets of {} were sealed anew", counted(*resealed, "push config", "push configs")))
            }
            (Answer::Resumed, _) => Some(match self.way {
                Way::Server => "the task goes on".to_owned(),
                Way::Folder => "the task goes on when a server is started".to_owned(),
                Way::Database => "the task goes on with the next server that has a free worker".to_owned(),
            }),
            _ => None,
        }
    }
}

fn dead_table(deliveries: &[DeadRow]) -> Table<7> {
    let mut table = Table::new(["TASK", "CONFIG", "EVENT", "ATTEMPTS", "GIVEN UP", "URL", "WHY"]);
    for row in deliveries {
        let (sequence, attempts, died_at) =
            (row.sequence.to_string(), row.attempts.to_string(), row.died_at.to_string());
        table.row([&row.task_id, &row.config_id, &sequence, &attempts, &died_at, &row.url, &row.why]);
    }
    table
}

fn tasks_of(number: u64) -> String {
    counted(number, "task", "tasks")
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
