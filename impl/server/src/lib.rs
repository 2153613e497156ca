//! The Pawl node: threads, listeners, gateways, and the drivers of log and disk.
//!
//! What is decided is decided in `pawl_vsr` and `pawl_machine`; this crate moves bytes, runs timers
//! and hands completions back.

pub mod cli;
pub mod config;
pub mod inbox;
pub mod limits;
pub mod logging;
pub mod memory;
pub mod shard;
pub mod tail;
