//! Writes sidecars, off the hot path. They are derived, so that none is flushed on its own account;
//! a start that finds half of one scans the file instead.

use bytes::Bytes;
use pawl_wire::ids::PartitionUid;

use super::Drainer;
use crate::error::{DiskError, DrainError};
use crate::format::sidecar::{Sidecar, SidecarOf};
use crate::format::{LogPosition, names};
use crate::log::shared::SegmentInfo;
use crate::record::SegmentId;

/// Sidecars of log segments that one tick writes at most.
const SEGMENTS_PER_TICK: usize = 4;

/// A partition file's sidecar is written again when this many bytes, or a quarter of the file, are
/// not covered: a start after a kill then scans little, and the writing stays in proportion.
const UNCOVERED_BYTES_MAX: u64 = 8 << 20;

impl Drainer {
    /// Writes the sidecars of sealed segments whose every op is applied.
    pub(super) fn write_segment_sidecars(&mut self) -> Result<u32, DrainError> {
        let applied = self.index.applied_op();
        let due: Vec<(SegmentId, SegmentInfo)> = {
            let segments = self.shared.segments.lock();
            let due = segments
                .iter()
                .filter(|(_, info)| info.end.is_some() && !info.indexed && info.op_max <= applied);
            let due = due.take(SEGMENTS_PER_TICK);
            due.map(|(id, info)| (SegmentId(*id), info.clone()))
                .collect()
        };
        let mut written = 0;
        for (segment, info) in due {
            let end = info.end.expect("only sealed segments are due");
            if !self.write_segment_sidecar(segment, &info, end)? {
                break;
            }
            if let Some(info) = self.shared.segments.lock().get_mut(&segment.0) {
                info.indexed = true;
            }
            written += 1;
        }
        Ok(written)
    }

    /// The sidecar of the segment that was written last, at a clean stop.
    pub(super) fn write_open_sidecar(&mut self) -> Result<(), DrainError> {
        let end = self.shared.spans.lock().end;
        let info = self.shared.segments.lock().get(&end.segment).cloned();
        let info = info.expect("the log's end is in a segment");
        if info.op_max <= self.index.applied_op() {
            self.write_segment_sidecar(end.segment(), &info, end)?;
        }
        Ok(())
    }

    fn write_segment_sidecar(
        &self,
        segment: SegmentId,
        info: &SegmentInfo,
        end: LogPosition,
    ) -> Result<bool, DrainError> {
        let sidecar = Sidecar {
            cluster: self.shared.identity.cluster,
            nonce: self.shared.nonce,
            of: SidecarOf::Log {
                first: info.first,
                end,
            },
            op_max: info.op_max,
            entries: self.index.in_segment(segment),
        };
        self.write_sidecar(&names::segment_sidecar(segment), &sidecar)
    }

    /// Writes sidecars of partition files: of those that need one, or (`all`) that are not covered.
    pub(super) fn write_partition_sidecars(&mut self, all: bool) -> Result<u32, DrainError> {
        let mut due: Vec<(PartitionUid, u32, u64)> = Vec::new();
        for (uid, state) in &self.files.partitions {
            for (number, file) in &state.files {
                let uncovered = file.tail - file.covered.min(file.tail);
                let limit = UNCOVERED_BYTES_MAX.max(file.tail / 4);
                if uncovered > limit || (all && uncovered > 0) {
                    due.push((*uid, *number, file.tail));
                }
            }
        }
        let mut written = 0;
        for (uid, number, end) in due {
            let entries = self.index.in_partition_file(uid, number);
            let sidecar = Sidecar {
                cluster: self.shared.identity.cluster,
                nonce: self.shared.nonce,
                of: SidecarOf::Partition { uid, number, end },
                op_max: entries.last().map_or(pawl_wire::ids::Op(0), |e| e.op),
                entries: entries.into_iter().map(|entry| (uid, entry)).collect(),
            };
            if !self.write_sidecar(&names::partition_sidecar(uid, number), &sidecar)? {
                break;
            }
            let state = self.files.partitions.get_mut(&uid);
            if let Some(file) = state.and_then(|state| state.files.get_mut(&number)) {
                file.covered = end;
            }
            written += 1;
        }
        Ok(written)
    }

    /// Replaces a sidecar. `false`: no room, which only makes the next start slower.
    fn write_sidecar(&self, name: &str, sidecar: &Sidecar) -> Result<bool, DrainError> {
        let disk = &self.shared.disk;
        let temporary = format!("{}/sidecar", names::TEMPORARY);
        let _ = disk.remove(&temporary);
        let written = disk
            .create(&temporary)
            .map_err(DiskError::of("create", &temporary))
            .and_then(|file| {
                file.write_at(&[Bytes::from(sidecar.encode())], 0)
                    .map_err(DiskError::of("write", &temporary))
            });
        match written {
            Ok(()) => {}
            Err(error) if error.is_no_space() => {
                let _ = disk.remove(&temporary);
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        disk.rename(&temporary, name)
            .map_err(DiskError::of("rename", name))?;
        Ok(true)
    }
}
