//! Stored offsets of consumers and groups.
//!
//! Invariants:
//! 1. `counts` holds the number of keys of each partition that has any.
//! 2. Every key's partition exists; its keys go with it, and with a purge.

use std::collections::BTreeMap;

use pawl_wire::ids::PartitionUid;
use pawl_wire::primitives::ConsumerKind;

/// Whose offset in which partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OffsetKey {
    /// The partition.
    pub partition: PartitionUid,
    /// Plain consumer or group.
    pub kind: ConsumerKind,
    /// A plain consumer's number (or the hash of its name), or the group's id.
    pub consumer: u32,
}

/// All stored offsets.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct OffsetTable {
    offsets: BTreeMap<OffsetKey, u64>,
    counts: BTreeMap<PartitionUid, u32>,
}

impl OffsetTable {
    /// The stored offset.
    pub fn get(&self, key: OffsetKey) -> Option<u64> {
        self.offsets.get(&key).copied()
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (OffsetKey, u64)> {
        self.offsets.iter().map(|(key, offset)| (*key, *offset))
    }

    /// How many keys a partition has.
    pub fn count(&self, partition: PartitionUid) -> u32 {
        self.counts.get(&partition).copied().unwrap_or(0)
    }

    /// Stores an offset; it may move back.
    pub fn store(&mut self, key: OffsetKey, offset: u64) {
        if self.offsets.insert(key, offset).is_none() {
            *self.counts.entry(key.partition).or_default() += 1;
        }
    }

    /// Deletes an offset. Whether there was one.
    pub fn delete(&mut self, key: OffsetKey) -> bool {
        if self.offsets.remove(&key).is_none() {
            return false;
        }
        let count = self.counts.get_mut(&key.partition).expect("invariant 1");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&key.partition);
        }
        true
    }

    /// Deletes every offset of a partition.
    pub fn delete_partition(&mut self, partition: PartitionUid) {
        if self.counts.remove(&partition).is_none() {
            return;
        }
        let key = |kind, consumer| OffsetKey {
            partition,
            kind,
            consumer,
        };
        let range = key(ConsumerKind::Plain, 0)..=key(ConsumerKind::Group, u32::MAX);
        let keys: Vec<OffsetKey> = self.offsets.range(range).map(|(key, _)| *key).collect();
        for key in keys {
            self.offsets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition: u64, kind: ConsumerKind, consumer: u32) -> OffsetKey {
        OffsetKey {
            partition: PartitionUid(partition),
            kind,
            consumer,
        }
    }

    #[test]
    fn the_keys_of_a_partition_go_with_it_and_no_others() {
        let mut table = OffsetTable::default();
        for partition in 1..=3 {
            for kind in [ConsumerKind::Plain, ConsumerKind::Group] {
                for consumer in [0, 7, u32::MAX] {
                    table.store(key(partition, kind, consumer), partition);
                }
            }
        }
        table.delete_partition(PartitionUid(2));
        assert_eq!(table.iter().len(), 12);
        assert!(
            table
                .iter()
                .all(|(key, _)| key.partition != PartitionUid(2))
        );
        assert_eq!(table.count(PartitionUid(2)), 0);
        assert_eq!(table.count(PartitionUid(3)), 6);
    }

    #[test]
    fn an_offset_that_is_deleted_is_gone_and_counted_out() {
        let mut table = OffsetTable::default();
        let plain = key(1, ConsumerKind::Plain, 5);
        table.store(plain, 9);
        table.store(plain, 4);
        assert_eq!(table.get(plain), Some(4));
        assert_eq!(table.get(key(1, ConsumerKind::Group, 5)), None);
        assert!(table.delete(plain));
        assert!(!table.delete(plain));
        assert_eq!(table, OffsetTable::default());
    }
}
