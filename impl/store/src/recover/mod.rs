//! Opens a data directory: reads, decides, and only then changes anything.
//!
//! # The decision table
//!
//! [`open`] reads and decides; [`Starter::start`] carries the verdict out. A refusal leaves every
//! byte as it was. `tests/recovery_table.rs` has one test a row, named after it.
//!
//! | row | found | verdict | reason |
//! | --- | --- | --- | --- |
//! | directory_locked | another process holds the lock | refuse, name the folder | two writers, one log |
//! | directory_empty | nothing of ours | empty | may be formatted |
//! | format_interrupted | no anchor; at most segment 1, no batch in it | empty | nothing was promised |
//! | anchor_missing | no anchor, but data | refuse, name the data | what it promised is unknown |
//! | anchor_unreadable | anchor file, no valid slot | refuse, name the bytes | unreadable is not empty |
//! | anchor_one_copy_damaged | a valid slot of the newest pair, a bad one | take it, rewrite the bad | both say the same |
//! | anchor_newest_pair_damaged | only the older pair is valid | take it, rewrite | a switch was torn, or both bad: the log still reaches, else the rows below refuse |
//! | anchor_newer_version | valid but of a newer layout | refuse | a guess would overwrite it |
//! | log_clean_end | nothing behind the last batch | go on there | |
//! | log_torn_tail | bad bytes, no later batch vouches | cut, keep a copy, say where | never acknowledged |
//! | log_unflushed_batches_behind_a_hole | later batches, none vouches | cut all | written, never flushed |
//! | log_faulty | bad batch, a later one vouches for it | refuse, name the bytes | was durable |
//! | log_faulty_below_checkpoint | bad batch before the replay position, no sidecar | refuse, name the bytes | the anchor vouches |
//! | log_segment_missing | a segment between log start and later batches is gone | refuse, name it | was durable |
//! | log_first_segment_missing | the segment at the replay position is gone | refuse, name it | was durable |
//! | log_duplicate_batch | a batch or file copied to another place | not a batch | it names its own place |
//! | log_recycled_bytes | batches of an earlier life behind the end | not batches | they name another segment |
//! | segment_header_damaged | first block bad, batches good | go on, rewrite it | batches speak for themselves |
//! | segment_leftover | segments below the log start, or prepared | removed, or ready | |
//! | snapshot_damaged | newest bad, older one good and in reach | take the older, say so | replay gives the same machine |
//! | snapshot_damaged_first | newest bad, none older, log reaches op 1 | replay from op 1, say so | |
//! | snapshot_damaged_out_of_reach | newest bad, the log no longer reaches | refuse, name the bytes | |
//! | snapshot_missing | as damaged | | |
//! | snapshot_unfinished | a file in `tmp` | removed | never named by the anchor |
//! | sidecar_missing, sidecar_damaged | | scan the file, say so if damaged | derived |
//! | partition_torn_tail | bad bytes, the log still holds the batches | cut | draining was interrupted |
//! | partition_file_damaged | bad record that the machine needs | refuse, name the bytes | was drained |
//! | partition_file_missing | the machine needs its messages | refuse, name the partition | |
//! | partition_dropped | files of a partition that is no more | removed later | |
//! | drain_interrupted | batches both in log and partition file | one of them counts | neither lost nor twice |
//! | foreign_files | names that are not ours | listed, left alone | |
//!
//! Bytes that are cut are kept in `cut/` when a batch of this log, or anything but zeros in a
//! segment that was never recycled, stood there; the oldest such file goes when there are more than
//! `cut_files_max`. Stale bytes of a recycled segment are not worth keeping.

mod anchor;
mod directory;
mod format;
mod index;
pub(crate) mod partitions;
mod start;
mod walk;

use std::sync::Arc;

use pawl_vsr::Recovered;
use pawl_wire::ids::Op;

use crate::disk::Disk;
use crate::error::{FileRange, OpenError, Unreadable};
use crate::options::{Identity, StoreOptions};
use crate::record::Placed;

pub use format::EmptyDirectory;
pub use start::Starter;

/// What stands in a data directory.
#[derive(Debug)]
pub enum Opened {
    /// Nothing that was ever promised.
    Empty(Box<EmptyDirectory>),
    /// A formatted directory.
    Holds(Box<Recovery>),
}

/// Something that was found and dealt with; the operator is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Bytes that were never durable are cut from the log's end.
    TornTail {
        /// What is cut.
        range: FileRange,
    },
    /// A copy of bytes that were cut is kept.
    Kept {
        /// What was cut.
        range: FileRange,
        /// The file that holds the copy.
        file: String,
    },
    /// A damaged copy is replaced from a good one, or derived data is rebuilt.
    Repaired {
        /// What was damaged.
        range: FileRange,
        /// How.
        reason: Unreadable,
    },
    /// The newest snapshot is damaged; the checkpoint before it is taken.
    OlderCheckpoint {
        /// The damaged snapshot.
        range: FileRange,
        /// What is wrong with it.
        reason: Unreadable,
        /// The op of the checkpoint taken instead; 0: the log is replayed from op 1.
        op: Op,
    },
    /// A file or folder that is not ours; left alone.
    Ignored {
        /// Its name inside the data directory.
        name: String,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::TornTail { range } => {
                write!(f, "torn: {range} were never acknowledged and are cut")
            }
            Finding::Kept { range, file } => write!(f, "a copy of {range} is kept in {file}"),
            Finding::Repaired { range, reason } => write!(f, "repaired: {range}: {reason}"),
            Finding::OlderCheckpoint { range, reason, op } => write!(
                f,
                "the newest snapshot cannot be read ({range}: {reason}); the log is replayed from \
                 the checkpoint at {op}"
            ),
            Finding::Ignored { name } => write!(f, "ignored: {name} is not a file of ours"),
        }
    }
}

/// What a data directory holds. Nothing has been changed yet.
#[derive(Debug)]
pub struct Recovery {
    /// Whose data it is.
    pub identity: Identity,
    /// For `Replica::restart`: the checkpoint, and every record of the log after it, verified,
    /// bodies included. Neither checkpoint nor records: the genesis was never durable.
    pub recovered: Recovered,
    /// Where the bodies of the recovered entries are, in the order of the records.
    pub placed: Vec<Placed>,
    /// What was found on the way.
    pub findings: Vec<Finding>,
    /// Goes on from here.
    pub starter: Starter,
}

/// Opens a data directory and takes its lock. Changes nothing but the lock.
pub fn open(disk: Arc<dyn Disk>, options: StoreOptions) -> Result<Opened, OpenError> {
    let directory = directory::read(disk)?;
    let Some(found) = anchor::read(&directory)? else {
        let empty = EmptyDirectory::new(directory, options);
        return Ok(Opened::Empty(Box::new(empty)));
    };
    let recovery = start::recover(directory, options, found)?;
    Ok(Opened::Holds(Box::new(recovery)))
}
