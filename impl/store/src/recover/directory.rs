//! What stands in a data directory, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use pawl_wire::ids::{Op, PartitionUid};

use super::Finding;
use crate::disk::{DirectoryEntry, Disk};
use crate::error::{DiskError, OpenError};
use crate::format::names;
use crate::record::SegmentId;

/// The files of a partition's directory.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct PartitionNames {
    pub files: BTreeSet<u32>,
    pub sidecars: BTreeSet<u32>,
}

/// What stands in a data directory, by name.
#[derive(Debug)]
pub(crate) struct Directory {
    pub disk: Arc<dyn Disk>,
    pub anchor: bool,
    pub segments: BTreeSet<SegmentId>,
    pub sidecars: BTreeSet<SegmentId>,
    pub snapshots: BTreeSet<Op>,
    pub partitions: BTreeMap<PartitionUid, PartitionNames>,
    pub temporary: Vec<String>,
    pub cut: Vec<String>,
    pub findings: Vec<Finding>,
}

/// Takes the lock and lists everything.
pub(crate) fn read(disk: Arc<dyn Disk>) -> Result<Directory, OpenError> {
    let locked = disk
        .lock()
        .map_err(DiskError::of("lock", names::LOCK))
        .map_err(OpenError::from)?;
    if !locked {
        return Err(OpenError::Locked(disk.root())); // spec REC-34
    }
    let mut directory = Directory {
        disk,
        anchor: false,
        segments: BTreeSet::new(),
        sidecars: BTreeSet::new(),
        snapshots: BTreeSet::new(),
        partitions: BTreeMap::new(),
        temporary: Vec::new(),
        cut: Vec::new(),
        findings: Vec::new(),
    };
    directory.read_root()?;
    directory.read_log()?;
    directory.read_snapshots()?;
    directory.read_partitions()?;
    directory.temporary = directory.plain_files(names::TEMPORARY)?;
    directory.cut = directory.plain_files(names::CUT)?;
    Ok(directory)
}

impl Directory {
    fn list(&self, name: &str) -> Result<Vec<DirectoryEntry>, OpenError> {
        match self.disk.list(name) {
            Ok(entries) => Ok(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => {
                let shown = if name.is_empty() { "." } else { name };
                Err(DiskError::of("list", shown)(error).into())
            }
        }
    }

    fn ignore(&mut self, directory: &str, entry: &DirectoryEntry) {
        let name = match directory {
            "" => entry.name.clone(),
            directory => format!("{directory}/{}", entry.name),
        };
        self.findings.push(Finding::Ignored { name }); // spec REC-37
    }

    fn read_root(&mut self) -> Result<(), OpenError> {
        for entry in self.list("")? {
            let name = entry.name.as_str();
            match entry.directory {
                true if names::DIRECTORIES.contains(&name) => {}
                false if name == names::ANCHOR => self.anchor = true,
                false if name == names::LOCK => {}
                _ => self.ignore("", &entry),
            }
        }
        Ok(())
    }

    fn read_log(&mut self) -> Result<(), OpenError> {
        for entry in self.list(names::LOG)? {
            let segment = names::parse_segment(&entry.name, ".wal");
            let sidecar = names::parse_segment(&entry.name, ".idx");
            match (entry.directory, segment, sidecar) {
                (false, Some(segment), _) => {
                    self.segments.insert(segment);
                }
                (false, _, Some(segment)) => {
                    self.sidecars.insert(segment);
                }
                _ => self.ignore(names::LOG, &entry),
            }
        }
        Ok(())
    }

    fn read_snapshots(&mut self) -> Result<(), OpenError> {
        for entry in self.list(names::SNAPSHOTS)? {
            match names::parse_snapshot(&entry.name) {
                Some(op) if !entry.directory => {
                    self.snapshots.insert(op);
                }
                _ => self.ignore(names::SNAPSHOTS, &entry),
            }
        }
        Ok(())
    }

    fn read_partitions(&mut self) -> Result<(), OpenError> {
        for entry in self.list(names::PARTITIONS)? {
            match names::parse_partition(&entry.name) {
                Some(uid) if entry.directory => self.read_partition(uid)?,
                _ => self.ignore(names::PARTITIONS, &entry),
            }
        }
        Ok(())
    }

    fn read_partition(&mut self, uid: PartitionUid) -> Result<(), OpenError> {
        let directory = names::partition(uid);
        let mut found = PartitionNames::default();
        for entry in self.list(&directory)? {
            let file = names::parse_partition_file(&entry.name, ".seg");
            let sidecar = names::parse_partition_file(&entry.name, ".idx");
            match (entry.directory, file, sidecar) {
                (false, Some(number), _) => {
                    found.files.insert(number);
                }
                (false, _, Some(number)) => {
                    found.sidecars.insert(number);
                }
                _ => self.ignore(&directory, &entry),
            }
        }
        self.partitions.insert(uid, found);
        Ok(())
    }

    fn plain_files(&mut self, directory: &str) -> Result<Vec<String>, OpenError> {
        let mut files = Vec::new();
        for entry in self.list(directory)? {
            match entry.directory {
                false => files.push(format!("{directory}/{}", entry.name)),
                true => self.ignore(directory, &entry),
            }
        }
        Ok(files)
    }
}
