//! What an applied op orders the driver to do outside the machine.

use std::fmt;

use pawl_wire::ids::{
    ClientId, Epoch, Op, PartitionId, PartitionUid, StreamId, Timestamp, TopicId,
};

/// An order of the machine. None of them can fail: what they change outside is derived state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// A batch got its place: add it to the partition's index.
    Appended {
        /// Of this partition.
        partition: PartitionUid,
        /// The entry whose body holds the batch.
        op: Op,
        /// Offset of the batch's first message.
        base_offset: u64,
        /// Append time of the whole batch.
        timestamp: Timestamp,
        /// Messages in it.
        message_count: u32,
        /// Where in the entry's body the batch header starts.
        batch_position: u32,
        /// Bytes of the batch.
        batch_length: u64,
    },
    /// A partition begins, empty.
    PartitionCreated {
        /// Its identity, never reused.
        uid: PartitionUid,
        /// Its stream.
        stream: StreamId,
        /// Its topic.
        topic: TopicId,
        /// Its visible number.
        partition: PartitionId,
    },
    /// A partition is gone with all it held.
    PartitionDropped {
        /// Its identity.
        uid: PartitionUid,
    },
    /// All messages appended before `op` are gone; offsets start again at 0.
    PartitionPurged {
        /// Its identity.
        uid: PartitionUid,
        /// The op of the purge.
        op: Op,
    },
    /// Messages below `first_offset` are gone.
    Trimmed {
        /// Of this partition.
        uid: PartitionUid,
        /// The lowest offset that is left.
        first_offset: u64,
    },
    /// Users, streams, topics or partitions changed: publish the new catalog.
    CatalogChanged,
    /// A session stands no more, since its client signed in again: whoever holds it is fenced.
    ClientFenced {
        /// The client.
        client: ClientId,
        /// The epoch that stands no more.
        epoch: Epoch,
    },
    /// A session stands no more, since its client was evicted for another one's sake.
    ClientEvicted {
        /// The client.
        client: ClientId,
    },
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Appended {
                partition,
                op,
                base_offset,
                message_count,
                ..
            } => write!(
                f,
                "{op}: {message_count} messages to {partition} at {base_offset}"
            ),
            Effect::PartitionCreated {
                uid,
                stream,
                topic,
                partition,
            } => write!(f, "{uid} created as {partition} of {topic} in {stream}"),
            Effect::PartitionDropped { uid } => write!(f, "{uid} dropped"),
            Effect::PartitionPurged { uid, op } => write!(f, "{uid} purged at {op}"),
            Effect::Trimmed { uid, first_offset } => write!(f, "{uid} trimmed to {first_offset}"),
            Effect::CatalogChanged => write!(f, "catalog changed"),
            Effect::ClientFenced { client, epoch } => write!(f, "{client} fenced at {epoch}"),
            Effect::ClientEvicted { client } => write!(f, "{client} evicted"),
        }
    }
}
