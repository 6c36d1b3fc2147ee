//! The client's commands: what a caller says to agents, following the public contract for A2A command lines.

pub mod arguments;
mod commands;
mod debug;
mod failure;
mod options;
mod parts;
mod progress;
mod redact;
mod render;
mod run;
mod save;
mod session;
mod usage;
mod way;

pub use run::{run, show_config};
pub use usage::refuse;
