//! Partitions as counters: what apply needs to give offsets, and what reads need to count.
//!
//! No message is here; a body is in the log, and its place is in the store's index.
//!
//! Invariants:
//! 1. The messages of a partition are those of its segments, which follow each other without gap:
//!    from the first segment's base offset to `next_offset`.
//! 2. A partition has at least one segment; only the last one is open.
//! 3. The totals of a topic, of a stream and of all are the sums over their partitions. There is
//!    none of zero: one that has no partition is not kept, so that equal partitions make equal
//!    tables.

use std::collections::{BTreeMap, VecDeque};

use pawl_wire::ids::{Op, PartitionId, PartitionUid, StreamId, TopicId};

use crate::query::{PartitionView, Totals};

/// Where a partition is, and how it is cut into segments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionPlace {
    /// Its stream.
    pub stream: StreamId,
    /// Its topic.
    pub topic: TopicId,
    /// Its visible number.
    pub partition: PartitionId,
    /// Bytes after which a segment is sealed.
    pub segment_size: u64,
}

/// A run of messages that is deleted as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Segment {
    pub base_offset: u64,
    pub bytes: u64,
}

/// The counters of one partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PartitionState {
    pub place: PartitionPlace,
    pub next_offset: u64,
    pub bytes: u64,
    pub purged_at: Op,
    pub segments: VecDeque<Segment>,
}

/// All partitions and their sums.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PartitionTable {
    partitions: BTreeMap<PartitionUid, PartitionState>,
    topics: BTreeMap<(StreamId, TopicId), Totals>,
    streams: BTreeMap<StreamId, Totals>,
    all: Totals,
}

/// Where an appended batch went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Appended {
    pub place: PartitionPlace,
    pub base_offset: u64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.segments += other.segments;
    }

    fn subtract(&mut self, other: Totals) {
        self.messages -= other.messages;
        self.bytes -= other.bytes;
        self.segments -= other.segments;
    }
}

impl PartitionState {
    /// A partition without messages.
    pub fn empty(place: PartitionPlace, purged_at: Op) -> PartitionState {
        let segment = Segment {
            base_offset: 0,
            bytes: 0,
        };
        PartitionState {
            place,
            next_offset: 0,
            bytes: 0,
            purged_at,
            segments: VecDeque::from([segment]),
        }
    }

    fn first_offset(&self) -> u64 {
        self.segments.front().expect("invariant 2").base_offset
    }

    fn totals(&self) -> Totals {
        Totals {
            messages: self.next_offset - self.first_offset(),
            bytes: self.bytes,
            segments: self.segments.len() as u64,
        }
    }

    fn view(&self) -> PartitionView {
        let totals = self.totals();
        PartitionView {
            first_offset: self.first_offset(),
            next_offset: self.next_offset,
            messages: totals.messages,
            bytes: totals.bytes,
            segments: self.segments.len() as u32,
            purged_at: self.purged_at,
        }
    }
}

impl PartitionTable {
    /// The counters of a partition.
    pub fn view(&self, uid: PartitionUid) -> Option<PartitionView> {
        self.partitions.get(&uid).map(PartitionState::view)
    }

    /// Where a partition is.
    pub fn place(&self, uid: PartitionUid) -> Option<PartitionPlace> {
        self.partitions.get(&uid).map(|state| state.place)
    }

    /// The sums of a topic.
    pub fn topic(&self, stream: StreamId, topic: TopicId) -> Totals {
        self.topics
            .get(&(stream, topic))
            .copied()
            .unwrap_or_default()
    }

    /// The sums of a stream.
    pub fn stream(&self, stream: StreamId) -> Totals {
        self.streams.get(&stream).copied().unwrap_or_default()
    }

    /// The sums of everything.
    pub fn all(&self) -> Totals {
        self.all
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.partitions.len()
    }

    /// All of them, by uid.
    pub fn iter(&self) -> impl Iterator<Item = (PartitionUid, &PartitionState)> {
        self.partitions.iter().map(|(uid, state)| (*uid, state))
    }

    /// Puts a partition into the table.
    pub fn insert(&mut self, uid: PartitionUid, state: PartitionState) {
        self.add(state.place, state.totals());
        let before = self.partitions.insert(uid, state);
        assert!(before.is_none(), "a partition's identity is never reused");
    }

    /// Takes a partition out of the table.
    pub fn remove(&mut self, uid: PartitionUid) {
        let state = self.partitions.remove(&uid);
        let state = state.expect("the catalog names only partitions of this table");
        self.subtract(state.place, state.totals());
    }

    /// Gives a batch its offsets. `None`: there is no such partition, or no such many offsets.
    pub fn append(&mut self, uid: PartitionUid, messages: u32, bytes: u64) -> Option<Appended> {
        let state = self.partitions.get_mut(&uid)?;
        let base_offset = state.next_offset;
        let next_offset = base_offset.checked_add(messages as u64)?;
        let bytes_after = self.all.bytes.checked_add(bytes)?;
        let mut segments = 0;
        let open = state.segments.back_mut().expect("invariant 2");
        if open.bytes >= state.place.segment_size {
            state.segments.push_back(Segment { base_offset, bytes });
            segments = 1;
        } else {
            open.bytes += bytes;
        }
        state.next_offset = next_offset;
        state.bytes += bytes;
        let place = state.place;
        assert!(bytes_after >= state.bytes, "a part is at most the whole");
        let added = Totals {
            messages: messages as u64,
            bytes,
            segments,
        };
        self.add(place, added);
        Some(Appended { place, base_offset })
    }

    /// Removes all messages; offsets start again at 0.
    pub fn purge(&mut self, uid: PartitionUid, op: Op) {
        let state = self.partitions.get_mut(&uid);
        let state = state.expect("the catalog names only partitions of this table");
        let (place, before) = (state.place, state.totals());
        *state = PartitionState::empty(place, op);
        let after = state.totals();
        self.add(place, after);
        self.subtract(place, before);
    }

    /// Removes the oldest sealed segments, at most `count`. The lowest offset that is left, if
    /// anything went.
    pub fn trim(&mut self, uid: PartitionUid, count: u32) -> Option<u64> {
        let state = self.partitions.get_mut(&uid)?;
        let (place, before) = (state.place, state.totals());
        let sealed = state.segments.len() - 1;
        let count = sealed.min(count as usize);
        if count == 0 {
            return None;
        }
        state.bytes -= state.segments.drain(..count).map(|s| s.bytes).sum::<u64>();
        let (first_offset, after) = (state.first_offset(), state.totals());
        self.add(place, after);
        self.subtract(place, before);
        Some(first_offset)
    }

    fn add(&mut self, place: PartitionPlace, totals: Totals) {
        self.topics
            .entry((place.stream, place.topic))
            .or_default()
            .add(totals);
        self.streams.entry(place.stream).or_default().add(totals);
        self.all.add(totals);
    }

    fn subtract(&mut self, place: PartitionPlace, totals: Totals) {
        subtract_from(&mut self.topics, (place.stream, place.topic), totals);
        subtract_from(&mut self.streams, place.stream, totals);
        self.all.subtract(totals);
    }

    /// Panics where an invariant does not hold. Dear; for tests.
    pub fn assert_invariants(&self) {
        let mut recount = PartitionTable::default();
        for (uid, state) in &self.partitions {
            assert!(!state.segments.is_empty(), "invariant 2");
            let bytes: u64 = state.segments.iter().map(|segment| segment.bytes).sum();
            assert!(bytes == state.bytes, "invariant 1");
            let bases = state.segments.iter().map(|segment| segment.base_offset);
            assert!(
                bases.clone().zip(bases.skip(1)).all(|(a, b)| a < b),
                "invariant 1"
            );
            assert!(state.first_offset() <= state.next_offset, "invariant 1");
            recount.insert(*uid, state.clone());
        }
        assert!(recount == *self, "invariant 3");
    }
}

/// Takes a part out of a sum; a sum of zero is not kept.
fn subtract_from<K: Ord>(sums: &mut BTreeMap<K, Totals>, key: K, part: Totals) {
    let sum = sums.get_mut(&key).expect("invariant 3");
    sum.subtract(part);
    if *sum == Totals::default() {
        sums.remove(&key);
    }
}

#[cfg(test)]
#[path = "partitions_test.rs"]
mod tests;
