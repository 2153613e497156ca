//! A shard: one thread with a current-thread runtime that owns connections.

pub mod answers;
