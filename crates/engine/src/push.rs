//! Push notifications (A2A §3.1.7 to §3.1.10, §4.3): configs, and the sender that delivers a task's events to them.

mod configs;
mod courier;
mod delivery;
mod operator;
mod places;
mod sender;

pub(crate) use self::configs::{NewPush, too_many_pushes};
pub use self::configs::{PushConfigPage, PushConfigsQuery};
pub use self::courier::{Content, Courier, Parcel, PushParts, Secrets, SecretsError, Vault, Verdict};
pub use self::operator::Rotated;
pub(crate) use self::sender::{Push, send_pushes};
