use crate::Dice;

/// How well calls of the store get there and back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Weather {
    /// How many calls in a thousand fail, before or after they were done.
    pub fails_permille: u64,
    /// How many in a thousand are slow.
    pub slow_permille: u64,
    /// How slow the slowest are, in milliseconds.
    pub slowest_millis: u64,
}

impl Weather {
    /// Every call gets there and back at once.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        *self == Self::default()
    }
}

/// How a caller wants to be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// When the task rests.
    Blocking,
    /// After the first commit.
    Immediately,
    /// By a stream.
    Stream,
}

/// One thing that happens. Instances, tasks and calls are meant by a number that is taken modulo how many there are then.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the members say what their names say")]
pub enum Op {
    /// A caller sends a message: a new one to a new or to a known task, or again one that was sent before.
    Send {
        instance: u64,
        task: Option<u64>,
        again: Option<u64>,
        idempotent: bool,
        mode: Mode,
        context: u64,
        owner: u64,
    },
    /// A caller cancels a task.
    Cancel { instance: u64, task: u64 },
    /// A caller follows a task, from an event on if it says so (in a thousand of the log's length).
    Subscribe { instance: u64, task: u64, after_permille: Option<u64> },
    /// A caller reads a task.
    Read { instance: u64, task: u64 },
    /// An operator lets a task go on.
    Resume { instance: u64, task: u64 },
    /// A caller tries everything on a task that is not its own.
    Snoop { instance: u64, task: u64 },
    /// A caller gives up waiting.
    Leave { call: u64 },
    /// An instance dies.
    Crash { instance: u64 },
    /// An instance is told to stop, and given so long to drain.
    ShutDown { instance: u64, drain_millis: u64 },
    /// A new instance starts, if there is room.
    Start,
    /// An instance stands still for so long, and then goes on as if nothing had happened.
    Pause { instance: u64, millis: u64 },
    /// An instance is cut off from the store.
    Cut { instance: u64, millis: u64 },
    /// An instance's renewals fail.
    FailRenewals { instance: u64, millis: u64 },
    /// Time passes.
    Advance { millis: u64 },
}

impl Op {
    /// The same of another instance, if it is asked by a caller or an operator who may do so twice.
    fn at_another(self, further: u64) -> Option<Self> {
        match self {
            Self::Send { instance, task, idempotent, mode, context, owner, .. } => {
                let (instance, again) = (instance + further, Some(0));
                Some(Self::Send { instance, task, again, idempotent, mode, context, owner })
            }
            Self::Cancel { instance, task } => Some(Self::Cancel { instance: instance + further, task }),
            Self::Resume { instance, task } => Some(Self::Resume { instance: instance + further, task }),
            Self::Subscribe { .. }
            | Self::Read { .. }
            | Self::Snoop { .. }
            | Self::Leave { .. }
            | Self::Crash { .. }
            | Self::ShutDown { .. }
            | Self::Start
            | Self::Pause { .. }
            | Self::Cut { .. }
            | Self::FailRenewals { .. }
            | Self::Advance { .. } => None,
        }
    }
}

/// A run of the simulation, all of which follows from its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// How many instances there are at most; a single one ends all leases when it starts.
    pub instances: usize,
    /// Whether each instance knows that there may be others: it lets leases run out by themselves, hears of what others did, and
    /// looks for it.
    pub shared: bool,
    /// How many workers each has.
    pub workers: usize,
    /// How often a turn may be tried.
    pub attempts_max: u32,
    /// How long agents sleep at a time, at the most.
    pub sleep_millis: u64,
    /// Whether attempts end that take too long or write nothing for too long.
    pub limits_attempts: bool,
    /// How calls of the store fare until the quiet in the end.
    pub weather: Weather,
    /// What happens.
    pub ops: Vec<Op>,
}

/// How long a lease lasts here.
pub const LEASE_MILLIS: u64 = 3000;

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::of(seed, "scenario");
        let instances = dice.pick(&[(2, 1), (3, 2), (3, 3)]).unwrap_or(2);
        let weathers = [
            (1, Weather::default()),
            (2, Weather { fails_permille: 0, slow_permille: 300, slowest_millis: 2 * LEASE_MILLIS }),
            (3, Weather { fails_permille: 50, slow_permille: 200, slowest_millis: LEASE_MILLIS / 2 }),
            (2, Weather { fails_permille: 200, slow_permille: 100, slowest_millis: 2 * LEASE_MILLIS }),
        ];
        let weather = dice.pick(&weathers).unwrap_or_default();
        let length = dice.from_to(10, 45);
        Self {
            seed,
            instances,
            shared: false,
            workers: dice.pick(&[(2, 1), (2, 2), (4, 16)]).unwrap_or(2),
            attempts_max: dice.pick(&[(1, 1), (1, 2), (6, 3)]).unwrap_or(3),
            sleep_millis: dice.pick(&[(2, 100), (3, 1500), (2, 3 * LEASE_MILLIS)]).unwrap_or(1500),
            limits_attempts: Dice::of(seed, "limits").happens(150),
            weather,
            ops: (0..length).map(|_| op(&mut dice)).collect(),
        }
    }

    /// The scenario of a seed with instances that know that there may be others. By every other seed callers are impatient, and
    /// ask all of them at once.
    #[must_use]
    pub fn of_many(seed: u64) -> Self {
        let scenario = Self::of(seed).shared();
        if seed.is_multiple_of(2) { scenario } else { scenario.crowded() }
    }

    /// The same, with three instances, and whatever is asked of one is asked of the others at the same time.
    #[must_use]
    pub fn crowded(self) -> Self {
        let ops = self.ops.into_iter().flat_map(|op| [Some(op), op.at_another(1), op.at_another(2)]);
        Self { instances: 3, ops: ops.flatten().collect(), ..self }
    }

    /// The same, with instances that know that there may be others.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    New,
    Further,
    Again,
    Cancel,
    Subscribe,
    Read,
    Resume,
    Snoop,
    Leave,
    Crash,
    ShutDown,
    Start,
    Pause,
    Cut,
    FailRenewals,
    Advance,
}

const KINDS: [(u64, Kind); 16] = [
    (18, Kind::New),
    (10, Kind::Further),
    (3, Kind::Again),
    (6, Kind::Cancel),
    (6, Kind::Subscribe),
    (3, Kind::Read),
    (2, Kind::Resume),
    (1, Kind::Snoop),
    (3, Kind::Leave),
    (4, Kind::Crash),
    (2, Kind::ShutDown),
    (6, Kind::Start),
    (5, Kind::Pause),
    (2, Kind::Cut),
    (2, Kind::FailRenewals),
    (30, Kind::Advance),
];

fn op(dice: &mut Dice) -> Op {
    let kind = dice.pick(&KINDS).unwrap_or(Kind::Advance);
    let instance = dice.below(12);
    // Mostly one of the latest.
    let task = if dice.happens(700) { dice.below(3) } else { dice.below(20) };
    let lasts = |dice: &mut Dice| dice.from_to(LEASE_MILLIS / 4, LEASE_MILLIS * 3);
    match kind {
        Kind::New | Kind::Further | Kind::Again => Op::Send {
            instance,
            task: matches!(kind, Kind::Further).then_some(task),
            again: matches!(kind, Kind::Again).then_some(task),
            idempotent: dice.happens(500),
            mode: dice
                .pick(&[(4, Mode::Blocking), (3, Mode::Immediately), (3, Mode::Stream)])
                .unwrap_or(Mode::Blocking),
            context: dice.below(5),
            owner: dice.below(2),
        },
        Kind::Cancel => Op::Cancel { instance, task },
        Kind::Subscribe => {
            let after_permille = dice.happens(600).then(|| dice.below(1300));
            Op::Subscribe { instance, task, after_permille }
        }
        Kind::Read => Op::Read { instance, task },
        Kind::Resume => Op::Resume { instance, task },
        Kind::Snoop => Op::Snoop { instance, task },
        Kind::Leave => Op::Leave { call: dice.below(8) },
        Kind::Crash => Op::Crash { instance },
        Kind::ShutDown => {
            Op::ShutDown { instance, drain_millis: dice.pick(&[(1, 0), (1, 300), (1, 4000)]).unwrap_or(0) }
        }
        Kind::Start => Op::Start,
        Kind::Pause => Op::Pause { instance, millis: lasts(dice) },
        Kind::Cut => Op::Cut { instance, millis: lasts(dice) },
        Kind::FailRenewals => Op::FailRenewals { instance, millis: lasts(dice) },
        Kind::Advance => {
            let millis = match dice.below(10) {
                0..4 => dice.below(20),
                4..8 => dice.below(500),
                _ => dice.below(4000),
            };
            Op::Advance { millis }
        }
    }
}
