//! Drains the oldest segments of the log into partition files, and tidies up.

use crate::error::DrainError;
use crate::record::SegmentId;

/// What a tick of the drainer did.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Drained {
    /// The segment that left the log.
    pub segment: Option<SegmentId>,
    /// Batches copied to partition files.
    pub batches: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Sidecars written.
    pub sidecars: u32,
    /// Files removed.
    pub files_removed: u32,
}

/// Drains the log. Owned by one thread.
#[derive(Debug)]
pub struct Drainer {}

impl Drainer {
    /// Writes due sidecars, drains at most one segment, removes dead files. Call again at once as
    /// long as a segment was drained.
    pub fn tick(&mut self) -> Result<Drained, DrainError> {
        Err(DrainError::Poisoned)
    }

    /// Clean stop, after [`crate::LogWriter::close`]: writes the sidecars of the open files.
    pub fn close(self) -> Result<(), DrainError> {
        Err(DrainError::Poisoned)
    }
}
