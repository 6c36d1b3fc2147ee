//! The ledger's file: what is written stays, in whatever way its processes end and however many there are.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that is broken has to fail")]

mod ledger_store {
    mod claims;
    mod crash;
    mod files;
    mod lives;
    mod model;
    mod queries;
    mod support;
}
