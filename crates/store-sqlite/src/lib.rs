//! Tasks in one SQLite file, for one instance
