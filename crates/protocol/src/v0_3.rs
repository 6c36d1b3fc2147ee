//! The older version 0.3 of the protocol, as a translation to and from [`wire`](crate::wire). Pure functions; nothing else
//! knows of it.

pub mod card;
