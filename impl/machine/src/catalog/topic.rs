//! Topics and their partitions' identities.

use std::sync::Arc;

use pawl_wire::ids::{Op, PartitionUid, Timestamp, TopicId};
use pawl_wire::topic_options::TopicOptions;

use crate::groups::Groups;

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
    /// What clients asked for, and what that comes to.
    pub options: TopicOptions,
    /// By visible number.
    pub partitions: Arc<[PartitionSlot]>,
    /// Its consumer groups.
    pub groups: Groups,
}
