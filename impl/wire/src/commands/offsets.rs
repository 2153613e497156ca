//! Stored offsets of consumers and groups (120 to 123).

use crate::layout::record;
use crate::primitives::{AckLevel, Consumer, Identifier, OptionalPartition};

record! {
    /// Asks for a stored offset (120).
    #[derive(Copy, Eq)]
    pub struct GetOffset<'a> {
        consumer: Consumer<'a>,
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: OptionalPartition,
    }

    /// Stores an offset (121).
    #[derive(Copy, Eq)]
    pub struct StoreOffset<'a> {
        consumer: Consumer<'a>,
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: OptionalPartition,
        offset: u64,
        ack: AckLevel,
    }

    /// Deletes a stored offset (122).
    #[derive(Copy, Eq)]
    pub struct DeleteOffset<'a> {
        consumer: Consumer<'a>,
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: OptionalPartition,
        ack: AckLevel,
    }

    /// Asks which node takes offset writes (123).
    #[derive(Copy, Eq)]
    pub struct GetOffsetRoute<'a> {
        consumer: Consumer<'a>,
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: OptionalPartition,
    }

    /// A stored offset (120); an empty body where none is stored.
    #[derive(Copy, Eq)]
    pub struct OffsetReply {
        partition: u32,
        /// Highest committed offset of the partition.
        current: u64,
        stored: u64,
    }
}
