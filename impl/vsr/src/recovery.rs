//! From what a store found on disk to the state in which a replica starts again.

use bytes::Bytes;
use pawl_wire::entry::EntryId;
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, View};

use crate::checkpoint::CheckpointHeader;
use crate::config::ConfigError;
use crate::effect::Record;
use crate::machine::RestoreError;

/// What the store found.
///
/// Every checksum in it has been verified. The store flushes what it has read before it reports any
/// `Input::Durable`: after a kill, what can be read need not be on stable storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Recovered {
    /// The checkpoint that the anchor names, with its snapshot; `None` before the first.
    pub checkpoint: Option<(CheckpointHeader, Bytes)>,
    /// The records of the log in the order in which they were written, without a hole: all from the
    /// checkpoint's `replay_from` on, or from the first one. Earlier ones do no harm. The body of a
    /// `SendMessages` may be left empty when the replica is alone, since apply does not need it.
    pub records: Vec<(Lsn, Record)>,
    /// Number of the last record that the log holds; the next one continues from it.
    pub lsn_last: Lsn,
}

/// Why a replica cannot start from what was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestartError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Formatting did not end: nothing was ever acknowledged from here, and it may be formatted
    /// again.
    #[error("the log was never completely formatted")]
    Unformatted,
    /// It belongs to another cluster.
    #[error("the log belongs to cluster {found:032x}, the configuration names {expected:032x}")]
    Cluster {
        /// What is on disk.
        found: u128,
        /// What is configured.
        expected: u128,
    },
    /// It belongs to another replica.
    #[error("the log belongs to {found}, the configuration names {expected}")]
    Replica {
        /// What is on disk.
        found: ReplicaIndex,
        /// What is configured.
        expected: ReplicaIndex,
    },
    /// The snapshot cannot be restored.
    #[error("the snapshot at {op}: {error}")]
    Snapshot {
        /// The checkpoint's op.
        op: Op,
        /// Why.
        error: RestoreError,
    },
    /// The snapshot was restored, and is not what was written.
    #[error("the snapshot at {op} has digest {found:032x}, its header says {expected:032x}")]
    SnapshotDigest {
        /// The checkpoint's op.
        op: Op,
        /// Digest of the machine that came out.
        found: u128,
        /// What the header says.
        expected: u128,
    },
    /// Record numbers do not rise by one, or those that a restart needs are not all there.
    #[error("records are missing between {previous} and {found}")]
    Lsn {
        /// The record before.
        previous: Lsn,
        /// The record that follows.
        found: Lsn,
    },
    /// An entry's header is not what its checksum covers, or its body has another length.
    #[error("the entry of {lsn} at {op} is damaged")]
    Damaged {
        /// The record.
        lsn: Lsn,
        /// Its op.
        op: Op,
    },
    /// An entry does not continue the log (spec CON-2).
    #[error("the entry of {lsn} at {op} names {parent:?} as its parent; the log has {found:?}")]
    Chain {
        /// The record.
        lsn: Lsn,
        /// Its op.
        op: Op,
        /// The parent it names.
        parent: EntryId,
        /// The identity before its op; `None`: nothing is held there.
        found: Option<EntryId>,
    },
    /// An entry's view or time is not one that can follow the entry before it.
    #[error("the entry of {lsn} at {op} goes back in view or time")]
    Backwards {
        /// The record.
        lsn: Lsn,
        /// Its op.
        op: Op,
    },
    /// An entry was prepared in a view that no vote speaks of.
    #[error("the entry of {lsn} at {op} is of {view}, and the vote before it is of {log_view}")]
    VoteOlder {
        /// The record.
        lsn: Lsn,
        /// Its op.
        op: Op,
        /// The view it was prepared in.
        view: View,
        /// The log view of the latest vote before it.
        log_view: View,
    },
    /// A vote contradicts itself, an earlier vote, or the log it speaks of.
    #[error("the vote of {lsn} contradicts what stands before it: {reason}")]
    Vote {
        /// The record.
        lsn: Lsn,
        /// How.
        reason: &'static str,
    },
    /// An entry that the log must hold is not there, and no peer can be asked.
    #[error("{op} is missing from the log, and a replica alone has nobody to ask")]
    Missing {
        /// Which one.
        op: Op,
    },
}
