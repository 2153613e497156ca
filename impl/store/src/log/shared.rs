//! What the threads of an open store share.
//!
//! Locks are taken one at a time, but for [`Preparation::lock`], which is taken before
//! [`Shared::ready`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pawl_wire::ids::{Lsn, Op};

use super::preparation::Preparation;
use crate::disk::{Disk, DiskFile};
use crate::error::DiskError;
use crate::format::anchor::Anchor;
use crate::format::{BLOCK_BYTES, LogPosition, names};
use crate::options::{Identity, StoreOptions};
use crate::reader::FileCache;
use crate::record::SegmentId;

/// A segment of the log.
#[derive(Clone, Debug)]
pub(crate) struct SegmentInfo {
    pub file: Arc<dyn DiskFile>,
    /// Where it begins.
    pub first: LogPosition,
    /// Where it ends; `None`: it is being written.
    pub end: Option<LogPosition>,
    pub file_bytes: u64,
    /// Highest op of an entry in it.
    pub op_max: Op,
    /// A sidecar covers it whole.
    pub indexed: bool,
}

/// A flushed batch of which a checkpoint may say "replay from here".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub at: LogPosition,
    /// The lsn after its last record.
    pub lsn_end: Lsn,
}

/// Flushed batches since the oldest kept checkpoint, and where the flushed log ends.
#[derive(Debug)]
pub(crate) struct Spans {
    pub list: VecDeque<Span>,
    pub end: LogPosition,
}

impl Spans {
    /// Where to replay from so that this record and all later ones are met.
    pub fn replay_from(&self, lsn: Lsn) -> Option<LogPosition> {
        if lsn.0 >= self.end.lsn {
            return Some(self.end);
        }
        let index = self.list.partition_point(|span| span.lsn_end <= lsn);
        let span = self.list.get(index)?;
        (span.at.lsn <= lsn.0).then_some(span.at)
    }

    /// Forgets batches that no kept checkpoint needs.
    pub fn forget(&mut self, replay: &LogPosition) {
        while let Some(span) = self.list.front() {
            if span.at.number >= replay.number {
                break;
            }
            self.list.pop_front();
        }
    }
}

/// Where zeros are written ahead of the log's end.
///
/// Claims keep zeros and batches apart: the writer announces how far it writes before it does, and
/// waits for a claim that it meets; a claim is only made behind what the writer has announced.
#[derive(Debug)]
pub(crate) struct Zone {
    pub segment: SegmentId,
    pub file: Arc<dyn DiskFile>,
    pub file_bytes: u64,
    /// Up to here batches are written, or being written.
    pub reserved_to: u64,
    /// Up to here the file is written, so that a flush does not change its extents.
    pub written_to: u64,
    /// Being zeroed.
    pub claim: Option<(u64, u64)>,
    /// Bytes of batches since the store was opened.
    pub batch_bytes: u64,
}

/// The anchor as last flushed, and its file.
#[derive(Debug)]
pub(crate) struct AnchorState {
    pub anchor: Anchor,
    pub file: Arc<dyn DiskFile>,
}

/// What the threads of an open store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub options: StoreOptions,
    pub identity: Identity,
    pub nonce: u64,
    poisoned: AtomicBool,
    pub outcomes_durable: AtomicU64,
    /// Records at or above this are needed by the replica.
    pub reclaim: AtomicU64,
    pub anchor: Mutex<AnchorState>,
    pub segments: Mutex<BTreeMap<u64, SegmentInfo>>,
    pub spans: Mutex<Spans>,
    pub preparation: Preparation,
    pub zone: Mutex<Zone>,
    pub zone_freed: Condvar,
    pub files: FileCache,
}

/// What a store is made of when it is opened.
#[derive(Debug)]
pub(crate) struct SharedParts {
    pub disk: Arc<dyn Disk>,
    pub options: StoreOptions,
    pub anchor: AnchorState,
    pub segments: BTreeMap<u64, SegmentInfo>,
    pub spans: Spans,
    pub preparation: Preparation,
    pub outcomes: Op,
}

impl Shared {
    pub fn new(parts: SharedParts) -> Arc<Shared> {
        let end = parts.spans.end;
        let active = &parts.segments[&end.segment];
        let zone = Zone {
            segment: end.segment(),
            file: active.file.clone(),
            file_bytes: active.file_bytes,
            reserved_to: end.position,
            written_to: end.position,
            claim: None,
            batch_bytes: 0,
        };
        let anchor = parts.anchor.anchor;
        Arc::new(Shared {
            files: FileCache::new(parts.disk.clone(), parts.options.reader_files_max),
            disk: parts.disk,
            options: parts.options,
            identity: anchor.identity(),
            nonce: anchor.nonce,
            poisoned: AtomicBool::new(false),
            outcomes_durable: AtomicU64::new(parts.outcomes.0),
            reclaim: AtomicU64::new(u64::MAX),
            anchor: Mutex::new(parts.anchor),
            segments: Mutex::new(parts.segments),
            spans: Mutex::new(parts.spans),
            preparation: parts.preparation,
            zone: Mutex::new(zone),
            zone_freed: Condvar::new(),
        })
    }

    pub fn poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// After this nothing is written or flushed any more (spec REC-3).
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
    }

    /// Bytes of the log's segments.
    pub fn log_bytes(&self) -> u64 {
        self.segments.lock().values().map(|s| s.file_bytes).sum()
    }

    /// Switches the anchor to what `change` makes of it, in one write and one flush (spec REC-17).
    pub fn switch_anchor(&self, change: impl FnOnce(&mut Anchor)) -> Result<Anchor, DiskError> {
        let mut state = self.anchor.lock();
        let mut anchor = state.anchor;
        change(&mut anchor);
        anchor.sequence += 1;
        if let Err(error) = write_anchor(&state.file, &anchor) {
            // What the file holds now is unknown; whatever relies on the anchor must stop.
            self.poison();
            return Err(error);
        }
        state.anchor = anchor;
        Ok(anchor)
    }

    /// The anchor as last flushed.
    pub fn anchor(&self) -> Anchor {
        self.anchor.lock().anchor
    }
}

/// Writes both slots of an anchor and flushes.
pub(crate) fn write_anchor(file: &Arc<dyn DiskFile>, anchor: &Anchor) -> Result<(), DiskError> {
    let slot = Bytes::from(anchor.encode());
    let position = (anchor.slot() * BLOCK_BYTES) as u64;
    file.write_at(&[slot.clone(), slot], position)
        .map_err(DiskError::of("write", names::ANCHOR))?;
    file.flush().map_err(DiskError::of("flush", names::ANCHOR))
}
