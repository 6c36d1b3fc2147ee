//! Push notifications: `longhaul-push` as the engine's courier and vault, made of the settings.

mod courier;
mod setup;
mod vault;

pub use courier::HttpCourier;
pub use setup::{check_key, for_operator, set_up, tell_what_waits};
pub use vault::KeyVault;
