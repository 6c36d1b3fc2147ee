use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_protocol::{ContextId, InvalidId, MessageId, TaskId, Tenant, Timestamp};
use longhaul_store::shard;
use rand::RngExt as _;
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

    /// A random number from 0 to 1, by which waits differ that would otherwise be alike.
    fn jitter(&self) -> f64;
}

/// UUIDs of version 7: in the order in which they were made as far as shard and millisecond are the same, their random
/// bits from a generator that can't be foreseen.
#[derive(Debug, Default)]
pub struct RandomIds {
    /// The millisecond of the newest id, and how many were made in it.
    newest: AtomicU64,
}

impl IdSource for RandomIds {
    fn task_id(&self, tenant: &Tenant, context_id: &ContextId, now: Timestamp) -> TaskId {
        made(TaskId::new(self.uuid(now, Some(shard(tenant, context_id)))))
    }

    fn context_id(&self, now: Timestamp) -> ContextId {
        made(ContextId::new(self.uuid(now, None)))
    }

    fn message_id(&self, now: Timestamp) -> MessageId {
        made(MessageId::new(self.uuid(now, None)))
    }

    fn jitter(&self) -> f64 {
        rand::rng().random()
    }
}

impl RandomIds {
    fn uuid(&self, now: Timestamp, shard: Option<u16>) -> String {
        let millis = u64::try_from(now.unix_millis()).unwrap_or(0);
        let counted = |newest: u64| match newest >> COUNTER_BITS {
            // More than the counter holds: it stays full, and the order of the rest is left to chance.
            newest_millis if newest_millis == millis => Some((newest + 1).min((millis << COUNTER_BITS) | COUNTER_MAX)),
            newest_millis if newest_millis < millis => Some(millis << COUNTER_BITS),
            _ => None,
        };
        let before = self.newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        // An id for a moment that is past is in no order with the others.
        let count = before.ok().and_then(counted).map_or(0, |newest| newest & COUNTER_MAX);
        uuid_v7(now, random_bytes(), u16::try_from(count).unwrap_or(0), shard).hyphenated().to_string()
    }
}

/// How many ids of one millisecond are in order: 4,096.
const COUNTER_BITS: u32 = 12;
const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;

/// A UUID of version 7: 48 bits of milliseconds, 10 bits of the shard (or random ones), 12 bits of a count, and 52 random
/// bits.
#[must_use]
pub fn uuid_v7(now: Timestamp, random: [u8; 10], count: u16, shard: Option<u16>) -> Uuid {
    let [r0, r1, rest @ ..] = random;
    let shard = u64::from(shard.unwrap_or_else(|| u16::from_be_bytes([r0, r1])) & 0x03ff);
    let count = u64::from(count & 0x0fff);
    let millis = u64::try_from(now.unix_millis()).unwrap_or(0);
    // The count fills what the shard leaves of `rand_a`, two bits, and goes on at the top of `rand_b`.
    let high = (millis << 16) | 0x7000 | (shard << 2) | (count >> 10);
    let low = 0x8000_0000_0000_0000 | ((count & 0x03ff) << 52) | (u64::from_be_bytes(rest) & 0x000f_ffff_ffff_ffff);
    Uuid::from_u64_pair(high, low)
}

fn random_bytes() -> [u8; 10] {
    rand::rng().random()
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
        let id = RandomIds::default().task_id(&tenant, &context, now);
        let uuid = Uuid::parse_str(id.as_str()).unwrap();
        assert_eq!(uuid.get_version_num(), 7);
        let rand_a = u16::try_from(uuid.as_u64_pair().0 & 0x0fff).unwrap();
        assert_eq!(rand_a >> 2, shard(&tenant, &context));
        assert_eq!(uuid.as_u64_pair().0 >> 16, 1_750_000_000_123);
    }

    #[test]
    fn no_two_ids_are_alike() {
        let (source, now) = (RandomIds::default(), Timestamp::from_unix_millis(0));
        let ids: std::collections::BTreeSet<_> = (0..10_000).map(|_| source.message_id(now)).collect();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn ids_of_one_context_are_in_the_order_in_which_they_were_made() {
        let (source, tenant, context) = (RandomIds::default(), Tenant::default(), ContextId::new("c").unwrap());
        let moments = (0..3000).map(|n| Timestamp::from_unix_millis(1_750_000_000_000 + n / 1000));
        let ids: Vec<_> = moments.map(|now| source.task_id(&tenant, &context, now)).collect();
        assert!(ids.is_sorted());
    }
}
