//! Agent cards of v0.3.
