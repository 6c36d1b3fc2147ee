//! `longhaul-client` against a real server.

mod operations;
mod relay;
mod stories;
mod streams;
mod support;
