//! The memory store keeps every promise of a store.

use std::sync::Arc;

use longhaul_store::MemoryStore;
use longhaul_store::conformance::TestStore;

async fn open() -> TestStore {
    TestStore::new(Arc::new(MemoryStore::new()))
}

longhaul_store::conformance_tests!(open);
