//! Log, anchor, snapshots and partition data over a [`Disk`].
//!
//! A data directory holds the log (`wal/`), the anchor (`anchor`), checkpoints (`snapshots/`), what
//! was drained from the log (`partitions/`) and bytes that recovery cut (`cut/`). Message bodies
//! are written once, in the log; a partition is an index over it. `spec/layouts.md` gives the
//! bytes.
//!
//! # Duties of the caller, in order
//!
//! 1. **Open.** Call [`open`] with a [`RealDisk`] of the data directory. It takes the directory's
//!    lock, reads, decides, and *changes nothing*. [`Opened::Empty`]: a lone node calls
//!    [`EmptyDirectory::format`]; both ways end in a [`Recovery`].
//! 2. **Restore.** Restore the machine from `recovery.recovered.checkpoint` (none: the machine
//!    before op 1). Print every finding of `recovery.findings`. No checkpoint and no record: the
//!    genesis was never durable, so the replica is formatted anew.
//! 3. **Start.** Call [`Starter::start`] with the bounds of every partition *of the machine as it
//!    was restored from the checkpoint*, before any record is applied. It checks that every message
//!    is there, cuts torn tails, flushes what was read, and returns the [`Store`]. Take it apart:
//!    each part has one owner. Then give `recovery.recovered` to `Replica::restart`, and carry out
//!    its effects as ever.
//! 4. **WAL thread** owns the [`LogWriter`]: `write` (records in the order of their lsn, outcomes
//!    of what was applied meanwhile, and up to which op these are complete), then `flush`, then
//!    tell the replica `Durable(lsn)`. Any error but [`WriteError::NoSpace`] is final: stop the
//!    process. After `NoSpace` nothing was written: try the same call again.
//! 5. **Log thread** keeps the place that `write` returned for each op until the op is applied (for
//!    recovered entries: `recovery.placed`; a later place of the same op replaces an earlier one),
//!    then calls [`IndexSet::push`] for `Appended`, [`IndexSet::create`],
//!    [`IndexSet::drop_partition`], [`IndexSet::purge`], [`IndexSet::trim`] for the other effects,
//!    and at last [`IndexSet::applied`] with the op. The outcome of each `Appended` goes into a
//!    later `write`, those of replayed ops too; where no record follows, into a `write` without
//!    records. On replay after a start the same calls are made.
//! 6. **Checkpoint thread** owns the [`Checkpointer`]: `write` when the replica says `Checkpoint`,
//!    and only once a batch that holds the outcomes up to that op is flushed
//!    ([`Status::outcomes_durable`]; earlier it answers [`CheckpointError::OutcomesMissing`]). Then
//!    `SnapshotWritten(op)` for the replica; after `NoSpace`, `SnapshotFailed(op)`. Any other error
//!    is final: stop the process.
//! 7. **Preparer thread** owns the [`Preparer`] and calls `tick` about every 20 ms;
//!    [`Preparer::wait`] sleeps until then, or until the writer has taken a segment. When
//!    [`Status::disk_full`] holds, tell the replica `LogSpace::Low`, later `Ample`.
//! 8. **Drain thread** owns the [`Drainer`] and calls `tick` about every 100 ms, and at once again
//!    after one that drained a segment: it writes sidecars, drains the oldest segment when the log
//!    is above its limit, and removes files of dropped partitions. [`Status::allow_reclaim`]
//!    carries the replica's `Reclaim` to it.
//! 9. **Any thread** reads bodies with a clone of the [`Reader`]. After [`ReadError::Moved`] look
//!    the offset up again: the batch was drained meanwhile.
//! 10. **Stop.** Join the threads; then [`LogWriter::close`], then [`Drainer::close`].
//!
//! # Invariants
//!
//! 1. Nothing is durable before a flush has returned; a failed flush poisons for good.
//! 2. Nothing is cut, recycled or removed before its replacement is flushed and the oldest kept
//!    checkpoint covers its death.
//! 3. Stored bytes are believed only after their checksum, their chain and their place agree.

pub mod checkpoint;
pub mod disk;
pub mod drain;
pub mod error;
pub mod format;
pub mod index;
pub mod inspect;
pub mod log;
pub mod options;
pub mod reader;
pub mod record;
pub mod recover;
pub mod status;

pub use checkpoint::Checkpointer;
pub use disk::faulty::FaultyDisk;
pub use disk::real::RealDisk;
pub use disk::{Disk, DiskFile};
pub use drain::{Drained, Drainer};
pub use error::{
    CheckpointError, DiskError, DrainError, FileRange, OpenError, ReadError, Unreadable, WriteError,
};
pub use index::{BatchEntry, IndexSet, PartitionBounds, PartitionIndex};
pub use inspect::inspect;
pub use log::preparer::{Prepared, Preparer};
pub use log::writer::LogWriter;
pub use options::{Identity, StoreOptions};
pub use reader::Reader;
pub use record::{Outcome, Place, PlaceFile, Placed, SegmentId};
pub use recover::{EmptyDirectory, Finding, Opened, Recovery, Starter, open};
pub use status::Status;

/// The parts of an open data directory. Take it apart: each part has one owner.
#[derive(Debug)]
pub struct Store {
    /// For the WAL thread.
    pub writer: LogWriter,
    /// For the thread that keeps the next segment ready.
    pub preparer: Preparer,
    /// For the thread that writes checkpoints.
    pub checkpointer: Checkpointer,
    /// For the thread that drains and tidies up.
    pub drainer: Drainer,
    /// For everyone who reads bodies.
    pub reader: Reader,
    /// The indexes of all partitions.
    pub index: std::sync::Arc<IndexSet>,
    /// What the directory is doing, for admission, metrics and health.
    pub status: Status,
}
