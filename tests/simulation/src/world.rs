//! Runs a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul_engine::{Config, Engine, EngineParts, IdSource, Retention, Scope, shard, uuid_v7};
use longhaul_protocol::{ContextId, MessageId, Owner, TaskId, Tenant, Timestamp};

use crate::agent::SimAgent;
use crate::bells::Bells;
use crate::callers::{Asked, Callers, Letter, call};
use crate::clock::Skewed;
use crate::instance::Instance;
use crate::link::Link;
use crate::scenario::LEASE_MILLIS;
use crate::store::{Mutation, Shared, Writer};
use crate::stores::{Landing, Stores};
use crate::{Dice, Op, Promise, Scenario, SimClock, Trace, Violation, Weather, checks, panics};

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The promises that were broken.
    pub violations: Vec<Violation>,
    /// A hash of everything that happened: the same for the same seed.
    pub hash: u64,
    /// Everything that happened, if it was asked for.
    pub lines: Vec<String>,
    /// How often what happened.
    pub counts: BTreeMap<&'static str, u64>,
}

/// How long it may take until everything is at rest when nothing fails any more.
const QUIET_MILLIS_MAX: i64 = 300_000;

/// Runs a scenario over a store in memory, on one that breaks a promise if it is told to. A seed gives the same run.
#[must_use]
pub fn run(scenario: &Scenario, mutation: Option<Mutation>, keeps_lines: bool) -> Outcome {
    run_over(&Stores::in_memory(), scenario, mutation, keeps_lines)
}

/// As [`run`], over stores that nobody has used yet.
#[must_use]
pub fn run_over(stores: &Stores, scenario: &Scenario, mutation: Option<Mutation>, keeps_lines: bool) -> Outcome {
    let before = panics::count();
    let inspector = stores.open();
    let mut world = World::new(stores, scenario, mutation, keeps_lines);
    for op in &scenario.ops {
        world.trace.note(format_args!("{op:?}"));
        world.apply(*op);
        world.settle_or_not();
    }
    world.land();
    world.come_to_rest();
    checks::at_the_end(&world.shared, &*inspector, &world.callers, |number| world.instances.contains_key(&number));
    let instances = std::mem::take(&mut world.instances);
    world.shared.bury(|| drop(instances));
    // What was under way ends before its store goes.
    world.settle();
    let panics = panics::count() - before + stores.panics();
    if panics > 0 {
        world.trace.broken(Promise::Sound, format!("{panics} panics"));
    }
    let hash = world.trace.hash();
    let (violations, lines) = world.trace.take();
    Outcome { violations, hash, lines, counts: world.trace.counts() }
}

struct World<'a> {
    stores: &'a Stores,
    scenario: &'a Scenario,
    clock: Arc<SimClock>,
    trace: Arc<Trace>,
    shared: Arc<Shared>,
    ids: Arc<SimIds>,
    callers: Arc<Callers>,
    letters: Vec<Letter>,
    instances: BTreeMap<u64, Instance>,
    started: u64,
    dice: Dice,
    /// For what happens while calls are under way outside of the process.
    other_dice: Dice,
    /// Whether all clocks show the same, so that instances do at the same moment what they do by the time.
    in_step: bool,
    /// How many calls were answered when the instances were run last.
    landed: u64,
    weather: Weather,
}

impl<'a> World<'a> {
    fn new(stores: &'a Stores, scenario: &'a Scenario, mutation: Option<Mutation>, keeps_lines: bool) -> Self {
        let clock = SimClock::new();
        let trace = Trace::new(Arc::clone(&clock), keeps_lines);
        let calls = stores.calls().clone();
        let shared = Shared::new(calls, Arc::clone(&clock), Arc::clone(&trace), mutation, scenario);
        // In memory one call comes after the other, and nothing would be won by it.
        let in_step = stores.are_outside() && Dice::of(scenario.seed, "clocks").happens(500);
        let mut world = Self {
            stores,
            scenario,
            clock,
            trace,
            shared,
            ids: Arc::default(),
            callers: Arc::default(),
            letters: Vec::new(),
            instances: BTreeMap::new(),
            started: 0,
            dice: Dice::of(scenario.seed, "world"),
            other_dice: Dice::of(scenario.seed, "answers"),
            in_step,
            landed: 0,
            weather: scenario.weather,
        };
        (0..scenario.instances).for_each(|_| world.start());
        world.settle();
        world
    }

    fn start(&mut self) {
        if self.instances.len() >= self.scenario.instances {
            return;
        }
        self.started += 1;
        let number = self.started;
        let dice = |of: &str| Dice::of(self.scenario.seed, &format!("{of} {number}"));
        let listen = |bells: &Bells| bells.listen(number, Arc::clone(&self.clock), dice("ear"));
        let ear = self.shared.bells.as_ref().map(listen);
        let writer = Writer { instance: number, store: self.stores.open() };
        let link = Link::new(writer, Arc::clone(&self.shared), ear, dice("link"), self.weather);
        let agent = SimAgent {
            seed: self.scenario.seed,
            clock: Arc::clone(&self.clock),
            shared: Arc::clone(&self.shared),
            sleep_millis: self.scenario.sleep_millis,
        };
        let engine = Engine::new(EngineParts {
            store: Arc::clone(&link) as _,
            agent: Arc::new(agent),
            clock: Arc::new(Skewed { clock: Arc::clone(&self.clock), millis: self.skew(number) }),
            ids: Arc::clone(&self.ids) as _,
            config: config(self.scenario),
        });
        self.instances.insert(number, Instance::start(number, link, engine));
    }

    /// By how much the clock of an instance is fast or slow, less than 20 ms.
    fn skew(&self, instance: u64) -> i64 {
        if self.in_step { 0 } else { as_millis(instance * 13 % 39) - 19 }
    }

    /// The number of an instance, modulo how many there are.
    fn pick(&self, instance: u64) -> Option<u64> {
        let place = instance.checked_rem(self.instances.len() as u64)?;
        self.instances.keys().nth(usize::try_from(place).ok()?).copied()
    }

    /// A task and its scope, counted back from the latest.
    fn task(&self, task: u64) -> Option<(TaskId, Scope)> {
        self.shared.books(|books| {
            let place = task.checked_rem(books.order.len() as u64)?;
            let id = books.order.iter().rev().nth(usize::try_from(place).ok()?)?;
            Some((id.clone(), books.tasks.get(id)?.scope.clone()))
        })
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send { instance, task, again, idempotent, mode, context, owner: of } => {
                let letter = match again.filter(|_| !self.letters.is_empty()) {
                    Some(again) => {
                        let place = usize::try_from(again % self.letters.len() as u64).unwrap_or(0);
                        self.letters.iter().rev().nth(place).cloned()
                    }
                    None => Some(self.letter(task, idempotent, context, of)),
                };
                if let Some(letter) = letter {
                    self.call(instance, Asked::Send { letter, mode });
                }
            }
            Op::Cancel { instance, task } => {
                if let Some((task, scope)) = self.task(task) {
                    self.call(instance, Asked::Cancel { scope, task });
                }
            }
            Op::Subscribe { instance, task, after_permille } => {
                if let Some((task, scope)) = self.task(task) {
                    let length = self.shared.books(|books| books.tasks.get(&task).map_or(0, |book| book.log.len()));
                    let after = after_permille.map(|permille| length as u64 * permille / 1000);
                    let known = after.is_some_and(|after| (1..=length as u64).contains(&after));
                    self.call(instance, Asked::Subscribe { scope, task, after, known });
                }
            }
            Op::Read { instance, task } => {
                if let Some((task, scope)) = self.task(task) {
                    self.call(instance, Asked::Read { scope, task });
                }
            }
            Op::Resume { instance, task } => {
                if let Some((task, scope)) = self.task(task) {
                    self.call(instance, Asked::Resume { scope, task });
                }
            }
            Op::Snoop { instance, task } => {
                if let Some((task, scope)) = self.task(task) {
                    let scope = owner(if scope == owner(0) { 1 } else { 0 });
                    self.call(instance, Asked::Snoop { scope, task });
                }
            }
            Op::Leave { call } => self.leave(call),
            Op::Crash { instance } => {
                if let Some(number) = self.pick(instance) {
                    self.crash(number);
                }
            }
            Op::ShutDown { instance, drain_millis } => self.shut_down(instance, drain_millis),
            Op::Start => self.start(),
            Op::Pause { instance, millis } => {
                let until = self.clock.millis() + as_millis(millis);
                if let Some(instance) = self.pick(instance).and_then(|number| self.instances.get_mut(&number)) {
                    instance.paused_until = Some(until);
                    self.trace.count("instances that stood still");
                }
            }
            Op::Cut { instance, millis } => {
                if let Some(instance) = self.pick(instance).and_then(|number| self.instances.get(&number)) {
                    instance.link.cut_for(as_millis(millis));
                }
            }
            Op::FailRenewals { instance, millis } => {
                if let Some(instance) = self.pick(instance).and_then(|number| self.instances.get(&number)) {
                    instance.link.fail_renewals_for(as_millis(millis));
                }
            }
            Op::Advance { millis } => self.advance(as_millis(millis)),
        }
    }

    /// A message that was not sent before.
    fn letter(&mut self, task: Option<u64>, idempotent: bool, context: u64, of: u64) -> Letter {
        let number = self.letters.len();
        let known = task.and_then(|task| self.task(task));
        let (task, scope) = known.map_or((None, owner(of)), |(task, scope)| (Some(task), scope));
        let context = if task.is_none() && context < 3 { format!("context-{context}") } else { String::new() };
        let id = MessageId::new(format!("message-{number}")).unwrap_or_else(|_| unreachable!("it is an id"));
        let letter = Letter { scope, id, text: format!("text {number}"), task, context, idempotent };
        self.letters.push(letter.clone());
        letter
    }

    fn call(&mut self, instance: u64, asked: Asked) {
        let Some(instance) = self.pick(instance).and_then(|number| self.instances.get_mut(&number)) else { return };
        let number = self.callers.begin(instance.number, asked.clone(), instance.stopping.is_some());
        let (callers, engine) = (Arc::clone(&self.callers), instance.engine.clone());
        let calling = instance.spawn(async move { call(&callers, number, engine, asked).await });
        instance.callers.push((number, calling.abort_handle()));
    }

    /// A caller whose call has no answer yet gives up.
    fn leave(&mut self, call: u64) {
        let mut calls = self.callers.calls();
        let waiting: Vec<usize> = (0..calls.len())
            .filter(|place| calls.get(*place).is_some_and(|call| call.answer.is_none() && !call.over))
            .collect();
        let Some(place) = call.checked_rem(waiting.len() as u64) else { return };
        let Some(number) = usize::try_from(place).ok().and_then(|place| waiting.get(place)) else { return };
        if let Some(call) = calls.get_mut(*number) {
            call.over = true;
        }
        drop(calls);
        let handles = self.instances.values().flat_map(|instance| &instance.callers);
        handles.filter(|(known, _)| known == number).for_each(|(_, handle)| handle.abort());
    }

    fn crash(&mut self, number: u64) {
        let Some(instance) = self.instances.remove(&number) else { return };
        self.shared.bury(|| drop(instance));
        self.trace.note(format_args!("{number} died"));
        self.trace.count("instances that died or stopped");
        self.shared.died(number);
        let mut calls = self.callers.calls();
        for call in calls.iter_mut().filter(|call| call.instance == number && call.answer.is_none()) {
            call.over = true;
        }
    }

    fn shut_down(&mut self, instance: u64, drain_millis: u64) {
        let Some(instance) = self.pick(instance).and_then(|number| self.instances.get_mut(&number)) else { return };
        if instance.stopping.is_some() {
            return;
        }
        let engine = instance.engine.clone();
        instance.stopping = Some(instance.spawn(async move {
            // What can't be handed back is due when its lease runs out.
            let _ = engine.shutdown(Duration::from_millis(drain_millis)).await;
        }));
        let number = instance.number;
        let mut calls = self.callers.calls();
        calls.iter_mut().filter(|call| call.instance == number).for_each(|call| call.going_down = true);
    }

    /// Lets every instance that does not stand still run until it can't go on by itself, and no call is under way.
    fn settle(&mut self) {
        self.run_instances();
        self.land();
    }

    /// What happens next may happen while calls are under way, if they can be.
    fn settle_or_not(&mut self) {
        self.run_instances();
        if !self.stores.calls().are_under_way() {
            return self.land();
        }
        if self.other_dice.happens(500) {
            return self.land();
        }
        self.trace.count("things that happened while calls were under way");
    }

    /// Waits until no call is under way, and lets instances go on with what they are answered.
    fn land(&mut self) {
        loop {
            match self.stores.calls().wait_beyond(self.landed) {
                Landing::Answered => {}
                Landing::NoneUnderWay => return,
                Landing::Stuck => return self.trace.broken(Promise::Sound, "the store does not answer"),
            }
            // Whoever goes on first here, no seed could say it: so nothing else is to follow from what is drawn.
            std::mem::swap(&mut self.dice, &mut self.other_dice);
            self.run_instances();
            std::mem::swap(&mut self.dice, &mut self.other_dice);
        }
    }

    /// Lets every instance that does not stand still run until it can't go on by itself.
    fn run_instances(&mut self) {
        self.landed = self.stores.calls().landed();
        let mut numbers: Vec<u64> = self.instances.keys().copied().collect();
        while let Some(place) = self.dice.place(numbers.len()) {
            let number = numbers.swap_remove(place);
            let Some(instance) = self.instances.get(&number).filter(|instance| !instance.is_paused()) else { continue };
            instance.run();
            if instance.stopping.as_ref().is_some_and(tokio::task::JoinHandle::is_finished) {
                self.crash(number);
            }
        }
    }

    /// Lets time pass, from one moment at which something happens to the next.
    fn advance(&mut self, millis: i64) {
        // Time stands still for who waits for something outside of it.
        self.land();
        let until = self.clock.millis() + millis;
        loop {
            let wakes = self.instances.values().filter_map(|instance| instance.paused_until);
            let next = wakes.chain(self.clock.next_millis()).chain(self.shared.next_late()).min();
            let next = next.filter(|next| *next <= until).unwrap_or(until);
            self.clock.move_to(next);
            for instance in self.instances.values_mut() {
                instance.paused_until = instance.paused_until.filter(|until| *until > next);
            }
            self.shared.arrive();
            self.settle();
            if next >= until {
                return;
            }
        }
    }

    /// Nothing fails any more, at least one instance works, and time passes until every task is at rest and every caller
    /// answered; and then some more, in which nothing may change.
    fn come_to_rest(&mut self) {
        self.trace.note(format_args!("quiet"));
        self.weather = Weather::default();
        let some_die = self.dice.happens(300);
        let numbers: Vec<u64> = self.instances.keys().copied().collect();
        for number in numbers {
            if some_die && self.dice.happens(500) {
                self.crash(number);
            }
        }
        for instance in self.instances.values_mut() {
            instance.link.set_weather(Weather::default());
        }
        let mut passed = 0;
        loop {
            passed = self.wait_for_rest(passed);
            let some_stop = self.instances.values().any(|instance| instance.stopping.is_some());
            self.advance(as_millis(2 * LEASE_MILLIS));
            // Who is about to stop may store what it was sent before, for the next one to work on.
            if !some_stop || self.is_at_rest() || passed >= QUIET_MILLIS_MAX {
                break;
            }
        }
        for instance in self.instances.values().filter(|instance| instance.engine.stats().turns > 0) {
            let what = format!("{} turns run on, and all tasks are at rest", instance.engine.stats().turns);
            self.trace.broken(Promise::ComesToRest, what);
        }
    }

    /// Lets time pass until everything is at rest, or too much has passed. Answers how much.
    fn wait_for_rest(&mut self, mut passed: i64) -> i64 {
        while passed < QUIET_MILLIS_MAX {
            // Whoever was told to stop does so, and somebody must be there.
            if self.instances.values().all(|instance| instance.stopping.is_some()) {
                self.start();
                self.settle();
            }
            if self.is_at_rest() {
                break;
            }
            self.advance(500);
            passed += 500;
        }
        passed
    }

    fn is_at_rest(&self) -> bool {
        let idle = self.shared.books(|books| books.tasks.values().all(|book| book.head.due_at.is_none()));
        let answered = || {
            let calls = self.callers.calls();
            calls.iter().all(|call| call.answer.is_some() || call.over || checks::may_wait(&self.shared, call))
        };
        let awake = || self.instances.values().all(|instance| !instance.is_paused() && instance.link.is_clear());
        idle && answered() && awake() && self.shared.next_late().is_none()
    }
}

fn as_millis(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn owner(number: u64) -> Scope {
    let owner = Owner::new(format!("owner-{number}")).unwrap_or_default();
    Scope { owner, ..Scope::default() }
}

fn config(scenario: &Scenario) -> Config {
    let limits = match scenario.limits_attempts {
        true => Config {
            turn_duration_max: Duration::from_millis(2 * LEASE_MILLIS),
            inactivity_max: Some(Duration::from_millis(LEASE_MILLIS / 2)),
            ..Config::default()
        },
        false => Config::default(),
    };
    Config {
        workers_max: scenario.workers,
        attempts_max: scenario.attempts_max,
        backoff_min: Duration::from_millis(200),
        backoff_max: Duration::from_secs(2),
        lease_duration: Duration::from_millis(LEASE_MILLIS),
        sweep_interval: Duration::from_millis(500),
        cancel_grace: Duration::from_millis(700),
        accept_timeout: Duration::from_millis(400),
        housekeeping_interval: Duration::from_secs(20),
        retention: Retention { completed: None, failed: None, canceled: None, rejected: None },
        // The checkers read whole logs.
        compact_after: None,
        ..limits
    }
}

/// Ids that are counted, and a jitter that follows from the count.
#[derive(Debug, Default)]
struct SimIds {
    count: AtomicU64,
}

impl SimIds {
    fn next(&self, now: Timestamp, shard: Option<u16>) -> String {
        let mut random = [0; 10];
        let count = (self.count.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes();
        random.iter_mut().skip(2).zip(count).for_each(|(to, from)| *to = from);
        uuid_v7(now, random, 0, shard).hyphenated().to_string()
    }
}

impl IdSource for SimIds {
    fn task_id(&self, tenant: &Tenant, context_id: &ContextId, now: Timestamp) -> TaskId {
        TaskId::new(self.next(now, Some(shard(tenant, context_id)))).unwrap_or_else(|_| unreachable!("a UUID is an id"))
    }

    fn context_id(&self, now: Timestamp) -> ContextId {
        ContextId::new(self.next(now, None)).unwrap_or_else(|_| unreachable!("a UUID is an id"))
    }

    fn message_id(&self, now: Timestamp) -> MessageId {
        MessageId::new(self.next(now, None)).unwrap_or_else(|_| unreachable!("a UUID is an id"))
    }

    fn jitter(&self) -> f64 {
        let drawn = Dice::new(self.count.fetch_add(1, Ordering::Relaxed)).below(1000);
        f64::from(u32::try_from(drawn).unwrap_or(0)) / 1000.0
    }
}
