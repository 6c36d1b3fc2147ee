//! What a client's command writes: fields and blocks for people, the protocol's own JSON for programs.

mod card;
mod chat;
pub mod clean;
mod hint;
pub mod json;
mod list;
mod page;
mod parts;
mod stream;
mod task;

pub use card::{Verdict, card};
pub use chat::ChatText;
pub use hint::Continuation;
pub use list::{push_config, push_configs, tasks};
pub use page::Page;
pub use stream::StreamText;
pub use task::{message, outcome_note, state_name, task};

/// How much of what was exchanged is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detail {
    /// What a caller acts on; text parts that follow each other are one text.
    #[default]
    Concise,
    /// Each part apart, with media types, metadata and ids.
    Verbose,
}
