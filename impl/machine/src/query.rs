//! What reads ask of the machine.
//!
//! All of it is answered from applied state only, on the thread that applies; shards answer what
//! needs no counter from the published [`Catalog`](crate::catalog::Catalog).

use pawl_wire::ids::{Epoch, Op, RequestNumber, Timestamp};

use crate::catalog::UserIdentity;

/// Counts of a topic, a stream or everything; always equal to a recount.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Totals {
    /// Messages that are left.
    pub messages: u64,
    /// Bytes of the batches that are left.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
}

/// Counts over the whole machine, for statistics.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct MachineTotals {
    /// Streams.
    pub streams: u32,
    /// Topics of all streams.
    pub topics: u32,
    /// Partitions of all topics.
    pub partitions: u32,
    /// Consumer groups of all topics.
    pub consumer_groups: u32,
    /// Live and released clients.
    pub clients: u32,
    /// Remembered fences.
    pub tombstones: u32,
    /// Messages, bytes, segments.
    pub data: Totals,
}

/// The counters of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionView {
    /// Lowest offset that is left; equal to `next_offset` when empty.
    pub first_offset: u64,
    /// Offset of the next message.
    pub next_offset: u64,
    /// Messages that are left.
    pub messages: u64,
    /// Bytes of the batches that are left.
    pub bytes: u64,
    /// Segments, the open one included.
    pub segments: u32,
    /// The op that purged it last, or that created it.
    pub purged_at: Op,
}

impl PartitionView {
    /// Highest offset; 0 when nothing was ever appended, as the dialect has it.
    pub const fn current_offset(&self) -> u64 {
        self.next_offset.saturating_sub(1)
    }
}

/// The entry of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClientView {
    /// The op of its current registration.
    pub epoch: Epoch,
    /// Who registered it.
    pub owner: UserIdentity,
    /// The highest request number that committed.
    pub watermark: RequestNumber,
    /// The op of its latest activity.
    pub latest_commit: Op,
    /// When its connection ended, if it did without a logout.
    pub released_at: Option<Timestamp>,
}
