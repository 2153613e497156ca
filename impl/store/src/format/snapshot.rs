//! A checkpoint's file: the machine's snapshot, and what the replica needs beside it.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of bytes 16..128 |
//! | 16 | 16 | cluster |
//! | 32 | 16 | digest: XXH3-128 of everything behind byte 128 |
//! | 48 | 8 | magic `PAWLSNP1` |
//! | 56 | 8 | op |
//! | 64 | 8 | bytes of the machine's snapshot |
//! | 72 | 4 | bytes of the replica's checkpoint header |
//! | 76 | 2 | version: 1 |
//! | 78 | 50 | reserved, zero |
//! | 128 | | checkpoint header (`pawl_vsr::checkpoint`), snapshot |

use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use pawl_vsr::CheckpointHeader;

use super::{check_head, check_zero, checksum, read_pod, seal};
use crate::error::Unreadable;

/// Magic number of a checkpoint's file.
pub const SNAPSHOT_MAGIC: u64 = u64::from_le_bytes(*b"PAWLSNP1");
/// Version of the layout above.
pub const SNAPSHOT_VERSION: u16 = 1;

/// The header of a checkpoint's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct SnapshotHeader {
    checksum: u128,
    cluster: u128,
    digest: u128,
    magic: u64,
    op: u64,
    snapshot_bytes: u64,
    header_bytes: u32,
    version: u16,
    reserved: [u8; 50],
}

const HEADER_BYTES: usize = size_of::<SnapshotHeader>();
const _: () = assert!(HEADER_BYTES == 128);

/// What a checkpoint's file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotFile {
    /// The cluster.
    pub cluster: u128,
    /// What the replica needs to go on from here.
    pub header: CheckpointHeader,
    /// The machine's snapshot.
    pub snapshot: Bytes,
}

impl SnapshotFile {
    /// The bytes of the file.
    pub fn encode(cluster: u128, checkpoint: &CheckpointHeader, snapshot: &[u8]) -> Vec<u8> {
        let checkpoint_bytes = checkpoint.encode();
        let mut out = Vec::with_capacity(HEADER_BYTES + checkpoint_bytes.len() + snapshot.len());
        out.resize(HEADER_BYTES, 0);
        out.extend_from_slice(&checkpoint_bytes);
        out.extend_from_slice(snapshot);
        let mut header = SnapshotHeader {
            cluster,
            digest: checksum(&out[HEADER_BYTES..]),
            magic: SNAPSHOT_MAGIC,
            op: checkpoint.op.0,
            snapshot_bytes: snapshot.len() as u64,
            header_bytes: checkpoint_bytes.len() as u32,
            version: SNAPSHOT_VERSION,
            ..SnapshotHeader::zeroed()
        };
        header.checksum = seal(&header);
        out[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
        out
    }

    /// Reads and verifies a file.
    pub fn decode(bytes: &Bytes) -> Result<SnapshotFile, Unreadable> {
        let header: SnapshotHeader = read_pod(bytes)?;
        let stored = (header.checksum, header.version);
        check_head(
            &header,
            (header.magic, SNAPSHOT_MAGIC),
            stored,
            SNAPSHOT_VERSION,
        )?;
        check_zero(&header.reserved)?;
        let mut rest = bytes.slice(HEADER_BYTES..);
        let sizes = u64::from(header.header_bytes).checked_add(header.snapshot_bytes);
        if sizes != Some(rest.len() as u64) {
            return Err(Unreadable::Short);
        }
        if checksum(&rest) != header.digest {
            return Err(Unreadable::Checksum);
        }
        let checkpoint = rest.split_to(header.header_bytes as usize);
        let decoded = CheckpointHeader::decode(&checkpoint);
        let (checkpoint, _) = decoded.map_err(|_| Unreadable::Field("checkpoint header"))?;
        if checkpoint.op.0 != header.op {
            return Err(Unreadable::Field("op"));
        }
        Ok(SnapshotFile {
            cluster: header.cluster,
            header: checkpoint,
            snapshot: rest,
        })
    }
}
