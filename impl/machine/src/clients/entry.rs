//! What is kept of a client, live or released.

use std::collections::VecDeque;

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::ids::{Epoch, Op, RequestNumber, Timestamp};

use crate::catalog::UserIdentity;

/// A reply as it was first given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CachedReply {
    /// The request's number.
    pub request: RequestNumber,
    /// The request's checksum, as the log keeps it; 0: none.
    pub checksum: u128,
    /// What the request did.
    pub kind: EntryKind,
    /// The whole frame.
    pub frame: Bytes,
}

/// The Register that made the current epoch: all that its reply is made of, so that a repeat of it
/// gets the same bytes (spec SES-3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registration {
    /// The op of the Register.
    pub epoch: Epoch,
    /// What makes the Register recognisable (spec SES-4).
    pub stamp: u128,
    /// Log time of the Register.
    pub timestamp: Timestamp,
    /// View in which it was first prepared.
    pub view: u32,
    /// Replica that prepared it.
    pub replica: u8,
}

impl Registration {
    /// The registration that this Register makes.
    pub fn of(header: &EntryHeader, stamp: u128) -> Registration {
        Registration {
            epoch: Epoch(header.op),
            stamp,
            timestamp: header.timestamp(),
            view: header.view,
            replica: header.replica,
        }
    }
}

/// A client in the table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The current epoch and how it came about.
    pub registration: Registration,
    /// The op of the Register that began this history: since then nothing of it was forgotten
    /// (spec SES-22).
    pub since: Epoch,
    /// Who registered it (spec SES-8, SES-10).
    pub owner: UserIdentity,
    /// The highest request number that committed; 0: none yet.
    pub watermark: RequestNumber,
    /// The checksum of the request at the watermark; 0: none.
    pub watermark_checksum: u128,
    /// The last replies of requests with a number, numbers rising (spec DED-8).
    pub ring: VecDeque<CachedReply>,
    /// The op of the latest activity (spec SES-18).
    pub latest_commit: Op,
    /// Log time at which the connection ended without a logout (spec SES-26).
    pub released_at: Option<Timestamp>,
}

impl Entry {
    /// The current epoch.
    pub const fn epoch(&self) -> Epoch {
        self.registration.epoch
    }

    /// The kept reply of a request.
    pub fn cached(&self, request: RequestNumber) -> Option<&CachedReply> {
        self.ring
            .iter()
            .rev()
            .find(|reply| reply.request == request)
    }

    /// Notes an executed request: the watermark moves to it, its reply is kept, and the one with
    /// the lowest number goes if there is no room.
    // spec DED-2, DED-8
    pub fn record(&mut self, reply: CachedReply, ring_max: u32) {
        assert!(reply.request > self.watermark, "an executed request is new");
        self.watermark = reply.request;
        self.watermark_checksum = reply.checksum;
        self.ring.push_back(reply);
        while self.ring.len() > ring_max as usize {
            self.ring.pop_front();
        }
    }
}
