//! Names in a data directory. Whatever does not parse is not ours.

use pawl_wire::ids::{Op, PartitionUid};

use crate::record::SegmentId;

/// Directory of the log.
pub const LOG: &str = "wal";
/// Directory of checkpoints.
pub const SNAPSHOTS: &str = "snapshots";
/// Directory of drained partitions.
pub const PARTITIONS: &str = "partitions";
/// Directory of tails that recovery cut.
pub const CUT: &str = "cut";
/// Directory of files that are not finished.
pub const TEMPORARY: &str = "tmp";
/// The anchor.
pub const ANCHOR: &str = "anchor";
/// The lock.
pub const LOCK: &str = "lock";
/// Room that is given up when a snapshot finds the volume full.
pub const RESERVE: &str = "tmp/reserve";

/// All directories.
pub const DIRECTORIES: [&str; 5] = [LOG, SNAPSHOTS, PARTITIONS, CUT, TEMPORARY];

/// A log segment.
pub fn segment(segment: SegmentId) -> String {
    format!("{LOG}/{:016x}.wal", segment.0)
}

/// A log segment's sidecar.
pub fn segment_sidecar(segment: SegmentId) -> String {
    format!("{LOG}/{:016x}.idx", segment.0)
}

/// A snapshot.
pub fn snapshot(op: Op) -> String {
    format!("{SNAPSHOTS}/{:016x}.snap", op.0)
}

/// A partition's directory.
pub fn partition(uid: PartitionUid) -> String {
    format!("{PARTITIONS}/{:016x}", uid.0)
}

/// A partition's file.
pub fn partition_segment(uid: PartitionUid, number: u32) -> String {
    format!("{PARTITIONS}/{:016x}/{number:08x}.seg", uid.0)
}

/// The sidecar of a partition's file.
pub fn partition_sidecar(uid: PartitionUid, number: u32) -> String {
    format!("{PARTITIONS}/{:016x}/{number:08x}.idx", uid.0)
}

/// The segment whose file (`.wal`) or sidecar (`.idx`) this name inside `wal` is.
pub fn parse_segment(name: &str, extension: &str) -> Option<SegmentId> {
    parse_hex(name.strip_suffix(extension)?, 16).map(SegmentId)
}

/// The op whose snapshot this name inside `snapshots` is.
pub fn parse_snapshot(name: &str) -> Option<Op> {
    parse_hex(name.strip_suffix(".snap")?, 16).map(Op)
}

/// The partition whose directory this name inside `partitions` is.
pub fn parse_partition(name: &str) -> Option<PartitionUid> {
    parse_hex(name, 16).map(PartitionUid)
}

/// The number of the file (`.seg`) or sidecar (`.idx`) with this name in a partition's directory.
pub fn parse_partition_file(name: &str, extension: &str) -> Option<u32> {
    let number = parse_hex(name.strip_suffix(extension)?, 8)?;
    u32::try_from(number).ok()
}

fn parse_hex(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}
