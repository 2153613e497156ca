//! Reads the files of drained partitions.
//!
//! Bodies are not read here but for one case: a batch that the log still holds was being drained
//! when the process ended, so that its record may be torn. Every other record was flushed before
//! the log let go of it; its body is verified when it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pawl_wire::ids::{Op, PartitionUid};

use super::Finding;
use super::directory::{Directory, PartitionNames};
use crate::disk::DiskFile;
use crate::error::{DiskError, FileRange, Unreadable};
use crate::format::anchor::Anchor;
use crate::format::partition::{PARTITION_HEADER_BYTES, PartitionHeader, RecordHeader};
use crate::format::sidecar::{Sidecar, SidecarOf};
use crate::format::{checksum, checksum_low, names};
use crate::index::BatchEntry;

const HEADER_BYTES: u64 = PARTITION_HEADER_BYTES as u64;

/// A file of a partition.
#[derive(Debug)]
pub(crate) struct PartitionFile {
    pub number: u32,
    pub file: Arc<dyn DiskFile>,
    pub name: String,
    pub file_bytes: u64,
    /// Behind the last good record; 0: not even the header is good.
    pub tail: u64,
    /// Up to where a sidecar covers it.
    pub covered: u64,
    /// Why the scan stopped, if not at the end of the file.
    pub bad: Option<Unreadable>,
    /// It holds batches that the log holds too: whether they are flushed is not known.
    pub unsure: bool,
    /// Records were dropped that the log holds: the file is cut there.
    pub cut: bool,
    pub entries: Vec<BatchEntry>,
}

/// The files of a partition.
#[derive(Debug, Default)]
pub(crate) struct PartitionScan {
    pub files: Vec<PartitionFile>,
}

impl PartitionScan {
    /// Every batch, by rising op.
    pub fn entries(&self) -> impl Iterator<Item = BatchEntry> + '_ {
        self.files
            .iter()
            .flat_map(|file| file.entries.iter().copied())
    }

    /// Where a batch should be that is nowhere: the first bytes that could not be read, or the end
    /// of the newest file.
    pub fn looked_at(scan: Option<&PartitionScan>, uid: PartitionUid) -> FileRange {
        let files = scan.map_or(&[][..], |scan| &scan.files);
        if let Some(damage) = files.iter().find_map(PartitionFile::damage) {
            return damage;
        }
        match files.last() {
            Some(file) => FileRange {
                file: file.name.clone(),
                from: file.tail,
                to: file.tail,
            },
            None => FileRange {
                file: names::partition(uid),
                from: 0,
                to: 0,
            },
        }
    }
}

impl PartitionFile {
    /// The bytes that could not be read.
    pub fn damage(&self) -> Option<FileRange> {
        self.bad.map(|_| FileRange {
            file: self.name.clone(),
            from: self.tail,
            to: self.file_bytes.max(self.tail),
        })
    }

    /// Drops the record at this index and all behind it.
    fn cut_at(&mut self, index: usize, reason: Unreadable) {
        self.tail = u64::from(self.entries[index].place.position) - HEADER_BYTES;
        self.covered = self.covered.min(self.tail);
        self.bad = Some(reason);
        self.cut = true;
        self.entries.truncate(index);
    }
}

/// Reads all partitions' files.
pub(crate) fn scan(
    directory: &Directory,
    anchor: &Anchor,
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<PartitionUid, PartitionScan>, DiskError> {
    let mut scans = BTreeMap::new();
    for (uid, names) in &directory.partitions {
        let scan = scan_partition(directory, anchor, (*uid, names), findings)?;
        scans.insert(*uid, scan);
    }
    Ok(scans)
}

fn scan_partition(
    directory: &Directory,
    anchor: &Anchor,
    (uid, names): (PartitionUid, &PartitionNames),
    findings: &mut Vec<Finding>,
) -> Result<PartitionScan, DiskError> {
    let mut scan = PartitionScan::default();
    let mut op_last = Op(0);
    for number in &names.files {
        let name = names::partition_segment(uid, *number);
        let file = directory
            .disk
            .open(&name)
            .map_err(DiskError::of("open", &name))?;
        let file_bytes = file.length().map_err(DiskError::of("measure", &name))?;
        let mut found = PartitionFile {
            number: *number,
            file,
            name,
            file_bytes,
            tail: 0,
            covered: 0,
            bad: None,
            unsure: false,
            cut: false,
            entries: Vec::new(),
        };
        if names.sidecars.contains(number) {
            take_sidecar(directory, anchor, uid, &mut found, findings)?;
        }
        if found.tail == 0 {
            check_header(uid, anchor.cluster, &mut found)?;
        }
        if found.bad.is_none() {
            scan_records(uid, op_last, &mut found)?;
        }
        op_last = found.entries.last().map_or(op_last, |entry| entry.op);
        scan.files.push(found);
    }
    Ok(scan)
}

fn take_sidecar(
    directory: &Directory,
    anchor: &Anchor,
    uid: PartitionUid,
    found: &mut PartitionFile,
    findings: &mut Vec<Finding>,
) -> Result<(), DiskError> {
    let name = names::partition_sidecar(uid, found.number);
    let bytes = read_whole(directory, &name)?;
    let sidecar = Sidecar::decode(&bytes).and_then(|sidecar| {
        let ours = (sidecar.cluster, sidecar.nonce) == (anchor.cluster, anchor.nonce);
        match sidecar.of {
            SidecarOf::Partition {
                uid: of,
                number,
                end,
            } if ours
                && (of, number) == (uid, found.number)
                && (HEADER_BYTES..=found.file_bytes).contains(&end) =>
            {
                Ok((end, sidecar.entries))
            }
            _ => Err(Unreadable::Chain),
        }
    });
    match sidecar {
        Ok((end, entries)) => {
            found.tail = end;
            found.covered = end;
            found.entries = entries.into_iter().map(|(_, entry)| entry).collect();
        }
        Err(reason) => findings.push(Finding::Repaired {
            range: FileRange {
                file: name,
                from: 0,
                to: bytes.len() as u64,
            },
            reason,
        }),
    }
    Ok(())
}

fn check_header(
    uid: PartitionUid,
    cluster: u128,
    found: &mut PartitionFile,
) -> Result<(), DiskError> {
    if found.file_bytes < HEADER_BYTES {
        found.bad = Some(Unreadable::Short);
        return Ok(());
    }
    let bytes = read(found, 0, PARTITION_HEADER_BYTES)?;
    let expected = (cluster, uid, found.number);
    match PartitionHeader::decode(&bytes) {
        Ok(header) if (header.cluster, header.uid(), header.number) == expected => {
            found.tail = HEADER_BYTES;
        }
        Ok(_) => found.bad = Some(Unreadable::Field("partition")),
        Err(reason) => found.bad = Some(reason),
    }
    Ok(())
}

/// Reads records' headers up to the first that is not one, or does not rise in op.
fn scan_records(
    uid: PartitionUid,
    op_last: Op,
    found: &mut PartitionFile,
) -> Result<(), DiskError> {
    let mut op_last = found.entries.last().map_or(op_last, |entry| entry.op);
    while found.tail < found.file_bytes {
        if found.file_bytes - found.tail < HEADER_BYTES {
            found.bad = Some(Unreadable::Short);
            break;
        }
        let bytes = read(found, found.tail, PARTITION_HEADER_BYTES)?;
        let header = match RecordHeader::decode(&bytes, uid, (found.number, found.tail)) {
            Ok(header) => header,
            Err(reason) => {
                found.bad = Some(reason);
                break;
            }
        };
        let entry = header.entry();
        if header.record_bytes() > found.file_bytes - found.tail {
            found.bad = Some(Unreadable::Short);
            break;
        }
        if entry.op <= op_last {
            found.bad = Some(Unreadable::Chain);
            break;
        }
        op_last = entry.op;
        found.tail += header.record_bytes();
        found.entries.push(entry);
    }
    Ok(())
}

/// Verifies the bodies of batches that the log holds too, and cuts what is torn: the log has it.
///
/// What is left of a partition's files is what comes before everything that only the log holds
/// (invariant 3 of the index): a record behind a batch whose record was lost is cut too.
pub(crate) fn verify_unsure(
    scans: &mut BTreeMap<PartitionUid, PartitionScan>,
    log: &BTreeMap<PartitionUid, BTreeMap<Op, BatchEntry>>,
) -> Result<(), DiskError> {
    for (uid, scan) in scans {
        let Some(batches) = log.get(uid) else {
            continue;
        };
        for file in &mut scan.files {
            let unsure = |entry: &BatchEntry| batches.contains_key(&entry.op);
            let Some(first) = file.entries.iter().position(unsure) else {
                continue;
            };
            file.unsure = true;
            verify_from(file, first)?;
        }
        let in_files: BTreeSet<Op> = scan.entries().map(|entry| entry.op).collect();
        let only_in_log = batches.keys().find(|op| !in_files.contains(op));
        if let Some(op) = only_in_log {
            for file in &mut scan.files {
                let behind = file.entries.iter().position(|entry| entry.op > *op);
                if let Some(index) = behind {
                    file.cut_at(index, Unreadable::Chain);
                }
            }
        }
    }
    Ok(())
}

fn verify_from(file: &mut PartitionFile, first: usize) -> Result<(), DiskError> {
    for index in first..file.entries.len() {
        let place = file.entries[index].place;
        let body = read(file, u64::from(place.position), place.bytes as usize)?;
        if checksum_low(checksum(&body)) != place.checksum {
            file.cut_at(index, Unreadable::Checksum);
            break;
        }
    }
    Ok(())
}

fn read(found: &PartitionFile, position: u64, bytes: usize) -> Result<Bytes, DiskError> {
    found
        .file
        .read_at(position, bytes)
        .map_err(DiskError::of("read", &found.name))
}

/// The bytes of a whole file.
pub(crate) fn read_whole(directory: &Directory, name: &str) -> Result<Bytes, DiskError> {
    let file = directory
        .disk
        .open(name)
        .map_err(DiskError::of("open", name))?;
    let length = file.length().map_err(DiskError::of("measure", name))?;
    file.read_at(0, length as usize)
        .map_err(DiskError::of("read", name))
}
