//! Reads bodies by place, and believes none before its checksum (spec REC-24).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::disk::{Disk, DiskFile};
use crate::error::{DiskError, FileRange, ReadError};
use crate::format::{checksum, checksum_low, names};
use crate::log::shared::Shared;
use crate::record::{Place, PlaceFile};

/// Reads bodies. Cheap to clone; may be used from any thread.
#[derive(Clone, Debug)]
pub struct Reader {
    shared: Arc<Shared>,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    /// The body at this place, verified. One `pread`, one buffer, one pass for the checksum.
    pub fn read(&self, place: &Place) -> Result<Bytes, ReadError> {
        let range = || FileRange {
            file: place_name(place.file),
            from: u64::from(place.position),
            to: u64::from(place.position) + u64::from(place.bytes),
        };
        let read = self
            .shared
            .files
            .get(place.file)
            .and_then(|file| file.read_at(u64::from(place.position), place.bytes as usize));
        match read {
            Ok(body) if checksum_low(checksum(&body)) == place.checksum => Ok(body),
            // A segment that was recycled meanwhile holds other bytes, rightly.
            _ if self.has_left(place.file) => Err(ReadError::Moved),
            Ok(_) => Err(ReadError::Damaged(range())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(ReadError::Damaged(range()))
            }
            Err(source) => {
                let name = place_name(place.file);
                Err(DiskError::of("read", &name)(source).into())
            }
        }
    }

    fn has_left(&self, file: PlaceFile) -> bool {
        match file {
            PlaceFile::Log(segment) => !self.shared.segments.lock().contains_key(&segment.0),
            PlaceFile::Partition { .. } => match self.shared.files.get(file) {
                Ok(_) => false,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            },
        }
    }
}

/// The name of a file that holds bodies.
pub(crate) fn place_name(file: PlaceFile) -> String {
    match file {
        PlaceFile::Log(segment) => names::segment(segment),
        PlaceFile::Partition { uid, number } => names::partition_segment(uid, number),
    }
}

/// Open files that hold bodies, bounded; the one that was opened first is closed first.
#[derive(Debug)]
pub(crate) struct FileCache {
    disk: Arc<dyn Disk>,
    files_max: usize,
    open: RwLock<OpenFiles>,
}

#[derive(Debug, Default)]
struct OpenFiles {
    files: BTreeMap<PlaceFile, Arc<dyn DiskFile>>,
    order: VecDeque<PlaceFile>,
}

impl FileCache {
    pub fn new(disk: Arc<dyn Disk>, files_max: usize) -> FileCache {
        FileCache {
            disk,
            files_max: files_max.max(1),
            open: RwLock::default(),
        }
    }

    pub fn get(&self, key: PlaceFile) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.read().files.get(&key) {
            return Ok(file.clone());
        }
        let file = self.disk.open(&place_name(key))?;
        self.insert(key, file.clone());
        Ok(file)
    }

    pub fn insert(&self, key: PlaceFile, file: Arc<dyn DiskFile>) {
        let mut open = self.open.write();
        if open.files.insert(key, file).is_none() {
            open.order.push_back(key);
        }
        while open.order.len() > self.files_max {
            if let Some(oldest) = open.order.pop_front() {
                open.files.remove(&oldest);
            }
        }
    }

    pub fn remove(&self, key: PlaceFile) {
        let mut open = self.open.write();
        open.files.remove(&key);
        open.order.retain(|other| *other != key);
    }
}
