//! Where a task belongs when tasks are spread: 1,024 shards, by tenant and context.

use longhaul_protocol::{ContextId, TaskId, Tenant};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The shard of a context, 0 to 1,023: the first 10 bits of SHA-256 over the tenant, a zero byte and the context id.
#[must_use]
pub fn shard(tenant: &Tenant, context_id: &ContextId) -> u16 {
    first_bits(Sha256::new().chain_update(tenant.as_str()).chain_update([0]).chain_update(context_id.as_str()))
}

/// The shard of a task: read from its id, which carries that of its context (see [`shard`]); for an id of another form a number
/// that is always the same.
#[must_use]
pub fn shard_of_task(task_id: &TaskId) -> u16 {
    match Uuid::try_parse(task_id.as_str()) {
        // The first 10 bits of `rand_a`, which are the last 12 of the upper half.
        Ok(uuid) if uuid.get_version_num() == 7 => u16::try_from((uuid.as_u64_pair().0 & 0x0fff) >> 2).unwrap_or(0),
        Ok(_) | Err(_) => shard_of_text(task_id.as_str()),
    }
}

/// The shard of something that has neither tenant nor context.
#[must_use]
pub fn shard_of_text(text: &str) -> u16 {
    first_bits(Sha256::new().chain_update(text))
}

fn first_bits(hash: Sha256) -> u16 {
    let mut first = [0; 2];
    first.iter_mut().zip(hash.finalize().iter()).for_each(|(to, from)| *to = *from);
    u16::from_be_bytes(first) >> 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_the_shard_of_its_context() {
        let task_id = TaskId::new("019ad8c4-7a00-7ffd-8000-0123456789ab").unwrap();
        assert_eq!(shard_of_task(&task_id), 0x3ff);
        let task_id = TaskId::new("019ad8c4-7a00-7006-8000-0123456789ab").unwrap();
        assert_eq!(shard_of_task(&task_id), 1);
    }

    #[test]
    fn an_id_of_another_form_has_a_shard_too() {
        for text in ["t", "019ad8c4-7a00-4006-8000-0123456789ab"] {
            let task_id = TaskId::new(text).unwrap();
            assert!(shard_of_task(&task_id) < 1024);
            assert_eq!(shard_of_task(&task_id), shard_of_task(&task_id.clone()));
        }
    }
}
