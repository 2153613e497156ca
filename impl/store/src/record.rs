//! What is written to the log, and where it ended up.

use std::fmt;

use pawl_wire::ids::{Op, PartitionUid};

/// Number of a log segment, from 1, rising, never reused: a file that is recycled gets a new one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u64);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}", self.0)
    }
}

impl SegmentId {
    /// The segment after this one.
    pub const fn next(self) -> SegmentId {
        SegmentId(self.0 + 1)
    }
}

/// Where a body is, and what it must hash to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The file.
    pub file: PlaceFile,
    /// First byte of the body in the file.
    pub position: u32,
    /// Bytes of the body.
    pub bytes: u32,
    /// Low half of the body's XXH3-128.
    pub checksum: u64,
}

/// A file that holds bodies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PlaceFile {
    /// A segment of the log.
    Log(SegmentId),
    /// A file of a partition, to which the log was drained.
    Partition {
        /// The partition.
        uid: PartitionUid,
        /// Number of the file, from 1.
        number: u32,
    },
}

/// Where `write` put an entry. Known before the flush, and independent of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The entry.
    pub op: Op,
    /// Where its body is.
    pub place: Place,
}

/// The base offset that apply gave to a produce. Kept in a later batch's header region, so that the
/// index can be rebuilt from the log alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The produce.
    pub op: Op,
    /// Offset of its first message.
    pub base_offset: u64,
}
