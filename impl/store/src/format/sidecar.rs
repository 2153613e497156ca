//! A sidecar: the index of a file, written so that a start need not scan it. Derived; a start that
//! finds it missing, damaged or of other data scans the file instead.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of everything behind it |
//! | 16 | 16 | cluster |
//! | 32 | 8 | magic `PAWLIDX1` |
//! | 40 | 8 | nonce of the log |
//! | 48 | 48 | first: where the log segment begins; zero for a partition's file |
//! | 96 | 48 | end: up to where it is indexed; of a partition's file only the position |
//! | 144 | 8 | uid of the partition; 0 for a log segment |
//! | 152 | 8 | highest op of an entry |
//! | 160 | 4 | number of the partition's file |
//! | 164 | 4 | count of entries |
//! | 168 | 2 | version: 1 |
//! | 170 | 22 | reserved, zero |
//! | 192 | 64 each | entries |
//!
//! An entry: uid, base offset, op, timestamp, low half of the body's checksum (8 bytes each),
//! position and bytes of the body, count of messages, position and bytes of the batch in the body
//! (4 bytes each), 4 bytes reserved, zero.

use bytemuck::{Pod, Zeroable};
use pawl_wire::ids::{Op, PartitionUid, Timestamp};

use super::{LogPosition, check_zero, checksum, read_pod};
use crate::error::Unreadable;
use crate::index::BatchEntry;
use crate::record::{Place, PlaceFile, SegmentId};

/// Magic number of a sidecar.
pub const SIDECAR_MAGIC: u64 = u64::from_le_bytes(*b"PAWLIDX1");
/// Version of the layout above.
pub const SIDECAR_VERSION: u16 = 1;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SidecarHeader {
    checksum: u128,
    cluster: u128,
    magic: u64,
    nonce: u64,
    first: LogPosition,
    end: LogPosition,
    uid: u64,
    op_max: u64,
    number: u32,
    entry_count: u32,
    version: u16,
    reserved: [u8; 22],
}

const HEADER_BYTES: usize = size_of::<SidecarHeader>();
const _: () = assert!(HEADER_BYTES == 192);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SidecarEntry {
    uid: u64,
    base_offset: u64,
    op: u64,
    timestamp: u64,
    checksum: u64,
    position: u32,
    bytes: u32,
    message_count: u32,
    batch_position: u32,
    batch_length: u32,
    reserved: u32,
}

const ENTRY_BYTES: usize = size_of::<SidecarEntry>();
const _: () = assert!(ENTRY_BYTES == 64);

/// Which file a sidecar belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SidecarOf {
    /// A log segment, indexed from `first` to `end`.
    Log {
        /// Where the segment begins.
        first: LogPosition,
        /// Up to where it is indexed.
        end: LogPosition,
    },
    /// A partition's file.
    Partition {
        /// The partition.
        uid: PartitionUid,
        /// Number of the file.
        number: u32,
        /// Up to where it is indexed.
        end: u64,
    },
}

/// The index of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sidecar {
    /// The cluster.
    pub cluster: u128,
    /// The log's nonce.
    pub nonce: u64,
    /// The file.
    pub of: SidecarOf,
    /// Highest op of an entry of the log segment.
    pub op_max: Op,
    /// Its batches.
    pub entries: Vec<(PartitionUid, BatchEntry)>,
}

const NOWHERE: LogPosition = LogPosition {
    parent: 0,
    segment: 0,
    position: 0,
    number: 0,
    lsn: 0,
};

impl Sidecar {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let (first, end, uid, number) = match self.of {
            SidecarOf::Log { first, end } => (first, end, 0, 0),
            SidecarOf::Partition { uid, number, end } => {
                let position = LogPosition {
                    position: end,
                    ..NOWHERE
                };
                (NOWHERE, position, uid.0, number)
            }
        };
        let header = SidecarHeader {
            cluster: self.cluster,
            magic: SIDECAR_MAGIC,
            nonce: self.nonce,
            first,
            end,
            uid,
            op_max: self.op_max.0,
            number,
            entry_count: self.entries.len() as u32,
            version: SIDECAR_VERSION,
            ..SidecarHeader::zeroed()
        };
        let mut out = Vec::with_capacity(HEADER_BYTES + self.entries.len() * ENTRY_BYTES);
        out.extend_from_slice(bytemuck::bytes_of(&header));
        for (uid, entry) in &self.entries {
            out.extend_from_slice(bytemuck::bytes_of(&pack(*uid, entry)));
        }
        let sealed = checksum(&out[16..]);
        out[..16].copy_from_slice(&sealed.to_le_bytes());
        out
    }

    /// Reads and verifies a sidecar.
    pub fn decode(bytes: &[u8]) -> Result<Sidecar, Unreadable> {
        let header: SidecarHeader = read_pod(bytes)?;
        if header.magic != SIDECAR_MAGIC {
            return Err(Unreadable::Magic);
        }
        if checksum(&bytes[16..]) != header.checksum {
            return Err(Unreadable::Checksum);
        }
        if header.version != SIDECAR_VERSION {
            return Err(Unreadable::Version(header.version));
        }
        check_zero(&header.reserved)?;
        let rest = &bytes[HEADER_BYTES..];
        if rest.len() as u64 != u64::from(header.entry_count) * ENTRY_BYTES as u64 {
            return Err(Unreadable::Short);
        }
        let of = match header.uid {
            0 => SidecarOf::Log {
                first: header.first,
                end: header.end,
            },
            uid => SidecarOf::Partition {
                uid: PartitionUid(uid),
                number: header.number,
                end: header.end.position,
            },
        };
        let file = match of {
            SidecarOf::Log { first, .. } => PlaceFile::Log(SegmentId(first.segment)),
            SidecarOf::Partition { uid, number, .. } => PlaceFile::Partition { uid, number },
        };
        let entries = rest.chunks_exact(ENTRY_BYTES);
        Ok(Sidecar {
            cluster: header.cluster,
            nonce: header.nonce,
            of,
            op_max: Op(header.op_max),
            entries: entries.map(|chunk| unpack(chunk, file)).collect(),
        })
    }
}

fn pack(uid: PartitionUid, entry: &BatchEntry) -> SidecarEntry {
    SidecarEntry {
        uid: uid.0,
        base_offset: entry.base_offset,
        op: entry.op.0,
        timestamp: entry.timestamp.0,
        checksum: entry.place.checksum,
        position: entry.place.position,
        bytes: entry.place.bytes,
        message_count: entry.message_count,
        batch_position: entry.batch_position,
        batch_length: entry.batch_length,
        reserved: 0,
    }
}

fn unpack(chunk: &[u8], file: PlaceFile) -> (PartitionUid, BatchEntry) {
    let packed: SidecarEntry = bytemuck::pod_read_unaligned(chunk);
    let entry = BatchEntry {
        base_offset: packed.base_offset,
        message_count: packed.message_count,
        timestamp: Timestamp(packed.timestamp),
        op: Op(packed.op),
        batch_position: packed.batch_position,
        batch_length: packed.batch_length,
        place: Place {
            file,
            position: packed.position,
            bytes: packed.bytes,
            checksum: packed.checksum,
        },
    };
    (PartitionUid(packed.uid), entry)
}
