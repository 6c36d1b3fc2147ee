//! The ledger against a model of it that is simple enough to be obviously right.

use longhaul_client::ledger::{
    Claim, ClaimMode, Decision, Entry, EntryId, Event, Filter, Ledger, LedgerError, ListQuery, News, NotAllowed, Note,
    Stands, State, Step, TaskEnd, transition,
};
use longhaul_protocol::TaskState;
use proptest::prelude::*;

use super::support::*;

const FOLLOWERS: [&str; 2] = ["first", "second"];
const CLAIM_SECONDS: i64 = 30;

/// What a follower may tell, with the event that it is.
fn news(which: usize) -> (News, Event) {
    let told_of = |state, said, stands| (told("t", state, said), Event::Told { task_id: "t".to_owned(), stands });
    let empty = String::new;
    match which {
        0 => (News::Sending, Event::Sending),
        1 => told_of(TaskState::Working, "", Stands::Running),
        2 => told_of(TaskState::InputRequired, "which?", Stands::Question(Note::new("which?"))),
        3 => told_of(TaskState::InputRequired, "how many?", Stands::Question(Note::new("how many?"))),
        4 => told_of(TaskState::Completed, "here", Stands::Ended(TaskEnd::Completed, Note::new("here"))),
        5 => (News::NotFound { error: empty() }, Event::NotFound { error: Note::default() }),
        6 => (News::Unresolved { why: empty() }, Event::Unresolved { why: Note::default() }),
        _ => (News::Refused { error: empty() }, Event::Refused { error: Note::default() }),
    }
}

fn decision(which: usize) -> (Decision, Option<Event>) {
    match which {
        0 => (Decision::SendAgain, Some(Event::SendAgain)),
        1 => (Decision::Adopt { task_id: "t".to_owned() }, Some(Event::Adopt { task_id: "t".to_owned() })),
        2 => (Decision::Abandon { why: String::new() }, Some(Event::Abandon { why: Note::default() })),
        _ => (Decision::Acknowledge, None),
    }
}

#[derive(Clone, Debug)]
enum Op {
    Prepare { by: usize },
    Record { entry: usize, by: usize, news: usize },
    Reply { entry: usize, by: usize },
    Decide { entry: usize, decision: usize },
    Claim { entry: usize, by: usize, mode: ClaimMode },
    ClaimOpen { by: usize },
    Renew { entry: usize, by: usize },
    Release { entry: usize, by: usize },
    Wait { seconds: i64 },
    Remove { entry: usize },
    Prune,
    OpenAgain,
}

fn any_op() -> impl Strategy<Value = Op> {
    let entry = 0..3_usize;
    let by = 0..FOLLOWERS.len();
    let mode = prop::sample::select(vec![ClaimMode::IfFree, ClaimMode::TakeOver]);
    prop_oneof![
        3 => by.clone().prop_map(|by| Op::Prepare { by }),
        12 => (entry.clone(), by.clone(), 0..8_usize).prop_map(|(entry, by, news)| Op::Record { entry, by, news }),
        3 => (entry.clone(), by.clone()).prop_map(|(entry, by)| Op::Reply { entry, by }),
        4 => (entry.clone(), 0..4_usize).prop_map(|(entry, decision)| Op::Decide { entry, decision }),
        4 => (entry.clone(), by.clone(), mode).prop_map(|(entry, by, mode)| Op::Claim { entry, by, mode }),
        2 => by.clone().prop_map(|by| Op::ClaimOpen { by }),
        2 => (entry.clone(), by.clone()).prop_map(|(entry, by)| Op::Renew { entry, by }),
        2 => (entry.clone(), by).prop_map(|(entry, by)| Op::Release { entry, by }),
        3 => (1..40_i64).prop_map(|seconds| Op::Wait { seconds }),
        1 => entry.prop_map(|entry| Op::Remove { entry }),
        1 => Just(Op::Prune),
        1 => Just(Op::OpenAgain),
    ]
}

/// An entry as the model has it.
struct Modeled {
    id: EntryId,
    state: State,
    attempts: u32,
    since: i64,
    lines: usize,
    acknowledged: Option<i64>,
    /// Who holds it, and until when.
    holder: Option<(usize, i64)>,
    /// The last claim that each follower got.
    claims: [Option<Claim>; FOLLOWERS.len()],
    /// Who got the last of them, unless that is over.
    newest: Option<usize>,
    removed: bool,
}

impl Modeled {
    fn given(&mut self, by: usize, claim: Claim, now: i64) {
        self.claims[by] = Some(claim);
        self.newest = Some(by);
        self.holder = Some((by, now + CLAIM_SECONDS));
    }

    /// What an event makes of it.
    fn follow(&mut self, event: &Event, now: i64) -> Result<(), NotAllowed> {
        let step = transition(&self.state, event)?;
        if *event == Event::Sending {
            self.attempts += 1;
            self.lines += 1;
        }
        if *event == Event::SendAgain {
            self.attempts = 0;
        }
        if let Step::Moves(state) = step {
            (self.state, self.since, self.acknowledged) = (state, now, None);
            self.lines += 1;
            if self.state.is_settled() {
                (self.holder, self.newest) = (None, None);
            }
        }
        Ok(())
    }

    fn check(&self, entry: &Entry) {
        assert_eq!((&entry.state, entry.attempts, entry.since), (&self.state, self.attempts, at(self.since)));
        assert_eq!(entry.acknowledged_at, self.acknowledged.map(at));
        let claimed = entry.claimed.as_ref().map(|claimed| (claimed.by.as_str(), claimed.until));
        assert_eq!(claimed, self.holder.map(|(by, until)| (FOLLOWERS[by], at(until))));
    }
}

struct World {
    folder: Folder,
    ledger: Ledger,
    entries: Vec<Modeled>,
    now: i64,
}

impl World {
    async fn step(&mut self, op: Op) {
        match op {
            Op::Prepare { by } => self.prepare(by).await,
            Op::Wait { seconds } => self.now += seconds,
            Op::Prune => self.prune().await,
            Op::ClaimOpen { by } => self.claim_open(by).await,
            Op::OpenAgain => {
                self.ledger.clone().close().await.unwrap();
                self.ledger = self.folder.open().await;
            }
            Op::Record { entry, .. }
            | Op::Reply { entry, .. }
            | Op::Decide { entry, .. }
            | Op::Claim { entry, .. }
            | Op::Renew { entry, .. }
            | Op::Release { entry, .. }
            | Op::Remove { entry } => {
                if let Some(modeled) = self.entries.get_mut(entry) {
                    one(&self.ledger, modeled, op, self.now).await;
                }
            }
        }
    }

    async fn prepare(&mut self, by: usize) {
        let held = self.ledger.prepare(new("m"), &follower(FOLLOWERS[by]), at(self.now)).await.unwrap();
        let mut modeled = Modeled {
            id: held.entry.id,
            state: State::Prepared { task_id: None },
            attempts: 0,
            since: self.now,
            lines: 1,
            acknowledged: None,
            holder: None,
            claims: [None, None],
            newest: None,
            removed: false,
        };
        modeled.given(by, held.claim, self.now);
        self.entries.push(modeled);
    }

    async fn prune(&mut self) {
        let removed = self.ledger.prune(at(self.now)).await.unwrap();
        let mut wanted = 0;
        for modeled in &mut self.entries {
            if modeled.state.is_settled() && modeled.since < self.now && !modeled.removed {
                modeled.removed = true;
                wanted += 1;
            }
        }
        assert_eq!(removed, wanted);
    }

    async fn claim_open(&mut self, by: usize) {
        let page = self.ledger.claim_open(&follower(FOLLOWERS[by]), None, 100, at(self.now)).await.unwrap();
        let mut given = page.entries.into_iter();
        let mut free: Vec<_> = self.entries.iter_mut().filter(|modeled| is_free(modeled, self.now)).collect();
        free.sort_by_key(|modeled| modeled.id);
        for modeled in free {
            let held = given.next().unwrap();
            assert_eq!(held.entry.id, modeled.id);
            modeled.given(by, held.claim, self.now);
        }
        assert!(given.next().is_none());
    }

    async fn check(&self) {
        for modeled in &self.entries {
            match self.ledger.get(modeled.id).await {
                Ok(entry) => {
                    assert!(!modeled.removed);
                    modeled.check(&entry);
                    let lines = self.ledger.history(modeled.id, 0, 1000).await.unwrap();
                    assert_eq!(lines.len(), modeled.lines, "{lines:?}");
                    assert_eq!(lines.last().unwrap().state, modeled.state.kind());
                }
                Err(LedgerError::NotFound { .. }) => assert!(modeled.removed),
                Err(other) => panic!("{other}"),
            }
        }
        self.check_list(Filter::Open, |modeled| modeled.state.is_open()).await;
        self.check_list(Filter::Settled, |modeled| modeled.state.is_settled()).await;
        self.check_list(Filter::NeedsPerson, |modeled| modeled.state.waits_for_person()).await;
    }

    async fn check_list(&self, filter: Filter, wanted: impl Fn(&Modeled) -> bool) {
        let page = self.ledger.list(ListQuery { filter, limit: 1000, ..ListQuery::default() }).await.unwrap();
        let found: Vec<_> = page.entries.iter().map(|entry| entry.id).collect();
        let left = self.entries.iter().filter(|modeled| !modeled.removed && wanted(modeled));
        let mut ids: Vec<_> = left.map(|modeled| modeled.id).collect();
        ids.sort();
        assert_eq!(found, ids, "{filter:?}");
    }
}

fn is_free(modeled: &Modeled, now: i64) -> bool {
    modeled.state.is_open() && !modeled.removed && modeled.holder.is_none_or(|(_, until)| until <= now)
}

/// Does an operation on one entry, and holds its answer against the model.
async fn one(ledger: &Ledger, modeled: &mut Modeled, op: Op, now: i64) {
    if modeled.removed {
        assert!(matches!(ledger.get(modeled.id).await, Err(LedgerError::NotFound { .. })));
        return;
    }
    match op {
        Op::Record { by, news: which, .. } => record(ledger, modeled, by, which, now).await,
        Op::Reply { by, .. } => reply(ledger, modeled, by, now).await,
        Op::Decide { decision: which, .. } => decide(ledger, modeled, which, now).await,
        Op::Claim { by, mode, .. } => claim(ledger, modeled, by, mode, now).await,
        Op::Renew { by, .. } => {
            let Some(claim) = modeled.claims[by].clone() else { return };
            let lost = ledger.renew(vec![claim], at(now)).await.unwrap();
            assert_eq!(lost.is_empty(), modeled.newest == Some(by));
            if lost.is_empty() {
                modeled.holder = Some((by, now + CLAIM_SECONDS));
            }
        }
        Op::Release { by, .. } => {
            let Some(claim) = modeled.claims[by].clone() else { return };
            ledger.release(vec![claim]).await.unwrap();
            if modeled.newest == Some(by) {
                (modeled.newest, modeled.holder) = (None, None);
            }
        }
        Op::Remove { .. } => match ledger.remove(modeled.id).await {
            Ok(()) => {
                assert!(modeled.state.is_settled());
                modeled.removed = true;
            }
            Err(error) => {
                assert!(matches!(error, LedgerError::NotSettled { .. }) && !modeled.state.is_settled(), "{error}");
            }
        },
        Op::Prepare { .. } | Op::ClaimOpen { .. } | Op::Wait { .. } | Op::Prune | Op::OpenAgain => {}
    }
}

async fn record(ledger: &Ledger, modeled: &mut Modeled, by: usize, which: usize, now: i64) {
    let Some(claim) = modeled.claims[by].clone() else { return };
    let (news, event) = news(which);
    let answer = ledger.record(&claim, news, at(now)).await;
    if modeled.newest != Some(by) && !modeled.state.is_settled() {
        assert!(matches!(answer, Err(LedgerError::ClaimLost { .. })), "{answer:?}");
        return;
    }
    compare(answer, modeled.follow(&event, now), modeled);
}

fn compare(answer: Result<Entry, LedgerError>, wanted: Result<(), NotAllowed>, modeled: &Modeled) {
    match (answer, wanted) {
        (Ok(entry), Ok(())) => modeled.check(&entry),
        (Err(LedgerError::NotAllowed { source, .. }), Err(refused)) => assert_eq!(source, refused),
        (answer, wanted) => panic!("{answer:?}, not {wanted:?}"),
    }
}

async fn reply(ledger: &Ledger, modeled: &mut Modeled, by: usize, now: i64) {
    let Some(claim) = modeled.claims[by].clone() else { return };
    let answer = ledger.reply(&claim, &request("again", "t"), at(now)).await;
    if modeled.newest != Some(by) && !modeled.state.is_settled() {
        assert!(matches!(answer, Err(LedgerError::ClaimLost { .. })), "{answer:?}");
    } else if modeled.state.task_id() != Some("t") {
        assert!(matches!(answer, Err(LedgerError::Invalid { .. })), "{answer:?}");
    } else {
        let wanted = modeled.follow(&Event::Reply, now);
        if wanted.is_ok() {
            modeled.attempts = 0;
        }
        compare(answer, wanted, modeled);
    }
}

async fn decide(ledger: &Ledger, modeled: &mut Modeled, which: usize, now: i64) {
    let (decision, event) = decision(which);
    let version = ledger.get(modeled.id).await.unwrap().version;
    let stale = ledger.decide(modeled.id, version + 1, decision.clone(), at(now)).await;
    assert!(matches!(stale, Err(LedgerError::Conflict { .. })), "{stale:?}");
    let answer = ledger.decide(modeled.id, version, decision, at(now)).await;
    let wanted = match event {
        Some(event) => modeled.follow(&event, now),
        None => {
            modeled.acknowledged = Some(now);
            modeled.lines += 1;
            Ok(())
        }
    };
    compare(answer, wanted, modeled);
}

async fn claim(ledger: &Ledger, modeled: &mut Modeled, by: usize, mode: ClaimMode, now: i64) {
    let held = modeled.holder.is_some_and(|(_, until)| until > now);
    match ledger.claim(modeled.id, &follower(FOLLOWERS[by]), mode, at(now)).await {
        Ok(got) => {
            assert!(!modeled.state.is_settled() && (!held || mode == ClaimMode::TakeOver));
            modeled.lines += usize::from(held);
            modeled.given(by, got.claim, now);
        }
        Err(LedgerError::Claimed { .. }) => assert!(held && mode == ClaimMode::IfFree),
        Err(LedgerError::NotAllowed { source: NotAllowed::Settled(_), .. }) => assert!(modeled.state.is_settled()),
        Err(other) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_the_model_does(ops in prop::collection::vec(any_op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let ledger = folder.open().await;
            let mut world = World { folder, ledger, entries: Vec::new(), now: 0 };
            for op in std::iter::once(Op::Prepare { by: 0 }).chain(ops) {
                world.step(op).await;
            }
            world.check().await;
        });
    }
}
