//! Discovery (A2A §8): what a reference to a card means, what a card says and what is wrong with it, and which of its interfaces
//! is called.
//!
//! Nothing here does input or output or reads a clock. The client fetches what [`CardReference::candidates`] names, keeps it as
//! [`cache`] says, reads it with [`CardDocument::parse`], and calls what [`CardDocument::choose`] gives it. A card is written by a
//! stranger: an [`OriginPolicy`] says where it may lead.

mod binding;
pub mod cache;
mod choose;
mod endpoint;
mod origin;
mod read;
mod reference;
mod validate;
mod version;

pub use binding::{Binding, UnknownBinding};
pub use cache::{Cached, CardCache, Freshness};
pub use choose::{Chosen, Preference, choose};
pub(crate) use endpoint::is_loopback;
pub use origin::{
    AddressForbidden, CardOrigin, Credentials, CredentialsTo, Interfaces, OriginPolicy, OriginRefused, Permit, Reach,
};
pub use read::{CARD_BYTES_MAX, CardDocument, Written};
pub use reference::{CardReference, WELL_KNOWN_PATH, WELL_KNOWN_PATH_OLD};
pub use validate::{Problem, Severity};
pub use version::{InvalidVersion, ProtocolVersion};

/// The most characters of a card's text that a message repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// A stranger's text, fit to be shown: quoted, without control characters, and not long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}
