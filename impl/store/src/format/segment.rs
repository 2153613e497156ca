//! The first block of a log segment. It helps to tell files apart and to inspect them; recovery
//! believes the batches, which name their segment and position themselves.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of bytes 16..128 |
//! | 16 | 16 | cluster |
//! | 32 | 8 | magic `PAWLWAL1` |
//! | 40 | 8 | segment: number, rising, never reused; a recycled file gets a new one |
//! | 48 | 8 | nonce of the log, which keys the checksums of its batches |
//! | 56 | 2 | version: 1 |
//! | 58 | 1 | 1: the file was recycled, so that old bytes stand behind the log's end |
//! | 59 | 69 | reserved, zero |

use bytemuck::{Pod, Zeroable};

use super::{BLOCK_BYTES, check_head, check_zero, read_pod, seal};
use crate::error::Unreadable;
use crate::record::SegmentId;

/// Magic number of a log segment.
pub const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"PAWLWAL1");
/// Version of the layout above.
pub const SEGMENT_VERSION: u16 = 1;

/// The header of a log segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentHeader {
    checksum: u128,
    /// The cluster.
    pub cluster: u128,
    magic: u64,
    segment: u64,
    /// Keys the checksums of batches.
    pub nonce: u64,
    version: u16,
    recycled: u8,
    reserved: [u8; 69],
}

const _: () = assert!(size_of::<SegmentHeader>() == 128);

impl SegmentHeader {
    /// The header of a segment.
    pub fn new(cluster: u128, nonce: u64, segment: SegmentId, recycled: bool) -> SegmentHeader {
        let mut header = SegmentHeader {
            cluster,
            magic: SEGMENT_MAGIC,
            segment: segment.0,
            nonce,
            version: SEGMENT_VERSION,
            recycled: u8::from(recycled),
            ..SegmentHeader::zeroed()
        };
        header.checksum = seal(&header);
        header
    }

    /// The segment's number.
    pub fn segment(&self) -> SegmentId {
        SegmentId(self.segment)
    }

    /// Whether the file had an earlier life.
    pub fn recycled(&self) -> bool {
        self.recycled == 1
    }

    /// A whole block.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        block[..size_of::<SegmentHeader>()].copy_from_slice(bytemuck::bytes_of(self));
        block
    }

    /// Reads and verifies a header.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, Unreadable> {
        let header: SegmentHeader = read_pod(bytes)?;
        let stored = (header.checksum, header.version);
        check_head(
            &header,
            (header.magic, SEGMENT_MAGIC),
            stored,
            SEGMENT_VERSION,
        )?;
        if header.recycled > 1 {
            return Err(Unreadable::Field("recycled"));
        }
        check_zero(&header.reserved)?;
        Ok(header)
    }
}
