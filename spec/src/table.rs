//! The table as a whole: the next op, and what comes of it.

use std::collections::BTreeSet;

use crate::{
    Act, Client, Clients, Constants as Limits, Entry, Epoch, Holder, Leases, Op, Refusal, Response,
    Time, User, UserNumber,
};

/// Cluster constants that apply depends on. SES-16, SES-21, SES-28, DED-8, LEA-16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Constants {
    /// Live and released entries, at most; at least 1.
    pub clients: usize,
    /// Replies kept per client; at least 1.
    pub ring: usize,
    /// Tombstones, at most.
    pub tombstones: usize,
    /// Log time in microseconds from a release to the tombstone.
    pub grace: u64,
    /// Leased shards.
    pub shards: u32,
}

/// Everything that sessions and leases are judged by: a function of log[1..=applied].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table {
    /// Fixed with the first op.
    pub constants: Constants,
    /// The last op.
    pub applied: Op,
    /// Its time.
    pub time: Time,
    /// Users, clients, tombstones.
    pub clients: Clients,
    /// Leased shards.
    pub leases: Leases,
}

impl Default for Constants {
    /// Those of a cluster that was not told otherwise.
    fn default() -> Constants {
        Constants {
            clients: 8_192,
            ring: 5,
            tombstones: 65_536,
            grace: 30_000_000,
            shards: 64,
        }
    }
}

impl Table {
    /// The table after op 1, Genesis: the root user exists. CON-15.
    pub fn genesis(constants: Limits, time: Time) -> Table {
        let root = User {
            born: Op(1),
            credentials: Op(1),
            active: true,
        };
        let mut clients = Clients::default();
        clients.users.insert(UserNumber(0), root);
        Table {
            constants,
            applied: Op(1),
            time,
            clients,
            leases: Leases::default(),
        }
    }

    /// Applies the entry at `op`, the one after the last.
    ///
    /// # Panics
    ///
    /// If `op` is not the next one or time goes back: the log is not a log. CON-1, CON-12.
    pub fn apply(&mut self, op: Op, entry: &Entry) -> Response {
        assert_eq!(op.0, self.applied.0 + 1, "ops are consecutive");
        assert!(entry.time >= self.time, "log time never goes back");
        self.applied = op;
        self.time = entry.time;
        self.clients.expire(&self.constants, op, entry.time); // SES-28: before the op is judged
        self.end_leases();
        let response = self.judge(op, &entry.act);
        self.end_leases();
        response
    }

    /// What a caught-up primary may answer without an entry: what apply would answer now, where
    /// applying would change nothing. SES-6, SES-7.
    pub fn certain(&self, act: &Act) -> Option<Response> {
        let mut after = self.clone();
        let response = after.judge(Op(self.applied.0 + 1), act);
        (after == *self && response != Response::Nothing).then_some(response)
    }

    fn judge(&mut self, op: Op, act: &Act) -> Response {
        let (constants, clients) = (&self.constants, &mut self.clients);
        match act {
            Act::Noop => Response::Nothing,
            Act::Register(login) => clients.register(constants, op, login),
            Act::Request(request) => clients.request(constants, op, request),
            Act::Logout { client, epoch } => clients.logout(constants, op, *client, *epoch),
            Act::Release { client, epoch } => {
                clients.release(self.time, *client, *epoch);
                Response::Nothing
            }
            Act::Grant {
                client,
                session,
                shards,
            } => {
                let holder = Holder {
                    client: *client,
                    session: *session,
                };
                if !self.is_live(holder) {
                    return Response::Refused(Refusal::Evicted); // LEA-4
                }
                let shards = shards.iter().copied();
                self.leases.grant(&self.constants, op, holder, shards)
            }
            Act::Revoke { shard, epoch } => {
                self.leases.revoke(*shard, *epoch);
                Response::Nothing
            }
            Act::Write { access, write } => self.leases.write(&self.constants, op, *access, *write),
        }
    }

    /// Leases of sessions that left the table or were fenced end. LEA-5, LEA-7.
    fn end_leases(&mut self) {
        let table = &self.clients.table;
        self.leases.keep(|holder| {
            let entry = table.get(&holder.client);
            entry.is_some_and(|entry| entry.fence.epoch == holder.session)
        });
    }

    fn is_live(&self, holder: Holder) -> bool {
        let entry = self.clients.table.get(&holder.client);
        entry.is_some_and(|e| e.fence.epoch == holder.session && e.released.is_none())
    }

    /// The epoch in force for a client, and whether it is in the table.
    pub fn epoch(&self, client: Client) -> Option<Epoch> {
        let entry = self.clients.table.get(&client);
        entry.map(|entry| entry.fence.epoch)
    }

    /// Checks the invariants of the crate's root comment.
    ///
    /// # Panics
    ///
    /// With the number of the one that does not hold.
    pub fn check(&self) {
        let clients = &self.clients;
        let limits = &self.constants;
        let gone = |client: &Client| clients.tombstones.contains_key(client);
        assert!(!clients.table.keys().any(gone), "invariant 1");
        assert!(!clients.table.contains_key(&Client(0)), "invariant 1");
        assert!(!gone(&Client(0)), "invariant 1");
        assert!(clients.table.len() <= limits.clients, "invariant 2");
        assert!(clients.tombstones.len() <= limits.tombstones, "invariant 2");
        let mut epochs = BTreeSet::new();
        let live = clients.table.values().map(|entry| &entry.fence);
        for fence in live.chain(clients.tombstones.values().map(|t| &t.fence)) {
            assert!(epochs.insert(fence.epoch), "invariant 3");
            assert!(fence.since <= fence.epoch, "invariant 3");
            assert!(fence.epoch.0 <= self.applied.0, "invariant 3");
            assert!(
                fence.last.is_none_or(|last| last.op <= self.applied),
                "invariant 3"
            );
        }
        for entry in clients.table.values() {
            assert!(entry.latest <= self.applied, "invariant 3");
            assert!(entry.ring.len() <= limits.ring, "invariant 2");
            let highest = entry.ring.last_key_value().map(|(number, _)| *number);
            assert!(highest <= Some(entry.fence.watermark()), "invariant 4");
            assert!(
                entry.ring.values().map(|kept| kept.op).is_sorted(),
                "invariant 4"
            );
        }
        for shard in self.leases.shards.values() {
            let session = shard
                .holder
                .map(|holder| self.epoch(holder.client) == Some(holder.session));
            assert!(session != Some(false), "invariant 5");
        }
    }
}
