//! Keeps the next segment allocated and the zone ahead of the log's end written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::preparation::{READY_SEGMENTS, ZERO_PIECE_BYTES, write_zeros};
use super::shared::Shared;
use crate::error::DiskError;
use crate::format::{block_align, names};

/// What a tick of the preparer did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// Segments made ready.
    pub segments: u32,
    /// Zeros written ahead of the log.
    pub zeros_bytes: u64,
}

/// Prepares segments off the hot path. Owned by one thread.
#[derive(Debug)]
pub struct Preparer {
    shared: Arc<Shared>,
    /// Bytes of batches when the last tick looked.
    batch_bytes: u64,
}

impl Preparer {
    pub(crate) fn new(shared: Arc<Shared>) -> Preparer {
        Preparer {
            shared,
            batch_bytes: 0,
        }
    }

    /// Makes segments ready until there are two, and writes zeros ahead unless the log is under
    /// bulk load. A full disk is a state ([`crate::Status::disk_full`]) and not an error; each call
    /// tries again. After an error the process must stop.
    pub fn tick(&mut self) -> Result<Prepared, DiskError> {
        if self.shared.poisoned() {
            return Ok(Prepared::default());
        }
        let batch_bytes = self.shared.zone.lock().batch_bytes;
        let bulk = batch_bytes - self.batch_bytes > self.shared.options.bulk_bytes_per_tick;
        self.batch_bytes = batch_bytes;
        let zone = match bulk {
            true => 0,
            false => u64::from(self.shared.options.zone_bytes),
        };
        let segments = match self.shared.prepare(READY_SEGMENTS, zone) {
            Ok(made) => made,
            Err(error) if error.is_no_space() => 0,
            Err(error) => return Err(error),
        };
        let zeros_bytes = self.zero_ahead(zone)?;
        Ok(Prepared {
            segments,
            zeros_bytes,
        })
    }

    /// Waits until the writer has taken a segment, at most this long. On a full volume the whole
    /// time: asking again at once would not make room.
    pub fn wait(&self, timeout: Duration) {
        let preparation = &self.shared.preparation;
        let full = preparation.disk_full.load(Ordering::Acquire);
        let mut ready = preparation.ready.lock();
        if full || ready.queue.len() >= READY_SEGMENTS {
            preparation.taken.wait_for(&mut ready, timeout);
        }
    }

    /// Writes zeros until the zone ahead of the log's end is written, once half of it is used up.
    fn zero_ahead(&self, zone_bytes: u64) -> Result<u64, DiskError> {
        let half_used = {
            let zone = self.shared.zone.lock();
            zone.written_to < zone.file_bytes.min(zone.reserved_to + zone_bytes / 2)
        };
        if !half_used {
            return Ok(0);
        }
        let mut zeros_bytes = 0;
        // The writer may run ahead meanwhile; a tick writes one zone at most.
        while zeros_bytes < zone_bytes {
            let Some(piece) = self.zero_piece(zone_bytes)? else {
                break;
            };
            zeros_bytes += piece;
        }
        Ok(zeros_bytes)
    }

    fn zero_piece(&self, zone_bytes: u64) -> Result<Option<u64>, DiskError> {
        let (file, name, from, to) = {
            let mut zone = self.shared.zone.lock();
            let from = zone.written_to.max(block_align(zone.reserved_to));
            let limit = zone.file_bytes.min(zone.reserved_to + zone_bytes);
            if from >= limit {
                return Ok(None);
            }
            let to = limit.min(from + ZERO_PIECE_BYTES);
            zone.claim = Some((from, to));
            (zone.file.clone(), names::segment(zone.segment), from, to)
        };
        let written = write_zeros(&file, &name, (from, to));
        {
            let mut zone = self.shared.zone.lock();
            zone.claim = None;
            if names::segment(zone.segment) == name {
                zone.written_to = zone.written_to.max(to);
            }
            self.shared.zone_freed.notify_all();
        }
        let flushed = written.and_then(|()| file.flush().map_err(DiskError::of("flush", &name)));
        match flushed {
            Ok(()) => Ok(Some(to - from)),
            Err(error) if error.is_no_space() => Ok(None),
            Err(error) => {
                // The flush covers batches too, and the kernel reports its failure only once.
                self.shared.poison();
                Err(error)
            }
        }
    }
}
