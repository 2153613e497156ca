//! The indexes of all partitions, shared by the log thread (which appends), the shards (which look
//! up) and the drain thread (which relocates).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use pawl_wire::ids::{Op, PartitionUid};

use super::{BatchEntry, PartitionIndex};
use crate::record::{Place, SegmentId};

/// A partition's index. Hold the lock briefly: look up, copy the entries, let go, then read.
pub type PartitionHandle = Arc<RwLock<PartitionIndex>>;

/// The indexes of all partitions.
#[derive(Debug, Default)]
pub struct IndexSet {
    partitions: RwLock<BTreeMap<PartitionUid, PartitionHandle>>,
    /// Partitions that were dropped, with the op of the drop, until a checkpoint covers it.
    dropped: Mutex<Vec<(Op, PartitionHandle)>>,
    applied: AtomicU64,
}

impl IndexSet {
    /// The index of a partition, if there is one.
    pub fn get(&self, uid: PartitionUid) -> Option<PartitionHandle> {
        self.partitions.read().get(&uid).cloned()
    }

    /// How many partitions.
    pub fn partition_count(&self) -> usize {
        self.partitions.read().len()
    }

    /// A partition was created. One that is there already stays as it is.
    pub fn create(&self, uid: PartitionUid) -> PartitionHandle {
        let mut partitions = self.partitions.write();
        let fresh = || Arc::new(RwLock::new(PartitionIndex::new(uid)));
        partitions.entry(uid).or_insert_with(fresh).clone()
    }

    /// A batch was appended to a partition.
    pub fn push(&self, uid: PartitionUid, entry: BatchEntry) {
        let handle = self.get(uid).unwrap_or_else(|| self.create(uid));
        handle.write().push(entry);
    }

    /// A partition was dropped by `op`.
    pub fn drop_partition(&self, uid: PartitionUid, op: Op) {
        if let Some(handle) = self.partitions.write().remove(&uid) {
            self.dropped.lock().push((op, handle));
        }
    }

    /// A partition was purged by `op`: everything appended before it is gone.
    pub fn purge(&self, uid: PartitionUid, op: Op) {
        if let Some(handle) = self.get(uid) {
            handle.write().purge(op);
        }
    }

    /// `op` removed all messages of a partition below `first_offset`.
    pub fn trim(&self, uid: PartitionUid, first_offset: u64, op: Op) {
        if let Some(handle) = self.get(uid) {
            handle.write().trim(first_offset, op);
        }
    }

    /// Everything up to `op` is applied, and its effects are in the index. Call after them.
    pub fn applied(&self, op: Op) {
        self.applied.fetch_max(op.0, Ordering::Release);
    }

    /// The last op whose effects are in the index.
    pub fn applied_op(&self) -> Op {
        Op(self.applied.load(Ordering::Acquire))
    }

    /// Forgets what died at or below the oldest kept checkpoint.
    pub(crate) fn forget(&self, checkpoint: Op) {
        self.dropped.lock().retain(|(death, _)| *death > checkpoint);
        for handle in self.handles() {
            handle.write().forget(checkpoint);
        }
    }

    /// Live and dropped partitions, by uid.
    pub(crate) fn handles(&self) -> Vec<PartitionHandle> {
        // Both locks at once: a partition that is being dropped must not be seen twice or never.
        let partitions = self.partitions.read();
        let dropped = self.dropped.lock();
        let gone = dropped.iter().map(|(_, handle)| handle);
        partitions.values().chain(gone).cloned().collect()
    }

    /// Every batch whose body is in this segment and that is live, or died above the oldest kept
    /// checkpoint.
    pub(crate) fn in_segment(&self, segment: SegmentId) -> Vec<(PartitionUid, BatchEntry)> {
        let mut found = Vec::new();
        for handle in self.handles() {
            let index = handle.read();
            let uid = index.uid();
            found.extend(index.in_segment(segment).into_iter().map(|e| (uid, e)));
        }
        found
    }

    /// Gives a drained batch its new place.
    pub(crate) fn relocate(&self, uid: PartitionUid, op: Op, place: Place) -> bool {
        self.known(uid)
            .is_some_and(|handle| handle.write().relocate(op, place))
    }

    /// Whether a partition is live, or was dropped above the oldest kept checkpoint.
    pub(crate) fn knows(&self, uid: PartitionUid) -> bool {
        self.known(uid).is_some()
    }

    /// Number of the oldest file of a partition that a live or retired batch is in.
    pub(crate) fn partition_file_oldest(&self, uid: PartitionUid) -> Option<u32> {
        self.known(uid)?.read().partition_file_oldest()
    }

    /// Batches, live or retired, whose body is in this file of a partition.
    pub(crate) fn in_partition_file(&self, uid: PartitionUid, number: u32) -> Vec<BatchEntry> {
        let handle = self.known(uid);
        handle.map_or(Vec::new(), |handle| handle.read().in_partition_file(number))
    }

    /// The index of a partition that is live, or was dropped above the oldest kept checkpoint.
    fn known(&self, uid: PartitionUid) -> Option<PartitionHandle> {
        let partitions = self.partitions.read();
        if let Some(handle) = partitions.get(&uid) {
            return Some(handle.clone());
        }
        let dropped = self.dropped.lock();
        let found = dropped.iter().find(|(_, h)| h.read().uid() == uid);
        found.map(|(_, handle)| handle.clone())
    }
}
