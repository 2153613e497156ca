//! Partitions (402, 403) and their segments (503).

use crate::layout::record;
use crate::primitives::Identifier;

record! {
    /// Adds partitions at the end (402).
    #[derive(Copy, Eq)]
    pub struct CreatePartitions<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        count: u32,
    }

    /// Removes the partitions with the highest ids (403).
    #[derive(Copy, Eq)]
    pub struct DeletePartitions<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        count: u32,
    }

    /// Deletes the oldest sealed segments of a partition, at most this many (503).
    #[derive(Copy, Eq)]
    pub struct DeleteSegments<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: u32,
        segments: u32,
    }
}
