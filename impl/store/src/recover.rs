//! Opens a data directory: reads, decides, and only then changes anything.

use std::sync::Arc;

use bytes::Bytes;
use pawl_wire::ids::{Lsn, Op};

use crate::disk::Disk;
use crate::error::{FileRange, OpenError};
use crate::index::PartitionBounds;
use crate::options::{Identity, StoreOptions};
use crate::record::LoggedRecord;
use crate::{Store, error::Unreadable};

/// What stands in a data directory.
#[derive(Debug)]
pub enum Opened {
    /// Nothing that was ever promised.
    Empty(EmptyDirectory),
    /// A formatted directory.
    Holds(Box<Recovery>),
}

/// A locked directory without data.
#[derive(Debug)]
pub struct EmptyDirectory {}

impl EmptyDirectory {
    /// Formats the directory. `nonce` is random and secret: it keys the checksums of the log, so that
    /// no message can hold bytes that look like a batch of this log.
    pub fn format(self, _identity: Identity, nonce: u64) -> Result<Recovery, OpenError> {
        Err(OpenError::AnchorMissing {
            evidence: nonce.to_string(),
        })
    }
}

/// The newest checkpoint that can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredCheckpoint {
    /// Its op.
    pub op: Op,
    /// The machine's snapshot.
    pub snapshot: Bytes,
}

/// Something that was found and dealt with; the operator is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Bytes that were never durable were cut from the log's end.
    TornTail {
        /// What was cut.
        range: FileRange,
        /// Where a copy is kept.
        kept: Option<String>,
    },
    /// A damaged copy was replaced from a good one, or derived data was rebuilt.
    Repaired {
        /// What was damaged.
        range: FileRange,
        /// How.
        reason: Unreadable,
    },
    /// The newest snapshot was damaged; the checkpoint before it was taken.
    OlderCheckpoint {
        /// The damaged snapshot.
        range: FileRange,
        /// The op of the checkpoint taken instead.
        op: Op,
    },
    /// A file or folder that is not ours; left alone.
    Ignored {
        /// Its name inside the data directory.
        name: String,
    },
}

/// What a data directory holds. Nothing has been changed yet.
#[derive(Debug)]
pub struct Recovery {
    /// Whose data it is.
    pub identity: Identity,
    /// The checkpoint to restore; `None`: the machine before op 1.
    pub checkpoint: Option<RecoveredCheckpoint>,
    /// The newest vote, in the replica's encoding.
    pub vote: Option<Bytes>,
    /// Every record of the log after the checkpoint, in order, verified, bodies included.
    pub records: Vec<LoggedRecord>,
    /// The lsn that the next record must have.
    pub lsn_next: Lsn,
    /// What was found on the way.
    pub findings: Vec<Finding>,
    /// Goes on from here.
    pub starter: Starter,
}

/// Turns a recovery into an open store.
#[derive(Debug)]
pub struct Starter {}

impl Starter {
    /// Checks that the index holds every message that the restored machine holds, makes durable
    /// what was read, cuts torn tails, and opens the log for writing. Findings of this step are
    /// appended to `findings`.
    pub fn start(
        self,
        _partitions: &[PartitionBounds],
        _findings: &mut Vec<Finding>,
    ) -> Result<Store, OpenError> {
        Err(OpenError::AnchorMissing {
            evidence: String::new(),
        })
    }
}

/// Opens a data directory and takes its lock. Changes nothing.
pub fn open(_disk: Arc<dyn Disk>, _options: StoreOptions) -> Result<Opened, OpenError> {
    Ok(Opened::Empty(EmptyDirectory {}))
}
