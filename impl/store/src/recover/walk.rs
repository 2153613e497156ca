//! Walks the log from its start to its end, and tells torn from faulty.
//!
//! Below the replay position only the index is wanted: a segment's sidecar, or the regions of its
//! batches. From there on every batch is read whole and verified.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use pawl_vsr::Record;
use pawl_wire::ids::{Lsn, Op};

use super::Finding;
use super::directory::Directory;
use super::index::LogIndex;
use super::partitions::read_whole;
use crate::error::{DiskError, FileRange, OpenError, Unreadable};
use crate::format::anchor::Anchor;
use crate::format::batch::{BatchHeader, Region};
use crate::format::segment::SegmentHeader;
use crate::format::sidecar::{Sidecar, SidecarOf};
use crate::format::{BLOCK_BYTES, LogPosition, checksum_low, names};
use crate::log::scan::{FoundBatch, SegmentFile, Survey};
use crate::log::shared::{SegmentInfo, Span};
use crate::record::{Place, PlaceFile, Placed, SegmentId};

/// What stands behind the last batch and is not part of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Torn {
    /// In the segment that is written on: where the cut bytes end.
    pub to: Option<u64>,
    /// Later segments that hold batches which were never flushed.
    pub segments: Vec<SegmentId>,
}

/// The log, as walked.
#[derive(Debug)]
pub(crate) struct WalkedLog {
    pub segments: BTreeMap<u64, SegmentInfo>,
    pub spans: VecDeque<Span>,
    pub end: LogPosition,
    pub records: Vec<(Lsn, Record)>,
    pub placed: Vec<Placed>,
    pub index: LogIndex,
    pub torn: Torn,
    pub findings: Vec<Finding>,
}

/// Walks the log of a directory.
pub(crate) fn walk(
    directory: &Directory,
    anchor: &Anchor,
    replay: LogPosition,
) -> Result<WalkedLog, OpenError> {
    let mut walker = Walker {
        directory,
        anchor,
        files: open_segments(directory, anchor)?,
        log: WalkedLog {
            segments: BTreeMap::new(),
            spans: VecDeque::new(),
            end: replay,
            records: Vec::new(),
            placed: Vec::new(),
            index: LogIndex::default(),
            torn: Torn::default(),
            findings: Vec::new(),
        },
    };
    walker.walk_below(&replay)?;
    walker.walk_replay(replay)?;
    Ok(walker.log)
}

fn open_segments(
    directory: &Directory,
    anchor: &Anchor,
) -> Result<BTreeMap<u64, SegmentFile>, OpenError> {
    let mut files = BTreeMap::new();
    for segment in directory.segments.range(anchor.log_start.segment()..) {
        let name = names::segment(*segment);
        let file = directory
            .disk
            .open(&name)
            .map_err(DiskError::of("open", &name))?;
        let file_bytes = file.length().map_err(DiskError::of("measure", &name))?;
        let found = SegmentFile {
            segment: *segment,
            file,
            file_bytes,
            nonce: anchor.nonce,
        };
        files.insert(segment.0, found);
    }
    Ok(files)
}

struct Walker<'a> {
    directory: &'a Directory,
    anchor: &'a Anchor,
    files: BTreeMap<u64, SegmentFile>,
    log: WalkedLog,
}

impl Walker<'_> {
    fn file(&self, segment: SegmentId) -> Result<SegmentFile, OpenError> {
        let missing = || OpenError::SegmentMissing {
            file: names::segment(segment),
        };
        self.files.get(&segment.0).cloned().ok_or_else(missing)
    }

    /// A segment of the log begins.
    fn enter(&mut self, file: &SegmentFile, first: LogPosition) {
        let info = SegmentInfo {
            file: file.file.clone(),
            first,
            end: None,
            file_bytes: file.file_bytes,
            op_max: Op(0),
            indexed: false,
        };
        self.log.segments.insert(file.segment.0, info);
    }

    fn info(&mut self, segment: u64) -> &mut SegmentInfo {
        let info = self.log.segments.get_mut(&segment);
        info.expect("a segment is entered before its batches are read")
    }

    fn note_region(&mut self, region: &Region) {
        self.log.index.note_region(region);
        let info = self.info(region.header.segment);
        info.op_max = info.op_max.max(region.op_max());
    }

    /// From the log's start to the replay position.
    fn walk_below(&mut self, replay: &LogPosition) -> Result<(), OpenError> {
        let mut at = self.anchor.log_start;
        let mut before = at;
        loop {
            let file = self.file(at.segment())?;
            self.enter(&file, at);
            let limit = match at.segment == replay.segment {
                true => replay.position,
                false => file.file_bytes,
            };
            let (end, reason) = self.walk_segment(&file, at, limit)?;
            let at_replay = at.segment == replay.segment;
            let arrived = match at_replay {
                true => end == *replay,
                false => end != at,
            };
            if !arrived {
                return Err(self.faulty_below(before, end, reason)?);
            }
            if at_replay {
                return Ok(());
            }
            self.info(at.segment).end = Some(end);
            before = end;
            at = end.in_next_segment();
        }
    }

    /// The index of one segment up to `limit`. Returns where it ends, and why it ends there.
    fn walk_segment(
        &mut self,
        file: &SegmentFile,
        first: LogPosition,
        limit: u64,
    ) -> Result<(LogPosition, Unreadable), OpenError> {
        let mut at = first;
        let mut covered = None;
        if let Some((end, sidecar)) = self.sidecar(file, first)? {
            // A segment before this one was scanned, and outcomes of its entries stand here.
            if self.log.index.wants_outcomes() {
                self.scan(file, first, end.position.min(limit))?;
            }
            let info = self.info(file.segment.0);
            info.op_max = info.op_max.max(sidecar.op_max);
            self.log.index.note_sidecar(sidecar.entries);
            covered = Some(end);
            at = end;
        }
        if at.position > limit {
            // An older checkpoint than the sidecar: only the anchor knows what stands at its
            // position.
            (at, _) = self.scan(file, first, limit)?;
            return Ok((at, Unreadable::Chain));
        }
        let (end, reason) = self.scan(file, at, limit)?;
        self.info(file.segment.0).indexed = covered == Some(end);
        Ok((end, reason))
    }

    fn scan(
        &mut self,
        file: &SegmentFile,
        first: LogPosition,
        limit: u64,
    ) -> Result<(LogPosition, Unreadable), OpenError> {
        let mut at = first;
        while at.position < limit {
            match file.region_continuing(&at)? {
                Ok(region) => {
                    self.note_region(&region);
                    at = region.header.end();
                }
                Err(reason) => return Ok((at, reason)),
            }
        }
        Ok((at, Unreadable::Chain))
    }

    /// The segment's sidecar, if it is there and of this very segment.
    fn sidecar(
        &mut self,
        file: &SegmentFile,
        first: LogPosition,
    ) -> Result<Option<(LogPosition, Sidecar)>, OpenError> {
        if !self.directory.sidecars.contains(&file.segment) {
            return Ok(None);
        }
        let name = names::segment_sidecar(file.segment);
        let bytes = read_whole(self.directory, &name)?;
        let reason = match Sidecar::decode(&bytes) {
            Ok(sidecar) => match sidecar.of {
                SidecarOf::Log { first: of, end }
                    if of == first
                        && sidecar.nonce == self.anchor.nonce
                        && end.segment == first.segment
                        && (first.position..=file.file_bytes).contains(&end.position) =>
                {
                    return Ok(Some((end, sidecar)));
                }
                _ => Unreadable::Chain,
            },
            Err(reason) => reason,
        };
        let range = FileRange {
            file: name,
            from: 0,
            to: bytes.len() as u64,
        };
        self.log.findings.push(Finding::Repaired { range, reason });
        Ok(None)
    }

    /// Below the replay position everything was durable: the anchor says so.
    fn faulty_below(
        &self,
        before: LogPosition,
        end: LogPosition,
        reason: Unreadable,
    ) -> Result<OpenError, OpenError> {
        let file = self.file(end.segment())?;
        // A segment whose first batch is whole, and is not the one that must come, shows that the
        // segment before it lost its last ones.
        let lost_before = end.position == BLOCK_BYTES as u64
            && before.segment < end.segment
            && matches!(file.region(end.position)?, Ok(r) if r.header.number > end.number);
        let (at, reason) = match lost_before {
            true => (before, Unreadable::Chain),
            false => (end, reason),
        };
        Ok(OpenError::LogFaulty {
            range: self.bad_range(at)?,
            reason,
        })
    }

    /// From a bad batch to the next good one, or to the end of the segment.
    fn bad_range(&self, at: LogPosition) -> Result<FileRange, OpenError> {
        let file = self.file(at.segment())?;
        let found = file.survey(at.position)?.batches;
        let next = found
            .iter()
            .map(|b| b.header.position)
            .find(|p| *p > at.position);
        Ok(FileRange {
            file: file.name(),
            from: at.position,
            to: next.unwrap_or(file.file_bytes.max(at.position)),
        })
    }

    /// From the replay position to the end of the log.
    fn walk_replay(&mut self, replay: LogPosition) -> Result<(), OpenError> {
        let mut at = replay;
        loop {
            let file = self.file(at.segment())?;
            let reason = match file.batch_continuing(&at)? {
                Ok((region, bytes)) => match self.accept(at, &region, &bytes) {
                    Ok(end) => {
                        at = end;
                        continue;
                    }
                    Err(reason) => reason,
                },
                Err(reason) => reason,
            };
            let next = at.in_next_segment();
            match self.files.get(&next.segment).cloned() {
                Some(file) if file.region_continuing(&next)?.is_ok() => {
                    self.info(at.segment).end = Some(at);
                    self.enter(&file, next);
                    at = next;
                }
                _ => {
                    self.log.end = at;
                    return self.decide_end(&file, at, reason);
                }
            }
        }
    }

    /// Takes in a batch whose every body is good.
    fn accept(
        &mut self,
        at: LogPosition,
        region: &Region,
        bytes: &Bytes,
    ) -> Result<LogPosition, Unreadable> {
        let mut records = Vec::with_capacity(region.records.len());
        for (index, record) in region.records.iter().enumerate() {
            records.push((record.lsn, region.record(index, bytes)?));
        }
        for (record, (_, body)) in region.records.iter().zip(&records) {
            if let Record::Entry { header, .. } = body {
                self.log.placed.push(Placed {
                    op: header.op(),
                    place: Place {
                        file: PlaceFile::Log(SegmentId(region.header.segment)),
                        position: (region.header.position + record.position) as u32,
                        bytes: record.bytes,
                        checksum: checksum_low(record.checksum),
                    },
                });
            }
        }
        self.log.records.append(&mut records);
        self.note_region(region);
        let end = region.header.end();
        self.log.spans.push_back(Span {
            at,
            lsn_end: Lsn(end.lsn),
        });
        Ok(end)
    }

    /// Nothing continues the log at `at`. Torn, or faulty: what later batches vouch for was durable
    /// (spec REC-6, REC-7, REC-9).
    fn decide_end(
        &mut self,
        file: &SegmentFile,
        at: LogPosition,
        reason: Unreadable,
    ) -> Result<(), OpenError> {
        let here = file.survey(at.position)?;
        let mut behind = Vec::new();
        for file in self.files.range(at.segment + 1..).map(|(_, file)| file) {
            behind.push((file.clone(), file.survey(BLOCK_BYTES as u64)?));
        }
        let mut later = here.batches.clone();
        later.extend(
            behind
                .iter()
                .flat_map(|(_, survey)| survey.batches.iter().copied()),
        );
        later.retain(|batch| batch.header.number > at.number);
        let vouches = |batch: &&FoundBatch| batch.header.vouched >= at.number;
        if let Some(batch) = later.iter().find(vouches) {
            let between = at.segment + 1..batch.segment.0;
            for segment in between.map(SegmentId) {
                self.file(segment)?;
            }
            let bad = self.bad_position(at, &later);
            return Err(OpenError::LogFaulty {
                range: self.bad_range(bad)?,
                reason,
            });
        }
        if let Some(to) = self.torn_end(file, at, &here)? {
            self.log.torn.to = Some(to);
            self.note_torn(file, (at.position, to));
        }
        for (file, survey) in behind {
            let begin = LogPosition {
                segment: file.segment.0,
                ..at.in_next_segment()
            };
            if let Some(to) = self.torn_end(&file, begin, &survey)? {
                self.log.torn.segments.push(file.segment);
                self.note_torn(&file, (begin.position, to));
            }
        }
        Ok(())
    }

    fn note_torn(&mut self, file: &SegmentFile, (from, to): (u64, u64)) {
        let range = FileRange {
            file: file.name(),
            from,
            to,
        };
        self.log.findings.push(Finding::TornTail { range });
    }

    /// Where the batch that must continue the log at `at` stood: there, or, where nothing of the
    /// log follows in that segment, at the beginning of the next, unless a later batch stands
    /// there.
    fn bad_position(&self, at: LogPosition, later: &[FoundBatch]) -> LogPosition {
        let next = at.in_next_segment();
        let follows_here = later.iter().any(|batch| batch.segment == at.segment());
        let begins_next = later
            .iter()
            .any(|batch| batch.segment == next.segment() && batch.header.position == next.position);
        match follows_here || begins_next {
            true => at,
            false => next,
        }
    }

    /// Where bytes of this log end that stand at or behind `at` and are not part of it; `None`:
    /// there are none. In a recycled segment other bytes are nobody's.
    fn torn_end(
        &self,
        file: &SegmentFile,
        at: LogPosition,
        survey: &Survey,
    ) -> Result<Option<u64>, OpenError> {
        let mut to = self.torn_batch_end(file, &at)?;
        for batch in &survey.batches {
            to = to.max(batch.header.end().position);
        }
        if !self.recycled(file)? {
            to = to.max(survey.nonzero_end);
        }
        Ok((to > at.position).then_some(to))
    }

    /// Where the batch at `at` says that it ends, if what is there of it is a batch of this place.
    fn torn_batch_end(&self, file: &SegmentFile, at: &LogPosition) -> Result<u64, OpenError> {
        if at.position + BLOCK_BYTES as u64 > file.file_bytes {
            return Ok(at.position);
        }
        let name = file.name();
        let bytes = file
            .file
            .read_at(at.position, BLOCK_BYTES)
            .map_err(DiskError::of("read", &name))?;
        Ok(match BatchHeader::peek(&bytes) {
            Ok(header) if header.stands_at(at) => {
                let claimed = at.position.saturating_add(header.batch_bytes);
                claimed.clamp(at.position + BLOCK_BYTES as u64, file.file_bytes)
            }
            _ => at.position,
        })
    }

    /// Whether old bytes may stand behind the log's end. A header that cannot be read does not say.
    fn recycled(&self, file: &SegmentFile) -> Result<bool, OpenError> {
        if file.file_bytes < BLOCK_BYTES as u64 {
            return Ok(true);
        }
        let name = file.name();
        let block = file
            .file
            .read_at(0, BLOCK_BYTES)
            .map_err(DiskError::of("read", &name))?;
        Ok(SegmentHeader::decode(&block).map_or(true, |header| header.recycled()))
    }
}
