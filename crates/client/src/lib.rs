//! A2A from the caller's side: discovery, every operation over every binding, streams that heal, and a durable ledger of what
//! was delegated.
//!
//! - [`Client`] speaks JSON-RPC, HTTP+JSON or gRPC, whichever the agent's [`card`] names; the same types and the same
//!   [`ClientError`] come back from each.
//! - [`Outcome`] is every way in which a delegation can stand. A task that waits is none that ended, and there is no way to
//!   mistake one for the other.
//! - A stream that is cut is opened again, and goes on where it was; each event comes once and in order ([`follow`]).
//! - The [`ledger`] writes down what is delegated before it is sent, and finds every task again after a crash.
//! - [`signature`] verifies signed cards; [`oauth`] logs in and keeps tokens; [`push`] receives push notifications.

mod binding;
pub mod card;
mod client;
mod clock;
mod credentials;
mod error;
mod folder;
pub mod follow;
mod interceptor;
pub mod ledger;
pub mod oauth;
mod operation;
mod outcome;
pub mod push;
mod retry;
pub mod signature;
pub mod sse;
mod transport;

pub use client::{Client, ClientBuilder, FoundCard, IDEMPOTENT_SEND, STREAM_RESUME, WaitOptions, new_id};
pub use credentials::{Credential, CredentialSource, StaticCredentials};
pub use error::{AgentError, CardError, Cause, ClientError, error_name};
pub use interceptor::{Call, Interceptor, REDACTED, WireEvent, WireLog};
pub use longhaul_push::Secret;
pub use outcome::Outcome;
pub use retry::{Resend, RetryPolicy};
pub use transport::{Identity, Proxy, TransportConfig, Verification};

/// The examples of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Guide;
