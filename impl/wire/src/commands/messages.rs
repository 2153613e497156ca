//! Sending (101), polling (100, 104), their routes (103), flushing (102).

use crate::batch::{BatchError, VerifiedBatch, verify_batch};
use crate::commands::system::Node;
use crate::layout::record;
use crate::primitives::{
    Consumer, Identifier, List, OptionalPartition, Partitioning, PollingStrategy, Raw, Reader,
    Wire, WireError, write_block32,
};

/// Partition id of an empty poll reply that says: your group assignment is stale, sync again.
pub const PARTITION_RESYNC: u32 = u32::MAX;

/// Bytes in front of the records of a poll reply.
pub const POLL_HEAD_BYTES: usize = 16;

/// Sends messages (101): `[metadata length u32][stream][topic][partitioning][messages u32][batch]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct SendMessages<'a> {
    pub stream: Identifier<'a>,
    pub topic: Identifier<'a>,
    pub partitioning: Partitioning<'a>,
    pub messages_count: u32,
    /// The rest of the body: one batch, not yet verified.
    pub batch: &'a [u8],
}

impl<'a> SendMessages<'a> {
    /// Where in `body`, from which this request was decoded, the batch header starts.
    pub fn batch_position(&self, body: &[u8]) -> usize {
        body.len() - self.batch.len()
    }

    // spec ANS-13
    /// Verifies the batch, and that it has as many messages as the request says.
    pub fn verify(&self) -> Result<VerifiedBatch, BatchError> {
        let verified = verify_batch(self.batch)?;
        if verified.message_count() != self.messages_count {
            return Err(BatchError::MessageCount {
                announced: self.messages_count,
                found: verified.message_count(),
            });
        }
        Ok(verified)
    }
}

impl<'a> Wire<'a> for SendMessages<'a> {
    const BYTES_MIN: usize = 4 + 2 * Identifier::BYTES_MIN + Partitioning::BYTES_MIN + 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let metadata_bytes = u32::read(reader)? as usize;
        let mut metadata = Reader::new(reader.take(metadata_bytes)?);
        let send = SendMessages {
            stream: metadata.read()?,
            topic: metadata.read()?,
            partitioning: metadata.read()?,
            messages_count: metadata.read()?,
            batch: reader.rest(),
        };
        if !metadata.is_empty() {
            return Err(WireError::Length {
                field: "the metadata of a send",
                bytes: metadata_bytes,
            });
        }
        Ok(send)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_block32(out, |out| {
            self.stream.write(out);
            self.topic.write(out);
            self.partitioning.write(out);
            self.messages_count.write(out);
        });
        out.extend_from_slice(self.batch);
    }
}

record! {
    /// Where a batch went.
    #[derive(Copy, Eq)]
    pub struct SendReceipt {
        stream: u32,
        topic: u32,
        partition: u32,
        base_offset: u64,
    }

    /// Polls messages (100, and 104 on the partition's primary).
    #[derive(Copy, Eq)]
    pub struct PollMessages<'a> {
        consumer: Consumer<'a>,
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: OptionalPartition,
        strategy: PollingStrategy,
        count: u32,
        auto_commit: bool,
    }

    /// Polled messages: batch records back to back. The counts of the records sum up to `count`.
    #[derive(Copy, Eq)]
    pub struct PollReply<'a> {
        partition: u32,
        /// Highest committed offset of the partition.
        current_offset: u64,
        count: u32,
        records: Raw<'a>,
    }

    /// The node that serves a partition, for the session that asked (103, 123).
    #[derive(Copy, Eq)]
    pub struct RouteReply<'a> {
        client_id: u128,
        session: u64,
        metadata_watermark: u64,
        primary: Node<'a>,
    }

    /// Flushes a partition (102); the dialect refuses it with error 5.
    #[derive(Copy, Eq)]
    pub struct FlushUnsaved<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        partition: u32,
        fsync: bool,
    }
}

/// What stands in front of the records of a poll reply, for servers that send records in place.
pub fn poll_reply_head(partition: u32, current_offset: u64, count: u32) -> [u8; POLL_HEAD_BYTES] {
    let mut head = [0; POLL_HEAD_BYTES];
    head[..4].copy_from_slice(&partition.to_le_bytes());
    head[4..12].copy_from_slice(&current_offset.to_le_bytes());
    head[12..].copy_from_slice(&count.to_le_bytes());
    head
}

/// Receipts of a send; an empty body is a success without information.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct SendReply {
    pub receipts: Vec<SendReceipt>,
}

impl<'a> Wire<'a> for SendReply {
    const BYTES_MIN: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        if reader.is_empty() {
            return Ok(SendReply {
                receipts: Vec::new(),
            });
        }
        let List(receipts) = reader.read()?;
        Ok(SendReply { receipts })
    }

    fn write(&self, out: &mut Vec<u8>) {
        crate::primitives::count_u32(self.receipts.len()).write(out);
        self.receipts.iter().for_each(|receipt| receipt.write(out));
    }
}
