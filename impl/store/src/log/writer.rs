//! The writer of the log: gathers records into a batch, writes it with one call, flushes.
//!
//! Per call: one `pwritev` and later one flush, whatever the number of records. Small bodies are
//! copied once into a staging buffer that is used again; large ones are gathered where they are.
//!
//! Three positions, never merged: *accepted* (the call's records), *written* (`at`), *durable*
//! (`Spans::end`). Only the last one is ever told to the replica.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use pawl_vsr::Record;
use pawl_wire::ids::{Lsn, Op};

use super::shared::{SegmentInfo, Shared, Span};
use crate::disk::DiskFile;
use crate::error::{DiskError, WriteError};
use crate::format::batch::{
    BATCH_HEADER_BYTES, BatchFrame, BatchHeader, BatchKind, OUTCOME_BYTES, WriteRecord,
    encode_region,
};
use crate::format::{BLOCK_BYTES, LogPosition, block_align, checksum_low, names};
use crate::record::{Outcome, Place, PlaceFile, Placed, SegmentId};

static PADDING: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Writes the log. Owned by the WAL thread; nothing else appends.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    file: Arc<dyn DiskFile>,
    file_bytes: u64,
    /// Where the next batch goes, if it fits.
    at: LogPosition,
    /// Number of the last flushed batch: what the next batch vouches for.
    vouched: u64,
    outcomes_op: Op,
    op_max: Op,
    /// Written, and not flushed yet.
    pending: Vec<Span>,
    staging: BytesMut,
}

/// One batch of a call: so many of its records, in a new segment or not.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    records: usize,
    /// A new segment begins here, with room for this many bytes.
    roll: Option<u64>,
}

impl LogWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> LogWriter {
        let at = shared.spans.lock().end;
        let (file, file_bytes, op_max) = {
            let segments = shared.segments.lock();
            let active = &segments[&at.segment];
            (active.file.clone(), active.file_bytes, active.op_max)
        };
        LogWriter {
            outcomes_op: Op(shared.outcomes_durable.load(Ordering::Acquire)),
            shared,
            file,
            file_bytes,
            at,
            vouched: at.number - 1,
            op_max,
            pending: Vec::new(),
            staging: BytesMut::new(),
        }
    }

    /// The lsn that the next record must have.
    pub fn lsn_next(&self) -> Lsn {
        Lsn(self.at.lsn)
    }

    /// Writes records, in the order of their lsn, and outcomes as one batch (more than one only
    /// where segments or limits demand it). Nothing is durable before [`LogWriter::flush`] returns.
    ///
    /// `outcomes` are of produces applied since the last write; with this write they are complete
    /// up to `applied`. Places are appended to `placed` for every entry, in order.
    ///
    /// After [`WriteError::NoSpace`] nothing was written and the call may be repeated as it was.
    /// After any other error the process must stop.
    pub fn write(
        &mut self,
        records: &[(Lsn, Record)],
        outcomes: &[Outcome],
        applied: Op,
        placed: &mut Vec<Placed>,
    ) -> Result<(), WriteError> {
        let records = self.accept(records)?;
        if records.is_empty() && outcomes.is_empty() && applied <= self.outcomes_op {
            return Ok(());
        }
        let mut chunks = self.plan(&records, outcomes.len());
        self.grow_empty(&mut chunks)?;
        self.make_room(&chunks)?;
        let mut rest = &records[..];
        let mut outcomes = outcomes;
        // Said by the batch that holds them, and by the writer only once that batch is written.
        let outcomes_op = self.outcomes_op.max(applied);
        for (index, chunk) in chunks.iter().enumerate() {
            if chunk.roll.is_some() {
                self.roll()?;
            }
            let (now, later) = rest.split_at(chunk.records);
            let kind = BatchKind::Records;
            match self.write_batch(kind, now, (outcomes, outcomes_op), placed) {
                Err(error) if error.is_no_space() && index == 0 => return Err(WriteError::NoSpace),
                Err(error) => return Err(self.fail(error)),
                Ok(()) => {}
            }
            rest = later;
            outcomes = &[];
        }
        Ok(())
    }

    /// Makes everything written durable. Returns the last durable lsn.
    pub fn flush(&mut self) -> Result<Lsn, WriteError> {
        if self.shared.poisoned() {
            return Err(WriteError::Poisoned);
        }
        if !self.pending.is_empty() {
            let name = names::segment(self.at.segment());
            if let Err(source) = self.file.flush() {
                return Err(self.fail(DiskError::of("flush", &name)(source)));
            }
            self.publish();
        }
        Ok(Lsn(self.at.lsn - 1))
    }

    /// Clean stop: writes a closing batch that vouches for everything before it, and flushes.
    pub fn close(mut self) -> Result<(), WriteError> {
        self.flush()?;
        if self.at.position + BLOCK_BYTES as u64 <= self.file_bytes {
            let outcomes = (&[][..], self.outcomes_op);
            let written = self.write_batch(BatchKind::Closed, &[], outcomes, &mut Vec::new());
            written.map_err(|error| self.fail(error))?;
            self.flush()?;
        }
        if let Some(info) = self.shared.segments.lock().get_mut(&self.at.segment) {
            info.op_max = self.op_max;
        }
        Ok(())
    }

    fn accept(&self, records: &[(Lsn, Record)]) -> Result<Vec<WriteRecord>, WriteError> {
        if self.shared.poisoned() {
            return Err(WriteError::Poisoned);
        }
        let mut accepted = Vec::with_capacity(records.len());
        for (index, (lsn, record)) in records.iter().enumerate() {
            let expected = Lsn(self.at.lsn + index as u64);
            if *lsn != expected {
                let found = *lsn;
                return Err(WriteError::OutOfOrder { expected, found });
            }
            if let Record::Entry { header, body } = record
                && header.body_bytes as usize != body.len()
            {
                return Err(WriteError::BodyLength(header.op()));
            }
            accepted.push(WriteRecord::new(record));
        }
        Ok(accepted)
    }

    /// Divides the records into batches: as many as fit into what is left of the segment.
    fn plan(&self, records: &[WriteRecord], outcome_count: usize) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut room = self.file_bytes - self.at.position;
        let mut bytes = (BATCH_HEADER_BYTES + outcome_count * OUTCOME_BYTES) as u64;
        let mut chunk = Chunk {
            records: 0,
            roll: None,
        };
        if bytes > room {
            (room, chunk.roll) = self.plan_roll(bytes);
        }
        for record in records {
            let more = record.bytes();
            let fits = block_align(bytes + more) <= room;
            let wanted = bytes + more <= u64::from(self.shared.options.batch_bytes_max);
            if !fits && chunk.records == 0 {
                // Outcomes go with the first batch, into the new segment too.
                (room, chunk.roll) = self.plan_roll(bytes + more);
            } else if !fits || (!wanted && chunk.records > 0) {
                chunks.push(chunk);
                room -= block_align(bytes).min(room);
                bytes = BATCH_HEADER_BYTES as u64;
                chunk = Chunk {
                    records: 0,
                    roll: None,
                };
                if block_align(bytes + more) > room {
                    (room, chunk.roll) = self.plan_roll(bytes + more);
                }
            }
            bytes += more;
            chunk.records += 1;
        }
        chunks.push(chunk);
        chunks
    }

    /// Room of a new segment for a batch of at least this many bytes, and the size of its file.
    fn plan_roll(&self, bytes: u64) -> (u64, Option<u64>) {
        let least = BLOCK_BYTES as u64 + block_align(bytes);
        let file_bytes = least.max(u64::from(self.shared.options.segment_bytes));
        (file_bytes - BLOCK_BYTES as u64, Some(file_bytes))
    }

    /// A segment of the log never stays empty: one that recovery emptied, and that is too small for
    /// what comes, is made longer.
    fn grow_empty(&mut self, chunks: &mut [Chunk]) -> Result<(), WriteError> {
        let Some(bytes) = chunks[0]
            .roll
            .filter(|_| self.at.position == BLOCK_BYTES as u64)
        else {
            return Ok(());
        };
        let name = names::segment(self.at.segment());
        let longer = self.file.allocate(bytes);
        let longer = longer.map_err(DiskError::of("allocate", &name));
        longer.map_err(|error| self.room_error(error))?;
        self.file_bytes = bytes;
        self.shared.zone.lock().file_bytes = bytes;
        if let Some(info) = self.shared.segments.lock().get_mut(&self.at.segment) {
            info.file_bytes = bytes;
        }
        chunks[0].roll = None;
        Ok(())
    }

    /// Makes sure, before anything is written, that there are segments for the whole call.
    fn make_room(&self, chunks: &[Chunk]) -> Result<(), WriteError> {
        let rolls: Vec<u64> = chunks.iter().filter_map(|chunk| chunk.roll).collect();
        if self.shared.preparation.count() < rolls.len() {
            let prepared = self.shared.prepare(rolls.len(), 0);
            prepared.map_err(|error| self.room_error(error))?;
        }
        let mut ready = self.shared.preparation.ready.lock();
        for (next, file_bytes) in ready.queue.iter_mut().zip(rolls) {
            if next.file_bytes >= file_bytes {
                continue;
            }
            // One entry larger than a segment: its file is made longer, off the usual path.
            let name = names::segment(next.segment);
            let longer = next.file.allocate(file_bytes);
            let longer = longer.map_err(DiskError::of("allocate", &name));
            longer.map_err(|error| self.room_error(error))?;
            next.file_bytes = file_bytes;
        }
        Ok(())
    }

    fn room_error(&self, error: DiskError) -> WriteError {
        match error.is_no_space() {
            true => WriteError::NoSpace,
            false => self.fail(error),
        }
    }

    /// Goes on in the next segment. What is written so far is flushed first, so that the next batch
    /// vouches for it and one flush of one file is enough from then on.
    fn roll(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let next = self.shared.preparation.take();
        let next = next.expect("make_room made sure of a segment, and only the writer takes them");
        let first = self.at.in_next_segment();
        assert_eq!(next.segment, first.segment(), "segments are taken in order");
        let sizes = (next.file_bytes, next.written_to);
        self.enter(next.segment, next.file, sizes, first);
        Ok(())
    }

    fn enter(
        &mut self,
        segment: SegmentId,
        file: Arc<dyn DiskFile>,
        (file_bytes, written_to): (u64, u64),
        first: LogPosition,
    ) {
        let mut segments = self.shared.segments.lock();
        if let Some(last) = segments.get_mut(&self.at.segment) {
            last.end = Some(self.at);
            last.op_max = self.op_max;
        }
        let info = SegmentInfo {
            file: file.clone(),
            first,
            end: None,
            file_bytes,
            op_max: Op(0),
            indexed: false,
        };
        segments.insert(segment.0, info);
        drop(segments);
        let mut zone = self.shared.zone.lock();
        zone.segment = segment;
        zone.file = file.clone();
        zone.file_bytes = file_bytes;
        zone.reserved_to = first.position;
        zone.written_to = written_to;
        drop(zone);
        self.shared
            .files
            .insert(PlaceFile::Log(segment), file.clone());
        self.file = file;
        self.file_bytes = file_bytes;
        self.at = first;
        self.op_max = Op(0);
    }

    fn write_batch(
        &mut self,
        kind: BatchKind,
        records: &[WriteRecord],
        (outcomes, outcomes_op): (&[Outcome], Op),
        placed: &mut Vec<Placed>,
    ) -> Result<(), DiskError> {
        let frame = BatchFrame {
            cluster: self.shared.identity.cluster,
            nonce: self.shared.nonce,
            at: self.at,
            vouched: self.vouched,
            outcomes_op,
            kind,
        };
        self.staging.clear();
        let header = encode_region(&frame, records, outcomes, &mut self.staging);
        let parts = self.gather(&header, records);
        self.reserve(header.position + header.batch_bytes);
        let name = names::segment(self.at.segment());
        self.file
            .write_at(&parts, header.position)
            .map_err(DiskError::of("write", &name))?;
        drop(parts);
        self.place(&header, records, placed);
        let end = header.end();
        self.pending.push(Span {
            at: self.at,
            lsn_end: Lsn(end.lsn),
        });
        self.at = end;
        self.outcomes_op = outcomes_op;
        Ok(())
    }

    /// The parts of a batch, in order: region and small bodies from the staging buffer, large
    /// bodies as they are, zeros up to a whole block.
    fn gather(&mut self, header: &BatchHeader, records: &[WriteRecord]) -> Vec<Bytes> {
        let limit = self.shared.options.copy_bytes_max as usize;
        let mut parts = Vec::new();
        let mut bytes = u64::from(header.region_bytes);
        for record in records {
            bytes += record.body.len() as u64;
            if record.body.len() <= limit {
                self.staging.extend_from_slice(&record.body);
                continue;
            }
            if !self.staging.is_empty() {
                parts.push(self.staging.split().freeze());
            }
            parts.push(record.body.clone());
        }
        if !self.staging.is_empty() {
            parts.push(self.staging.split().freeze());
        }
        let padding = (header.batch_bytes - bytes) as usize;
        if padding > 0 {
            parts.push(Bytes::from_static(&PADDING[..padding]));
        }
        parts
    }

    /// Announces how far the log will be written, and waits for zeros that are on their way there.
    fn reserve(&self, to: u64) {
        let mut zone = self.shared.zone.lock();
        zone.batch_bytes += to - zone.reserved_to;
        zone.reserved_to = to;
        while zone.claim.is_some_and(|(from, _)| from < to) {
            self.shared.zone_freed.wait(&mut zone);
        }
        zone.written_to = zone.written_to.max(to);
    }

    fn place(&mut self, header: &BatchHeader, records: &[WriteRecord], placed: &mut Vec<Placed>) {
        let mut position = header.position + u64::from(header.region_bytes);
        for record in records {
            if let Some(entry) = &record.header {
                self.op_max = self.op_max.max(entry.op());
                placed.push(Placed {
                    op: entry.op(),
                    place: Place {
                        file: PlaceFile::Log(SegmentId(header.segment)),
                        position: position as u32,
                        bytes: entry.body_bytes,
                        checksum: checksum_low(entry.checksum_body),
                    },
                });
            }
            position += record.body.len() as u64;
        }
    }

    /// Tells the others what a flush has just made durable.
    fn publish(&mut self) {
        self.vouched = self.at.number - 1;
        let mut spans = self.shared.spans.lock();
        spans.list.extend(self.pending.drain(..));
        spans.end = self.at;
        drop(spans);
        let outcomes = self.outcomes_op.0;
        self.shared
            .outcomes_durable
            .store(outcomes, Ordering::Release);
    }

    fn fail(&self, error: DiskError) -> WriteError {
        self.shared.poison();
        WriteError::Disk(error)
    }
}
