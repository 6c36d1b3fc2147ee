//! The client's commands: what a caller says to agents, following the public contract for A2A command lines.

pub mod arguments;
mod failure;
mod options;
mod parts;
mod progress;
mod render;
mod save;
