use std::fmt;

use longhaul_protocol::{ContextId, InvalidId, MessageId, TaskId, Tenant, Timestamp};
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Where ids come from.
pub trait IdSource: fmt::Debug + Send + Sync {
    /// A new task's id. Its shard (the first 10 bits of SHA-256 over tenant, a zero byte and context id) can be read
    /// from it: see [`shard`].
    fn task_id(&self, tenant: &Tenant, context_id: &ContextId, now: Timestamp) -> TaskId;

    /// A new context's id.
    fn context_id(&self, now: Timestamp) -> ContextId;

    /// A new message's id.
    fn message_id(&self, now: Timestamp) -> MessageId;
}

/// UUIDs of version 7, their random bits from the operating system by way of a generator that can't be foreseen.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn task_id(&self, tenant: &Tenant, context_id: &ContextId, now: Timestamp) -> TaskId {
        let uuid = uuid_v7(now, random_bytes(), Some(shard(tenant, context_id)));
        made(TaskId::new(encoded(uuid)))
    }

    fn context_id(&self, now: Timestamp) -> ContextId {
        made(ContextId::new(encoded(uuid_v7(now, random_bytes(), None))))
    }

    fn message_id(&self, now: Timestamp) -> MessageId {
        made(MessageId::new(encoded(uuid_v7(now, random_bytes(), None))))
    }
}

/// The shard of a context, 0 to 1,023: the first 10 bits of SHA-256 over the tenant, a zero byte and the context id.
#[must_use]
pub fn shard(tenant: &Tenant, context_id: &ContextId) -> u16 {
    let digest =
        Sha256::new().chain_update(tenant.as_str()).chain_update([0]).chain_update(context_id.as_str()).finalize();
    let mut first = [0; 2];
    first.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
    u16::from_be_bytes(first) >> 6
}

/// A UUID of version 7: 48 bits of milliseconds, then random bits, of which the first ten may be a shard.
#[must_use]
pub fn uuid_v7(now: Timestamp, random: [u8; 10], shard: Option<u16>) -> Uuid {
    let [r0, r1, rest @ ..] = random;
    let mut rand_a = u16::from_be_bytes([r0, r1]) & 0x0fff;
    if let Some(shard) = shard {
        rand_a = (shard << 2) | (rand_a & 0b11);
    }
    let millis = u64::try_from(now.unix_millis()).unwrap_or(0);
    let high = (millis << 16) | 0x7000 | u64::from(rand_a);
    let low = (u64::from_be_bytes(rest) & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    Uuid::from_u64_pair(high, low)
}

fn random_bytes() -> [u8; 10] {
    rand::rng().random()
}

fn encoded(uuid: Uuid) -> String {
    uuid.hyphenated().to_string()
}

#[expect(clippy::expect_used, reason = "a printed UUID is 36 bytes of hexadecimal digits and hyphens")]
fn made<T>(id: Result<T, InvalidId>) -> T {
    id.expect("a UUID is a valid id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_can_be_read_from_a_task_id() {
        let tenant = Tenant::default();
        let context = ContextId::new("my-context").unwrap();
        let now = Timestamp::from_unix_millis(1_750_000_000_123);
        let id = RandomIds.task_id(&tenant, &context, now);
        let uuid = Uuid::parse_str(id.as_str()).unwrap();
        assert_eq!(uuid.get_version_num(), 7);
        let rand_a = u16::try_from(uuid.as_u64_pair().0 & 0x0fff).unwrap();
        assert_eq!(rand_a >> 2, shard(&tenant, &context));
        assert_eq!(uuid.as_u64_pair().0 >> 16, 1_750_000_000_123);
    }

    #[test]
    fn no_two_ids_are_alike() {
        let now = Timestamp::from_unix_millis(0);
        let ids: std::collections::BTreeSet<_> = (0..10_000).map(|_| RandomIds.message_id(now)).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
