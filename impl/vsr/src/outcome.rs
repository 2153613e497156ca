//! The one answer to a request. A refusal carries its retry class in its type.

use bytes::Bytes;
use pawl_wire::ids::{Op, ReplicaIndex, View};

/// The one answer to a request (law 12).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The request committed; the machine's whole reply frame.
    Reply {
        /// The op at which it was decided.
        op: Op,
        /// What the client gets.
        frame: Bytes,
    },
    /// Certain without a log entry; the machine's whole reply or eviction frame.
    Answer {
        /// The op up to which the machine that judged had applied.
        applied: Op,
        /// What the client gets.
        frame: Bytes,
    },
    /// No reply of the machine.
    Refused(Refusal),
}

/// What a client may do about a refusal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RetryClass {
    /// Nothing happened: send it again.
    NotAccepted,
    /// It may have happened, now or later: ask again with the same identity.
    UnknownOutcome,
    /// Do not send it again.
    Terminal,
}

/// A request that got no reply of the machine, by retry class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing happened.
    #[error("not accepted: {0}")]
    NotAccepted(#[from] NotAccepted),
    /// It may have happened.
    #[error("unknown outcome: {0}")]
    UnknownOutcome(#[from] UnknownOutcome),
    /// It never will.
    #[error("refused: {0}")]
    Terminal(#[from] Terminal),
}

impl Refusal {
    /// The retry class.
    pub const fn class(&self) -> RetryClass {
        match self {
            Refusal::NotAccepted(_) => RetryClass::NotAccepted,
            Refusal::UnknownOutcome(_) => RetryClass::UnknownOutcome,
            Refusal::Terminal(_) => RetryClass::Terminal,
        }
    }
}

/// Why a request took no log entry; it may be sent again, here or where it says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum NotAccepted {
    /// As many ops as may be are under way.
    #[error("{ops} of {ops_max} ops are under way")]
    PipelineOps {
        /// How many are under way.
        ops: u32,
        /// The limit.
        ops_max: u32,
    },
    /// As many body bytes as may be are under way.
    #[error("{bytes} of {bytes_max} body bytes are under way")]
    PipelineBytes {
        /// How many are under way, this body not counted.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// Another replica is the primary.
    #[error("{primary} is the primary of {view}")]
    NotPrimary {
        /// The view this replica is in.
        view: View,
        /// Its primary.
        primary: ReplicaIndex,
    },
    /// No primary is known: a view is being changed.
    #[error("{view} is being started")]
    ViewChange {
        /// The view that may start.
        view: View,
    },
    /// The primary has not yet committed what it inherited.
    #[error("{applied} of {inherited} inherited ops are applied")]
    NotCaughtUp {
        /// What is applied.
        applied: Op,
        /// What must be.
        inherited: Op,
    },
    /// The replica has not yet made its restart durable.
    #[error("the replica is restarting")]
    Restarting,
    /// The log's disk is nearly full, and this request would not free any of it.
    #[error("the disk of the log is nearly full")]
    LogSpaceLow,
    /// The replica has stopped for good.
    #[error("the replica has stopped")]
    Stopped,
}

/// Why it is not known whether a request took effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum UnknownOutcome {
    /// The primary left its view before the op was decided.
    #[error("{op} was prepared in {view}, which ended before it was decided")]
    ViewEnded {
        /// The op it was prepared at.
        op: Op,
        /// The view that ended.
        view: View,
    },
    /// The log failed before the op was decided.
    #[error("{op} was prepared, and the log failed before it was decided")]
    LogFailed {
        /// The op it was prepared at.
        op: Op,
    },
}

/// Why a request can never be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Terminal {
    /// The kind is unknown or not one that a client may propose.
    #[error("kind {kind} cannot be proposed")]
    Kind {
        /// The kind's number.
        kind: u8,
    },
    /// The body is longer than an entry may hold.
    #[error("a body of {bytes} bytes is above the limit of {bytes_max}")]
    BodyBytes {
        /// Its length.
        bytes: u64,
        /// The limit.
        bytes_max: u32,
    },
    /// The header's body length is not the body's.
    #[error("the header says {header} body bytes, the body has {body}")]
    BodyLength {
        /// What the header says.
        header: u32,
        /// What is there.
        body: u64,
    },
}
