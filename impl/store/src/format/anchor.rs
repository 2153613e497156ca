//! The anchor: the small root record of a data directory.
//!
//! The file has four slots of a block each. Anchor `n` is written to slots `2 (n mod 2)` and the
//! one behind it, in one write and one flush; the other two keep anchor `n - 1`. The newest valid
//! slot counts.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of bytes 16..448 |
//! | 16 | 16 | cluster |
//! | 32 | 16 | constants: fingerprint of the cluster's constants |
//! | 48 | 8 | magic `PAWLANC1` |
//! | 56 | 8 | sequence, from 1 |
//! | 64 | 8 | nonce of the log |
//! | 72 | 2 | version: 1 |
//! | 74 | 1 | replica |
//! | 75 | 5 | reserved, zero |
//! | 80 | 48 | log_start: where the oldest segment that is kept begins |
//! | 128 | 96 | the newest checkpoint |
//! | 224 | 96 | the checkpoint before it |
//! | 320 | 128 | reserved, zero |
//!
//! A checkpoint; all zero but `replay` for "the machine before op 1":
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | digest: XXH3-128 of the snapshot file |
//! | 16 | 48 | replay: every record that is not in the snapshot stands at or behind it |
//! | 64 | 8 | op; 0: none |
//! | 72 | 8 | bytes of the snapshot file |
//! | 80 | 16 | reserved, zero |

use bytemuck::{Pod, Zeroable};
use pawl_wire::ids::{Op, ReplicaIndex};

use super::{BLOCK_BYTES, LogPosition, check_head, check_zero, read_pod, seal};
use crate::error::Unreadable;
use crate::options::Identity;

/// Magic number of the anchor.
pub const ANCHOR_MAGIC: u64 = u64::from_le_bytes(*b"PAWLANC1");
/// Version of the layout above.
pub const ANCHOR_VERSION: u16 = 1;
/// Slots in the file.
pub const ANCHOR_SLOTS: usize = 4;
/// Bytes of the file.
pub const ANCHOR_BYTES: usize = ANCHOR_SLOTS * BLOCK_BYTES;

/// A checkpoint that the anchor names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CheckpointRef {
    /// XXH3-128 of the snapshot file.
    pub digest: u128,
    /// Where the log goes on from it.
    pub replay: LogPosition,
    op: u64,
    /// Bytes of the snapshot file.
    pub bytes: u64,
    reserved: [u8; 16],
}

impl CheckpointRef {
    /// "The machine before op 1".
    pub const NONE: CheckpointRef = CheckpointRef {
        digest: 0,
        replay: LogPosition::ORIGIN,
        op: 0,
        bytes: 0,
        reserved: [0; 16],
    };

    /// A checkpoint.
    pub fn new(op: Op, digest: u128, bytes: u64, replay: LogPosition) -> CheckpointRef {
        CheckpointRef {
            digest,
            replay,
            op: op.0,
            bytes,
            reserved: [0; 16],
        }
    }

    /// Its op; 0: none.
    pub fn op(&self) -> Op {
        Op(self.op)
    }
}

/// The anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Anchor {
    checksum: u128,
    /// The cluster.
    pub cluster: u128,
    /// Fingerprint of the cluster's constants.
    pub constants: u128,
    magic: u64,
    /// From 1, rising by one with each switch.
    pub sequence: u64,
    /// Keys the checksums of batches.
    pub nonce: u64,
    version: u16,
    replica: u8,
    reserved_head: [u8; 5],
    /// Where the oldest segment that is kept begins.
    pub log_start: LogPosition,
    /// The newest checkpoint.
    pub newest: CheckpointRef,
    /// The checkpoint before it.
    pub previous: CheckpointRef,
    reserved: [u8; 128],
}

const _: () = assert!(size_of::<CheckpointRef>() == 96);
const _: () = assert!(size_of::<Anchor>() == 448);

impl Anchor {
    /// The anchor of an empty log.
    pub fn new(identity: &Identity, nonce: u64) -> Anchor {
        Anchor {
            cluster: identity.cluster,
            constants: identity.constants,
            magic: ANCHOR_MAGIC,
            sequence: 1,
            nonce,
            version: ANCHOR_VERSION,
            replica: identity.replica.0,
            log_start: LogPosition::ORIGIN,
            newest: CheckpointRef::NONE,
            previous: CheckpointRef::NONE,
            ..Anchor::zeroed()
        }
    }

    /// Whose data it is.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.cluster,
            replica: ReplicaIndex(self.replica),
            constants: self.constants,
        }
    }

    /// The first of the two slots that this anchor is written to.
    pub fn slot(&self) -> usize {
        (self.sequence % 2) as usize * 2
    }

    /// One slot.
    pub fn encode(&self) -> Vec<u8> {
        let mut sealed = *self;
        sealed.checksum = seal(&sealed);
        let mut block = vec![0; BLOCK_BYTES];
        block[..size_of::<Anchor>()].copy_from_slice(bytemuck::bytes_of(&sealed));
        block
    }

    /// Reads and verifies one slot.
    pub fn decode(bytes: &[u8]) -> Result<Anchor, Unreadable> {
        let mut anchor: Anchor = read_pod(bytes)?;
        let stored = (anchor.checksum, anchor.version);
        check_head(
            &anchor,
            (anchor.magic, ANCHOR_MAGIC),
            stored,
            ANCHOR_VERSION,
        )?;
        check_zero(&anchor.reserved_head)?;
        check_zero(&anchor.reserved)?;
        check_zero(&anchor.newest.reserved)?;
        check_zero(&anchor.previous.reserved)?;
        anchor.checksum = 0;
        Ok(anchor)
    }
}
