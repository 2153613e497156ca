//! The border to the disk: what the store needs of a file system, and nothing else.
//!
//! Names are paths inside the data directory, with `/` between parts. Two implementations: the real
//! one, and a faulty one in memory that really loses what was not flushed.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

pub mod faulty;
pub mod real;

/// What stands in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DirectoryEntry {
    /// Name inside the directory.
    pub name: String,
    /// Whether it is a directory.
    pub directory: bool,
}

/// A data directory.
pub trait Disk: Debug + Send + Sync {
    /// Where it is, for messages.
    fn root(&self) -> PathBuf;
    /// Takes the directory's lock for as long as the disk lives. `false`: another process holds it.
    fn lock(&self) -> io::Result<bool>;
    /// Makes a new file; fails if the name is taken.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// What is in a directory, in the order of names. A directory that is not there is `NotFound`.
    fn list(&self, directory: &str) -> io::Result<Vec<DirectoryEntry>>;
    /// Gives a file another name, replacing what has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes a directory; one that is there already is fine.
    fn create_directory(&self, name: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, name: &str) -> io::Result<()>;
    /// Makes the names in a directory durable; the root is the empty name.
    fn flush_directory(&self, name: &str) -> io::Result<()>;
}

/// An open file. Calls may come from several threads at once.
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all parts, one after the other, from `position` on.
    fn write_at(&self, parts: &[Bytes], position: u64) -> io::Result<()>;
    /// Reads exactly `bytes` from `position` on; `UnexpectedEof` if the file ends before.
    fn read_at(&self, position: u64, bytes: usize) -> io::Result<Bytes>;
    /// Reserves room for the first `bytes` bytes, which read as zero where nothing was written.
    fn allocate(&self, bytes: u64) -> io::Result<()>;
    /// Cuts the file, or makes it longer with zeros.
    fn set_length(&self, bytes: u64) -> io::Result<()>;
    /// The file's length.
    fn length(&self) -> io::Result<u64>;
    /// Returns once everything written before the call is on stable storage.
    fn flush(&self) -> io::Result<()>;
}

/// Whether an error says that the volume is full.
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
