//! Any file of a data directory, in words.
//!
//! Reads a file that an operator names, by its content or else by its name. Nothing is believed
//! before its checksum; what cannot be read is said, with its position, and the reading goes on
//! where it can.

mod log;
mod partition;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;

use crate::error::Unreadable;
use crate::format::anchor::{ANCHOR_MAGIC, ANCHOR_SLOTS, Anchor, CheckpointRef};
use crate::format::partition::PARTITION_MAGIC;
use crate::format::segment::SEGMENT_MAGIC;
use crate::format::sidecar::{SIDECAR_MAGIC, Sidecar, SidecarOf};
use crate::format::snapshot::{SNAPSHOT_MAGIC, SnapshotFile};
use crate::format::{BLOCK_BYTES, LogPosition, names};

/// The lines about a file, made as they are asked for.
pub type Lines = Box<dyn Iterator<Item = String>>;

/// What a file seems to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Log,
    Anchor,
    Snapshot,
    Partition,
    Sidecar,
    Foreign,
}

/// Describes a log segment, anchor, snapshot, partition file or sidecar, one line an item. Bytes
/// that cannot be read are described too, with their position.
pub fn inspect(path: &Path) -> io::Result<Lines> {
    let source = Source::open(path)?;
    let kind = source.kind(path)?;
    let title = format!(
        "{}: {}, {} bytes",
        path.display(),
        kind.words(),
        source.bytes
    );
    let lines: Lines = match kind {
        Kind::Log => log::lines(source, nonce_of_anchor(path)),
        Kind::Anchor => Box::new(anchor_lines(&source)?.into_iter()),
        Kind::Snapshot => Box::new(snapshot_lines(&source)?.into_iter()),
        Kind::Partition => partition::lines(source),
        Kind::Sidecar => Box::new(sidecar_lines(&source)?.into_iter()),
        Kind::Foreign => Box::new(std::iter::empty()),
    };
    Ok(Box::new(std::iter::once(title).chain(lines)))
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Log => "log segment",
            Kind::Anchor => "anchor",
            Kind::Snapshot => "snapshot of a checkpoint",
            Kind::Partition => "partition file",
            Kind::Sidecar => "sidecar: the index of a file",
            Kind::Foreign => "not a file of a data directory",
        }
    }
}

/// A file that is read by position.
struct Source {
    file: File,
    bytes: u64,
}

impl Source {
    fn open(path: &Path) -> io::Result<Source> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Source { file, bytes })
    }

    /// So many bytes, or as many as there are.
    fn read(&self, position: u64, bytes: u64) -> io::Result<Bytes> {
        let there = bytes.min(self.bytes.saturating_sub(position));
        let mut buffer = vec![0; there as usize];
        self.file.read_exact_at(&mut buffer, position)?;
        Ok(buffer.into())
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let head = self.read(0, 64)?;
        let word = |at: usize| {
            let bytes = head.get(at..at + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let by_content = match (word(32), word(48)) {
            (SEGMENT_MAGIC, _) => Some(Kind::Log),
            (PARTITION_MAGIC, _) => Some(Kind::Partition),
            (SIDECAR_MAGIC, _) => Some(Kind::Sidecar),
            (_, ANCHOR_MAGIC) => Some(Kind::Anchor),
            (_, SNAPSHOT_MAGIC) => Some(Kind::Snapshot),
            _ => None,
        };
        Ok(by_content.unwrap_or_else(|| kind_by_name(path)))
    }
}

/// For files whose first bytes are damaged.
fn kind_by_name(path: &Path) -> Kind {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    match name {
        names::ANCHOR => Kind::Anchor,
        _ if names::parse_segment(name, ".wal").is_some() => Kind::Log,
        _ if names::parse_snapshot(name).is_some() => Kind::Snapshot,
        _ if names::parse_partition_file(name, ".seg").is_some() => Kind::Partition,
        _ if name.ends_with(".idx") => Kind::Sidecar,
        _ => Kind::Foreign,
    }
}

/// The log's nonce, from the anchor of the directory that a segment is in.
fn nonce_of_anchor(segment: &Path) -> Option<u64> {
    let root = segment.parent()?.parent()?;
    let source = Source::open(&root.join(names::ANCHOR)).ok()?;
    let bytes = source.read(0, (ANCHOR_SLOTS * BLOCK_BYTES) as u64).ok()?;
    let mut slots = bytes.chunks(BLOCK_BYTES);
    slots.find_map(|slot| Anchor::decode(slot).ok().map(|anchor| anchor.nonce))
}

fn unreadable(position: u64, reason: Unreadable) -> String {
    format!("byte {position}: cannot be read: {reason}")
}

fn place_words(at: &LogPosition) -> String {
    format!(
        "segment {} byte {}, batch {}, lsn {}",
        at.segment, at.position, at.number, at.lsn
    )
}

fn anchor_lines(source: &Source) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for slot in 0..ANCHOR_SLOTS {
        let position = (slot * BLOCK_BYTES) as u64;
        let bytes = source.read(position, BLOCK_BYTES as u64)?;
        match Anchor::decode(&bytes) {
            Err(reason) => lines.push(unreadable(position, reason)),
            Ok(anchor) => {
                let identity = anchor.identity();
                lines.push(format!(
                    "byte {position}: anchor {}, cluster {:032x}, {}, constants {:032x}",
                    anchor.sequence, identity.cluster, identity.replica, identity.constants
                ));
                let start = place_words(&anchor.log_start);
                lines.push(format!("  the log begins at {start}"));
                lines.push(format!(
                    "  newest checkpoint: {}",
                    checkpoint_words(&anchor.newest)
                ));
                let previous = checkpoint_words(&anchor.previous);
                lines.push(format!("  the one before: {previous}"));
            }
        }
    }
    Ok(lines)
}

fn checkpoint_words(checkpoint: &CheckpointRef) -> String {
    let replay = place_words(&checkpoint.replay);
    match checkpoint.op().0 {
        0 => format!("none: replay from {replay}"),
        op => format!(
            "op {op}, file of {} bytes with digest {:032x}, replay from {replay}",
            checkpoint.bytes, checkpoint.digest
        ),
    }
}

fn snapshot_lines(source: &Source) -> io::Result<Vec<String>> {
    let bytes = source.read(0, source.bytes)?;
    let file = match SnapshotFile::decode(&bytes) {
        Ok(file) => file,
        Err(reason) => return Ok(vec![unreadable(0, reason)]),
    };
    let header = &file.header;
    Ok(vec![
        format!(
            "cluster {:032x}, written by {}",
            file.cluster, header.replica
        ),
        format!(
            "the machine after {}, entry {:032x}, time {}, digest {:032x}",
            header.op, header.id.0, header.timestamp, header.digest
        ),
        format!("replay from {}", header.replay_from),
        format!("latest vote: {}", header.vote),
        format!("snapshot of the machine: {} bytes", file.snapshot.len()),
    ])
}

fn sidecar_lines(source: &Source) -> io::Result<Vec<String>> {
    let bytes = source.read(0, source.bytes)?;
    let sidecar = match Sidecar::decode(&bytes) {
        Ok(sidecar) => sidecar,
        Err(reason) => return Ok(vec![unreadable(0, reason)]),
    };
    let of = match sidecar.of {
        SidecarOf::Log { first, end } => format!(
            "of a log segment, from {} to {}, ops up to {}",
            place_words(&first),
            place_words(&end),
            sidecar.op_max.0
        ),
        SidecarOf::Partition { uid, number, end } => {
            format!("of file {number} of partition {uid}, up to byte {end}")
        }
    };
    let count = sidecar.entries.len();
    let mut lines = vec![format!(
        "cluster {:032x}, {of}, {count} batches",
        sidecar.cluster
    )];
    let entries = sidecar.entries.iter();
    lines.extend(entries.map(|(uid, entry)| partition::entry_words(*uid, entry)));
    Ok(lines)
}
