//! Topics and their partitions' identities.

use std::sync::Arc;

use pawl_wire::commands::topics::CompressionAlgorithm;
use pawl_wire::ids::{Op, PartitionUid, Timestamp, TopicId};
use pawl_wire::options::OptionMap;

/// A partition of a topic; its visible number is its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionSlot {
    /// Internal identity.
    pub uid: PartitionUid,
    /// Log time of its creation.
    pub created_at: Timestamp,
}

/// A topic: a name, options and partitions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Topic {
    /// Visible number in its stream; reused after a deletion.
    pub id: TopicId,
    /// The op that created it.
    pub created_op: Op,
    /// Log time of that op.
    pub created_at: Timestamp,
    /// Unique in its stream.
    pub name: Arc<str>,
    /// Options as the client named them.
    pub explicit: OptionMap,
    /// Options that were filled in.
    pub derived: OptionMap,
    /// µs after which a message expires; 2^64 − 1: never.
    pub message_expiry: u64,
    /// How producers compress.
    pub compression: CompressionAlgorithm,
    /// Bytes; 2^64 − 1: unlimited.
    pub max_topic_size: u64,
    /// Bytes after which a partition's segment is sealed.
    pub segment_size: u64,
    /// By visible number.
    pub partitions: Arc<[PartitionSlot]>,
}
