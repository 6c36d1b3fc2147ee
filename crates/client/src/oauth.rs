//! OAuth 2.1 for callers of agents: a login once, and its token with each call after that (A2A §4.5.4, §7.3).
//!
//! - [`Authorizer::discover`] finds out where to log in: what the agent's card says, and the
//!   metadata that it points at (RFC 8414, OpenID Connect Discovery) for what it leaves out.
//! - [`Authorizer`] gets tokens: by a code that a person enters elsewhere (RFC 8628), by the client's own credentials, and by a
//!   refresh token.
//! - [`TokenStore`] keeps them in a file that nobody else can read, and [`StoredCredentials`] gives them to calls: to those of the
//!   agent that the login was for, and to no other.
//!
//! # Where secrets go
//!
//! A card is written by whoever runs its host, and it says where the caller's secrets are sent. So each endpoint has to be
//! `https` (plain `http` goes to this machine alone), and as far out as the card: a card from the internet can't have requests
//! sent inside. No redirect is followed. The client certificate of the transport is for agents and is not shown to
//! authorization servers. A refresh token goes to the endpoint that was known at login, whatever the card says by then. And
//! whoever logs in should be told [`AuthorizationServer::host`] first: a person knows whether that is who should get a password.

mod agent;
mod clock;
mod device;
mod endpoint;
mod error;
mod grant;
mod scopes;
mod server;
mod source;
mod store;
mod token;
mod wire;

pub use agent::AgentUrl;
pub use clock::{Clock, SystemClock};
pub use device::{DEVICE_LIFETIME_MAX, DeviceLogin, INTERVAL_DEFAULT, SLOW_DOWN};
pub use error::{OAuthError, RefusedCode};
pub use grant::{Authorizer, OAuthClient};
pub use scopes::{InvalidScope, Scopes};
pub use server::{AuthorizationServer, NamedBy};
pub use source::{Logins, RENEWED_BEFORE, StoredCredentials};
pub use store::{ENTRIES_MAX, FILE_BYTES_MAX, LOCK_WAIT_MAX, StoreError, StoredToken, TokenKey, TokenStore};
pub use token::{Grant, TOKEN_BYTES_MAX};
