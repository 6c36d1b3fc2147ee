//! Verifies the signatures of agent cards (§8.4): JWS (RFC 7515) over a canonical form (RFC 8785) of the card as received.
//!
//! Pure: nothing here reads a network, a file or a clock. A caller whose allow-list names key sets asks
//! [`Verifier::wanted_jku`], fetches what it names, puts it into [`Fetched`], and calls [`Verifier::verify`].
//!
//! - The card is taken as it came, not as our types read it, since members that we don't know are signed as well. Read it with
//!   [`read_card`], and take what you use from that value: it refuses a member that is there twice, where two readers would
//!   see two cards.
//! - Keys come from a [`TrustStore`], and from `jku` only where an operator allowed it. A key inside a signature's header
//!   (`jwk`, `x5c`, `x5u`) is never looked at, and nothing in an unprotected header decides anything.
//! - Two canonical forms are tried, and a weaker one if asked: see [`Form`], which says what each does not cover.
//!
//! # One valid signature is enough
//!
//! [`Report::overall`] is [`Overall::Verified`] as soon as one signature by a trusted key fits, whatever else the card carries.
//! Signatures are not signed: whoever can change a card in flight can also append a bad signature to a good card, or take one
//! away, so a bad one beside a good one says nothing about the card; and while keys are rotated a card carries signatures that
//! a given reader can't check. The report shows them all for callers who want to be stricter.
//!
//! For the same reason [`Overall::Absent`] is no reassurance. A caller who expects an agent to sign has to insist on
//! [`Overall::Verified`].
//!
//! # What the caller has to see to
//!
//! A key that was revoked or has expired must be taken out of the trust store: a JWK has no date. Key sets are fetched over
//! HTTPS, without following redirects, with a limit of [`JwkSet::BYTES_MAX`], and anew after a while.

mod algorithm;
mod canonical;
mod header;
mod jku;
mod json;
mod jwk;
mod report;
mod schema;
mod trust;
mod verifier;

pub use algorithm::Algorithm;
pub use canonical::Form;
pub(crate) use canonical::covered;
pub use header::{HEADER_BYTES_MAX, SIGNATURE_BYTES_MAX};
pub use jku::{JkuAllowList, JkuError};
pub use json::{CARD_DEPTH_MAX, CardProblem, read_card};
pub use jwk::{Jwk, JwkError, JwkSet, JwkSetError, RefusedKey};
pub use report::{By, Finding, Overall, Reason, Report, SignatureReport};
pub use trust::{Fetched, TrustStore};
pub use verifier::{KEYS_TRIED_MAX, SIGNATURES_MAX, Verifier};
