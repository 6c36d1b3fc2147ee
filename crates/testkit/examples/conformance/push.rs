//! Push notifications as the binary sends them, to receivers on this machine too. A binary can't be depended on, so the two files
//! that join `longhaul-push` to the engine are taken from its sources.

#[path = "../../../cli/src/push/courier.rs"]
#[expect(dead_code, reason = "what the binary alone needs")]
mod courier;
#[path = "../../../cli/src/push/vault.rs"]
mod vault;

use std::sync::Arc;

use longhaul_engine::{Clock, PushParts};
use longhaul_push::schedule::Schedule;
use longhaul_push::seal::{Key, Keys};
use longhaul_push::{Guard, Policy, Sender, SenderConfig};

/// Where the kits' receivers are.
const ALLOWED: &[&str] = &["localhost", "127.0.0.0/8"];

/// What the engine needs to send: a key that is gone with the process, and leave to reach this machine over plain HTTP.
pub fn parts(clock: &Arc<dyn Clock>) -> anyhow::Result<PushParts> {
    let allow = ALLOWED.iter().map(|allowed| allowed.parse()).collect::<Result<_, _>>()?;
    let config = SenderConfig::default();
    let timeout = config.timeout;
    let sender = Sender::new(config, Guard::new(Policy { allow, allow_http: true }))?;
    let courier = courier::HttpCourier::new(sender, timeout, Schedule::default(), Vec::new(), Arc::clone(clock));
    let vault = vault::KeyVault::new(Keys::new(Key::random(), Vec::new()));
    Ok(PushParts { courier: Arc::new(courier), vault: Arc::new(vault) })
}
