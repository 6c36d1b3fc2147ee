//! Random changes of push configs and deliveries.

use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::super::life::at;
use super::super::push::{config, config_id, dead};
use super::{Pair, TASKS, id, of, same};
use crate::{Commit, DueDelivery, HostState, Next, PushConfig, PushStore, Settlement, StoreError};

/// More than a case makes.
const MANY: usize = 1000;
const CONFIGS: usize = 3;
const HOSTS: usize = 2;

#[derive(Clone, Debug)]
pub(super) enum PushStep {
    Put {
        task: usize,
        config: usize,
        host: usize,
        configs_max: usize,
    },
    /// The next commit comes with a config.
    Bring {
        config: usize,
        host: usize,
    },
    Remove {
        task: usize,
        config: usize,
    },
    Claim {
        millis: u8,
        busy: Option<usize>,
    },
    Settle {
        claim: usize,
        how: usize,
        millis: u8,
        hold: bool,
    },
    RetryDead {
        task: Option<usize>,
        config: Option<usize>,
    },
    Host {
        host: usize,
        failures: u32,
        millis: Option<u8>,
    },
}

pub(super) fn steps() -> impl Strategy<Value = PushStep> {
    let (task, config, host) = (0..TASKS, 0..CONFIGS, 0..HOSTS);
    prop_oneof![
        3 => (task.clone(), config.clone(), host.clone(), 1..=CONFIGS)
            .prop_map(|(task, config, host, configs_max)| PushStep::Put { task, config, host, configs_max }),
        2 => (config.clone(), host.clone()).prop_map(|(config, host)| PushStep::Bring { config, host }),
        1 => (task.clone(), config.clone()).prop_map(|(task, config)| PushStep::Remove { task, config }),
        4 => (any::<u8>(), option::weighted(0.2, host.clone())).prop_map(|(millis, busy)| PushStep::Claim { millis, busy }),
        8 => (any::<usize>(), 0..7_usize, any::<u8>(), any::<bool>())
            .prop_map(|(claim, how, millis, hold)| PushStep::Settle { claim, how, millis, hold }),
        1 => (option::of(task), option::of(config)).prop_map(|(task, config)| PushStep::RetryDead { task, config }),
        1 => Just(PushStep::RetryDead { task: None, config: None }),
        1 => (host, 0..3_u32, option::of(any::<u8>()))
            .prop_map(|(host, failures, millis)| PushStep::Host { host, failures, millis }),
    ]
}

/// What the two stores have given out, and what is yet to be brought.
#[derive(Default)]
pub(super) struct Hands {
    /// The same claims, as the store on trial and the memory store gave them: how they count epochs is theirs.
    claims: Vec<(DueDelivery, DueDelivery)>,
    brought: Option<PushConfig>,
}

impl Hands {
    /// The commit, with what it is to bring.
    pub(super) fn with(&mut self, commit: Commit) -> Commit {
        Commit { pushes: self.brought.take().into_iter().collect(), ..commit }
    }
}

impl Pair {
    pub(super) async fn push(&mut self, step: &PushStep) -> Result<(), String> {
        let now = at(self.millis);
        let (store, memory) = (self.test.store().clone(), &self.memory);
        match *step {
            PushStep::Put { task, config, host, configs_max } => {
                let (scope, task, config) = (of(task), id(task), of_host(config, host));
                let put = store.put_push_config(&scope, &task, config.clone(), configs_max, now).await;
                same("put", put, memory.put_push_config(&scope, &task, config, configs_max, now).await)
            }
            PushStep::Bring { config, host } => {
                self.hands.brought = Some(of_host(config, host));
                Ok(())
            }
            PushStep::Remove { task, config } => {
                let (scope, task, config) = (of(task), id(task), name(config));
                let removed = store.remove_push_config(&scope, &task, &config).await;
                same("remove", removed, memory.remove_push_config(&scope, &task, &config).await)
            }
            PushStep::Claim { millis, busy } => {
                let busy: Vec<String> = busy.map(host_name).into_iter().collect();
                self.claim(now, at(self.millis + 1 + i64::from(millis)), &busy).await
            }
            PushStep::Settle { claim, how, millis, hold } => self.settle(claim, how, millis, hold).await,
            PushStep::RetryDead { task, config } => {
                let (task, config) = (task.map(id), config.map(name));
                let retried = store.retry_dead(task.as_ref(), config.as_ref(), now).await;
                same("retry_dead", retried, memory.retry_dead(task.as_ref(), config.as_ref(), now).await)
            }
            PushStep::Host { host, failures, millis } => {
                let open_until = millis.map(|millis| at(self.millis + i64::from(millis)));
                let (host, state) = (host_name(host), HostState { failures, open_until });
                let set = store.set_push_host(&host, state.clone()).await;
                same("set_push_host", set, memory.set_push_host(&host, state).await)?;
                same("push_host", store.push_host(&host).await, memory.push_host(&host).await)
            }
        }
    }

    /// Claims all that is due.
    async fn claim(&mut self, now: Timestamp, until: Timestamp, busy: &[String]) -> Result<(), String> {
        let claimed = self.test.store().claim_deliveries(now, until, MANY, None, busy).await.map(sorted);
        let known = self.memory.claim_deliveries(now, until, MANY, None, busy).await.map(sorted);
        if let (Ok(claimed), Ok(known)) = (&claimed, &known) {
            self.hands.claims.extend(claimed.iter().cloned().zip(known.iter().cloned()));
        }
        same("claim", claimed.map(without_epochs), known.map(without_epochs))
    }

    /// Settles a claim that may be over since long.
    async fn settle(&mut self, claim: usize, how: usize, millis: u8, hold: bool) -> Result<(), String> {
        let count = self.hands.claims.len();
        let Some((ours, known)) = self.hands.claims.get_mut(claim.checked_rem(count).unwrap_or(0)) else {
            return Ok(());
        };
        let later = at(self.millis + i64::from(millis));
        let retry = |counts| Settlement::Retry { at: later, error: format!("failed {millis}"), counts };
        let settlement = match how {
            0 | 1 => retry(how == 0),
            2 => dead(&format!("died {millis}")),
            3 if millis < 100 => Settlement::Gone,
            _ => Settlement::Delivered,
        };
        let (hold, now) = (hold.then_some(later), at(self.millis));
        let answer = self.test.store().settle_delivery(ours, settlement.clone(), hold, now).await;
        let expected = self.memory.settle_delivery(known, settlement, hold, now).await;
        if let (Ok(Next::Held { sequence }), Ok(_)) = (&answer, &expected) {
            for delivery in [ours, known] {
                (delivery.sequence, delivery.attempts) = (*sequence, 0);
            }
        }
        same("settle", answer, expected)
    }

    pub(super) async fn compare_deliveries(&self) -> Result<(), String> {
        let (store, memory) = (self.test.store(), &self.memory);
        same("next_delivery", store.next_delivery().await, memory.next_delivery().await)?;
        same("push_backlog", store.push_backlog().await, memory.push_backlog().await)
    }

    pub(super) async fn compare_configs(&self, task: usize) -> Result<(), String> {
        for scope in [of(task), of(task + 1)] {
            let (configs, known) = (
                self.test.store().push_configs(&scope, &id(task), None, MANY).await,
                self.memory.push_configs(&scope, &id(task), None, MANY).await,
            );
            same("push_configs", configs, known)?;
        }
        Ok(())
    }

    /// What is left to be delivered, and what was given up.
    pub(super) async fn compare_rest(&mut self) -> Result<(), String> {
        let (store, memory) = (self.test.store(), &self.memory);
        let dead = store.dead_deliveries(None, MANY).await;
        same("dead_deliveries", dead, memory.dead_deliveries(None, MANY).await)?;
        let by_key = |sealed: Result<Vec<(TaskId, PushConfigId, bytes::Bytes)>, StoreError>| {
            sealed.map(|mut sealed| {
                sealed.sort();
                sealed
            })
        };
        let sealed = by_key(store.sealed_configs(None, MANY).await);
        same("sealed_configs", sealed, by_key(memory.sealed_configs(None, MANY).await))?;
        self.claim(super::super::life::far(), at(i64::from(u32::MAX) * 1000), &[]).await
    }
}

fn name(config: usize) -> PushConfigId {
    config_id(&format!("config-{config}"))
}

fn host_name(host: usize) -> String {
    format!("host-{host}")
}

fn of_host(number: usize, host: usize) -> PushConfig {
    config(name(number).as_str(), &host_name(host))
}

/// In which order hosts take their turns is told apart elsewhere.
fn sorted(mut due: Vec<DueDelivery>) -> Vec<DueDelivery> {
    due.sort_by_key(|due| (due.task_id.clone(), due.config.id.clone(), due.sequence));
    due
}

fn without_epochs(due: Vec<DueDelivery>) -> Vec<DueDelivery> {
    due.into_iter().map(|due| DueDelivery { epoch: 0, ..due }).collect()
}
