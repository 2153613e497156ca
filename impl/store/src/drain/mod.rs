//! Drains the oldest segments of the log into partition files, and tidies up.
//!
//! The order of a drain, and what a crash after each step leaves:
//!
//! 1. Batches that live, or died above the older kept checkpoint, are appended to their partitions'
//!    files: copies that the next start verifies, or cuts.
//! 2. Files, then directories, are flushed: both copies are good; either serves.
//! 3. The index is told the new places.
//! 4. The anchor's log start moves behind the segment, and is flushed: the segment is no longer
//!    part of the log; the next start takes it as a spare (spec REC-18, REC-26).
//! 5. The file is a spare, from which the preparer makes a segment with a new number.

pub(crate) mod files;
mod sidecars;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pawl_wire::ids::{Op, PartitionUid};

use self::files::{FilesMark, PartitionFiles};
use crate::error::{DiskError, DrainError, FileRange};
use crate::format::{checksum, checksum_low, names};
use crate::index::{BatchEntry, IndexSet};
use crate::log::preparation::SpareFile;
use crate::log::shared::{SegmentInfo, Shared};
use crate::record::{Place, PlaceFile, SegmentId};

/// What a tick of the drainer did.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Drained {
    /// The segment that left the log.
    pub segment: Option<SegmentId>,
    /// Batches copied to partition files.
    pub batches: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Sidecars written.
    pub sidecars: u32,
    /// Files removed.
    pub files_removed: u32,
}

/// Drains the log. Owned by one thread.
#[derive(Debug)]
pub struct Drainer {
    shared: Arc<Shared>,
    index: Arc<IndexSet>,
    files: PartitionFiles,
    /// The older kept checkpoint when dead files were looked for last.
    swept_at: Option<Op>,
}

impl Drainer {
    pub(crate) fn new(shared: Arc<Shared>, index: Arc<IndexSet>, files: PartitionFiles) -> Drainer {
        Drainer {
            shared,
            index,
            files,
            swept_at: None,
        }
    }

    /// Writes due sidecars, drains at most one segment, removes dead files. Call again at once as
    /// long as a segment was drained. After [`DrainError::NoSpace`] and [`DrainError::Damaged`] the
    /// node goes on, with the segment where it is; after any other error the process must stop.
    pub fn tick(&mut self) -> Result<Drained, DrainError> {
        if self.shared.poisoned() {
            return Err(DrainError::Poisoned);
        }
        let mut drained = Drained {
            sidecars: self.write_segment_sidecars()?,
            ..Drained::default()
        };
        if let Some((segment, info)) = self.oldest_to_drain() {
            self.drain(segment, &info, &mut drained)?;
        }
        // Files die when the older kept checkpoint moves on, or when what was in them is drained.
        let checkpoint = Some(self.shared.anchor().previous.op());
        if self.swept_at != checkpoint || drained.segment.is_some() {
            drained.files_removed = self.files.sweep(&self.shared, &self.index)?;
            self.swept_at = checkpoint;
        }
        drained.sidecars += self.write_partition_sidecars(false)?;
        Ok(drained)
    }

    /// Clean stop, after [`crate::LogWriter::close`]: writes the sidecars of the open files.
    pub fn close(mut self) -> Result<(), DrainError> {
        if self.shared.poisoned() {
            return Err(DrainError::Poisoned);
        }
        self.write_segment_sidecars()?;
        self.write_open_sidecar()?;
        self.write_partition_sidecars(true)?;
        Ok(())
    }

    /// The oldest segment, if the log must shrink and may lose it.
    fn oldest_to_drain(&self) -> Option<(SegmentId, SegmentInfo)> {
        let full = self.shared.preparation.disk_full.load(Ordering::Acquire);
        let above = self.shared.log_bytes() > self.shared.options.log_bytes_max;
        if !above && !full {
            return None;
        }
        let (segment, info) = {
            let segments = self.shared.segments.lock();
            let (segment, info) = segments.first_key_value()?;
            (SegmentId(*segment), info.clone())
        };
        let end = info.end?;
        let checkpoint = self.shared.anchor().previous.replay;
        let reclaim = self.shared.reclaim.load(Ordering::Acquire);
        if segment >= checkpoint.segment() || end.lsn > reclaim {
            return None;
        }
        // On a full volume only what frees room without taking any.
        let dead = || self.index.in_segment(segment).is_empty();
        (above || dead()).then_some((segment, info))
    }

    fn drain(
        &mut self,
        segment: SegmentId,
        info: &SegmentInfo,
        drained: &mut Drained,
    ) -> Result<(), DrainError> {
        let batches = self.index.in_segment(segment);
        let mark = self.files.mark();
        let moved = match self.copy(segment, info, &batches, &mark) {
            Ok(moved) => moved,
            Err(error) => {
                self.files.reset(mark);
                return Err(error);
            }
        };
        for (uid, entry, place) in &moved {
            self.index.relocate(*uid, entry.op, *place);
            drained.batches += 1;
            drained.bytes += u64::from(place.bytes);
        }
        let next = info
            .end
            .expect("only a sealed segment is drained")
            .in_next_segment();
        self.shared
            .switch_anchor(|anchor| anchor.log_start = next)?;
        self.release(segment, info)?;
        drained.segment = Some(segment);
        Ok(())
    }

    /// Steps 1 and 2.
    fn copy(
        &mut self,
        segment: SegmentId,
        info: &SegmentInfo,
        batches: &[(PartitionUid, BatchEntry)],
        mark: &FilesMark,
    ) -> Result<Vec<(PartitionUid, BatchEntry, Place)>, DrainError> {
        let mut moved = Vec::with_capacity(batches.len());
        for (uid, entry) in batches {
            let body = read_verified(segment, info, entry)?;
            let place = self.files.append(&self.shared, *uid, entry, body)?;
            moved.push((*uid, *entry, place));
        }
        self.files.flush(&self.shared, mark)?;
        Ok(moved)
    }

    /// Step 5.
    fn release(&self, segment: SegmentId, info: &SegmentInfo) -> Result<(), DrainError> {
        self.shared.segments.lock().remove(&segment.0);
        self.shared.files.remove(PlaceFile::Log(segment));
        let sidecar = names::segment_sidecar(segment);
        if info.indexed {
            self.shared
                .disk
                .remove(&sidecar)
                .map_err(DiskError::of("remove", &sidecar))?;
        }
        let spare = SpareFile {
            name: names::segment(segment),
            file: info.file.clone(),
        };
        let mut ready = self.shared.preparation.ready.lock();
        ready.spares.push(spare);
        let surplus = match ready.spares.len() > SPARES_MAX {
            true => ready.spares.pop(),
            false => None,
        };
        drop(ready);
        if let Some(surplus) = surplus {
            let name = surplus.name;
            self.shared
                .disk
                .remove(&name)
                .map_err(DiskError::of("remove", &name))?;
        }
        Ok(())
    }
}

/// Spare files beyond this are removed: the log has shrunk.
const SPARES_MAX: usize = 4;

/// The body of a batch that is to be copied. Damage is never copied (spec REC-24).
fn read_verified(
    segment: SegmentId,
    info: &SegmentInfo,
    entry: &BatchEntry,
) -> Result<Bytes, DrainError> {
    let name = names::segment(segment);
    let place = entry.place;
    let body = info
        .file
        .read_at(u64::from(place.position), place.bytes as usize)
        .map_err(DiskError::of("read", &name))?;
    match checksum_low(checksum(&body)) == place.checksum {
        true => Ok(body),
        false => Err(DrainError::Damaged(FileRange {
            file: name,
            from: u64::from(place.position),
            to: u64::from(place.position) + u64::from(place.bytes),
        })),
    }
}
