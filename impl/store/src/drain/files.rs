//! The files of drained partitions, as the drainer writes them.
//!
//! Invariants:
//!
//! 1. `tail` is behind the last record that is flushed, or is being drained now.
//! 2. A number is never used twice while the store is open: a reader may still hold the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pawl_wire::ids::PartitionUid;

use crate::disk::DiskFile;
use crate::error::{DiskError, DrainError};
use crate::format::partition::{
    PARTITION_HEADER_BYTES, PartitionHeader, RecordHeader, record_bytes,
};
use crate::format::{checksum, names};
use crate::index::{BatchEntry, IndexSet};
use crate::log::preparation::flush_directory;
use crate::log::shared::Shared;
use crate::record::{Place, PlaceFile};
use crate::recover::partitions::PartitionScan;

static PADDING: [u8; 16] = [0; 16];

/// A partition's file that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileState {
    /// Behind its last record.
    pub tail: u64,
    /// Up to where its sidecar covers it; 0: no sidecar.
    pub covered: u64,
    /// Its name is known to be durable. Of a file that a start has found it is not: a process that
    /// was killed may have made it and flushed nothing.
    named: bool,
}

/// The files of a partition.
#[derive(Clone, Debug)]
pub(crate) struct PartitionState {
    pub files: BTreeMap<u32, FileState>,
    /// The file that is appended to, with its number.
    open: Option<(u32, Arc<dyn DiskFile>)>,
    number_next: u32,
}

/// The files of all partitions.
#[derive(Debug)]
pub(crate) struct PartitionFiles {
    cluster: u128,
    pub partitions: BTreeMap<PartitionUid, PartitionState>,
    /// Partitions as they were before the drain that is going on touched them; `None`: not there.
    touched: BTreeMap<PartitionUid, Option<PartitionState>>,
}

/// A drain has begun; ends in [`PartitionFiles::flush`] or [`PartitionFiles::reset`].
#[derive(Debug)]
pub(crate) struct FilesMark(());

impl PartitionFiles {
    pub fn new(cluster: u128) -> PartitionFiles {
        PartitionFiles {
            cluster,
            partitions: BTreeMap::new(),
            touched: BTreeMap::new(),
        }
    }

    /// Takes over what recovery found. A file whose header is bad holds nothing; it is removed by
    /// the next sweep.
    pub fn adopt(&mut self, uid: PartitionUid, scan: &PartitionScan) {
        let files = scan.files.iter().map(|file| {
            let state = FileState {
                tail: file.tail,
                covered: file.covered,
                named: false,
            };
            (file.number, state)
        });
        let last = scan.files.last();
        let state = PartitionState {
            files: files.collect(),
            open: last
                .filter(|file| file.tail >= PARTITION_HEADER_BYTES as u64)
                .map(|file| (file.number, file.file.clone())),
            number_next: last.map_or(1, |file| file.number + 1),
        };
        self.partitions.insert(uid, state);
    }

    pub fn mark(&mut self) -> FilesMark {
        self.touched.clear();
        FilesMark(())
    }

    /// Forgets what a drain that failed has appended. The bytes are overwritten by the next one.
    pub fn reset(&mut self, _mark: FilesMark) {
        for (uid, state) in std::mem::take(&mut self.touched) {
            let number_next = self.partitions.get(&uid).map_or(1, |s| s.number_next);
            match state {
                Some(mut state) => {
                    state.number_next = number_next;
                    self.partitions.insert(uid, state);
                }
                None => {
                    self.partitions.remove(&uid);
                }
            }
        }
    }

    /// Appends a batch to its partition's file. Not durable before [`PartitionFiles::flush`].
    pub fn append(
        &mut self,
        shared: &Shared,
        uid: PartitionUid,
        entry: &BatchEntry,
        body: Bytes,
    ) -> Result<Place, DrainError> {
        let before = self.partitions.get(&uid).cloned();
        self.touched.entry(uid).or_insert(before);
        let room = record_bytes(entry.place.bytes);
        let (number, file) = self.open_for(shared, uid, room)?;
        let state = self.partitions.get_mut(&uid);
        let state = state.and_then(|state| state.files.get_mut(&number));
        let state = state.expect("open_for made the file");
        let header = RecordHeader::new(uid, (number, state.tail), entry, checksum(&body));
        let padding = room - PARTITION_HEADER_BYTES as u64 - body.len() as u64;
        let parts = [
            Bytes::copy_from_slice(header.as_bytes()),
            body,
            Bytes::from_static(&PADDING[..padding as usize]),
        ];
        let name = names::partition_segment(uid, number);
        file.write_at(&parts, state.tail)
            .map_err(DiskError::of("write", &name))
            .map_err(drain_error)?;
        state.tail += room;
        Ok(header.entry().place)
    }

    /// The file that takes the next record of this size.
    fn open_for(
        &mut self,
        shared: &Shared,
        uid: PartitionUid,
        room: u64,
    ) -> Result<(u32, Arc<dyn DiskFile>), DrainError> {
        let limit = u64::from(shared.options.partition_segment_bytes);
        if let Some(state) = self.partitions.get(&uid)
            && let Some((number, file)) = &state.open
        {
            let tail = state.files[number].tail;
            if tail + room <= limit || tail == PARTITION_HEADER_BYTES as u64 {
                return Ok((*number, file.clone()));
            }
        }
        let state = self.partitions.entry(uid).or_insert(PartitionState {
            files: BTreeMap::new(),
            open: None,
            number_next: 1,
        });
        let number = state.number_next;
        state.number_next += 1;
        let file = make_file(shared, self.cluster, uid, number).map_err(drain_error)?;
        let fresh = FileState {
            tail: PARTITION_HEADER_BYTES as u64,
            covered: 0,
            named: false,
        };
        state.files.insert(number, fresh);
        state.open = Some((number, file.clone()));
        Ok((number, file))
    }

    /// Makes everything appended since the mark durable, names included (spec REC-26, REC-35).
    pub fn flush(&mut self, shared: &Shared, _mark: &FilesMark) -> Result<(), DrainError> {
        let result = self.flush_touched(shared);
        if let Err(error) = result {
            // A flush is never repeated: what it was to cover is unknown from now on.
            shared.poison();
            return Err(error.into());
        }
        for uid in std::mem::take(&mut self.touched).into_keys() {
            let state = self.partitions.get_mut(&uid);
            let state = state.expect("a partition that is touched is there");
            state.files.values_mut().for_each(|file| file.named = true);
        }
        Ok(())
    }

    fn flush_touched(&self, shared: &Shared) -> Result<(), DiskError> {
        let mut made = false;
        for (uid, before) in &self.touched {
            let state = &self.partitions[uid];
            let old = before.as_ref().map(|before| &before.files);
            let mut new_names = false;
            for (number, file) in &state.files {
                let was = old.and_then(|old| old.get(number));
                if was == Some(file) {
                    continue;
                }
                let name = names::partition_segment(*uid, *number);
                let place = PlaceFile::Partition {
                    uid: *uid,
                    number: *number,
                };
                let opened = shared.files.get(place);
                let opened = opened.map_err(DiskError::of("open", &name))?;
                opened.flush().map_err(DiskError::of("flush", &name))?;
                new_names |= !file.named;
            }
            if new_names {
                flush_directory(&shared.disk, &names::partition(*uid))?;
                made |= old.is_none_or(|old| old.is_empty());
            }
        }
        if made {
            flush_directory(&shared.disk, names::PARTITIONS)?;
        }
        Ok(())
    }

    /// Removes files that no live batch is in, and directories of dropped partitions. The older
    /// kept checkpoint covers their death: until then the index remembers it.
    pub fn sweep(&mut self, shared: &Shared, index: &IndexSet) -> Result<u32, DrainError> {
        let mut removed = 0;
        let uids: Vec<PartitionUid> = self.partitions.keys().copied().collect();
        for uid in uids {
            let known = index.knows(uid);
            let oldest = index.partition_file_oldest(uid);
            let state = self.partitions.get_mut(&uid);
            let state = state.expect("the uid was taken from the map");
            let open = state.open.as_ref().map(|(number, _)| *number);
            let dead = |number: &u32| match (known, oldest) {
                (false, _) => true,
                (true, Some(oldest)) => *number < oldest,
                (true, None) => Some(*number) != open,
            };
            let numbers: Vec<u32> = state.files.keys().copied().filter(dead).collect();
            for number in numbers {
                remove_file(shared, uid, number)?;
                state.files.remove(&number);
                removed += 1;
            }
            if !known {
                self.partitions.remove(&uid);
                // A foreign file in it keeps the directory; that is for the operator to see.
                let _ = shared.disk.remove_directory(&names::partition(uid));
            }
        }
        Ok(removed)
    }
}

fn make_file(
    shared: &Shared,
    cluster: u128,
    uid: PartitionUid,
    number: u32,
) -> Result<Arc<dyn DiskFile>, DiskError> {
    let directory = names::partition(uid);
    let name = names::partition_segment(uid, number);
    let disk = &shared.disk;
    disk.create_directory(&directory)
        .map_err(DiskError::of("create directory", &directory))?;
    // A file that a drain which failed has left.
    let _ = disk.remove(&name);
    let file = disk.create(&name).map_err(DiskError::of("create", &name))?;
    let header = PartitionHeader::new(cluster, uid, number);
    file.write_at(&[Bytes::copy_from_slice(header.as_bytes())], 0)
        .map_err(DiskError::of("write", &name))?;
    shared
        .files
        .insert(PlaceFile::Partition { uid, number }, file.clone());
    Ok(file)
}

fn remove_file(shared: &Shared, uid: PartitionUid, number: u32) -> Result<(), DiskError> {
    shared.files.remove(PlaceFile::Partition { uid, number });
    let sidecar = names::partition_sidecar(uid, number);
    // Most files have one; where there is none there is nothing to remove.
    let _ = shared.disk.remove(&sidecar);
    let name = names::partition_segment(uid, number);
    shared
        .disk
        .remove(&name)
        .map_err(DiskError::of("remove", &name))
}

fn drain_error(error: DiskError) -> DrainError {
    match error.is_no_space() {
        true => DrainError::NoSpace,
        false => error.into(),
    }
}
