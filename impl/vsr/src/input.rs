//! What happens to a replica: facts that the driver reports.

use std::fmt;

use bytes::Bytes;
use pawl_wire::entry::EntryHeader;
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, Timestamp};

use crate::message::Message;
use crate::timer::Timer;

/// The driver's name for a request that waits for its one answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticket {}", self.0)
    }
}

/// A request that a gateway has parsed, verified and bound to a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Where its answer goes.
    pub ticket: Ticket,
    /// The proposal: kind, client, epoch, request number, user, checksums of request and body, body
    /// bytes, release, arguments. The replica fills in the rest (op, view, parent, timestamp,
    /// cluster, replica, version) and seals it.
    pub header: EntryHeader,
    /// The body that `header.checksum_body` covers. The replica never looks into it.
    pub body: Bytes,
    /// The clock of the node when the request was read. The log's time is never earlier than the
    /// time of the entry before.
    pub now: Timestamp,
}

/// How much room the log's disk has left.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum LogSpace {
    /// Every request is admitted.
    #[default]
    Ample,
    /// Only requests that free space, or that are needed to ask for it, are admitted: sessions,
    /// deletes, purges. The rest is refused as "not accepted" until the driver reports `Ample`.
    Low,
}

/// A fact that has happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// A client's request. Exactly one `Effect::Reply` answers it.
    Request(Request),
    /// A peer's message, over a link that authenticated the sender.
    Peer {
        /// Who sent it.
        from: ReplicaIndex,
        /// What it says.
        message: Message,
    },
    /// An armed timer ran out.
    Timer(Timer),
    /// Everything up to and including this record is on stable storage.
    Durable(Lsn),
    /// The entry that `Effect::Load` asked for. `None`: the disk no longer has it, or it is
    /// damaged.
    Loaded {
        /// The op that was asked for.
        op: Op,
        /// Its header and body, verified.
        entry: Option<(EntryHeader, Bytes)>,
    },
    /// The checkpoint at this op is on stable storage and the anchor names it.
    SnapshotWritten {
        /// Its op.
        op: Op,
    },
    /// The checkpoint at this op could not be written, and nothing of it counts; the one before it
    /// stands. Not fatal: the next one due is written instead.
    SnapshotFailed {
        /// Its op.
        op: Op,
    },
    /// The room on the log's disk has changed.
    LogSpace(LogSpace),
    /// A write or a flush of the log failed. Nothing is known of any record above the last
    /// `Durable`.
    DiskFailed,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Request(request) => {
                write!(f, "request {} {:?}", request.ticket, request.header)
            }
            Input::Peer { from, message } => write!(f, "from {from}: {message}"),
            Input::Timer(timer) => write!(f, "timer {timer}"),
            Input::Durable(lsn) => write!(f, "durable up to {lsn}"),
            Input::Loaded { op, entry } => {
                write!(
                    f,
                    "loaded {op}: {}",
                    if entry.is_some() { "found" } else { "missing" }
                )
            }
            Input::SnapshotWritten { op } => write!(f, "snapshot written at {op}"),
            Input::SnapshotFailed { op } => write!(f, "snapshot failed at {op}"),
            Input::LogSpace(space) => write!(f, "log space {space:?}"),
            Input::DiskFailed => write!(f, "disk failed"),
        }
    }
}
