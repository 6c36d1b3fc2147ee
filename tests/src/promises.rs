//! Callers who write down what they are told, and checks that it holds.

#![expect(clippy::unwrap_used, reason = "a harness fails the test by panicking")]

mod check;
mod ledger;
mod load;

use std::collections::BTreeMap;

use crate::task::{say, text_of};
use crate::{Binding, Client, Instances, Operation};

pub use check::Checker;
pub use ledger::{Known, Ledger, rests};
pub use load::{Caller, Stops, under_load};

/// The numbers of chunks that agents are asked for.
const CHUNKS: [u32; 4] = [1, 7, 40, 200];

/// The text of each number of chunks, from runs that nobody disturbs.
pub async fn whole_texts(instances: impl Into<Instances>) -> BTreeMap<String, String> {
    let mut client = Client::new(Binding::HttpJson, instances);
    let mut texts = BTreeMap::new();
    for count in CHUNKS {
        let text = format!("chunks {count}");
        let answer = client.ask(Operation::SendMessage, say(&text)).await;
        texts.insert(text, text_of(&answer["task"]));
    }
    texts
}
