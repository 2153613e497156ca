//! Users as far as logins need them, the client table, and its tombstones.

use std::collections::BTreeMap;

use crate::{
    Checksum, Client, Constants, Epoch, Login, Number, Op, Refusal, Request, Response, Stamp, Time,
    UserChange, UserNumber,
};

/// A user: what a login is judged by, and who owns entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct User {
    /// The op that created the user. With it an owner is a person, not a number (SES-10).
    pub born: Op,
    /// The op that set the password in force.
    pub credentials: Op,
    /// Whether it may sign in.
    pub active: bool,
}

/// The last executed request of a client that carries a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Executed {
    /// Its number: the watermark.
    pub number: Number,
    /// Its checksum.
    pub checksum: Checksum,
    /// Where it was executed: stands for the digest of its reply.
    pub op: Op,
}

/// A reply that is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kept {
    /// What the request asked for.
    pub operation: u8,
    /// The request's checksum.
    pub checksum: Checksum,
    /// The op that made the reply.
    pub op: Op,
}

/// What outlives an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fence {
    /// The op of the latest Register that bound the client.
    pub epoch: Epoch,
    /// The op since which the history of this client is known without a gap.
    pub since: Epoch,
    /// The op that created the owner.
    pub owner: Op,
    /// Stamp of the latest Register.
    pub stamp: Stamp,
    /// The watermark, its checksum and its op.
    pub last: Option<Executed>,
}

/// A client in the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Registration {
    /// What stays when it leaves.
    pub fence: Fence,
    /// The last replies, by number.
    pub ring: BTreeMap<Number, Kept>,
    /// The latest op that counts as activity.
    pub latest: Op,
    /// When its connection ended.
    pub released: Option<Time>,
}

/// A client that has left the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tombstone {
    /// What is remembered.
    pub fence: Fence,
    /// The op at which it left.
    pub made: Op,
    /// Whether it left by its own logout.
    pub logout: bool,
}

/// Users, table, tombstones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Clients {
    /// By visible number.
    pub users: BTreeMap<UserNumber, User>,
    /// Live and released entries.
    pub table: BTreeMap<Client, Registration>,
    /// The fences of those that left.
    pub tombstones: BTreeMap<Client, Tombstone>,
}

impl Fence {
    /// The watermark: 0 before the first numbered request.
    pub fn watermark(&self) -> Number {
        self.last.map_or(Number(0), |last| last.number)
    }

    /// Whether what was done under `epoch` is part of this history. SES-22.
    fn covers(&self, epoch: Epoch) -> bool {
        self.since <= epoch && epoch <= self.epoch
    }
}

impl Clients {
    /// A sign-in. SES-1 to SES-11, SES-20, SES-22, SES-25.
    pub fn register(&mut self, constants: &Constants, op: Op, login: &Login) -> Response {
        let Some(owner) = self.owner(login) else {
            return Response::Refused(Refusal::Credentials); // SES-11
        };
        let left = self.tombstones.get(&login.client).copied();
        let left = left.filter(|t| t.fence.owner == owner || !t.logout); // SES-25
        let entry = self.table.get(&login.client);
        let fence = entry.map(|e| e.fence).or(left.map(|t| t.fence));
        if fence.is_some_and(|fence| fence.owner != owner) {
            return Response::Refused(Refusal::NotOwner); // SES-8, SES-9
        }
        let known = |earlier| fence.is_some_and(|fence| fence.covers(earlier));
        if login.earlier.is_some_and(|earlier| !known(earlier)) {
            return Response::Refused(Refusal::Forgotten); // SES-22
        }
        let same = fence.filter(|fence| fence.stamp == login.stamp);
        let epoch = same.map_or(Epoch(op.0), |fence| fence.epoch); // SES-1, SES-3
        let fence = Fence {
            epoch,
            since: fence.map_or(epoch, |fence| fence.since),
            owner,
            stamp: login.stamp,
            last: fence.and_then(|fence| fence.last), // SES-5, SES-20
        };
        let ring = match entry {
            Some(entry) => entry.ring.clone(), // SES-5, SES-29
            None => {
                self.tombstones.remove(&login.client); // before room is made: SES-20
                self.make_room(constants, op); // SES-17
                BTreeMap::new() // SES-20
            }
        };
        let registration = Registration {
            fence,
            ring,
            latest: op, // SES-18
            released: None,
        };
        self.table.insert(login.client, registration);
        Response::Bound(epoch)
    }

    /// The op that created the user, if the login holds. SES-10, SES-11.
    fn owner(&self, login: &Login) -> Option<Op> {
        let user = self.users.get(&login.user)?;
        (user.active && user.credentials == login.credentials).then_some(user.born)
    }

    /// A request. SES-12, then the table of `dedup.md`.
    pub fn request(&mut self, constants: &Constants, op: Op, request: &Request) -> Response {
        let entry = match self.standing(request.client, request.epoch) {
            Ok(entry) => entry,
            Err(refusal) => return Response::Refused(refusal), // SES-13
        };
        let unnumbered = request.partition_write && request.checksum == Checksum(0); // DED-9
        if !unnumbered {
            if request.number <= entry.fence.watermark() {
                return repeat(entry, request);
            }
            execute_numbered(constants, entry, op, request);
        }
        entry.latest = op; // SES-18, DED-10
        if let Some(change) = request.change {
            self.change_users(op, change);
        }
        Response::Executed
    }

    /// The entry that stands under this epoch. SES-12, SES-14.
    fn standing(&mut self, client: Client, epoch: Epoch) -> Result<&mut Registration, Refusal> {
        let entry = self.table.get_mut(&client).ok_or(Refusal::Evicted)?;
        let current = entry.fence.epoch;
        match epoch.cmp(&current) {
            std::cmp::Ordering::Less => Err(Refusal::Fenced { epoch: current }),
            std::cmp::Ordering::Equal => Ok(entry),
            std::cmp::Ordering::Greater => Err(Refusal::EpochUnknown),
        }
    }

    /// The users, as logins see them.
    fn change_users(&mut self, op: Op, change: UserChange) {
        match change {
            UserChange::Create(number) => {
                let user = User {
                    born: op,
                    credentials: op,
                    active: true,
                };
                self.users.entry(number).or_insert(user);
            }
            UserChange::Delete(number) => {
                self.users.remove(&number); // entries stay: SES-31
            }
            UserChange::Password(number) => {
                if let Some(user) = self.users.get_mut(&number) {
                    user.credentials = op;
                }
            }
            UserChange::Active(number, active) => {
                if let Some(user) = self.users.get_mut(&number) {
                    user.active = active;
                }
            }
        }
    }

    /// The end of a session. SES-23, SES-24.
    pub fn logout(
        &mut self,
        constants: &Constants,
        op: Op,
        client: Client,
        epoch: Epoch,
    ) -> Response {
        match self.standing(client, epoch) {
            Ok(_) => {
                self.bury(constants, op, client, true);
                Response::LoggedOut
            }
            Err(Refusal::Evicted) => Response::LoggedOut,
            Err(refusal) => Response::Refused(refusal),
        }
    }

    /// The end of a connection. SES-26, SES-27.
    pub fn release(&mut self, now: Time, client: Client, epoch: Epoch) {
        if let Ok(entry) = self.standing(client, epoch) {
            entry.released.get_or_insert(now);
        }
    }

    /// Released entries whose grace is over leave. SES-28.
    pub fn expire(&mut self, constants: &Constants, op: Op, now: Time) {
        let over = |e: &Registration| {
            e.released
                .filter(|at| now.0 >= at.0.saturating_add(constants.grace))
        };
        let mut due: Vec<(Time, Client)> = self
            .table
            .iter()
            .filter_map(|(client, entry)| over(entry).map(|at| (at, *client)))
            .collect();
        due.sort();
        for (_, client) in due {
            self.bury(constants, op, client, false);
        }
    }

    /// Evicts while there is no place for one more. SES-16, SES-17.
    fn make_room(&mut self, constants: &Constants, op: Op) {
        while self.table.len() >= constants.clients {
            let order = |(client, entry): (&Client, &Registration)| {
                (entry.released.is_none(), entry.latest, *client)
            };
            let Some((_, _, victim)) = self.table.iter().map(order).min() else {
                return;
            };
            self.bury(constants, op, victim, false);
        }
    }

    /// An entry becomes a tombstone, and the oldest tombstones make room. SES-19, SES-21.
    fn bury(&mut self, constants: &Constants, op: Op, client: Client, logout: bool) {
        let Some(entry) = self.table.remove(&client) else {
            return;
        };
        let tombstone = Tombstone {
            fence: entry.fence,
            made: op,
            logout,
        };
        self.tombstones.insert(client, tombstone);
        while self.tombstones.len() > constants.tombstones {
            let oldest = self.tombstones.iter().map(|(client, t)| (t.made, *client));
            let Some((_, client)) = oldest.min() else {
                return;
            };
            self.tombstones.remove(&client);
        }
    }
}

/// A request at or below the watermark. DED-4 to DED-7.
fn repeat(entry: &Registration, request: &Request) -> Response {
    let differs = |kept: Checksum| {
        kept != request.checksum && kept != Checksum(0) && request.checksum != Checksum(0) // DED-6
    };
    let kept = entry.ring.get(&request.number);
    let last = entry
        .fence
        .last
        .filter(|last| last.number == request.number);
    let checksum = kept
        .map(|kept| kept.checksum)
        .or(last.map(|last| last.checksum));
    let other_operation = kept.is_some_and(|kept| kept.operation != request.operation);
    if other_operation || checksum.is_some_and(differs) {
        return Response::Refused(Refusal::NumberReused); // DED-5, DED-19
    }
    match kept {
        Some(kept) => Response::Repeat(kept.op), // DED-4
        None => Response::AppliedEarlier {
            watermark: entry.fence.watermark(), // DED-7
        },
    }
}

/// A request above the watermark takes its number. DED-1, DED-2, DED-8, DED-13.
fn execute_numbered(constants: &Constants, entry: &mut Registration, op: Op, request: &Request) {
    entry.fence.last = Some(Executed {
        number: request.number,
        checksum: request.checksum,
        op,
    });
    if request.secret_reply {
        return;
    }
    let kept = Kept {
        operation: request.operation,
        checksum: request.checksum,
        op,
    };
    entry.ring.insert(request.number, kept);
    while entry.ring.len() > constants.ring {
        entry.ring.pop_first();
    }
}
