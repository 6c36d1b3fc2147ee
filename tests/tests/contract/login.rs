//! `auth login` (§12.2).
