//! The real disk: a directory of the host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation};

use super::{DirectoryEntry, Disk, DiskFile};

/// Parts that one `pwritev` takes (`IOV_MAX`).
const WRITE_PARTS_MAX: usize = 1024;

/// A data directory of the host.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    lock: Mutex<Option<File>>,
}

impl RealDisk {
    /// The directory at `root`, which is made if it is missing.
    pub fn new(root: &Path) -> io::Result<RealDisk> {
        fs::create_dir_all(root)?;
        Ok(RealDisk {
            root: root.to_owned(),
            lock: Mutex::new(None),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl Disk for RealDisk {
    fn root(&self) -> PathBuf {
        self.root.clone()
    }

    fn lock(&self) -> io::Result<bool> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path("lock"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                *self.lock.lock() = Some(file);
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.create_new(true).read(true).write(true);
        Ok(Arc::new(RealFile(file.open(self.path(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path(directory))? {
            let entry = entry?;
            entries.push(DirectoryEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                directory: entry.file_type()?.is_dir(),
            });
        }
        entries.sort();
        Ok(entries)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn create_directory(&self, name: &str) -> io::Result<()> {
        match fs::create_dir(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    fn remove_directory(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.path(name))
    }

    fn flush_directory(&self, name: &str) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&self, parts: &[Bytes], mut position: u64) -> io::Result<()> {
        for parts in parts.chunks(WRITE_PARTS_MAX) {
            let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|p| IoSlice::new(p)).collect();
            let mut rest = &mut slices[..];
            IoSlice::advance_slices(&mut rest, 0);
            while !rest.is_empty() {
                let count = match rustix::io::pwritev(&self.0, rest, position) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => count,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(errno) => return Err(errno.into()),
                };
                position += count as u64;
                IoSlice::advance_slices(&mut rest, count);
            }
        }
        Ok(())
    }

    fn read_at(&self, mut position: u64, bytes: usize) -> io::Result<Bytes> {
        let mut buffer = Vec::with_capacity(bytes);
        while buffer.len() < bytes {
            let limit = bytes - buffer.len();
            let spare = &mut buffer.spare_capacity_mut()[..limit];
            let (filled, _) = match rustix::io::pread(&self.0, spare, position) {
                Ok(parts) => parts,
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let count = filled.len();
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            position += count as u64;
            let length = buffer.len() + count;
            // SAFETY: `pread` initialised exactly `count` bytes after the buffer's length.
            unsafe { buffer.set_len(length) };
        }
        Ok(buffer.into())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // A file system without preallocation: the length is all that can be had.
            Err(rustix::io::Errno::OPNOTSUPP) => self.0.set_len(bytes),
            Err(errno) => Err(errno.into()),
        }
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
