//! Sections PART and OFFS.
//!
//! PART: `[n u32]` n × `[uid u64][next offset u64][purged at u64][segments u32]` segments ×
//! `[base offset u64][bytes u64]`, uids rising; exactly the partitions that the catalog names.
//!
//! OFFS: `[n u32]` n × `[partition uid u64][consumer kind u8][consumer u32][offset u64]`, keys
//! rising.

use std::collections::{BTreeMap, VecDeque};

use pawl_vsr::machine::RestoreError;
use pawl_wire::ids::{Op, PartitionId, PartitionUid};
use pawl_wire::primitives::Wire;

use super::{Section, rises};
use crate::catalog::Catalog;
use crate::machine::PawlMachine;
use crate::offsets::{OffsetKey, OffsetTable};
use crate::partitions::{PartitionPlace, PartitionState, PartitionTable, Segment};

const PARTITION_BYTES_MIN: usize = 8 + 8 + 8 + 4 + SEGMENT_BYTES;
const SEGMENT_BYTES: usize = 8 + 8;
const OFFSET_BYTES: usize = 8 + 1 + 4 + 8;

pub(super) fn write_partitions(machine: &PawlMachine, out: &mut Vec<u8>) {
    (machine.partitions.count() as u32).write(out);
    for (uid, state) in machine.partitions.iter() {
        uid.0.write(out);
        state.next_offset.write(out);
        state.purged_at.0.write(out);
        (state.segments.len() as u32).write(out);
        for segment in &state.segments {
            segment.base_offset.write(out);
            segment.bytes.write(out);
        }
    }
}

pub(super) fn write_offsets(machine: &PawlMachine, out: &mut Vec<u8>) {
    (machine.offsets.iter().len() as u32).write(out);
    for (key, offset) in machine.offsets.iter() {
        key.partition.0.write(out);
        key.kind.write(out);
        key.consumer.write(out);
        offset.write(out);
    }
}

/// Where the catalog says that each partition is. `None` where one stands twice.
fn places(catalog: &Catalog) -> Option<BTreeMap<PartitionUid, PartitionPlace>> {
    let mut places = BTreeMap::new();
    for stream in catalog.streams() {
        for topic in stream.topics() {
            for (id, slot) in (0..).zip(topic.partitions.iter()) {
                let place = PartitionPlace {
                    stream: stream.id,
                    topic: topic.id,
                    partition: PartitionId(id),
                    segment_size: topic.options.segment_size,
                };
                if places.insert(slot.uid, place).is_some() {
                    return None;
                }
            }
        }
    }
    Some(places)
}

pub(super) fn read_partitions(
    section: &mut Section<'_>,
    catalog: &Catalog,
) -> Result<PartitionTable, RestoreError> {
    let places = places(catalog);
    let mut places = places.ok_or_else(|| section.refuse("a partition stands twice"))?;
    let mut table = PartitionTable::default();
    let mut before = None;
    for _ in 0..section.count(PARTITION_BYTES_MIN)? {
        let uid = PartitionUid(section.read()?);
        section.require(rises(&mut before, uid), "partitions do not rise")?;
        let place = places.remove(&uid);
        let place = place.ok_or_else(|| section.refuse("a partition is in no topic"))?;
        let state = read_partition(section, place)?;
        let fits = table.all().bytes.checked_add(state.bytes).is_some()
            && table
                .all()
                .messages
                .checked_add(state.next_offset)
                .is_some();
        section.require(fits, "sizes add up to too much")?;
        table.insert(uid, state);
    }
    section.require(places.is_empty(), "a partition has no counters")?;
    Ok(table)
}

fn read_partition(
    section: &mut Section<'_>,
    place: PartitionPlace,
) -> Result<PartitionState, RestoreError> {
    let next_offset: u64 = section.read()?;
    let purged_at = Op(section.read()?);
    let count = section.count(SEGMENT_BYTES)?;
    section.require(count > 0, "a partition has no segment")?;
    let mut segments = VecDeque::with_capacity(count);
    let (mut bytes, mut before) = (0u64, None);
    for _ in 0..count {
        let segment = Segment {
            base_offset: section.read()?,
            bytes: section.read()?,
        };
        let in_order = rises(&mut before, segment.base_offset);
        section.require(in_order, "segments do not rise")?;
        section.require(
            segment.base_offset <= next_offset,
            "a segment begins past the end",
        )?;
        let sum = bytes.checked_add(segment.bytes);
        bytes = sum.ok_or_else(|| section.refuse("sizes add up to too much"))?;
        segments.push_back(segment);
    }
    Ok(PartitionState {
        place,
        next_offset,
        bytes,
        purged_at,
        segments,
    })
}

pub(super) fn read_offsets(
    section: &mut Section<'_>,
    machine: &PawlMachine,
) -> Result<OffsetTable, RestoreError> {
    let mut table = OffsetTable::default();
    let mut before = None;
    for _ in 0..section.count(OFFSET_BYTES)? {
        let key = OffsetKey {
            partition: PartitionUid(section.read()?),
            kind: section.read()?,
            consumer: section.read()?,
        };
        section.require(rises(&mut before, key), "offsets do not rise")?;
        let known = machine.partitions.view(key.partition).is_some();
        section.require(known, "an offset is of no partition")?;
        table.store(key, section.read()?);
    }
    Ok(table)
}
