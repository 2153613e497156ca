//! The Pawl node: threads, listeners, gateways, and the drivers of log and disk.
//!
//! What is decided is decided in `pawl_vsr` and `pawl_machine`; this crate moves bytes, runs timers
//! and hands completions back.

pub mod boot;
pub mod budget_disk;
pub mod cli;
pub mod clients;
pub mod config;
pub mod credentials;
pub mod gateway;
pub mod host;
pub mod http;
pub mod inbox;
pub mod limits;
pub mod log;
pub mod logging;
pub mod memory;
pub mod metrics;
pub mod node;
pub mod recover;
pub mod shard;
pub mod signals;
pub mod tail;

/// Version of this program.
pub const SERVER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The same as a number: major × 1,000,000 + minor × 1,000 + patch.
pub const SERVER_SEMVER: u32 = 1_000;

/// The client protocol that it speaks.
pub const PROTOCOL_TEXT: &str = "0.11.0";

/// Exit code of a process whose disk failed.
pub const EXIT_DISK_FAILED: u8 = 74;
