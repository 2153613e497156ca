//! The index of a partition: where each of its batches is. Pure.
//!
//! Invariants of a [`PartitionIndex`]:
//!
//! 1. Live batches are contiguous: each begins at the offset after the last one of its predecessor.
//! 2. Ops rise from batch to batch; timestamps do not go back.
//! 3. Batches in partition files come first, then those in the log, by rising segment: only the
//!    oldest segment of the log is ever drained.
//! 4. A batch that died (trimmed, purged) is retired, not forgotten, until the oldest kept
//!    checkpoint covers its death: recovery from that checkpoint still needs it.

mod set;

use std::collections::VecDeque;

use pawl_wire::ids::{Op, PartitionUid, Timestamp};

use crate::record::{Place, PlaceFile, SegmentId};

pub use set::{IndexSet, PartitionHandle};

/// A batch of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchEntry {
    /// Offset of its first message.
    pub base_offset: u64,
    /// How many messages.
    pub message_count: u32,
    /// When it was applied, by the log's clock.
    pub timestamp: Timestamp,
    /// The op that appended it.
    pub op: Op,
    /// Where in the body the batch begins.
    pub batch_position: u32,
    /// Bytes of the batch from there on.
    pub batch_length: u32,
    /// Where the body is.
    pub place: Place,
}

impl BatchEntry {
    /// The offset after its last message.
    pub fn end_offset(&self) -> u64 {
        self.base_offset + u64::from(self.message_count)
    }
}

/// What the machine, as restored from a checkpoint, says about a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionBounds {
    /// The partition.
    pub uid: PartitionUid,
    /// Batches of ops at or below this are gone: the partition's creation or its last purge.
    pub op_floor: Op,
    /// Offset of the oldest message that is kept.
    pub first_offset: u64,
    /// Offset that the next message gets.
    pub next_offset: u64,
}

/// Set in `Packed::file` when the low 32 bits are the number of a partition file.
const FILE_PARTITION: u64 = 1 << 63;

/// A [`BatchEntry`] as kept in memory; the partition is known from where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packed {
    base_offset: u64,
    op: u64,
    timestamp: u64,
    checksum: u64,
    file: u64,
    position: u32,
    bytes: u32,
    message_count: u32,
    batch_position: u32,
    batch_length: u32,
}

const _: () = assert!(size_of::<Packed>() == 64);

impl Packed {
    fn pack(entry: &BatchEntry) -> Packed {
        Packed {
            base_offset: entry.base_offset,
            op: entry.op.0,
            timestamp: entry.timestamp.0,
            checksum: entry.place.checksum,
            file: pack_file(entry.place.file),
            position: entry.place.position,
            bytes: entry.place.bytes,
            message_count: entry.message_count,
            batch_position: entry.batch_position,
            batch_length: entry.batch_length,
        }
    }

    fn unpack(&self, uid: PartitionUid) -> BatchEntry {
        let file = if self.file & FILE_PARTITION != 0 {
            PlaceFile::Partition {
                uid,
                number: self.file as u32,
            }
        } else {
            PlaceFile::Log(SegmentId(self.file))
        };
        BatchEntry {
            base_offset: self.base_offset,
            message_count: self.message_count,
            timestamp: Timestamp(self.timestamp),
            op: Op(self.op),
            batch_position: self.batch_position,
            batch_length: self.batch_length,
            place: Place {
                file,
                position: self.position,
                bytes: self.bytes,
                checksum: self.checksum,
            },
        }
    }

    fn end_offset(&self) -> u64 {
        self.base_offset + u64::from(self.message_count)
    }

    /// Partition files before the log, by number; the log by segment (invariant 3).
    fn order(&self) -> (bool, u64) {
        (self.file & FILE_PARTITION == 0, self.file)
    }

    fn log_segment(&self) -> Option<u64> {
        (self.file & FILE_PARTITION == 0).then_some(self.file)
    }

    fn partition_file(&self) -> Option<u32> {
        (self.file & FILE_PARTITION != 0).then_some(self.file as u32)
    }
}

fn pack_file(file: PlaceFile) -> u64 {
    match file {
        PlaceFile::Log(segment) => segment.0,
        PlaceFile::Partition { number, .. } => FILE_PARTITION | u64::from(number),
    }
}

/// The index of one partition. See the invariants at the top of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionIndex {
    uid: PartitionUid,
    batches: VecDeque<Packed>,
    /// Batches that died, with the op of their death, in the order of death.
    retired: VecDeque<(u64, Packed)>,
}

impl PartitionIndex {
    /// The index of a partition without messages.
    pub fn new(uid: PartitionUid) -> PartitionIndex {
        PartitionIndex {
            uid,
            batches: VecDeque::new(),
            retired: VecDeque::new(),
        }
    }

    /// The partition.
    pub fn uid(&self) -> PartitionUid {
        self.uid
    }

    /// How many live batches.
    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }

    /// The live batch at this index, from 0 for the oldest.
    pub fn get(&self, index: usize) -> Option<BatchEntry> {
        self.batches
            .get(index)
            .map(|packed| packed.unpack(self.uid))
    }

    /// The oldest live batch.
    pub fn first(&self) -> Option<BatchEntry> {
        self.get(0)
    }

    /// The newest live batch.
    pub fn last(&self) -> Option<BatchEntry> {
        self.batches.back().map(|packed| packed.unpack(self.uid))
    }

    /// Index of the live batch that holds this offset.
    pub fn index_of_offset(&self, offset: u64) -> Option<usize> {
        let index = self.batches.partition_point(|b| b.end_offset() <= offset);
        let batch = self.batches.get(index)?;
        (batch.base_offset <= offset).then_some(index)
    }

    /// Index of the first live batch whose timestamp is not before `timestamp`; the count of
    /// batches if there is none.
    pub fn index_of_timestamp(&self, timestamp: Timestamp) -> usize {
        self.batches.partition_point(|b| b.timestamp < timestamp.0)
    }

    /// The live batch that holds this offset.
    pub fn find(&self, offset: u64) -> Option<BatchEntry> {
        self.get(self.index_of_offset(offset)?)
    }

    /// Live batches from this index on, oldest first.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = BatchEntry> + '_ {
        self.batches
            .range(index.min(self.batches.len())..)
            .map(|packed| packed.unpack(self.uid))
    }

    /// Appends a batch.
    pub fn push(&mut self, entry: BatchEntry) {
        if let Some(last) = self.batches.back() {
            assert_eq!(
                last.end_offset(),
                entry.base_offset,
                "batches are contiguous (invariant 1)"
            );
            assert!(last.op < entry.op.0, "ops rise (invariant 2)");
            assert!(
                last.order() <= Packed::pack(&entry).order(),
                "partition files come before the log (invariant 3)"
            );
        }
        self.batches.push_back(Packed::pack(&entry));
    }

    /// Retires batches that end at or below `first_offset`. A batch that the offset cuts stays.
    pub fn trim(&mut self, first_offset: u64, death: Op) {
        let count = self
            .batches
            .partition_point(|b| b.end_offset() <= first_offset);
        self.retire(count, death);
    }

    /// Retires every batch of an op at or below `op`.
    pub fn purge(&mut self, op: Op) {
        let count = self.batches.partition_point(|b| b.op <= op.0);
        self.retire(count, op);
    }

    fn retire(&mut self, count: usize, death: Op) {
        for packed in self.batches.drain(..count) {
            self.retired.push_back((death.0, packed));
        }
    }

    /// Forgets retired batches whose death the oldest kept checkpoint covers.
    pub(crate) fn forget(&mut self, checkpoint: Op) {
        while let Some((death, _)) = self.retired.front() {
            if *death > checkpoint.0 {
                break;
            }
            self.retired.pop_front();
        }
    }

    /// Batches, live or retired, whose body is in this segment of the log, by rising op.
    pub(crate) fn in_segment(&self, segment: SegmentId) -> Vec<BatchEntry> {
        let from = self
            .batches
            .partition_point(|b| b.log_segment().is_none_or(|s| s < segment.0));
        let live = self
            .batches
            .range(from..)
            .take_while(|b| b.log_segment() == Some(segment.0));
        let retired = self.retired.iter().map(|(_, packed)| packed);
        let mut found: Vec<BatchEntry> = retired
            .filter(|b| b.log_segment() == Some(segment.0))
            .chain(live)
            .map(|packed| packed.unpack(self.uid))
            .collect();
        found.sort_by_key(|entry| entry.op);
        found
    }

    /// Gives a drained batch its new place. `false` if the batch has been forgotten meanwhile.
    pub(crate) fn relocate(&mut self, op: Op, place: Place) -> bool {
        let at = self.batches.partition_point(|b| b.op < op.0);
        let live = self.batches.get_mut(at).filter(|b| b.op == op.0);
        let retired = self.retired.iter_mut().map(|(_, packed)| packed);
        let Some(packed) = live.or_else(|| retired.into_iter().find(|b| b.op == op.0)) else {
            return false;
        };
        packed.file = pack_file(place.file);
        packed.position = place.position;
        true
    }

    /// Number of the oldest partition file that a live or retired batch is in.
    pub(crate) fn partition_file_oldest(&self) -> Option<u32> {
        let retired = self.retired.iter().map(|(_, packed)| packed);
        let live = self.batches.front().into_iter();
        retired.chain(live).filter_map(Packed::partition_file).min()
    }

    /// Batches, live or retired, whose body is in this file of the partition, by rising op.
    pub(crate) fn in_partition_file(&self, number: u32) -> Vec<BatchEntry> {
        let live = self
            .batches
            .iter()
            .take_while(|b| b.log_segment().is_none());
        let retired = self.retired.iter().map(|(_, packed)| packed);
        let mut found: Vec<BatchEntry> = retired
            .chain(live)
            .filter(|b| b.partition_file() == Some(number))
            .map(|packed| packed.unpack(self.uid))
            .collect();
        found.sort_by_key(|entry| entry.op);
        found
    }
}

#[cfg(test)]
#[path = "index_test.rs"]
mod tests;
