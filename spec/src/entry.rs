//! What can stand in the log, and what can come of it.

use std::collections::BTreeSet;

use crate::UserNumber;
use crate::{Checksum, Client, Epoch, Number, Op, RecordNumber, ShardNumber, Stamp, Time};

/// An entry of the log, without its op.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    /// Log time, never below that of the entry before.
    pub time: Time,
    /// What is to be done.
    pub act: Act,
}

/// What an entry is to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// Nothing that concerns the table.
    Noop,
    /// A sign-in.
    Register(Login),
    /// A request of a client.
    Request(Request),
    /// The end of a session, asked for by its client.
    Logout {
        /// Whose.
        client: Client,
        /// Of which registration.
        epoch: Epoch,
    },
    /// The end of a connection, noticed by its gateway.
    Release {
        /// Whose.
        client: Client,
        /// Of which registration.
        epoch: Epoch,
    },
    /// Leases for a session.
    Grant {
        /// The session's client.
        client: Client,
        /// The session's epoch.
        session: Epoch,
        /// The shards.
        shards: BTreeSet<ShardNumber>,
    },
    /// The end of a lease without a successor.
    Revoke {
        /// The shard.
        shard: ShardNumber,
        /// Of which lease.
        epoch: Epoch,
    },
    /// What a worker writes under a lease.
    Write {
        /// By whom, on which shard, under which epoch.
        access: Access,
        /// What.
        write: LeaseWrite,
    },
}

/// A sign-in whose password or token was checked before it was proposed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Login {
    /// Identity that the client chose.
    pub client: Client,
    /// The user that the password belongs to.
    pub user: UserNumber,
    /// The user's credential version when it was checked.
    pub credentials: Op,
    /// Equal in every proposal of this sign-in and in no other.
    pub stamp: Stamp,
    /// The earlier epoch that the login's context names.
    pub earlier: Option<Epoch>,
}

/// A request of a client.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// Client that the connection is bound to.
    pub client: Client,
    /// Epoch that the connection is bound to.
    pub epoch: Epoch,
    /// Number that the client gave.
    pub number: Number,
    /// Checksum of the body, keyed where it holds a secret.
    pub checksum: Checksum,
    /// What it asks for, as a number.
    pub operation: u8,
    /// Whether it is a partition write (send, store offset, delete offset).
    pub partition_write: bool,
    /// Whether its reply tells a secret and is not kept.
    pub secret_reply: bool,
    /// What it does to the users, which logins are judged by.
    pub change: Option<UserChange>,
}

/// A change of the users.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UserChange {
    /// A new user under a free number.
    Create(UserNumber),
    /// The end of a user.
    Delete(UserNumber),
    /// A new password.
    Password(UserNumber),
    /// May sign in, or not.
    Active(UserNumber, bool),
}

/// Who writes under a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Access {
    /// The session's client.
    pub client: Client,
    /// The session's epoch.
    pub session: Epoch,
    /// The shard.
    pub shard: ShardNumber,
    /// The epoch that the worker believes the lease to have.
    pub epoch: Epoch,
}

/// What a worker writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LeaseWrite {
    /// Consecutive records of the shard's log.
    Section {
        /// Number of the first record.
        first: RecordNumber,
        /// Number of the last record.
        last: RecordNumber,
    },
    /// Bytes at the end of the run store.
    Store {
        /// Where the worker believes the end to be, if it says so.
        expected: Option<u64>,
        /// How many.
        bytes: u64,
    },
    /// A compacted run store takes the place of the current one.
    Compacted {
        /// Its length.
        length: u64,
    },
    /// A checkpoint.
    Checkpoint(Checkpoint),
}

/// Where a leased shard can be recovered from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Checkpoint {
    /// The record that it reflects.
    pub record: RecordNumber,
    /// The first op that can hold records after it.
    pub position: Op,
    /// Generation of the run store that it refers to.
    pub generation: u64,
    /// Length of the run store that it refers to.
    pub length: u64,
}

/// What came of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Response {
    /// Nobody asked.
    Nothing,
    /// The client is bound under this epoch.
    Bound(Epoch),
    /// Executed now: the reply is the one of this op.
    Executed,
    /// Executed before: the reply is the one of that op, byte for byte.
    Repeat(Op),
    /// Executed before, reply not kept.
    AppliedEarlier {
        /// The highest number that was executed.
        watermark: Number,
    },
    /// The session has ended, now or before.
    LoggedOut,
    /// The leases are granted under this epoch.
    Leased(Epoch),
    /// The write of a worker took effect.
    Written,
    /// Bytes were appended to the run store at this offset.
    StoreAppended {
        /// Where they begin.
        offset: u64,
    },
    /// Not done, and nothing changed, except where the variant says so.
    Refused(Refusal),
}

/// Why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// The user is gone, inactive, or has other credentials by now.
    Credentials,
    /// The client belongs to another user.
    NotOwner,
    /// The outcome of what the client did under its earlier epoch can no longer be told.
    Forgotten,
    /// No entry of this client.
    Evicted,
    /// A later registration has taken over.
    Fenced {
        /// The epoch in force.
        epoch: Epoch,
    },
    /// An epoch that was never granted.
    EpochUnknown,
    /// The number was used for another request.
    NumberReused,
    /// No such leased shard.
    NoShard,
    /// The lease is not the one in force.
    Stale {
        /// The epoch in force.
        epoch: Epoch,
    },
    /// The shard takes no more writes under this lease.
    Stopped,
    /// Not the next record; the shard is stopped now.
    Gap,
    /// Not the end of the run store; the shard is stopped now.
    Offset,
    /// A checkpoint outside what there is.
    Range,
}
