//! Checks, code generation and benchmarks of this repository.
fn main() {}
