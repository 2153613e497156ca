//! The real disk: a directory of the host.
//!
//! Small writes go through the host's cache of pages, large ones around it. A large write of fresh
//! pages costs the host more than the disk: each page is found, cleared, filled, and written back;
//! under memory pressure, or in a virtual machine whose pages are not there yet, several times
//! more. Around the cache, one buffer that stays warm is filled and handed to the device. What is
//! read goes through the cache; the kernel keeps both views of a file together.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation};

use super::{DirectoryEntry, Disk, DiskFile};

/// Parts that one `pwritev` takes (`IOV_MAX`).
const WRITE_PARTS_MAX: usize = 1024;

/// Writes of at least this many bytes go around the host's cache.
const DIRECT_BYTES_MIN: usize = 64 << 10;

/// Bytes of a buffer for such writes; a longer one goes in pieces.
const DIRECT_PIECE_BYTES: usize = 2 << 20;

/// Buffers that are kept for the next write: one for the log, one for what runs beside it.
const DIRECT_BUFFERS_MAX: usize = 2;

/// Memory, position and length of a write around the cache are multiples of this: the largest that
/// common devices ask for.
const DIRECT_ALIGN: usize = 4096;

/// A data directory of the host.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    lock: Mutex<Option<File>>,
    buffers: Arc<Buffers>,
}

impl RealDisk {
    /// The directory at `root`, which is made if it is missing.
    pub fn new(root: &Path) -> io::Result<RealDisk> {
        fs::create_dir_all(root)?;
        Ok(RealDisk {
            root: root.to_owned(),
            lock: Mutex::new(None),
            buffers: Arc::default(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn file(&self, file: File) -> Arc<dyn DiskFile> {
        Arc::new(RealFile {
            file,
            direct: OnceLock::new(),
            buffers: self.buffers.clone(),
        })
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
        Ok(self.file(file.open(self.path(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(name))?;
        Ok(self.file(file))
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

/// Aligned buffers for writes around the cache.
#[derive(Debug, Default)]
struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let kept = self.0.lock().pop();
        kept.unwrap_or_else(|| vec![0; DIRECT_PIECE_BYTES + DIRECT_ALIGN])
    }

    fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() < DIRECT_BUFFERS_MAX {
            kept.push(buffer);
        }
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    /// The same file for writes around the cache, once there was one; `None` inside: the file
    /// system does not have them.
    direct: OnceLock<Option<File>>,
    buffers: Arc<Buffers>,
}

impl RealFile {
    /// The file for writes around the cache, if this write can be one.
    fn direct(&self, parts: &[Bytes], position: u64) -> Option<&File> {
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        let aligned = bytes.is_multiple_of(DIRECT_ALIGN)
            && position.is_multiple_of(DIRECT_ALIGN as u64)
            && bytes >= DIRECT_BYTES_MIN;
        if !aligned {
            return None;
        }
        let open = || {
            // The name may have changed since: the descriptor is what is sure.
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
            OpenOptions::new()
                .write(true)
                .custom_flags(flags)
                .open(path)
                .ok()
        };
        self.direct.get_or_init(open).as_ref()
    }

    /// Copies the parts into one warm buffer after another, and writes those.
    fn write_direct(&self, direct: &File, parts: &[Bytes], position: u64) -> io::Result<()> {
        let mut buffer = self.buffers.take();
        let start = buffer.as_ptr().align_offset(DIRECT_ALIGN);
        let room = &mut buffer[start..start + DIRECT_PIECE_BYTES];
        let mut at = position;
        let mut filled = 0;
        let mut result = Ok(());
        for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() && result.is_ok() {
                let count = rest.len().min(room.len() - filled);
                room[filled..filled + count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                filled += count;
                if filled == room.len() {
                    result = direct.write_all_at(room, at);
                    at += filled as u64;
                    filled = 0;
                }
            }
        }
        if filled > 0 && result.is_ok() {
            result = direct.write_all_at(&room[..filled], at);
        }
        self.buffers.give(buffer);
        result
    }

    fn write_cached(&self, parts: &[Bytes], mut position: u64) -> io::Result<()> {
        for parts in parts.chunks(WRITE_PARTS_MAX) {
            let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|p| IoSlice::new(p)).collect();
            let mut rest = &mut slices[..];
            IoSlice::advance_slices(&mut rest, 0);
            while !rest.is_empty() {
                let count = match rustix::io::pwritev(&self.file, rest, position) {
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
}

impl DiskFile for RealFile {
    fn write_at(&self, parts: &[Bytes], position: u64) -> io::Result<()> {
        let Some(direct) = self.direct(parts, position) else {
            return self.write_cached(parts, position);
        };
        match self.write_direct(direct, parts, position) {
            // A device that asks for a wider alignment.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.write_cached(parts, position)
            }
            result => result,
        }
    }

    fn read_at(&self, mut position: u64, bytes: usize) -> io::Result<Bytes> {
        let mut buffer = Vec::with_capacity(bytes);
        while buffer.len() < bytes {
            let limit = bytes - buffer.len();
            let spare = &mut buffer.spare_capacity_mut()[..limit];
            let (filled, _) = match rustix::io::pread(&self.file, spare, position) {
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
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // A file system without preallocation: the length is all that can be had.
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(bytes),
            Err(errno) => Err(errno.into()),
        }
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize, seed: usize) -> Bytes {
        (0..count).map(|at| (at * 31 + seed) as u8).collect()
    }

    #[test]
    fn writes_around_the_cache_and_through_it_are_one_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disk = RealDisk::new(directory.path()).expect("a directory");
        let file = disk.create("file").expect("a new file");
        file.allocate(16 << 20).expect("there is room");
        let mut expected = vec![0; 16 << 20];
        let writes: [(u64, &[usize]); 7] = [
            (4096, &[300, 100_000, 4096 * 30 - 100_300]),
            (0, &[4096]),
            (4 << 20, &[5 << 20]),
            ((4 << 20) + 4096, &[7]),
            ((4 << 20) + 8192, &[2 << 20, 64 << 10]),
            (12 << 20, &[DIRECT_BYTES_MIN]),
            ((12 << 20) + 1, &[DIRECT_BYTES_MIN]),
        ];
        for (seed, (position, lengths)) in writes.into_iter().enumerate() {
            // What is read in between must not hide what is written next.
            let read = file.read_at(0, 16 << 20).expect("the file is that long");
            assert!(read[..] == expected[..], "before write {seed}");
            let parts: Vec<Bytes> = lengths.iter().map(|count| bytes(*count, seed)).collect();
            file.write_at(&parts, position).expect("there is room");
            let all = parts.concat();
            let start = position as usize;
            expected[start..start + all.len()].copy_from_slice(&all);
            file.flush().expect("the flush works");
        }
        let read = file.read_at(0, 16 << 20).expect("the file is that long");
        assert!(read[..] == expected[..], "after the last write");
    }
}
