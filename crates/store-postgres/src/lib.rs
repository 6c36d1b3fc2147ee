//! Tasks in PostgreSQL, for many instances.
