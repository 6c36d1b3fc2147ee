//! `longhaul-client` against a real server.

mod operations;
mod support;
