//! A disk that is full when its budget is: `log.disk_bytes_max`.
//!
//! An operator gives a node part of a volume; a test fills a small one. What counts is the length
//! of the files, as they grow; what was there at the start counts too.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pawl_store::{Disk, DiskFile};

type Entries = Vec<pawl_store::disk::DirectoryEntry>;

/// A disk with a budget.
#[derive(Debug)]
pub struct BudgetDisk {
    inner: Arc<dyn Disk>,
    account: Arc<Account>,
}

/// Bytes by file, and their sum.
#[derive(Debug)]
struct Account {
    bytes_max: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: u64,
    /// By name; a file keeps its entry when it gets another name.
    files: HashMap<String, Arc<AtomicU64>>,
}

#[derive(Debug)]
struct BudgetFile {
    inner: Arc<dyn DiskFile>,
    bytes: Arc<AtomicU64>,
    account: Arc<Account>,
}

impl BudgetDisk {
    /// The disk itself where `bytes_max` is 0, else one that is full at `bytes_max`.
    pub fn around(inner: Arc<dyn Disk>, bytes_max: u64) -> Arc<dyn Disk> {
        if bytes_max == 0 {
            return inner;
        }
        Arc::new(BudgetDisk {
            inner,
            account: Arc::new(Account {
                bytes_max,
                used: Mutex::new(Used::default()),
            }),
        })
    }

    fn file(&self, name: &str, inner: Arc<dyn DiskFile>) -> io::Result<Arc<dyn DiskFile>> {
        let length = inner.length()?;
        let bytes = {
            let mut used = self.account.used.lock();
            let Used { total, files } = &mut *used;
            let fresh = || {
                *total += length;
                Arc::new(AtomicU64::new(length))
            };
            files.entry(name.to_owned()).or_insert_with(fresh).clone()
        };
        Ok(Arc::new(BudgetFile {
            inner,
            bytes,
            account: self.account.clone(),
        }))
    }
}

impl Account {
    /// Grows a file to `length`, or says that there is no room.
    fn grow(&self, bytes: &AtomicU64, length: u64) -> io::Result<()> {
        let mut used = self.used.lock();
        let before = bytes.load(Ordering::Relaxed);
        if length <= before {
            return Ok(());
        }
        let total = used.total + (length - before);
        if total > self.bytes_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        used.total = total;
        bytes.store(length, Ordering::Relaxed);
        Ok(())
    }

    /// A file was cut to `length`.
    fn cut(&self, bytes: &AtomicU64, length: u64) {
        let mut used = self.used.lock();
        let before = bytes.swap(length, Ordering::Relaxed);
        used.total = used.total + length - before;
    }
}

impl Used {
    /// A name is gone, and its file with it.
    fn forget(&mut self, name: &str) {
        if let Some(bytes) = self.files.remove(name) {
            self.total -= bytes.swap(0, Ordering::Relaxed);
        }
    }
}

impl Disk for BudgetDisk {
    fn root(&self) -> PathBuf {
        self.inner.root()
    }

    fn lock(&self) -> io::Result<bool> {
        self.inner.lock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, self.inner.create(name)?)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, self.inner.open(name)?)
    }

    fn list(&self, directory: &str) -> io::Result<Entries> {
        self.inner.list(directory)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)?;
        let mut used = self.account.used.lock();
        used.forget(to);
        if let Some(bytes) = used.files.remove(from) {
            used.files.insert(to.to_owned(), bytes);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)?;
        self.account.used.lock().forget(name);
        Ok(())
    }

    fn create_directory(&self, name: &str) -> io::Result<()> {
        self.inner.create_directory(name)
    }

    fn remove_directory(&self, name: &str) -> io::Result<()> {
        self.inner.remove_directory(name)
    }

    fn flush_directory(&self, name: &str) -> io::Result<()> {
        self.inner.flush_directory(name)
    }
}

impl DiskFile for BudgetFile {
    fn write_at(&self, parts: &[Bytes], position: u64) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        self.account.grow(&self.bytes, position + bytes)?;
        self.inner.write_at(parts, position)
    }

    fn read_at(&self, position: u64, bytes: usize) -> io::Result<Bytes> {
        self.inner.read_at(position, bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.account.grow(&self.bytes, bytes)?;
        self.inner.allocate(bytes)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.account.grow(&self.bytes, bytes)?;
        self.inner.set_length(bytes)?;
        self.account.cut(&self.bytes, bytes);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
}
