//! Fences of clients that are no longer in the table (spec SES-19 to SES-21).
//!
//! Invariants:
//! 1. `by_age` holds exactly the tombstones, each under the op that made it.
//! 2. There are at most as many as the cluster constant allows.

use std::collections::{BTreeMap, BTreeSet};

use pawl_wire::ids::{ClientId, Epoch, Op, RequestNumber};

use crate::catalog::UserIdentity;

/// What is remembered of a client that left.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tombstone {
    /// Its last epoch.
    pub epoch: Epoch,
    /// The op of the Register that began this history (spec SES-22).
    pub since: Epoch,
    /// The stamp of the Register that made it.
    pub stamp: u128,
    /// Who registered it.
    pub owner: UserIdentity,
    /// The highest request number that committed.
    pub watermark: RequestNumber,
    /// The checksum of the request at the watermark; 0: none.
    pub watermark_checksum: u128,
    /// XXH3-128 of its last kept reply; 0: none was kept.
    pub reply_digest: u128,
    /// The op that made the tombstone.
    pub made_at: Op,
    /// Whether the client said that it is done (spec SES-25).
    pub by_logout: bool,
}

/// All tombstones, bounded: the oldest is forgotten first.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Tombstones {
    by_client: BTreeMap<ClientId, Tombstone>,
    by_age: BTreeSet<(Op, ClientId)>,
}

impl Tombstones {
    /// The fence of a client.
    pub fn get(&self, client: ClientId) -> Option<&Tombstone> {
        self.by_client.get(&client)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_client.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    /// All of them, by client.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ClientId, &Tombstone)> {
        self.by_client
            .iter()
            .map(|(client, tombstone)| (*client, tombstone))
    }

    /// Puts a fence up; the oldest one falls if there is no room.
    // spec SES-21
    pub fn insert(&mut self, client: ClientId, tombstone: Tombstone, max: u32) {
        self.by_age.insert((tombstone.made_at, client));
        let before = self.by_client.insert(client, tombstone);
        assert!(before.is_none(), "a client leaves the table once");
        while self.by_client.len() > max as usize {
            let (_, oldest) = self.by_age.pop_first().expect("invariant 1");
            self.by_client.remove(&oldest).expect("invariant 1");
        }
    }

    /// Takes the fence of a client down.
    pub fn remove(&mut self, client: ClientId) -> Option<Tombstone> {
        let tombstone = self.by_client.remove(&client)?;
        let known = self.by_age.remove(&(tombstone.made_at, client));
        assert!(known, "invariant 1");
        Some(tombstone)
    }
}
