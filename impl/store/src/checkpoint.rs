//! Writes checkpoints and switches the anchor to them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pawl_vsr::CheckpointHeader;
use pawl_wire::ids::Op;

use crate::error::{CheckpointError, DiskError};
use crate::format::anchor::CheckpointRef;
use crate::format::snapshot::SnapshotFile;
use crate::format::{LogPosition, checksum, names};
use crate::index::IndexSet;
use crate::log::preparation::flush_directory;
use crate::log::shared::Shared;

/// Writes checkpoints. Owned by one thread.
#[derive(Debug)]
pub struct Checkpointer {
    shared: Arc<Shared>,
    index: Arc<IndexSet>,
}

impl Checkpointer {
    pub(crate) fn new(shared: Arc<Shared>, index: Arc<IndexSet>) -> Checkpointer {
        let checkpointer = Checkpointer { shared, index };
        let newest = checkpointer.shared.anchor().newest.bytes;
        checkpointer.keep_reserve(newest);
        checkpointer
    }

    /// Writes the machine's snapshot at `header.op`, flushes it, and switches the anchor to it. The
    /// checkpoint before it is kept; older ones are removed.
    pub fn write(
        &mut self,
        header: &CheckpointHeader,
        snapshot: &[u8],
    ) -> Result<(), CheckpointError> {
        if self.shared.poisoned() {
            return Err(CheckpointError::Poisoned);
        }
        let replay = self.replay(header)?;
        let bytes = SnapshotFile::encode(self.shared.identity.cluster, header, snapshot);
        let digest = checksum(&bytes);
        let length = bytes.len() as u64;
        self.write_file(header.op, bytes.into())?;
        let checkpoint = CheckpointRef::new(header.op, digest, length, replay);
        // The anchor's flush is the moment at which the checkpoint counts (spec REC-17).
        let anchor = self.shared.switch_anchor(|anchor| {
            anchor.previous = anchor.newest;
            anchor.newest = checkpoint;
        })?;
        self.shared.spans.lock().forget(&anchor.previous.replay);
        self.index.forget(anchor.previous.op());
        self.remove_older(anchor.previous.op());
        self.keep_reserve(length);
        Ok(())
    }

    /// Where a restart from this checkpoint reads on (spec REC-14, REC-23).
    fn replay(&self, header: &CheckpointHeader) -> Result<LogPosition, CheckpointError> {
        let op = header.op;
        let last = self.shared.anchor().newest.op();
        let durable = Op(self.shared.outcomes_durable.load(Ordering::Acquire));
        if durable < op {
            return Err(CheckpointError::OutcomesMissing { op, durable });
        }
        let replay = self.shared.spans.lock().replay_from(header.replay_from);
        match replay {
            Some(replay) if op > last => Ok(replay),
            _ => Err(CheckpointError::OutOfOrder { op, last }),
        }
    }

    fn write_file(&self, op: Op, bytes: Bytes) -> Result<(), CheckpointError> {
        let temporary = format!("{}/{:016x}.snap", names::TEMPORARY, op.0);
        let mut written = self.write_file_once(&temporary, op, bytes.clone());
        // On a full volume nothing is freed without a checkpoint that covers the deletions, so that
        // the checkpoint must find room: the reserve is given up for it (spec REC-32).
        let full = matches!(&written, Err(error) if error.is_no_space());
        if full && self.shared.disk.remove(names::RESERVE).is_ok() {
            written = self.write_file_once(&temporary, op, bytes);
        }
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                // Nothing of it counts; the checkpoint before it stands.
                let _ = self.shared.disk.remove(&temporary);
                Err(match error.is_no_space() {
                    true => CheckpointError::NoSpace,
                    false => error.into(),
                })
            }
        }
    }

    fn write_file_once(&self, temporary: &str, op: Op, bytes: Bytes) -> Result<(), DiskError> {
        let disk = &self.shared.disk;
        let name = names::snapshot(op);
        // A try that failed earlier may have left its file.
        let _ = disk.remove(temporary);
        let file = disk
            .create(temporary)
            .map_err(DiskError::of("create", temporary))?;
        file.write_at(&[bytes], 0)
            .map_err(DiskError::of("write", temporary))?;
        file.flush().map_err(DiskError::of("flush", temporary))?;
        disk.rename(temporary, &name)
            .map_err(DiskError::of("rename", temporary))?;
        flush_directory(disk, names::SNAPSHOTS)
    }

    /// Keeps room for the next snapshot, if there is any.
    fn keep_reserve(&self, snapshot_bytes: u64) {
        let wanted = self
            .shared
            .options
            .snapshot_reserve_bytes
            .max(2 * snapshot_bytes);
        let disk = &self.shared.disk;
        let opened = disk
            .open(names::RESERVE)
            .or_else(|_| disk.create(names::RESERVE));
        let reserved = opened.and_then(|file| match file.length()? >= wanted {
            true => Ok(()),
            false => file.allocate(wanted),
        });
        if reserved.is_err() {
            // The volume is full already: what little was had is better left to others.
            let _ = disk.remove(names::RESERVE);
        }
    }

    /// Removes snapshots that the anchor no longer names. What fails is removed at the next start.
    fn remove_older(&self, previous: Op) {
        let Ok(entries) = self.shared.disk.list(names::SNAPSHOTS) else {
            return;
        };
        let ops = entries
            .iter()
            .filter_map(|e| names::parse_snapshot(&e.name));
        for op in ops.filter(|op| *op < previous) {
            let _ = self.shared.disk.remove(&names::snapshot(op));
        }
    }
}
