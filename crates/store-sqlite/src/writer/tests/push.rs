use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{DueDelivery, EncodedCommit, Next, PushConfig, Scope, Settlement};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{Folder, chunk, creation, now, rows, writer};
use crate::fault::Fault;
use crate::writer::Answer;
use crate::writer::batch::{Batch, Work};
use crate::writer::change::{self, Change};
use crate::writer::push::Claims;
use crate::writer::transaction::Writer;

fn later(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(now().unix_millis() + millis)
}

fn config(id: &str) -> PushConfig {
    PushConfig {
        id: PushConfigId::new(id).unwrap(),
        url: format!("https://host/{id}"),
        host: "host".to_owned(),
        scheme: None,
        secrets: Some(Bytes::from_static(b"sealed")),
        version: "1.0".to_owned(),
        created_at: now(),
    }
}

fn task() -> TaskId {
    TaskId::new("t").unwrap()
}

fn creation_with(configs: &[&str]) -> EncodedCommit {
    let mut creation = creation("t", 1);
    creation.commit.pushes = configs.iter().map(|id| config(id)).collect();
    creation
}

/// A change, and where its answer will be.
struct Asked<T> {
    change: Box<dyn Change>,
    answered: oneshot::Receiver<Result<T, longhaul_store::StoreError>>,
}

impl<T: Send + 'static> Asked<T> {
    fn new(make: impl Fn(&mut Batch<'_, '_, '_>) -> Result<T, Fault> + Send + 'static) -> Self {
        let (answer, answered): (Answer<T>, _) = oneshot::channel();
        Self { change: change::prepare("change", make, answer), answered }
    }

    fn work(&self) -> Work<'_> {
        Work::Change(&*self.change)
    }

    fn answer(mut self) -> T {
        self.change.answer();
        self.answered.try_recv().unwrap().unwrap()
    }
}

fn claim(millis: i64) -> Asked<Vec<DueDelivery>> {
    let (now, until) = (later(millis), later(millis + 10));
    let claims = Claims { now, until, limit: 100, after: String::new(), busy: Vec::new() };
    Asked::new(move |batch| batch.claim(&claims))
}

fn settle(delivery: &DueDelivery, hold: bool) -> Asked<Next> {
    let (delivery, hold) = (delivery.clone(), hold.then(|| later(1000)));
    Asked::new(move |batch| batch.settle(&delivery, &Settlement::Delivered, hold, now()))
}

fn put(id: &str) -> Asked<Option<bool>> {
    let config = config(id);
    Asked::new(move |batch| batch.put_config(&Scope::default(), &task(), &config, 10, now()))
}

fn remove(id: &str) -> Asked<bool> {
    let id = PushConfigId::new(id).unwrap();
    Asked::new(move |batch| batch.remove_config(&Scope::default(), &task(), &id))
}

/// Claims in a transaction of its own: each config with its place in its log.
fn claimed(writer: &mut Writer<'_>, millis: i64) -> Vec<DueDelivery> {
    let claim = claim(millis);
    writer.work(&[claim.work()]).unwrap();
    let mut claimed = claim.answer();
    claimed.sort_by(|one, other| one.config.id.cmp(&other.config.id));
    claimed
}

fn places(claimed: &[DueDelivery]) -> Vec<(&str, u64, u64)> {
    claimed.iter().map(|due| (due.config.id.as_str(), due.sequence, due.last_sequence)).collect()
}

fn flag(connection: &Connection) -> bool {
    connection.query_row("SELECT pushes FROM task", [], |row| row.get(0)).unwrap()
}

#[test]
fn what_is_settled_and_committed_in_one_batch_goes_on_with_the_new_event() {
    let folder = Folder::new("push-settled");
    let connection = folder.open();
    let mut writer = writer(&connection);
    writer.work(&[Work::Commit(&creation_with(&["a"]))]).unwrap();
    let first = claimed(&mut writer, 0).remove(0);
    let (one, two) = (settle(&first, true), settle(&DueDelivery { sequence: 2, ..first.clone() }, true));
    let (third, fourth, due) = (chunk("t", 2), chunk("t", 3), claim(0));
    writer.work(&[one.work(), Work::Commit(&third), two.work(), Work::Commit(&fourth), due.work()]).unwrap();
    assert_eq!(one.answer(), Next::Held { sequence: 2 });
    assert_eq!(two.answer(), Next::Released, "the commit is seen with the batch");
    assert_eq!(due.answer(), []);
    let next = claimed(&mut writer, 0);
    assert_eq!(places(&next), [("a", 3, 4)]);
    let (fifth, three) = (chunk("t", 4), settle(&DueDelivery { sequence: 3, ..next[0].clone() }, true));
    writer.work(&[Work::Commit(&fifth), three.work()]).unwrap();
    assert_eq!(three.answer(), Next::Held { sequence: 4 });
    assert_eq!(claimed(&mut writer, 999), []);
    assert_eq!(places(&claimed(&mut writer, 1000)), [("a", 4, 5)]);
}

#[test]
fn a_config_is_given_what_is_committed_behind_it_in_its_batch() {
    let folder = Folder::new("push-put");
    let connection = folder.open();
    let mut writer = writer(&connection);
    let (made, third, fourth) = (creation("t", 1), chunk("t", 2), chunk("t", 3));
    let (first, second) = (put("first"), put("second"));
    writer.work(&[Work::Commit(&made), Work::Commit(&third), first.work()]).unwrap();
    assert_eq!(first.answer(), Some(true));
    assert!(flag(&connection), "the task was made in the same batch");
    assert_eq!(claimed(&mut writer, 0), []);
    writer.work(&[Work::Commit(&fourth), second.work()]).unwrap();
    assert_eq!(second.answer(), Some(true));
    assert_eq!(places(&claimed(&mut writer, 0)), [("first", 4, 4)], "what was there before is not due");
    let (fifth, sixth, third) = (chunk("t", 4), chunk("t", 5), put("third"));
    writer.work(&[Work::Commit(&fifth), third.work(), Work::Commit(&sixth)]).unwrap();
    assert_eq!(third.answer(), Some(true));
    assert_eq!(places(&claimed(&mut writer, 100)), [("first", 4, 6), ("second", 5, 6), ("third", 6, 6)]);
}

#[test]
fn a_task_without_configs_costs_no_look_at_them() {
    let folder = Folder::new("push-flag");
    let connection = folder.open();
    let mut writer = writer(&connection);
    writer.work(&[Work::Commit(&creation_with(&["a", "b"]))]).unwrap();
    assert!(flag(&connection));
    let (a, third) = (remove("a"), chunk("t", 2));
    writer.work(&[a.work(), Work::Commit(&third)]).unwrap();
    assert!(a.answer() && flag(&connection), "one is left");
    let (b, fourth) = (remove("b"), chunk("t", 3));
    writer.work(&[Work::Commit(&fourth), b.work()]).unwrap();
    assert!(b.answer() && !flag(&connection));
    assert_eq!(rows(&connection, "push_config"), 0);
    let mut with = chunk("t", 4);
    with.commit.pushes = vec![config("c")];
    writer.work(&[Work::Commit(&with)]).unwrap();
    assert!(flag(&connection));
    assert_eq!(places(&claimed(&mut writer, 0)), [("c", 5, 5)]);
}

#[test]
fn a_change_is_made_again_when_its_batch_is_undone() {
    let folder = Folder::new("push-undone");
    let connection = folder.open();
    {
        let mut writer = writer(&connection);
        writer.work(&[Work::Commit(&creation_with(&["a"]))]).unwrap();
    }
    let mut writer = writer(&connection);
    // The id is found to be taken at the end of the batch.
    let (taken, due) = (creation_with(&["a"]), claim(0));
    let fault = writer.work(&[due.work(), Work::Commit(&taken)]).unwrap_err();
    assert!(fault.may_be_one_commit());
    writer.work_alone(due.work()).unwrap();
    let due = due.answer();
    assert_eq!(places(&due), [("a", 1, 2)]);
    let settled = settle(&due[0], false);
    writer.work(&[settled.work()]).unwrap();
    assert_eq!(settled.answer(), Next::Released, "it was claimed once");
}
