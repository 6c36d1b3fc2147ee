//! The suite that every store has to pass, on a database of its own.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::sync::Arc;

use longhaul_pgtest::Database;
use longhaul_store::Store;
use longhaul_store::conformance::TestStore;
use longhaul_store_postgres::{LeaseClock, PostgresConfig, PostgresStore};

async fn open() -> TestStore {
    let database = Database::fresh().unwrap();
    // The suite makes up the time.
    let config =
        PostgresConfig { url: database.url().to_owned(), lease_clock: LeaseClock::Caller, ..PostgresConfig::default() };
    let store = PostgresStore::open(&config).await.unwrap();
    let again = move || {
        let config = config.clone();
        async move { Arc::new(PostgresStore::open(&config).await.unwrap()) as Arc<dyn Store> }
    };
    TestStore::new(Arc::new(store)).reopened_by(again).keeping(database)
}

longhaul_store::conformance_tests!(open);
