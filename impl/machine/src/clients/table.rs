//! Entries, and the orders in which they leave.

use std::collections::{BTreeMap, BTreeSet};

use pawl_wire::ids::{ClientId, Epoch, Op, Timestamp};
use xxhash_rust::xxh3::xxh3_128;

use super::{CachedReply, Entry, Registration, Tombstone, Tombstones};
use crate::catalog::UserIdentity;
use crate::limits::ClusterConstants;

/// Clients and fences. See the module above.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct ClientTable {
    entries: BTreeMap<ClientId, Entry>,
    tombstones: Tombstones,
    /// Live entries, the longest quiet first (spec SES-17).
    live: BTreeSet<(Op, ClientId)>,
    /// Released entries, the longest quiet first (spec SES-17).
    released: BTreeSet<(Op, ClientId)>,
    /// Released entries, the longest released first (spec SES-28).
    released_since: BTreeSet<(Timestamp, ClientId)>,
}

/// How an entry leaves the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Another client needs the place.
    Evicted,
    /// Its grace after the release is over.
    GraceOver,
    /// It said that it is done.
    Logout,
}

impl ClientTable {
    /// The entry of a client.
    pub fn get(&self, client: ClientId) -> Option<&Entry> {
        self.entries.get(&client)
    }

    /// The fences.
    pub fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, by client.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ClientId, &Entry)> {
        self.entries.iter().map(|(client, entry)| (*client, entry))
    }

    /// Who leaves when a place is needed.
    // spec SES-17
    pub fn victim(&self) -> Option<ClientId> {
        let longest_quiet = self.released.first().or(self.live.first());
        longest_quiet.map(|(_, client)| *client)
    }

    /// Whether a released entry's grace is over at this log time.
    pub fn grace_over(&self, now: Timestamp, grace_us: u64) -> Option<ClientId> {
        let (since, client) = self.released_since.first()?;
        (since.0.saturating_add(grace_us) <= now.0).then_some(*client)
    }

    /// Whether what this owner did under `earlier`, as this client, is part of what is remembered:
    /// then every number of it is at most the watermark.
    // spec SES-22
    pub fn remembers(&self, client: ClientId, owner: UserIdentity, earlier: Epoch) -> bool {
        let entry = self.entries.get(&client);
        let entry = entry.map(|entry| (entry.owner, entry.since, entry.epoch()));
        let fence = self.tombstones.get(client);
        let fence = fence.map(|fence| (fence.owner, fence.since, fence.epoch));
        let history = entry.or(fence);
        history.is_some_and(|(of, since, epoch)| of == owner && (since..=epoch).contains(&earlier))
    }

    /// Takes the fence of a client down, since it comes back. This is done before a place is made
    /// for it: the tombstone of the one who leaves could push this one out, and its watermark with
    /// it.
    // spec SES-20
    pub fn take_fence(&mut self, client: ClientId) -> Option<Tombstone> {
        self.tombstones.remove(client)
    }

    /// A new entry: from nothing, or over the tombstone whose watermark it takes. There must be a
    /// place.
    // spec SES-1, SES-20
    pub fn admit(
        &mut self,
        client: ClientId,
        registration: Registration,
        owner: UserIdentity,
        op: Op,
        fence: Option<Tombstone>,
    ) {
        let entry = Entry {
            registration,
            since: fence.as_ref().map_or(registration.epoch, |f| f.since),
            owner,
            watermark: fence.as_ref().map(|f| f.watermark).unwrap_or_default(),
            watermark_checksum: fence.map(|f| f.watermark_checksum).unwrap_or_default(),
            ring: Default::default(),
            latest_commit: op,
            released_at: None,
        };
        self.live.insert((op, client));
        let before = self.entries.insert(client, entry);
        assert!(before.is_none(), "only an absent client is admitted");
        assert!(
            self.tombstones.get(client).is_none(),
            "its fence was taken down"
        );
    }

    /// A granted Register of an entry: it is live again, and its registration may be a new one.
    // spec SES-3, SES-5, SES-29
    pub fn rebind(&mut self, client: ClientId, registration: Registration, op: Op) {
        self.unlist(client);
        let entry = self
            .entries
            .get_mut(&client)
            .expect("a bound client has an entry");
        entry.registration = registration;
        entry.released_at = None;
        entry.latest_commit = op;
        self.live.insert((op, client));
    }

    /// Notes that a request of a client was executed: it is activity, and if the request has a
    /// number, the watermark moves and the reply is kept.
    // spec SES-18, DED-2
    pub fn executed(
        &mut self,
        client: ClientId,
        op: Op,
        reply: Option<CachedReply>,
        ring_max: u32,
    ) {
        let entry = self
            .entries
            .get_mut(&client)
            .expect("an active client has an entry");
        let order = match entry.released_at {
            None => &mut self.live,
            Some(_) => &mut self.released,
        };
        order.remove(&(entry.latest_commit, client));
        order.insert((op, client));
        entry.latest_commit = op;
        if let Some(reply) = reply {
            entry.record(reply, ring_max);
        }
    }

    /// Marks an entry as released.
    // spec SES-26
    pub fn release(&mut self, client: ClientId, now: Timestamp) {
        self.unlist(client);
        let entry = self
            .entries
            .get_mut(&client)
            .expect("a released client has an entry");
        entry.released_at = Some(now);
        self.released.insert((entry.latest_commit, client));
        self.released_since.insert((now, client));
    }

    /// Makes an entry a tombstone.
    // spec SES-19
    pub fn leave(&mut self, client: ClientId, how: Leave, op: Op, constants: &ClusterConstants) {
        self.unlist(client);
        let entry = self
            .entries
            .remove(&client)
            .expect("a client leaves from its entry");
        let last_reply = entry.ring.back();
        let tombstone = Tombstone {
            epoch: entry.registration.epoch,
            since: entry.since,
            stamp: entry.registration.stamp,
            owner: entry.owner,
            watermark: entry.watermark,
            watermark_checksum: entry.watermark_checksum,
            reply_digest: last_reply.map_or(0, |reply| xxh3_128(&reply.frame)),
            made_at: op,
            by_logout: how == Leave::Logout,
        };
        self.tombstones
            .insert(client, tombstone, constants.tombstones_max);
    }

    /// Takes an entry out of the orders.
    fn unlist(&mut self, client: ClientId) {
        let entry = self.entries.get(&client).expect("only entries are listed");
        let place = (entry.latest_commit, client);
        let listed = match entry.released_at {
            None => self.live.remove(&place),
            Some(since) => {
                self.released_since.remove(&(since, client)) && self.released.remove(&place)
            }
        };
        assert!(listed, "invariant 4");
    }

    /// The table of these entries and tombstones, as a snapshot holds them. `None` where a client
    /// is both, or 0, or where there are more than the constants allow.
    pub(crate) fn assemble(
        entries: BTreeMap<ClientId, Entry>,
        tombstones: BTreeMap<ClientId, Tombstone>,
        constants: &ClusterConstants,
    ) -> Option<ClientTable> {
        let too_many = entries.len() > constants.clients_max as usize
            || tombstones.len() > constants.tombstones_max as usize;
        let both = tombstones.keys().any(|client| entries.contains_key(client));
        let zero = ClientId(0);
        if too_many || both || entries.contains_key(&zero) || tombstones.contains_key(&zero) {
            return None;
        }
        let mut table = ClientTable::default();
        for (client, tombstone) in tombstones {
            table
                .tombstones
                .insert(client, tombstone, constants.tombstones_max);
        }
        for (client, entry) in &entries {
            let place = (entry.latest_commit, *client);
            match entry.released_at {
                None => table.live.insert(place),
                Some(since) => {
                    table.released_since.insert((since, *client));
                    table.released.insert(place)
                }
            };
        }
        table.entries = entries;
        Some(table)
    }

    /// Panics where an invariant does not hold. Dear; for tests.
    pub fn assert_invariants(&self, constants: &ClusterConstants) {
        let copy = ClientTable::assemble(
            self.entries.clone(),
            self.tombstones
                .iter()
                .map(|(c, t)| (c, t.clone()))
                .collect(),
            constants,
        );
        let copy = copy.expect("invariants 1, 2 and 5");
        assert!(copy == *self, "invariant 4");
        for entry in self.entries.values() {
            let numbers: Vec<_> = entry.ring.iter().map(|reply| reply.request).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "invariant 3");
            assert!(
                numbers.last().is_none_or(|last| *last <= entry.watermark),
                "invariant 3"
            );
            assert!(
                entry.ring.len() <= constants.reply_ring as usize,
                "invariant 3"
            );
        }
    }
}
