//! Finds the newest valid anchor, and knows unreadable from empty (spec REC-16).

use std::sync::Arc;

use bytes::Bytes;

use super::Finding;
use super::directory::Directory;
use crate::disk::DiskFile;
use crate::error::{DiskError, FileRange, OpenError, Unreadable};
use crate::format::anchor::{ANCHOR_SLOTS, Anchor};
use crate::format::{BLOCK_BYTES, names};
use crate::record::SegmentId;

/// The anchor of a formatted directory.
#[derive(Debug)]
pub(crate) struct FoundAnchor {
    pub anchor: Anchor,
    pub file: Arc<dyn DiskFile>,
    /// Some slot is not what it should be: all are written again.
    pub repair: bool,
    pub findings: Vec<Finding>,
}

/// Reads the anchor; `None`: nothing was ever promised here.
pub(crate) fn read(directory: &Directory) -> Result<Option<FoundAnchor>, OpenError> {
    if !directory.anchor {
        return match evidence(directory)? {
            Some(evidence) => Err(OpenError::AnchorMissing { evidence }),
            None => Ok(None),
        };
    }
    let file = directory
        .disk
        .open(names::ANCHOR)
        .map_err(DiskError::of("open", names::ANCHOR))?;
    let mut slots = Vec::new();
    for slot in 0..ANCHOR_SLOTS {
        slots.push(read_slot(&file, slot)?);
    }
    choose(file, &slots).map(Some)
}

fn slot_range(slot: usize) -> FileRange {
    FileRange {
        file: names::ANCHOR.to_owned(),
        from: (slot * BLOCK_BYTES) as u64,
        to: ((slot + 1) * BLOCK_BYTES) as u64,
    }
}

fn read_slot(
    file: &Arc<dyn DiskFile>,
    slot: usize,
) -> Result<Result<Anchor, Unreadable>, OpenError> {
    let range = slot_range(slot);
    let length = file
        .length()
        .map_err(DiskError::of("measure", names::ANCHOR))?;
    if length < range.to {
        return Ok(Err(Unreadable::Short));
    }
    let bytes: Bytes = file
        .read_at(range.from, BLOCK_BYTES)
        .map_err(DiskError::of("read", names::ANCHOR))?;
    Ok(Anchor::decode(&bytes))
}

fn choose(
    file: Arc<dyn DiskFile>,
    slots: &[Result<Anchor, Unreadable>],
) -> Result<FoundAnchor, OpenError> {
    let mut findings = Vec::new();
    for (slot, read) in slots.iter().enumerate() {
        if let Err(reason) = read {
            if let Unreadable::Version(_) = reason {
                // A newer release wrote here; what an older slot says may no longer hold.
                return Err(unreadable(*reason)); // spec REC-38
            }
            findings.push(Finding::Repaired {
                range: slot_range(slot),
                reason: *reason,
            });
        }
    }
    let valid = slots.iter().flatten();
    match valid.max_by_key(|anchor| anchor.sequence) {
        Some(anchor) => Ok(FoundAnchor {
            anchor: *anchor,
            file,
            repair: !findings.is_empty(),
            findings,
        }),
        None => {
            let reason = slots.iter().find_map(|slot| slot.err());
            Err(unreadable(reason.unwrap_or(Unreadable::Short)))
        }
    }
}

fn unreadable(reason: Unreadable) -> OpenError {
    OpenError::AnchorUnreadable {
        range: FileRange {
            file: names::ANCHOR.to_owned(),
            from: 0,
            to: (ANCHOR_SLOTS * BLOCK_BYTES) as u64,
        },
        reason,
    }
}

/// A file that shows that data was written to a directory without an anchor.
///
/// Formatting makes segment 1, without a batch, before the anchor; nothing else.
fn evidence(directory: &Directory) -> Result<Option<String>, OpenError> {
    if let Some(op) = directory.snapshots.first() {
        return Ok(Some(names::snapshot(*op)));
    }
    if let Some(uid) = directory.partitions.keys().next() {
        return Ok(Some(names::partition(*uid)));
    }
    for segment in &directory.segments {
        let name = names::segment(*segment);
        if *segment != SegmentId(1) || holds_batch(directory, &name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn holds_batch(directory: &Directory, name: &str) -> Result<bool, OpenError> {
    let file = directory
        .disk
        .open(name)
        .map_err(DiskError::of("open", name))?;
    let length = file.length().map_err(DiskError::of("measure", name))?;
    if length < 2 * BLOCK_BYTES as u64 {
        return Ok(false);
    }
    let block = file
        .read_at(BLOCK_BYTES as u64, BLOCK_BYTES)
        .map_err(DiskError::of("read", name))?;
    Ok(block.iter().any(|byte| *byte != 0))
}
