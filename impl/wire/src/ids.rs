//! One newtype per number that must not be mixed with another.

use std::fmt;

/// Declares a number with a meaning: ordered, hashable, printable, and nothing that adds two of it.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The bare number, for the wire and for arithmetic that the caller names.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

number!(/// A position in the log, from 1, consecutive; 0 is "before the first".
    Op(u64), "op ");
number!(/// The number of a primary's reign.
    View(u32), "view ");
number!(/// One copy of the log and of the machine, from 0.
    ReplicaIndex(u8), "replica ");
number!(/// Identity of a client, chosen by the client, never 0.
    ClientId(u128), "client ");
number!(/// The op that made the current registration of a client. 0 is "not registered".
    Epoch(u64), "epoch ");
number!(/// The number a client gives to a request; the watermark is the highest that committed.
    RequestNumber(u64), "request ");
number!(/// Identity of a user; root is 0.
    UserId(u32), "user ");
number!(/// Visible identity of a stream; lowest free number.
    StreamId(u32), "stream ");
number!(/// Visible identity of a topic in its stream; lowest free number.
    TopicId(u32), "topic ");
number!(/// Visible identity of a partition in its topic, from 0.
    PartitionId(u32), "partition ");
number!(/// Internal identity of a partition: never reused. The op that created it, shifted left by
    /// 16 bits, plus its place among the partitions that this op created.
    PartitionUid(u64), "uid ");
number!(/// Microseconds since the Unix epoch, as the primary stamped them.
    Timestamp(u64), "t");
number!(/// Number of a record that the replica handed to the log, from 1, rising by one with each.
    /// Durable positions are cumulative: "everything up to this record".
    Lsn(u64), "lsn ");

impl Op {
    /// The op after this one.
    pub const fn next(self) -> Op {
        Op(self.0 + 1)
    }

    /// The op before this one; `None` for op 0.
    pub const fn previous(self) -> Option<Op> {
        match self.0.checked_sub(1) {
            Some(op) => Some(Op(op)),
            None => None,
        }
    }
}

impl View {
    /// The view after this one.
    pub const fn next(self) -> View {
        View(self.0 + 1)
    }

    /// The replica that is primary in this view of a cluster of `replicas`.
    pub const fn primary(self, replicas: u8) -> ReplicaIndex {
        ReplicaIndex((self.0 % replicas as u32) as u8)
    }
}

impl Lsn {
    /// The record after this one.
    pub const fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }
}

impl PartitionUid {
    /// The identity of the `index`-th partition (from 0) that `op` created.
    pub const fn new(op: Op, index: u16) -> PartitionUid {
        PartitionUid(op.0 << 16 | index as u64)
    }
}
