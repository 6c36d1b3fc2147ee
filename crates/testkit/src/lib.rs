//! Scripted agents, a manual clock and counted ids, for tests only
