//! The agents that come with the binary: a command, a command that speaks JSON lines, and the demo.

mod demo;
mod exec;
mod exec_jsonl;
mod json_line;
mod lines;
mod process;
#[cfg(test)]
mod testing;

pub use demo::DemoAgent;
pub use exec::ExecAgent;
pub use exec_jsonl::ExecJsonlAgent;
pub use process::CommandSpec;
