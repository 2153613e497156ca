//! Finding frames in a stream of bytes: a pure function of the bytes at hand and the limit.
//!
//! Invariants:
//! 1. Nothing is allocated on a claim: the decoder only ever looks at bytes that have arrived, and
//!    hands them out by reference counting.
//! 2. Only the size field decides about framing. Whether a header is valid is the next question
//!    ([`RequestHeader::validate`]), since an invalid header still has a body that must be skipped.

use bytes::{Bytes, BytesMut};

use crate::headers::{HEADER_BYTES, RequestHeader};

/// Offset of the size field.
const SIZE_OFFSET: usize = 48;

/// Default of the largest accepted frame, header included.
pub const FRAME_BYTES_MAX_DEFAULT: u32 = 64 * 1024 * 1024;

/// The dialect's ceiling for the largest accepted frame.
pub const FRAME_BYTES_MAX_CEILING: u32 = 256 * 1024 * 1024;

const _: () = assert!(FRAME_BYTES_MAX_DEFAULT <= FRAME_BYTES_MAX_CEILING);

/// A request as it came: the header, not yet validated, and the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The header.
    pub header: RequestHeader,
    /// The bytes behind it, `header.size - 256` of them.
    pub body: Bytes,
}

/// Why a connection ends without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The size does not even cover the header.
    #[error("a frame of {size} bytes is shorter than its header")]
    TooShort {
        /// The size claimed.
        size: u32,
    },
    /// The size is above the limit.
    #[error("a frame of {size} bytes is above the limit of {limit}")]
    TooLong {
        /// The size claimed.
        size: u32,
        /// The limit.
        limit: u32,
    },
}

/// What the bytes at hand are.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a decoded frame is matched at once and moved on"
)]
pub enum Decoded {
    /// The start of a frame. This many more bytes are certain to belong to it.
    NeedMore(usize),
    /// A whole frame, taken off the front.
    Frame(Frame),
    /// Not a frame: close, without an answer.
    Close(CloseReason),
}

// spec ANS-20
/// Says how long the frame at the start of `bytes` is: `Ok(None)` while its size is not at hand.
pub fn frame_bytes(bytes: &[u8], limit: u32) -> Result<Option<usize>, CloseReason> {
    let Some(field) = bytes.get(SIZE_OFFSET..SIZE_OFFSET + 4) else {
        return Ok(None);
    };
    let size = u32::from_le_bytes(field.try_into().expect("the field is four bytes"));
    if (size as usize) < HEADER_BYTES {
        return Err(CloseReason::TooShort { size });
    }
    if size > limit {
        return Err(CloseReason::TooLong { size, limit });
    }
    Ok(Some(size as usize))
}

// spec ANS-23
/// Takes the next frame off the front of `buffer`, if all of it is there. Bodies share the buffer's
/// memory. `limit` is the largest accepted frame, header included.
pub fn decode_frame(buffer: &mut BytesMut, limit: u32) -> Decoded {
    let size = match frame_bytes(buffer, limit) {
        Err(reason) => return Decoded::Close(reason),
        Ok(None) => return Decoded::NeedMore(HEADER_BYTES - buffer.len()),
        Ok(Some(size)) => size,
    };
    if buffer.len() < size {
        return Decoded::NeedMore(size - buffer.len());
    }
    let mut frame = buffer.split_to(size).freeze();
    let head = frame.split_to(HEADER_BYTES);
    let head: &[u8; HEADER_BYTES] = head[..].try_into().expect("split at the header's length");
    Decoded::Frame(Frame {
        header: RequestHeader::from_bytes(head),
        body: frame,
    })
}

#[cfg(test)]
#[path = "frame_test.rs"]
mod tests;
