//! A partition's own file: batches that were drained from the log, one record after the other.
//!
//! The file begins with a header:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of bytes 16..128 |
//! | 16 | 16 | cluster |
//! | 32 | 8 | magic `PAWLPRT1` |
//! | 40 | 8 | uid of the partition |
//! | 48 | 4 | number of the file, from 1 |
//! | 52 | 2 | version: 1 |
//! | 54 | 74 | reserved, zero |
//!
//! A record is a header, the body exactly as it stood in the log, and zeros up to a multiple of 16:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of bytes 16..128 |
//! | 16 | 16 | checksum of the body |
//! | 32 | 8 | magic `PAWLREC1` |
//! | 40 | 8 | uid of the partition |
//! | 48 | 8 | position of the record in the file |
//! | 56 | 8 | op |
//! | 64 | 8 | base offset |
//! | 72 | 8 | timestamp |
//! | 80 | 4 | count of messages |
//! | 84 | 4 | bytes of the body |
//! | 88 | 4 | position of the batch in the body |
//! | 92 | 4 | bytes of the batch |
//! | 96 | 4 | number of the file |
//! | 100 | 28 | reserved, zero |

use bytemuck::{Pod, Zeroable};
use pawl_wire::ids::{Op, PartitionUid, Timestamp};

use super::{check_head, check_zero, checksum_low, read_pod, seal};
use crate::error::Unreadable;
use crate::index::BatchEntry;
use crate::record::{Place, PlaceFile};

/// Magic number of a partition's file.
pub const PARTITION_MAGIC: u64 = u64::from_le_bytes(*b"PAWLPRT1");
/// Magic number of a record.
pub const RECORD_MAGIC: u64 = u64::from_le_bytes(*b"PAWLREC1");
/// Version of the layouts above.
pub const PARTITION_VERSION: u16 = 1;
/// Bytes of the file's header and of a record's header.
pub const PARTITION_HEADER_BYTES: usize = 128;

/// The header of a partition's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct PartitionHeader {
    checksum: u128,
    /// The cluster.
    pub cluster: u128,
    magic: u64,
    uid: u64,
    /// Number of the file.
    pub number: u32,
    version: u16,
    reserved: [u8; 74],
}

const _: () = assert!(size_of::<PartitionHeader>() == PARTITION_HEADER_BYTES);

impl PartitionHeader {
    /// The header of a file.
    pub fn new(cluster: u128, uid: PartitionUid, number: u32) -> PartitionHeader {
        let mut header = PartitionHeader {
            cluster,
            magic: PARTITION_MAGIC,
            uid: uid.0,
            number,
            version: PARTITION_VERSION,
            ..PartitionHeader::zeroed()
        };
        header.checksum = seal(&header);
        header
    }

    /// The partition.
    pub fn uid(&self) -> PartitionUid {
        PartitionUid(self.uid)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    /// Reads and verifies a header.
    pub fn decode(bytes: &[u8]) -> Result<PartitionHeader, Unreadable> {
        let header: PartitionHeader = read_pod(bytes)?;
        let stored = (header.checksum, header.version);
        check_head(
            &header,
            (header.magic, PARTITION_MAGIC),
            stored,
            PARTITION_VERSION,
        )?;
        check_zero(&header.reserved)?;
        Ok(header)
    }
}

/// The header of a drained batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RecordHeader {
    checksum: u128,
    /// XXH3-128 of the body.
    pub checksum_body: u128,
    magic: u64,
    uid: u64,
    /// First byte of the record in the file.
    pub position: u64,
    op: u64,
    base_offset: u64,
    timestamp: u64,
    message_count: u32,
    /// Bytes of the body.
    pub body_bytes: u32,
    batch_position: u32,
    batch_length: u32,
    number: u32,
    reserved: [u8; 28],
}

const _: () = assert!(size_of::<RecordHeader>() == PARTITION_HEADER_BYTES);

/// Bytes of a record with a body of this length.
pub fn record_bytes(body_bytes: u32) -> u64 {
    (PARTITION_HEADER_BYTES as u64 + u64::from(body_bytes)).next_multiple_of(16)
}

impl RecordHeader {
    /// The header of a batch that is drained to `position` of file `number`.
    pub fn new(
        uid: PartitionUid,
        (number, position): (u32, u64),
        entry: &BatchEntry,
        checksum_body: u128,
    ) -> RecordHeader {
        let mut header = RecordHeader {
            checksum_body,
            magic: RECORD_MAGIC,
            uid: uid.0,
            position,
            op: entry.op.0,
            base_offset: entry.base_offset,
            timestamp: entry.timestamp.0,
            message_count: entry.message_count,
            body_bytes: entry.place.bytes,
            batch_position: entry.batch_position,
            batch_length: entry.batch_length,
            number,
            ..RecordHeader::zeroed()
        };
        header.checksum = seal(&header);
        header
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    /// Reads and verifies a header that must stand at `position` of file `number`.
    pub fn decode(
        bytes: &[u8],
        uid: PartitionUid,
        (number, position): (u32, u64),
    ) -> Result<RecordHeader, Unreadable> {
        let header: RecordHeader = read_pod(bytes)?;
        let stored = (header.checksum, PARTITION_VERSION);
        check_head(
            &header,
            (header.magic, RECORD_MAGIC),
            stored,
            PARTITION_VERSION,
        )?;
        check_zero(&header.reserved)?;
        if header.uid != uid.0 {
            return Err(Unreadable::Field("uid"));
        }
        if (header.number, header.position) != (number, position) {
            return Err(Unreadable::Field("position"));
        }
        Ok(header)
    }

    /// Bytes of the whole record.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(self.body_bytes)
    }

    /// The index entry of the batch.
    pub fn entry(&self) -> BatchEntry {
        BatchEntry {
            base_offset: self.base_offset,
            message_count: self.message_count,
            timestamp: Timestamp(self.timestamp),
            op: Op(self.op),
            batch_position: self.batch_position,
            batch_length: self.batch_length,
            place: Place {
                file: PlaceFile::Partition {
                    uid: PartitionUid(self.uid),
                    number: self.number,
                },
                position: self.position as u32 + PARTITION_HEADER_BYTES as u32,
                bytes: self.body_bytes,
                checksum: checksum_low(self.checksum_body),
            },
        }
    }
}
