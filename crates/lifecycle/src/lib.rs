//! What a command does to a task: a pure function
