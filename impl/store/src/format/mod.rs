//! Byte layouts of everything in a data directory. `spec/layouts.md` lists them; each module's
//! table is the authority. Little endian; reserved bytes are zero and refused when not.

pub mod anchor;
pub mod batch;
pub mod names;
pub mod partition;
pub mod segment;
pub mod sidecar;
pub mod snapshot;

use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use crate::error::Unreadable;
use crate::record::SegmentId;

/// Batches begin at multiples of this, and so does what a flush writes.
pub const BLOCK_BYTES: usize = 4096;

/// A place in the log between two batches, with what is needed to go on from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct LogPosition {
    /// Checksum of the batch before it; of the first batch of a log: 0.
    pub parent: u128,
    /// The segment.
    pub segment: u64,
    /// First byte of the batch that comes next, if it is in this segment.
    pub position: u64,
    /// Number of the batch that comes next.
    pub number: u64,
    /// Lsn of the record that comes next.
    pub lsn: u64,
}

const _: () = assert!(size_of::<LogPosition>() == 48);

impl LogPosition {
    /// Where a log begins.
    pub const ORIGIN: LogPosition = LogPosition {
        parent: 0,
        segment: 1,
        position: BLOCK_BYTES as u64,
        number: 1,
        lsn: 1,
    };

    /// The segment.
    pub fn segment(&self) -> SegmentId {
        SegmentId(self.segment)
    }

    /// The same place in the log, at the beginning of the next segment.
    pub fn in_next_segment(&self) -> LogPosition {
        LogPosition {
            segment: self.segment + 1,
            position: BLOCK_BYTES as u64,
            ..*self
        }
    }

    /// Whether both are the same place in the log, in whatever segment it is written down.
    pub fn continues(&self, other: &LogPosition) -> bool {
        (self.parent, self.number, self.lsn) == (other.parent, other.number, other.lsn)
    }
}

/// Rounds up to whole blocks.
pub fn block_align(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES as u64)
}

/// XXH3-128 under the log's nonce: bytes inside a message cannot pass for a batch of the log.
pub fn checksum_keyed(nonce: u64, bytes: &[u8]) -> u128 {
    xxh3_128_with_seed(bytes, nonce)
}

/// XXH3-128.
pub fn checksum(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Low half of a body's checksum, as places carry it.
pub fn checksum_low(checksum: u128) -> u64 {
    checksum as u64
}

/// The first bytes as a value; `Short` when there are too few.
pub fn read_pod<T: AnyBitPattern>(bytes: &[u8]) -> Result<T, Unreadable> {
    let bytes = bytes.get(..size_of::<T>()).ok_or(Unreadable::Short)?;
    Ok(bytemuck::pod_read_unaligned(bytes))
}

/// A value whose first 16 bytes are the checksum of the rest.
pub fn seal<T: NoUninit>(value: &T) -> u128 {
    checksum(&bytemuck::bytes_of(value)[16..])
}

/// Refuses a wrong magic, checksum or version, in this order of usefulness to a reader.
pub fn check_head<T: NoUninit>(
    value: &T,
    (found, magic): (u64, u64),
    (stored, version): (u128, u16),
    known: u16,
) -> Result<(), Unreadable> {
    if found != magic {
        return Err(Unreadable::Magic);
    }
    if stored != seal(value) {
        return Err(Unreadable::Checksum);
    }
    if version != known {
        return Err(Unreadable::Version(version));
    }
    Ok(())
}

/// Refuses a field of reserved bytes that are not all zero.
pub fn check_zero(bytes: &[u8]) -> Result<(), Unreadable> {
    match bytes.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(Unreadable::Field("reserved")),
    }
}
