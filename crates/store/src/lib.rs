//! The store trait, its records and errors, the memory store and the conformance suite
