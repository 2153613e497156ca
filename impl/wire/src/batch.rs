//! The message batch: one layout for the body of a send, the stored record and the poll reply.
//!
//! A batch is a 256-byte header and message frames without gaps:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 8 | partition_id: stamped |
//! | 8 | 8 | base_offset: stamped; offset of the frame with delta 0 |
//! | 16 | 8 | base_timestamp: stamped; append time of the whole batch, µs |
//! | 24 | 8 | origin_timestamp: smallest origin timestamp, µs |
//! | 32 | 8 | batch_length: header and frames |
//! | 40 | 8 | batch_checksum: XXH3-64 of the fields before, the count and the frames' checksums |
//! | 48 | 4 | message_count |
//! | 52 | 204 | reserved, zero |
//!
//! A frame is 48 bytes, then the payload, then the user headers:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 8 | checksum: XXH3-64 of the frame from byte 8 on |
//! | 8 | 16 | id |
//! | 24 | 4 | offset_delta |
//! | 28 | 4 | timestamp_delta: origin timestamp less the batch's |
//! | 32 | 4 | user_headers_length |
//! | 36 | 4 | payload_length |
//! | 40 | 8 | reserved, zero |
//!
//! Bodies are covered through the frames' checksums only, so a batch is stamped and sliced by a new
//! header, without touching a body byte. Cost of accepting 1 MiB: one pass (XXH3 over each frame)
//! and one allocation of eight bytes a message, bounded by the bytes at hand.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error_code::ErrorCode;

/// Bytes of a batch header.
pub const BATCH_HEADER_BYTES: usize = 256;

/// Bytes in front of a message's payload.
pub const MESSAGE_HEADER_BYTES: usize = 48;

/// Most bytes of a payload.
pub const PAYLOAD_BYTES_MAX: usize = 64_000_000;

/// Most bytes of a message's user headers.
pub const USER_HEADERS_BYTES_MAX: usize = 100_000;

/// Bytes of the header that the batch checksum covers.
const CHECKSUM_FIELDS_BYTES: usize = 44;

/// Up to this many frames the batch checksum is made on the stack in one go.
const CHECKSUM_FRAMES_ON_STACK: usize = 64;

const _: () = assert!(size_of::<BatchHeader>() == BATCH_HEADER_BYTES);

/// The header of a batch. See the table at the top of this file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "the table at the top of the file says what each field is"
)]
pub struct BatchHeader {
    pub partition_id: u64,
    pub base_offset: u64,
    pub base_timestamp: u64,
    pub origin_timestamp: u64,
    pub batch_length: u64,
    pub batch_checksum: u64,
    pub message_count: u32,
    pub reserved: [u8; 204],
}

/// Why bytes are not a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BatchError {
    /// Too few bytes for what stands there.
    #[error("the batch is cut: {needed} bytes are needed where {left} are left")]
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// The header's length is not that of the bytes.
    #[error("the batch announces {announced} bytes, {found} are there")]
    Length {
        /// From the header.
        announced: u64,
        /// At hand.
        found: usize,
    },
    /// A count is not that of the frames.
    #[error("{announced} messages are announced, {found} can be there")]
    MessageCount {
        /// From a header.
        announced: u32,
        /// Found, or the most that fit.
        found: u32,
    },
    /// There is no message.
    #[error("the batch has no message")]
    Empty,
    /// A reserved byte is not zero.
    #[error("a reserved byte is not zero")]
    Reserved,
    /// The frames are not numbered in order.
    #[error("message {index} has offset delta {delta}")]
    OffsetDelta {
        /// Place in the batch, from 0.
        index: u32,
        /// What it says.
        delta: u32,
    },
    /// An origin timestamp does not fit.
    #[error("the timestamps of the batch span too much")]
    TimestampDelta,
    /// A message without payload.
    #[error("message {index} has no payload")]
    PayloadEmpty {
        /// Place in the batch, from 0.
        index: u32,
    },
    /// A payload above [`PAYLOAD_BYTES_MAX`].
    #[error("message {index} has a payload of {bytes} bytes")]
    PayloadTooBig {
        /// Place in the batch, from 0.
        index: u32,
        /// What it says.
        bytes: usize,
    },
    /// User headers above [`USER_HEADERS_BYTES_MAX`].
    #[error("message {index} has user headers of {bytes} bytes")]
    UserHeadersTooBig {
        /// Place in the batch, from 0.
        index: u32,
        /// What it says.
        bytes: usize,
    },
    /// A frame's checksum does not match.
    #[error("the checksum of message {index} does not match")]
    MessageChecksum {
        /// Place in the batch, from 0.
        index: u32,
    },
    /// A slice outside the batch.
    #[error("messages {first}..{end} of a batch of {count}")]
    Slice {
        /// First message wanted.
        first: u32,
        /// The one after the last wanted.
        end: u32,
        /// Messages in the batch.
        count: u32,
    },
}

impl BatchError {
    /// The status that answers a send with it.
    pub const fn code(self) -> ErrorCode {
        match self {
            BatchError::Truncated { .. }
            | BatchError::Length { .. }
            | BatchError::MessageCount { .. }
            | BatchError::Empty
            | BatchError::Reserved
            | BatchError::OffsetDelta { .. }
            | BatchError::Slice { .. } => ErrorCode::InvalidCommand,
            BatchError::TimestampDelta => ErrorCode::InvalidMessageTimestampDelta,
            BatchError::PayloadEmpty { .. } => ErrorCode::EmptyMessagePayload,
            BatchError::PayloadTooBig { .. } => ErrorCode::TooBigMessagePayload,
            BatchError::UserHeadersTooBig { .. } => ErrorCode::TooBigUserHeaders,
            BatchError::MessageChecksum { .. } => ErrorCode::InvalidMessageChecksum,
        }
    }
}

/// What the server knows about a batch once its place in the partition is decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// The partition's visible id.
    pub partition_id: u64,
    /// Offset of the first message.
    pub base_offset: u64,
    /// Append time, µs.
    pub base_timestamp: u64,
}

impl BatchHeader {
    /// Reads a header from the first 256 bytes. Only the reserved bytes are checked.
    pub fn decode(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let Some(head) = bytes.get(..BATCH_HEADER_BYTES) else {
            return Err(BatchError::Truncated {
                needed: BATCH_HEADER_BYTES,
                left: bytes.len(),
            });
        };
        let header: BatchHeader = bytemuck::pod_read_unaligned(head);
        if header.reserved != [0; 204] {
            return Err(BatchError::Reserved);
        }
        Ok(header)
    }

    /// The 256 bytes.
    pub fn as_bytes(&self) -> &[u8; BATCH_HEADER_BYTES] {
        bytemuck::cast_ref(self)
    }

    /// What `batch_checksum` must be over frames with these checksums.
    pub fn checksum_computed(&self, checksums: &[u64]) -> u64 {
        let fields = self.checksum_fields();
        let frames: &[u8] = bytemuck::cast_slice(checksums);
        if checksums.len() <= CHECKSUM_FRAMES_ON_STACK {
            let mut buffer = [0; CHECKSUM_FIELDS_BYTES + 8 * CHECKSUM_FRAMES_ON_STACK];
            let end = CHECKSUM_FIELDS_BYTES + frames.len();
            buffer[..CHECKSUM_FIELDS_BYTES].copy_from_slice(&fields);
            buffer[CHECKSUM_FIELDS_BYTES..end].copy_from_slice(frames);
            return xxh3_64(&buffer[..end]);
        }
        let mut hasher = Xxh3::new();
        hasher.update(&fields);
        hasher.update(frames);
        hasher.digest()
    }

    /// The header of the same frames at their place in a partition, sealed.
    pub fn stamped(&self, stamp: Stamp, checksums: &[u64]) -> BatchHeader {
        let mut header = BatchHeader {
            partition_id: stamp.partition_id,
            base_offset: stamp.base_offset,
            base_timestamp: stamp.base_timestamp,
            ..*self
        };
        header.batch_checksum = header.checksum_computed(checksums);
        header
    }

    fn checksum_fields(&self) -> [u8; CHECKSUM_FIELDS_BYTES] {
        let mut fields = [0; CHECKSUM_FIELDS_BYTES];
        let bytes = self.as_bytes();
        fields[..40].copy_from_slice(&bytes[..40]);
        fields[40..].copy_from_slice(&bytes[48..52]);
        fields
    }
}

impl std::fmt::Debug for BatchHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "batch of {} messages, {} bytes, partition {}, offset {}, t{} (origin t{})",
            self.message_count,
            self.batch_length,
            self.partition_id,
            self.base_offset,
            self.base_timestamp,
            self.origin_timestamp
        )
    }
}

/// One message as it stands in a batch. Its layout was checked, its checksum was not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageFrame<'a> {
    bytes: &'a [u8],
    payload_bytes: usize,
}

impl<'a> MessageFrame<'a> {
    /// The frame at the start of `bytes`.
    pub fn read(bytes: &'a [u8]) -> Result<MessageFrame<'a>, BatchError> {
        let left = bytes.len();
        let Some(head) = bytes.first_chunk::<MESSAGE_HEADER_BYTES>() else {
            let needed = MESSAGE_HEADER_BYTES;
            return Err(BatchError::Truncated { needed, left });
        };
        let user_headers_bytes = le_u32(head, 32) as usize;
        let payload_bytes = le_u32(head, 36) as usize;
        if le_u64(head, 40) != 0 {
            return Err(BatchError::Reserved);
        }
        // Sums of two 32-bit lengths and a constant do not overflow 64 bits.
        let needed = MESSAGE_HEADER_BYTES + payload_bytes + user_headers_bytes;
        match bytes.get(..needed) {
            None => Err(BatchError::Truncated { needed, left }),
            Some(bytes) => Ok(MessageFrame {
                bytes,
                payload_bytes,
            }),
        }
    }

    fn head(&self) -> &'a [u8; MESSAGE_HEADER_BYTES] {
        self.bytes
            .first_chunk()
            .expect("a frame is at least its header long")
    }

    /// The stored checksum.
    pub fn checksum(&self) -> u64 {
        le_u64(self.head(), 0)
    }

    /// What the checksum must be.
    pub fn checksum_computed(&self) -> u64 {
        xxh3_64(&self.bytes[8..])
    }

    /// The producer's id of the message.
    pub fn id(&self) -> u128 {
        let id = self.head()[8..24].try_into();
        u128::from_le_bytes(id.expect("the field is 16 bytes"))
    }

    /// Offset less the batch's base offset.
    pub fn offset_delta(&self) -> u32 {
        le_u32(self.head(), 24)
    }

    /// Origin timestamp less the batch's, µs.
    pub fn timestamp_delta(&self) -> u32 {
        le_u32(self.head(), 28)
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[MESSAGE_HEADER_BYTES..MESSAGE_HEADER_BYTES + self.payload_bytes]
    }

    /// The user headers, not parsed; see [`crate::options::UserHeaders`].
    pub fn user_headers(&self) -> &'a [u8] {
        &self.bytes[MESSAGE_HEADER_BYTES + self.payload_bytes..]
    }

    /// The whole frame.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

fn le_u32(head: &[u8; MESSAGE_HEADER_BYTES], offset: usize) -> u32 {
    let field = head[offset..offset + 4].try_into();
    u32::from_le_bytes(field.expect("the field is four bytes"))
}

fn le_u64(head: &[u8; MESSAGE_HEADER_BYTES], offset: usize) -> u64 {
    let field = head[offset..offset + 8].try_into();
    u64::from_le_bytes(field.expect("the field is eight bytes"))
}

/// Walks the frames of a batch, checking the layout only. It ends at the first error.
#[derive(Clone, Debug)]
pub struct MessageFrames<'a> {
    rest: &'a [u8],
}

impl<'a> MessageFrames<'a> {
    /// Walks `bytes`, the part of a batch behind its header.
    pub const fn new(bytes: &'a [u8]) -> MessageFrames<'a> {
        MessageFrames { rest: bytes }
    }
}

impl<'a> Iterator for MessageFrames<'a> {
    type Item = Result<MessageFrame<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let frame = MessageFrame::read(self.rest);
        self.rest = match &frame {
            Ok(frame) => &self.rest[frame.bytes.len()..],
            Err(_) => &[],
        };
        Some(frame)
    }
}

/// What verification found. Only [`verify_batch`] makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedBatch {
    header: BatchHeader,
    checksums: Vec<u64>,
    timestamp_delta_max: u32,
}

impl VerifiedBatch {
    /// The header as sent.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// How many messages.
    pub fn message_count(&self) -> u32 {
        self.header.message_count
    }

    /// Bytes of header and frames.
    pub fn batch_length(&self) -> u64 {
        self.header.batch_length
    }

    /// The frames' checksums in order, for stamping.
    pub fn checksums(&self) -> &[u64] {
        &self.checksums
    }

    /// Smallest origin timestamp that the batch claims, µs.
    pub fn origin_timestamp(&self) -> u64 {
        self.header.origin_timestamp
    }

    /// Largest origin timestamp, µs.
    pub fn origin_timestamp_max(&self) -> u64 {
        self.header.origin_timestamp + u64::from(self.timestamp_delta_max)
    }

    /// The header at a place in a partition, sealed.
    pub fn stamped(&self, stamp: Stamp) -> BatchHeader {
        self.header.stamped(stamp, &self.checksums)
    }
}

/// Checks everything that a server must check before it takes a batch: the layout, every frame's
/// checksum, the numbering, the counts, and that nothing follows. Fields that the server stamps and
/// the batch checksum may be anything.
pub fn verify_batch(bytes: &[u8]) -> Result<VerifiedBatch, BatchError> {
    let header = checked_header(bytes)?;
    let mut checksums = Vec::with_capacity(header.message_count as usize);
    let mut timestamp_delta_max = 0;
    for (index, frame) in (0u32..).zip(MessageFrames::new(&bytes[BATCH_HEADER_BYTES..])) {
        let frame = frame?;
        if index == header.message_count {
            return Err(BatchError::MessageCount {
                announced: index,
                found: index + 1,
            });
        }
        check_frame(index, &frame)?;
        let checksum = frame.checksum();
        if checksum != frame.checksum_computed() {
            return Err(BatchError::MessageChecksum { index });
        }
        checksums.push(checksum);
        timestamp_delta_max = timestamp_delta_max.max(frame.timestamp_delta());
    }
    if checksums.len() < header.message_count as usize {
        return Err(BatchError::MessageCount {
            announced: header.message_count,
            found: checksums.len() as u32,
        });
    }
    if header
        .origin_timestamp
        .checked_add(timestamp_delta_max.into())
        .is_none()
    {
        return Err(BatchError::TimestampDelta);
    }
    Ok(VerifiedBatch {
        header,
        checksums,
        timestamp_delta_max,
    })
}

/// The header, with a length that is that of the bytes and a count that they could hold.
fn checked_header(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
    let header = BatchHeader::decode(bytes)?;
    if header.batch_length != bytes.len() as u64 {
        return Err(BatchError::Length {
            announced: header.batch_length,
            found: bytes.len(),
        });
    }
    if header.message_count == 0 {
        return Err(BatchError::Empty);
    }
    let fit = (bytes.len() - BATCH_HEADER_BYTES) / MESSAGE_HEADER_BYTES;
    if header.message_count as usize > fit {
        return Err(BatchError::MessageCount {
            announced: header.message_count,
            found: fit as u32,
        });
    }
    Ok(header)
}

fn check_frame(index: u32, frame: &MessageFrame<'_>) -> Result<(), BatchError> {
    let delta = frame.offset_delta();
    if delta != index {
        return Err(BatchError::OffsetDelta { index, delta });
    }
    let bytes = frame.payload_bytes;
    if bytes == 0 {
        return Err(BatchError::PayloadEmpty { index });
    }
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(BatchError::PayloadTooBig { index, bytes });
    }
    let bytes = frame.user_headers().len();
    if bytes > USER_HEADERS_BYTES_MAX {
        return Err(BatchError::UserHeadersTooBig { index, bytes });
    }
    Ok(())
}

/// The frames' checksums of a batch that was verified when it was taken: reads the headers of the
/// frames only, not the bodies.
pub fn frame_checksums(bytes: &[u8]) -> Result<Vec<u64>, BatchError> {
    let header = checked_header(bytes)?;
    let mut checksums = Vec::with_capacity(header.message_count as usize);
    for frame in MessageFrames::new(&bytes[BATCH_HEADER_BYTES..]).take(checksums.capacity()) {
        checksums.push(frame?.checksum());
    }
    Ok(checksums)
}

/// Part of a batch: a header of its own, and which bytes of the record follow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchSlice {
    /// The header: length, count and checksum are the slice's, all else the batch's.
    pub header: BatchHeader,
    /// The frames' place in the record that was sliced, header included in the count.
    pub frames: Range<usize>,
}

/// Cuts messages `messages` (by place, from 0) out of the record `bytes`. `stamped` is the record's
/// header as it is served; the one in the record may still be the producer's.
pub fn slice_batch(
    bytes: &[u8],
    stamped: &BatchHeader,
    messages: Range<u32>,
) -> Result<BatchSlice, BatchError> {
    let count = checked_header(bytes)?.message_count;
    let (first, end) = (messages.start, messages.end);
    if first >= end || end > count {
        return Err(BatchError::Slice { first, end, count });
    }
    let mut checksums = Vec::with_capacity((end - first) as usize);
    let mut position = BATCH_HEADER_BYTES;
    let mut start = position;
    for index in 0..end {
        let frame = MessageFrame::read(&bytes[position..])?;
        if index >= first {
            checksums.push(frame.checksum());
        } else {
            start += frame.bytes.len();
        }
        position += frame.bytes.len();
    }
    let mut header = BatchHeader {
        batch_length: (BATCH_HEADER_BYTES + position - start) as u64,
        message_count: end - first,
        ..*stamped
    };
    header.batch_checksum = header.checksum_computed(&checksums);
    Ok(BatchSlice {
        header,
        frames: start..position,
    })
}

#[cfg(test)]
#[path = "batch_test.rs"]
mod tests;
