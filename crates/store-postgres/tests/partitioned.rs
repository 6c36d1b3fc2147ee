//! The suite that every store has to pass, on tables that are partitioned as `docs/scaling.md` says.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a helper of a test fails as the test does")]

use std::sync::Arc;

use longhaul_pgtest::Database;
use longhaul_store::Store;
use longhaul_store::conformance::TestStore;
use longhaul_store_postgres::{LeaseClock, PostgresConfig, PostgresStore, migrate};

/// The statements as operators read them.
fn partition() -> &'static str {
    let text = include_str!("../../../docs/scaling.md");
    let (_, after) =
        text.split_once("```sql\n-- Partitions the large tables").expect("the document has the statements");
    after.split_once('\n').and_then(|(_, sql)| sql.split_once("```")).expect("they end").0
}

async fn open() -> TestStore {
    let database = Database::fresh().unwrap();
    // The suite makes up the time.
    let config =
        PostgresConfig { url: database.url().to_owned(), lease_clock: LeaseClock::Caller, ..PostgresConfig::default() };
    migrate(&config).await.unwrap();
    database.execute(partition()).unwrap();
    let parts = database
        .query("SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid AND c.relkind = 'r'");
    assert_eq!(parts.unwrap(), [[Some("24".to_owned())]]);
    let store = PostgresStore::open(&config).await.unwrap();
    let again = move || {
        let config = config.clone();
        async move { Arc::new(PostgresStore::open(&config).await.unwrap()) as Arc<dyn Store> }
    };
    TestStore::new(Arc::new(store)).reopened_by(again).keeping(database)
}

longhaul_store::conformance_tests!(open);
