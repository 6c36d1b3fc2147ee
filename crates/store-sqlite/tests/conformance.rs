//! The store in a file against the suite that every store has to pass.

use std::sync::Arc;

use longhaul_store::Store;
use longhaul_store::conformance::TestStore;

use self::folder::Folder;

mod folder;

async fn open() -> TestStore {
    let folder = Folder::new();
    let config = folder.config();
    let again = config.clone();
    TestStore::new(Arc::new(folder::open(&config)))
        .reopened_by(move || {
            let config = again.clone();
            async move { Arc::new(folder::open(&config)) as Arc<dyn Store> }
        })
        .keeping(folder)
}

longhaul_store::conformance_tests!(open);
