//! From what was read to an open store.
//!
//! [`recover`] only reads. [`Starter::start`] checks the index against the machine, and then
//! changes the directory, in an order that may be interrupted anywhere (spec REC-11): what is cut
//! is copied aside first; what was read is flushed before anyone relies on it, since after a kill
//! it need not be on stable storage.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use pawl_vsr::{CheckpointHeader, Recovered};
use pawl_wire::ids::{Lsn, Op, PartitionUid};

use super::anchor::FoundAnchor;
use super::directory::Directory;
use super::index::reconcile;
use super::partitions::{PartitionFile, PartitionScan, read_whole, scan, verify_unsure};
use super::walk::{Torn, WalkedLog, walk};
use super::{Finding, Recovery};
use crate::Store;
use crate::checkpoint::Checkpointer;
use crate::disk::DiskFile;
use crate::drain::Drainer;
use crate::drain::files::PartitionFiles;
use crate::error::{DiskError, FileRange, OpenError, Unreadable};
use crate::format::anchor::{Anchor, CheckpointRef};
use crate::format::segment::SegmentHeader;
use crate::format::snapshot::SnapshotFile;
use crate::format::{BLOCK_BYTES, LogPosition, block_align, checksum, names};
use crate::index::{BatchEntry, PartitionBounds};
use crate::log::preparation::{Preparation, Ready, ReadySegment, flush_directory, write_zeros};
use crate::log::preparer::Preparer;
use crate::log::scan::SegmentFile;
use crate::log::shared::{
    AnchorState, SegmentInfo, Shared, SharedParts, Span, Spans, write_anchor,
};
use crate::log::writer::LogWriter;
use crate::options::StoreOptions;
use crate::reader::Reader;
use crate::record::SegmentId;
use crate::status::Status;

/// Turns a recovery into an open store.
#[derive(Debug)]
pub struct Starter {
    directory: Directory,
    options: StoreOptions,
    anchor: Anchor,
    anchor_file: Arc<dyn DiskFile>,
    anchor_repair: bool,
    checkpoint: Op,
    segments: BTreeMap<u64, SegmentInfo>,
    spans: VecDeque<Span>,
    end: LogPosition,
    outcomes_op: Op,
    torn: Torn,
    batches: BTreeMap<PartitionUid, BTreeMap<Op, BatchEntry>>,
    scans: BTreeMap<PartitionUid, PartitionScan>,
}

/// A checkpoint that was chosen, with its snapshot.
struct Chosen {
    checkpoint: CheckpointRef,
    snapshot: Option<(CheckpointHeader, Bytes)>,
}

/// Reads everything, decides, and changes nothing.
pub(crate) fn recover(
    directory: Directory,
    options: StoreOptions,
    found: FoundAnchor,
) -> Result<Recovery, OpenError> {
    let mut findings = directory.findings.clone();
    findings.extend(found.findings);
    let mut anchor = found.anchor;
    let chosen = choose_checkpoint(&directory, &anchor, &mut findings)?;
    let repair = found.repair || chosen.checkpoint != anchor.newest;
    if chosen.checkpoint != anchor.newest {
        anchor.newest = chosen.checkpoint;
        anchor.previous = chosen.checkpoint;
    }
    let replay = chosen.checkpoint.replay;
    let WalkedLog {
        segments,
        spans,
        end,
        records,
        placed,
        index,
        torn,
        findings: walked,
    } = walk(&directory, &anchor, replay)?;
    findings.extend(walked);
    let mut scans = scan(&directory, &anchor, &mut findings)?;
    let outcomes_op = index.outcomes_op;
    let checkpoint = chosen.checkpoint.op();
    let batches = index.resolve(checkpoint);
    verify_unsure(&mut scans, &batches)?;
    Ok(Recovery {
        identity: anchor.identity(),
        recovered: Recovered {
            checkpoint: chosen.snapshot,
            records,
            lsn_last: Lsn(end.lsn - 1),
        },
        placed,
        findings,
        starter: Starter {
            directory,
            options,
            anchor,
            anchor_file: found.file,
            anchor_repair: repair,
            checkpoint,
            segments,
            spans,
            end,
            outcomes_op,
            torn,
            batches,
            scans,
        },
    })
}

fn choose_checkpoint(
    directory: &Directory,
    anchor: &Anchor,
    findings: &mut Vec<Finding>,
) -> Result<Chosen, OpenError> {
    let (range, reason) = match read_snapshot(directory, &anchor.newest)? {
        Ok(chosen) => return Ok(chosen),
        Err(damage) => damage,
    };
    let older = anchor.previous;
    let reached = older.replay.segment >= anchor.log_start.segment;
    if reached
        && older.op() < anchor.newest.op()
        && let Ok(chosen) = read_snapshot(directory, &older)?
    {
        let op = older.op();
        findings.push(Finding::OlderCheckpoint { range, reason, op });
        return Ok(chosen);
    }
    Err(OpenError::SnapshotUnreadable { range, reason })
}

type Damage = (FileRange, Unreadable);

fn read_snapshot(
    directory: &Directory,
    checkpoint: &CheckpointRef,
) -> Result<Result<Chosen, Damage>, OpenError> {
    let op = checkpoint.op();
    if op == Op(0) {
        return Ok(Ok(Chosen {
            checkpoint: *checkpoint,
            snapshot: None,
        }));
    }
    let range = FileRange {
        file: names::snapshot(op),
        from: 0,
        to: checkpoint.bytes,
    };
    if !directory.snapshots.contains(&op) {
        return Ok(Err((range, Unreadable::Short)));
    }
    let bytes = read_whole(directory, &range.file)?;
    if bytes.len() as u64 != checkpoint.bytes {
        return Ok(Err((range, Unreadable::Short)));
    }
    if checksum(&bytes) != checkpoint.digest {
        return Ok(Err((range, Unreadable::Checksum)));
    }
    Ok(match SnapshotFile::decode(&bytes) {
        Ok(file) => Ok(Chosen {
            checkpoint: *checkpoint,
            snapshot: Some((file.header, file.snapshot)),
        }),
        Err(reason) => Err((range, reason)),
    })
}

impl Starter {
    /// Checks that the index holds every message that the restored machine holds, makes durable
    /// what was read, cuts torn tails, and opens the log for writing. Findings of this step are
    /// appended to `findings`.
    ///
    /// `partitions` are those of the machine as restored from the checkpoint, before any record of
    /// the log is applied.
    pub fn start(
        mut self,
        partitions: &[PartitionBounds],
        findings: &mut Vec<Finding>,
    ) -> Result<Store, OpenError> {
        let batches = std::mem::take(&mut self.batches);
        let index = Arc::new(reconcile(
            self.checkpoint,
            partitions,
            batches,
            &self.scans,
        )?);
        for name in names::DIRECTORIES {
            let disk = &self.directory.disk;
            disk.create_directory(name)
                .map_err(DiskError::of("create directory", name))?;
        }
        self.cut_torn(findings)?;
        self.mend_segments(findings)?;
        self.flush_log()?;
        self.flush_checkpoint()?;
        let files = self.settle_partitions(findings)?;
        self.remove_leftovers()?;
        let ready = self.settle_segments()?;
        let shared = Shared::new(SharedParts {
            disk: self.directory.disk.clone(),
            options: self.options,
            anchor: AnchorState {
                anchor: self.anchor,
                file: self.anchor_file,
            },
            segments: self.segments,
            spans: Spans {
                list: self.spans,
                end: self.end,
            },
            preparation: Preparation::new(ready),
            outcomes: self.outcomes_op,
        });
        Ok(Store {
            writer: LogWriter::new(shared.clone()),
            preparer: Preparer::new(shared.clone()),
            checkpointer: Checkpointer::new(shared.clone(), index.clone()),
            drainer: Drainer::new(shared.clone(), index.clone(), files),
            reader: Reader::new(shared.clone()),
            index,
            status: Status::new(shared),
        })
    }

    /// Cuts what was never flushed from the log's end, and keeps a copy (spec REC-6, REC-12).
    fn cut_torn(&mut self, findings: &mut Vec<Finding>) -> Result<(), OpenError> {
        if let Some(to) = self.torn.to {
            let name = names::segment(self.end.segment());
            let file = self.segments[&self.end.segment].file.clone();
            let length = file.length().map_err(DiskError::of("measure", &name))?;
            let range = FileRange {
                file: name.clone(),
                from: self.end.position,
                to: to.min(length),
            };
            self.keep(&range, &file, findings)?;
            let zeros = (range.from, block_align(range.to).min(length));
            write_zeros(&file, &name, zeros)?;
            file.flush().map_err(DiskError::of("flush", &name))?;
        }
        for segment in std::mem::take(&mut self.torn.segments) {
            let name = names::segment(segment);
            let disk = self.directory.disk.clone();
            let file = disk.open(&name).map_err(DiskError::of("open", &name))?;
            let range = FileRange {
                file: name.clone(),
                from: BLOCK_BYTES as u64,
                to: file.length().map_err(DiskError::of("measure", &name))?,
            };
            self.keep(&range, &file, findings)?;
            disk.remove(&name).map_err(DiskError::of("remove", &name))?;
            self.directory.segments.remove(&segment);
        }
        Ok(())
    }

    /// Copies bytes that are about to be cut. A full disk must not stop the start: no copy then.
    fn keep(
        &mut self,
        range: &FileRange,
        file: &Arc<dyn DiskFile>,
        findings: &mut Vec<Finding>,
    ) -> Result<(), OpenError> {
        let bytes = file
            .read_at(range.from, (range.to - range.from) as usize)
            .map_err(DiskError::of("read", &range.file))?;
        let short = range.file.rsplit('/').next().unwrap_or(&range.file);
        let name = format!("{}/{short}-{}-{}", names::CUT, range.from, range.to);
        match self.write_kept(&name, bytes) {
            Ok(()) => findings.push(Finding::Kept {
                range: range.clone(),
                file: name.clone(),
            }),
            Err(error) if error.is_no_space() => {
                let _ = self.directory.disk.remove(&name);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.directory.cut.retain(|other| *other != name);
        self.directory.cut.push(name);
        let limit = self.options.cut_files_max.max(1);
        let surplus = self.directory.cut.len().saturating_sub(limit);
        for old in self.directory.cut.drain(..surplus) {
            let disk = &self.directory.disk;
            disk.remove(&old).map_err(DiskError::of("remove", &old))?;
        }
        Ok(())
    }

    fn write_kept(&self, name: &str, bytes: Bytes) -> Result<(), DiskError> {
        let disk = &self.directory.disk;
        let _ = disk.remove(name);
        let file = disk.create(name).map_err(DiskError::of("create", name))?;
        file.write_at(&[bytes], 0)
            .map_err(DiskError::of("write", name))?;
        file.flush().map_err(DiskError::of("flush", name))?;
        flush_directory(disk, names::CUT)
    }

    /// Rewrites damaged first blocks, and gives the segment that is written on its full length.
    fn mend_segments(&mut self, findings: &mut Vec<Finding>) -> Result<(), OpenError> {
        for (segment, info) in &mut self.segments {
            let name = names::segment(SegmentId(*segment));
            let least = u64::from(self.options.segment_bytes);
            if info.end.is_none() && info.file_bytes < least.max(self.end.position) {
                info.file
                    .allocate(least)
                    .map_err(DiskError::of("allocate", &name))?;
                info.file_bytes = least;
            }
            let block = info
                .file
                .read_at(0, BLOCK_BYTES)
                .map_err(DiskError::of("read", &name))?;
            let good = SegmentHeader::decode(&block);
            let reason = match good {
                Ok(header) if header.segment() == SegmentId(*segment) => continue,
                Ok(_) => Unreadable::Field("segment"),
                Err(reason) => reason,
            };
            // Whether old bytes stand behind the end is not known any more: assume so.
            let (cluster, nonce) = (self.anchor.cluster, self.anchor.nonce);
            let header = SegmentHeader::new(cluster, nonce, SegmentId(*segment), true);
            info.file
                .write_at(&[Bytes::from(header.encode())], 0)
                .map_err(DiskError::of("write", &name))?;
            info.file.flush().map_err(DiskError::of("flush", &name))?;
            let range = FileRange {
                file: name,
                from: 0,
                to: BLOCK_BYTES as u64,
            };
            findings.push(Finding::Repaired { range, reason });
        }
        Ok(())
    }

    fn flush_log(&self) -> Result<(), OpenError> {
        let replay = self.anchor.newest.replay.segment;
        for (segment, info) in self.segments.range(replay..) {
            let name = names::segment(SegmentId(*segment));
            info.file.flush().map_err(DiskError::of("flush", &name))?;
        }
        Ok(flush_directory(&self.directory.disk, names::LOG)?)
    }

    /// Flushes the snapshots that the anchor names, then the anchor; repairs the anchor's copies.
    fn flush_checkpoint(&mut self) -> Result<(), OpenError> {
        let disk = &self.directory.disk;
        let op = self.anchor.newest.op();
        if op > Op(0) {
            let name = names::snapshot(op);
            let file = disk.open(&name).map_err(DiskError::of("open", &name))?;
            file.flush().map_err(DiskError::of("flush", &name))?;
        }
        flush_directory(disk, names::SNAPSHOTS)?;
        if self.anchor_repair {
            // Twice: both pairs of slots. The pair that holds the anchor in force comes last, so
            // that a crash in between leaves it.
            for _ in 0..2 {
                self.anchor.sequence += 1;
                write_anchor(&self.anchor_file, &self.anchor)?;
            }
        } else {
            self.anchor_file
                .flush()
                .map_err(DiskError::of("flush", names::ANCHOR))?;
        }
        Ok(flush_directory(disk, "")?)
    }

    /// Cuts torn ends of partition files, and flushes what the log holds too.
    fn settle_partitions(&self, findings: &mut Vec<Finding>) -> Result<PartitionFiles, OpenError> {
        let disk = &self.directory.disk;
        let mut files = PartitionFiles::new(self.anchor.cluster);
        flush_directory(disk, names::PARTITIONS)?;
        for (uid, scan) in &self.scans {
            let unsure = scan.files.iter().any(|file| file.unsure);
            if unsure {
                flush_directory(disk, &names::partition(*uid))?;
            }
            let last = scan.files.last().map(|file| file.number);
            for file in &scan.files {
                if file.cut || Some(file.number) == last {
                    cut_partition(file, findings)?;
                }
                if file.unsure {
                    file.file
                        .flush()
                        .map_err(DiskError::of("flush", &file.name))?;
                }
            }
            files.adopt(*uid, scan);
        }
        Ok(files)
    }

    fn remove_leftovers(&self) -> Result<(), OpenError> {
        let disk = &self.directory.disk;
        let kept = [self.anchor.newest.op(), self.anchor.previous.op()];
        let snapshots = self.directory.snapshots.iter();
        let snapshots = snapshots.filter(|op| !kept.contains(op));
        // A damaged newest snapshot stays until the next one takes its name.
        let snapshots = snapshots.filter(|op| **op < self.anchor.newest.op());
        let sidecars = self.directory.sidecars.iter();
        let sidecars = sidecars.filter(|s| !self.segments.contains_key(&s.0));
        let names = self.directory.temporary.iter().cloned();
        let names = names.filter(|name| name != names::RESERVE);
        let names = names.chain(snapshots.map(|op| names::snapshot(*op)));
        for name in names.chain(sidecars.map(|s| names::segment_sidecar(*s))) {
            match disk.remove(&name) {
                // Formatting took it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(DiskError::of("remove", &name))?,
            }
        }
        Ok(())
    }

    /// Segments behind the log's end are ready if they are whole and follow without a gap. Others
    /// are removed, those below its start too: a rename that a crash interrupted may have left one
    /// file under two names, and it must not be written under both.
    fn settle_segments(&self) -> Result<Ready, OpenError> {
        let disk = &self.directory.disk;
        let mut ready = Ready {
            queue: VecDeque::new(),
            spares: Vec::new(),
            next: self.end.segment().next(),
        };
        for segment in &self.directory.segments {
            if self.segments.contains_key(&segment.0) {
                continue;
            }
            let name = names::segment(*segment);
            let file = disk.open(&name).map_err(DiskError::of("open", &name))?;
            let file_bytes = file.length().map_err(DiskError::of("measure", &name))?;
            let whole = file_bytes == u64::from(self.options.segment_bytes);
            if *segment == ready.next && whole && self.is_prepared(*segment, &file)? {
                file.flush().map_err(DiskError::of("flush", &name))?;
                ready.queue.push_back(ReadySegment {
                    segment: *segment,
                    file,
                    file_bytes,
                    written_to: BLOCK_BYTES as u64,
                });
                ready.next = segment.next();
            } else {
                disk.remove(&name).map_err(DiskError::of("remove", &name))?;
            }
        }
        Ok(ready)
    }

    fn is_prepared(&self, segment: SegmentId, file: &Arc<dyn DiskFile>) -> Result<bool, OpenError> {
        let found = SegmentFile {
            segment,
            file: file.clone(),
            file_bytes: u64::from(self.options.segment_bytes),
            nonce: self.anchor.nonce,
        };
        let block = file
            .read_at(0, BLOCK_BYTES)
            .map_err(DiskError::of("read", &found.name()))?;
        Ok(SegmentHeader::decode(&block).is_ok_and(|header| header.segment() == segment))
    }
}

fn cut_partition(file: &PartitionFile, findings: &mut Vec<Finding>) -> Result<(), OpenError> {
    if let Some(range) = file.damage() {
        findings.push(Finding::TornTail { range });
    }
    if file.file_bytes > file.tail {
        file.file
            .set_length(file.tail)
            .map_err(DiskError::of("cut", &file.name))?;
        file.file
            .flush()
            .map_err(DiskError::of("flush", &file.name))?;
    }
    Ok(())
}
