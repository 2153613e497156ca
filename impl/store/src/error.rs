//! Errors, one variant per condition, with what one needs at three in the morning.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pawl_wire::ids::{Lsn, Op, PartitionUid};

use crate::disk::is_no_space;

/// A range of bytes of a file, named by its path inside the data directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRange {
    /// The file.
    pub file: String,
    /// First byte.
    pub from: u64,
    /// One past the last byte.
    pub to: u64,
}

impl fmt::Display for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes {}..{}", self.file, self.from, self.to)
    }
}

/// The disk did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {file}: {source}")]
pub struct DiskError {
    /// What was tried.
    pub operation: &'static str,
    /// On which file or directory.
    pub file: String,
    /// What the system said.
    pub source: io::Error,
}

impl DiskError {
    /// For `map_err`: names what was tried, and on which file.
    pub(crate) fn of(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> DiskError {
        let file = file.to_owned();
        move |source| DiskError {
            operation,
            file,
            source,
        }
    }

    /// Whether the volume is full.
    pub fn is_no_space(&self) -> bool {
        is_no_space(&self.source)
    }
}

/// Why bytes of a file are not what should be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file ends before the record does.
    #[error("the file ends too early")]
    Short,
    /// Not this kind of file or record.
    #[error("the magic number is wrong")]
    Magic,
    /// A layout that this release does not know.
    #[error("layout version {0} is not known to this release")]
    Version(u16),
    /// The checksum does not match.
    #[error("the checksum does not match")]
    Checksum,
    /// A field holds what the layout forbids.
    #[error("field {0} holds a value that the layout forbids")]
    Field(&'static str),
    /// It does not continue what stands before it.
    #[error("it does not continue what stands before it")]
    Chain,
}

/// Why a data directory cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it (spec REC-34).
    #[error("data directory {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// No copy of the anchor can be read: the directory is not empty, and what it promised is
    /// unknown.
    #[error("no copy of the anchor can be read ({range}): {reason}")]
    AnchorUnreadable {
        /// Where.
        range: FileRange,
        /// Why the last copy was refused.
        reason: Unreadable,
    },
    /// The anchor is gone, but data is there.
    #[error("the anchor is missing, but {evidence} shows that data was written here")]
    AnchorMissing {
        /// A file that proves it.
        evidence: String,
    },
    /// Neither the newest checkpoint nor an older one that the log still reaches can be read.
    #[error("no usable checkpoint: {range}: {reason}")]
    SnapshotUnreadable {
        /// The newest snapshot's damage.
        range: FileRange,
        /// Why it was refused.
        reason: Unreadable,
    },
    /// Once durable, now bad: may have been acknowledged. Repair from peers; alone: refuse.
    #[error("faulty log: {range}: {reason}; later batches prove that it was durable")]
    LogFaulty {
        /// What must be repaired.
        range: FileRange,
        /// What is wrong.
        reason: Unreadable,
    },
    /// A segment that must be there is not.
    #[error("log segment {file} is missing")]
    SegmentMissing {
        /// Its name.
        file: String,
    },
    /// The index does not hold all messages that the machine holds.
    #[error("partition {uid}: no batch holds offset {offset}; {range} should")]
    MessagesMissing {
        /// The partition.
        uid: PartitionUid,
        /// The first offset that no batch holds.
        offset: u64,
        /// Damage in the partition's files; if there is none, where they end.
        range: FileRange,
    },
}

/// Why a write or flush of the log did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// No room for the next segment. Nothing was written; the same call may be tried again.
    #[error("no space for the next log segment")]
    NoSpace,
    /// A write or flush failed just now. The log is poisoned; stop the process.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A write or flush failed earlier; nothing is ever tried again.
    #[error("the log is poisoned by an earlier failure")]
    Poisoned,
    /// The caller's lsn do not continue the log.
    #[error("{found} does not continue the log, {expected} does")]
    OutOfOrder {
        /// The lsn that must come next.
        expected: Lsn,
        /// The lsn that came.
        found: Lsn,
    },
    /// An entry whose header does not fit its body's length.
    #[error("the body of {0} does not have the length that its header names")]
    BodyLength(Op),
}

/// Why a checkpoint was not written. The one before it stays.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// No room.
    #[error("no space for a snapshot")]
    NoSpace,
    /// The outcomes up to the op are not flushed yet.
    #[error("outcomes are flushed up to {durable} only, the checkpoint is at {op}")]
    OutcomesMissing {
        /// The checkpoint's op.
        op: Op,
        /// The last op whose outcome is flushed.
        durable: Op,
    },
    /// The op is not above the last checkpoint, or not in the log.
    #[error("{op} cannot be a checkpoint: the last one is at {last}")]
    OutOfOrder {
        /// The op asked for.
        op: Op,
        /// The op of the last checkpoint.
        last: Op,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The anchor or the log failed earlier.
    #[error("the data directory is poisoned by an earlier failure")]
    Poisoned,
}

/// Why draining stopped. The log segment stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// No room in the volume.
    #[error("no space to drain to")]
    NoSpace,
    /// A live batch is damaged; its segment is kept.
    #[error("damaged: {0}")]
    Damaged(FileRange),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A flush failed earlier.
    #[error("the data directory is poisoned by an earlier failure")]
    Poisoned,
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The batch was drained or removed meanwhile: look the offset up again.
    #[error("the batch is no longer at this place")]
    Moved,
    /// The bytes are not what was written. Never served.
    #[error("damaged: {0}")]
    Damaged(FileRange),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
