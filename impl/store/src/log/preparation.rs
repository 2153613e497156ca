//! Makes segments ready: takes a recycled file, or allocates a new one.
//!
//! A ready segment has its name, header and room on stable storage, so that the writer takes it
//! without touching the directory. Two are kept: one that comes next, and a reserve on which
//! deletions go on when the volume is full (spec REC-32).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::shared::Shared;
use crate::disk::{Disk, DiskFile};
use crate::error::DiskError;
use crate::format::segment::SegmentHeader;
use crate::format::{BLOCK_BYTES, names};
use crate::record::SegmentId;

/// Segments that are kept ready: the next one and the reserve.
pub(crate) const READY_SEGMENTS: usize = 2;

/// Zeros are written in pieces of this size, each with its own flush, so that a batch that waits
/// for the same file waits briefly.
pub(crate) const ZERO_PIECE_BYTES: u64 = 512 << 10;

static ZEROS: [u8; ZERO_PIECE_BYTES as usize] = [0; ZERO_PIECE_BYTES as usize];

/// A segment that the writer may take.
#[derive(Debug)]
pub(crate) struct ReadySegment {
    pub segment: SegmentId,
    pub file: Arc<dyn DiskFile>,
    pub file_bytes: u64,
    /// Up to here the file is written.
    pub written_to: u64,
}

/// A file that has left the log.
#[derive(Debug)]
pub(crate) struct SpareFile {
    pub name: String,
    pub file: Arc<dyn DiskFile>,
}

/// What is ready, and what may become so.
#[derive(Debug)]
pub(crate) struct Ready {
    pub queue: VecDeque<ReadySegment>,
    pub spares: Vec<SpareFile>,
    /// The number that the next segment to be made gets.
    pub next: SegmentId,
}

/// Makes segments ready. One at a time: their numbers are consecutive.
#[derive(Debug)]
pub(crate) struct Preparation {
    lock: Mutex<()>,
    pub ready: Mutex<Ready>,
    /// The writer has taken a segment.
    pub taken: Condvar,
    pub disk_full: AtomicBool,
}

impl Preparation {
    pub fn new(ready: Ready) -> Preparation {
        Preparation {
            lock: Mutex::new(()),
            ready: Mutex::new(ready),
            taken: Condvar::new(),
            disk_full: AtomicBool::new(false),
        }
    }

    /// Takes the next segment. The writer has made sure that there is one.
    pub fn take(&self) -> Option<ReadySegment> {
        let taken = self.ready.lock().queue.pop_front();
        self.taken.notify_all();
        taken
    }

    pub fn count(&self) -> usize {
        self.ready.lock().queue.len()
    }
}

impl Shared {
    /// Makes segments ready until there are `count`; returns how many were made. `zone`: so many
    /// bytes of each new file are written at once.
    pub fn prepare(&self, count: usize, zone: u64) -> Result<u32, DiskError> {
        let _one_at_a_time = self.preparation.lock.lock();
        let mut made = 0;
        while self.preparation.count() < count {
            match self.prepare_one(zone) {
                Ok(()) => made += 1,
                Err(error) => {
                    if error.is_no_space() {
                        self.preparation.disk_full.store(true, Ordering::Release);
                    }
                    return Err(error);
                }
            }
        }
        if count >= READY_SEGMENTS {
            self.preparation.disk_full.store(false, Ordering::Release);
        }
        Ok(made)
    }

    fn prepare_one(&self, zone: u64) -> Result<(), DiskError> {
        let (segment, spare) = {
            let mut ready = self.preparation.ready.lock();
            (ready.next, ready.spares.pop())
        };
        let name = names::segment(segment);
        let ready = match spare {
            Some(spare) => self.prepare_spare(segment, &name, spare)?,
            None => self.prepare_new(segment, &name, zone)?,
        };
        flush_directory(&self.disk, names::LOG)?;
        let mut state = self.preparation.ready.lock();
        state.queue.push_back(ready);
        state.next = segment.next();
        Ok(())
    }

    fn prepare_spare(
        &self,
        segment: SegmentId,
        name: &str,
        spare: SpareFile,
    ) -> Result<ReadySegment, DiskError> {
        let file_bytes = u64::from(self.options.segment_bytes);
        let file = spare.file;
        let length = file
            .length()
            .map_err(DiskError::of("measure", &spare.name))?;
        if length != file_bytes {
            file.set_length(file_bytes)
                .map_err(DiskError::of("cut", &spare.name))?;
        }
        let header = SegmentHeader::new(self.identity.cluster, self.nonce, segment, true);
        write_header(&file, name, &header)?;
        self.disk
            .rename(&spare.name, name)
            .map_err(DiskError::of("rename", &spare.name))?;
        Ok(ReadySegment {
            segment,
            file,
            file_bytes,
            written_to: file_bytes,
        })
    }

    fn prepare_new(
        &self,
        segment: SegmentId,
        name: &str,
        zone: u64,
    ) -> Result<ReadySegment, DiskError> {
        let file_bytes = u64::from(self.options.segment_bytes);
        let header = SegmentHeader::new(self.identity.cluster, self.nonce, segment, false);
        let made = make_segment(&self.disk, name, &header, file_bytes);
        let file = match made {
            Ok(file) => file,
            Err(error) => {
                // Half a segment is of no use to anyone; the next try makes it anew.
                let _ = self.disk.remove(name);
                return Err(error);
            }
        };
        let mut written_to = BLOCK_BYTES as u64;
        let zone_end = file_bytes.min(written_to + zone);
        while written_to < zone_end {
            let to = zone_end.min(written_to + ZERO_PIECE_BYTES);
            write_zeros(&file, name, (written_to, to))?;
            file.flush().map_err(DiskError::of("flush", name))?;
            written_to = to;
        }
        Ok(ReadySegment {
            segment,
            file,
            file_bytes,
            written_to,
        })
    }
}

/// Makes a segment's file: room for it, header, flushed. Its name is not durable yet.
pub(crate) fn make_segment(
    disk: &Arc<dyn Disk>,
    name: &str,
    header: &SegmentHeader,
    file_bytes: u64,
) -> Result<Arc<dyn DiskFile>, DiskError> {
    let mut created = disk.create(name);
    if matches!(&created, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
        disk.remove(name).map_err(DiskError::of("remove", name))?;
        created = disk.create(name);
    }
    let file = created.map_err(DiskError::of("create", name))?;
    file.allocate(file_bytes)
        .map_err(DiskError::of("allocate", name))?;
    write_header(&file, name, header)?;
    Ok(file)
}

fn write_header(
    file: &Arc<dyn DiskFile>,
    name: &str,
    header: &SegmentHeader,
) -> Result<(), DiskError> {
    file.write_at(&[Bytes::from(header.encode())], 0)
        .map_err(DiskError::of("write", name))?;
    file.flush().map_err(DiskError::of("flush", name))
}

/// Writes zeros over a range.
pub(crate) fn write_zeros(
    file: &Arc<dyn DiskFile>,
    name: &str,
    (from, to): (u64, u64),
) -> Result<(), DiskError> {
    let mut position = from;
    while position < to {
        let bytes = ZERO_PIECE_BYTES.min(to - position);
        let zeros = Bytes::from_static(&ZEROS[..bytes as usize]);
        file.write_at(&[zeros], position)
            .map_err(DiskError::of("write", name))?;
        position += bytes;
    }
    Ok(())
}

/// Makes the names in a directory durable.
pub(crate) fn flush_directory(disk: &Arc<dyn Disk>, name: &str) -> Result<(), DiskError> {
    let shown = if name.is_empty() { "." } else { name };
    disk.flush_directory(name)
        .map_err(DiskError::of("flush directory", shown))
}
