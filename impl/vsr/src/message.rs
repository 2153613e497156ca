//! What replicas say to each other.
//!
//! The link authenticates the sender and verifies headers and bodies; the byte layout of these
//! messages belongs to the wire.

use std::fmt;

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryId};
use pawl_wire::ids::{Op, View};

use crate::vote::VoteRecord;

/// What a replica's checkpoint was: replicas compare them (spec CON-33).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CheckpointDigest {
    /// At which op.
    pub op: Op,
    /// Digest of the machine there.
    pub digest: u128,
}

/// A message between replicas. Every one names the view in which it was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// Primary to backups: an entry, and what is committed.
    Prepare {
        /// The view in which it is sent; the header keeps the view in which it was first prepared.
        view: View,
        /// The highest op that the primary knows to be decided.
        commit: Op,
        /// The entry's header.
        header: EntryHeader,
        /// The entry's body.
        body: Bytes,
    },
    /// Backup to primary: everything up to `op` is durable here, and `id` is the entry there.
    PrepareOk {
        /// The view in which it is acknowledged.
        view: View,
        /// Up to which op.
        op: Op,
        /// Identity of the entry at `op`.
        id: EntryId,
        /// The backup's latest checkpoint.
        checkpoint: Option<CheckpointDigest>,
    },
    /// Primary to backups: it lives, and what is committed.
    Commit {
        /// Its view.
        view: View,
        /// The highest op that it knows to be decided.
        commit: Op,
        /// The newest op it holds.
        op_head: Op,
        /// The primary's latest checkpoint.
        checkpoint: Option<CheckpointDigest>,
    },
    /// To all: the sender has left every view below this one; follow.
    ExitView {
        /// The view to go to.
        view: View,
    },
    /// To the primary of the vote's view: the sender's durable vote.
    DoViewChange(VoteRecord),
    /// New primary to backups: the view starts with this log.
    StartView {
        /// The view that starts.
        view: View,
        /// The highest op that the primary knows to be decided.
        commit: Op,
        /// The newest op of the log.
        op_head: Op,
        /// Identity of the entry there.
        head: EntryId,
        /// The headers from some op at or below every backup's commit up to `op_head`.
        suffix: Vec<EntryHeader>,
    },
    /// To the primary: send `StartView` of this view again.
    RequestStartView {
        /// The view.
        view: View,
    },
    /// To whoever may hold it: send the entries from `from` to `to`.
    RequestPrepare {
        /// The view.
        view: View,
        /// The first op that is missing.
        from: Op,
        /// The last op that is missing.
        to: Op,
    },
}

impl Message {
    /// The view in which it was sent.
    pub fn view(&self) -> View {
        match self {
            Message::Prepare { view, .. }
            | Message::PrepareOk { view, .. }
            | Message::Commit { view, .. }
            | Message::ExitView { view }
            | Message::StartView { view, .. }
            | Message::RequestStartView { view }
            | Message::RequestPrepare { view, .. } => *view,
            Message::DoViewChange(vote) => vote.view,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view().0;
        match self {
            Message::Prepare { commit, header, .. } => {
                write!(f, "Prepare v{view} op {} commit {}", header.op, commit.0)
            }
            Message::PrepareOk { op, .. } => write!(f, "PrepareOk v{view} op {}", op.0),
            Message::Commit {
                commit, op_head, ..
            } => {
                write!(f, "Commit v{view} commit {} head {}", commit.0, op_head.0)
            }
            Message::ExitView { .. } => write!(f, "ExitView v{view}"),
            Message::DoViewChange(vote) => write!(f, "DoViewChange {vote}"),
            Message::StartView {
                commit, op_head, ..
            } => write!(
                f,
                "StartView v{view} commit {} head {}",
                commit.0, op_head.0
            ),
            Message::RequestStartView { .. } => write!(f, "RequestStartView v{view}"),
            Message::RequestPrepare { from, to, .. } => {
                write!(f, "RequestPrepare v{view} ops {} to {}", from.0, to.0)
            }
        }
    }
}
