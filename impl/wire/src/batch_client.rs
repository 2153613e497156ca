//! The client's side of batches: building one to send, reading those of a poll reply.

use bytemuck::Zeroable;
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::{
    BATCH_HEADER_BYTES, BatchError, BatchHeader, MESSAGE_HEADER_BYTES, MessageFrame, MessageFrames,
    PAYLOAD_BYTES_MAX, USER_HEADERS_BYTES_MAX,
};

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message<'a> {
    /// Chosen by the producer.
    pub id: u128,
    /// When the producer made it, µs.
    pub origin_timestamp: u64,
    /// 1 to 64,000,000 bytes.
    pub payload: &'a [u8],
    /// TLV entries, or nothing.
    pub user_headers: &'a [u8],
}

/// Appends a batch of `messages` to `out`, as a producer sends it.
pub fn write_batch(messages: &[Message<'_>], out: &mut Vec<u8>) -> Result<(), BatchError> {
    let Some(origin) = messages
        .iter()
        .map(|message| message.origin_timestamp)
        .min()
    else {
        return Err(BatchError::Empty);
    };
    let bytes = check_messages(messages, origin)?;
    let start = out.len();
    out.reserve(bytes);
    out.resize(start + BATCH_HEADER_BYTES, 0);
    let mut checksums = Vec::with_capacity(messages.len());
    for (index, message) in (0u32..).zip(messages) {
        let delta = (message.origin_timestamp - origin) as u32;
        checksums.push(write_frame(index, delta, message, out));
    }
    let mut header = BatchHeader {
        origin_timestamp: origin,
        batch_length: bytes as u64,
        message_count: messages.len() as u32,
        ..BatchHeader::zeroed()
    };
    assert!(
        out.len() - start == bytes,
        "a batch is as long as its parts"
    );
    header.batch_checksum = header.checksum_computed(&checksums);
    out[start..start + BATCH_HEADER_BYTES].copy_from_slice(header.as_bytes());
    Ok(())
}

/// The bytes that the batch will have.
fn check_messages(messages: &[Message<'_>], origin: u64) -> Result<usize, BatchError> {
    let mut total = BATCH_HEADER_BYTES;
    for (index, message) in (0u32..).zip(messages) {
        if message.origin_timestamp - origin > u32::MAX.into() {
            return Err(BatchError::TimestampDelta);
        }
        if message.payload.is_empty() {
            return Err(BatchError::PayloadEmpty { index });
        }
        let bytes = message.payload.len();
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(BatchError::PayloadTooBig { index, bytes });
        }
        let bytes = message.user_headers.len();
        if bytes > USER_HEADERS_BYTES_MAX {
            return Err(BatchError::UserHeadersTooBig { index, bytes });
        }
        total += MESSAGE_HEADER_BYTES + message.payload.len() + bytes;
    }
    Ok(total)
}

fn write_frame(index: u32, delta: u32, message: &Message<'_>, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&message.id.to_le_bytes());
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&delta.to_le_bytes());
    out.extend_from_slice(&(message.user_headers.len() as u32).to_le_bytes());
    out.extend_from_slice(&(message.payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(message.payload);
    out.extend_from_slice(message.user_headers);
    let checksum = xxh3_64(&out[start + 8..]);
    out[start..start + 8].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// A batch of a poll reply: its layout was checked as far as it was walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolledBatch<'a> {
    /// The stamped header.
    pub header: BatchHeader,
    frames: &'a [u8],
}

/// A polled message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolledMessage<'a> {
    /// Its offset in the partition.
    pub offset: u64,
    /// When it was appended, µs.
    pub timestamp: u64,
    /// When the producer made it, µs.
    pub origin_timestamp: u64,
    /// The rest.
    pub frame: MessageFrame<'a>,
}

impl<'a> PolledBatch<'a> {
    /// The messages in order.
    pub fn messages(
        &self,
    ) -> impl Iterator<Item = Result<PolledMessage<'a>, BatchError>> + use<'a> {
        let header = self.header;
        MessageFrames::new(self.frames).map(move |frame| {
            let frame = frame?;
            Ok(PolledMessage {
                offset: header.base_offset.wrapping_add(frame.offset_delta().into()),
                timestamp: header.base_timestamp,
                origin_timestamp: header
                    .origin_timestamp
                    .wrapping_add(frame.timestamp_delta().into()),
                frame,
            })
        })
    }
}

/// Walks the records of a poll reply. It ends at the first error.
#[derive(Clone, Debug)]
pub struct PolledBatches<'a> {
    rest: &'a [u8],
}

impl<'a> PolledBatches<'a> {
    /// Walks `records`, the part of a poll reply behind its 16 bytes.
    pub const fn new(records: &'a [u8]) -> PolledBatches<'a> {
        PolledBatches { rest: records }
    }

    fn read(&mut self) -> Result<PolledBatch<'a>, BatchError> {
        let rest = std::mem::take(&mut self.rest);
        let header = BatchHeader::decode(rest)?;
        let length = usize::try_from(header.batch_length).unwrap_or(usize::MAX);
        if length < BATCH_HEADER_BYTES || length > rest.len() {
            return Err(BatchError::Length {
                announced: header.batch_length,
                found: rest.len(),
            });
        }
        self.rest = &rest[length..];
        Ok(PolledBatch {
            header,
            frames: &rest[BATCH_HEADER_BYTES..length],
        })
    }
}

impl<'a> Iterator for PolledBatches<'a> {
    type Item = Result<PolledBatch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rest.is_empty() {
            true => None,
            false => Some(self.read()),
        }
    }
}
