//! Rebuilds the indexes of all partitions as of a checkpoint (spec REC-22, REC-23).
//!
//! What is known of a batch comes from a sidecar (whole), from a partition file (whole), or from
//! the log: the entry says where it is, an outcome in a later batch says which offset apply gave
//! it. An entry without an outcome was refused by apply, or another entry took its op.

use std::collections::BTreeMap;

use pawl_wire::entry::EntryKind;
use pawl_wire::entry_arguments::SendMessagesArguments;
use pawl_wire::ids::{Op, PartitionUid};

use crate::error::{FileRange, OpenError};
use crate::format::batch::{Region, RegionRecord};
use crate::format::checksum_low;
use crate::index::{BatchEntry, IndexSet, PartitionBounds};
use crate::record::{Place, PlaceFile, SegmentId};

use super::partitions::PartitionScan;

/// What the log says about batches.
#[derive(Debug, Default)]
pub(crate) struct LogIndex {
    /// From sidecars.
    known: BTreeMap<Op, (PartitionUid, BatchEntry)>,
    /// From entries, without a base offset.
    candidates: BTreeMap<Op, (PartitionUid, BatchEntry)>,
    outcomes: BTreeMap<Op, u64>,
    /// Outcomes of ops up to this one stand in regions that were read.
    pub outcomes_op: Op,
}

impl LogIndex {
    /// Takes in a region of the log, in the order of the log.
    pub fn note_region(&mut self, region: &Region) {
        for record in &region.records {
            let Some(header) = &record.header else {
                continue;
            };
            // A later entry at the same op replaces an earlier one.
            self.candidates.remove(&header.op());
            if header.entry_kind() == EntryKind::SendMessages
                && let Some((uid, entry)) = candidate(region, record)
            {
                self.candidates.insert(header.op(), (uid, entry));
            }
        }
        for outcome in &region.outcomes {
            self.outcomes.insert(outcome.op, outcome.base_offset);
        }
        let complete = Op(region.header.outcomes_op);
        self.outcomes_op = self.outcomes_op.max(complete);
    }

    /// Takes in the entries of a sidecar.
    pub fn note_sidecar(&mut self, entries: Vec<(PartitionUid, BatchEntry)>) {
        for (uid, entry) in entries {
            self.known.insert(entry.op, (uid, entry));
        }
    }

    /// Whether entries were read whose outcomes stand further on in the log.
    pub fn wants_outcomes(&self) -> bool {
        let newest = self.candidates.last_key_value();
        newest.is_some_and(|(op, _)| *op > self.outcomes_op)
    }

    /// Every batch of an op up to the checkpoint, with its offset, by partition.
    pub fn resolve(mut self, checkpoint: Op) -> BTreeMap<PartitionUid, BTreeMap<Op, BatchEntry>> {
        for (op, (uid, mut entry)) in std::mem::take(&mut self.candidates) {
            let Some(base_offset) = self.outcomes.get(&op) else {
                continue;
            };
            entry.base_offset = *base_offset;
            let known = self.known.get(&op);
            if known.is_none_or(|(_, known)| known.place.file <= entry.place.file) {
                self.known.insert(op, (uid, entry));
            }
        }
        let mut partitions: BTreeMap<PartitionUid, BTreeMap<Op, BatchEntry>> = BTreeMap::new();
        for (op, (uid, entry)) in self.known {
            if op <= checkpoint {
                partitions.entry(uid).or_default().insert(op, entry);
            }
        }
        partitions
    }
}

fn candidate(region: &Region, record: &RegionRecord) -> Option<(PartitionUid, BatchEntry)> {
    let header = record.header.as_ref()?;
    let arguments = SendMessagesArguments::decode(&header.arguments).ok()?;
    let entry = BatchEntry {
        base_offset: 0,
        message_count: arguments.message_count,
        timestamp: header.timestamp(),
        op: header.op(),
        batch_position: arguments.batch_position,
        batch_length: u32::try_from(arguments.batch_length).ok()?,
        place: Place {
            file: PlaceFile::Log(SegmentId(region.header.segment)),
            position: u32::try_from(region.header.position + record.position).ok()?,
            bytes: record.bytes,
            checksum: checksum_low(record.checksum),
        },
    };
    Some((arguments.partition_uid, entry))
}

/// Builds the indexes, and checks that every message that the machine holds is in them.
pub(crate) fn reconcile(
    checkpoint: Op,
    bounds: &[PartitionBounds],
    mut log: BTreeMap<PartitionUid, BTreeMap<Op, BatchEntry>>,
    scans: &BTreeMap<PartitionUid, PartitionScan>,
) -> Result<IndexSet, OpenError> {
    let set = IndexSet::default();
    for bounds in bounds {
        let mut batches = log.remove(&bounds.uid).unwrap_or_default();
        let scan = scans.get(&bounds.uid);
        for entry in scan.iter().flat_map(|scan| scan.entries()) {
            // A batch in both places counts once: what was drained need not be drained again.
            batches.insert(entry.op, entry);
        }
        let wanted = batches.into_values().filter(|entry| {
            entry.op <= checkpoint
                && entry.op > bounds.op_floor
                && entry.end_offset() > bounds.first_offset
        });
        let looked_at = || PartitionScan::looked_at(scan, bounds.uid);
        fill(&set, bounds, wanted, looked_at)?;
    }
    set.applied(checkpoint);
    Ok(set)
}

fn fill(
    set: &IndexSet,
    bounds: &PartitionBounds,
    batches: impl Iterator<Item = BatchEntry>,
    looked_at: impl FnOnce() -> FileRange,
) -> Result<(), OpenError> {
    let handle = set.create(bounds.uid);
    let mut index = handle.write();
    let mut next = bounds.first_offset;
    for entry in batches {
        let first = index.batch_count() == 0;
        let continues = match first {
            true => entry.base_offset <= next,
            false => entry.base_offset == next,
        };
        if !continues || entry.end_offset() > bounds.next_offset {
            break;
        }
        next = entry.end_offset();
        index.push(entry);
    }
    match next == bounds.next_offset {
        true => Ok(()),
        false => Err(OpenError::MessagesMissing {
            uid: bounds.uid,
            offset: next,
            range: looked_at(),
        }),
    }
}
