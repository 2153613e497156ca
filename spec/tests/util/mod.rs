//! A table with a hand to feed it: entries in the order of a test's lines.

#![allow(dead_code, reason = "each test file uses a part")]

use pawl_spec::{
    Act, Checksum, Client, Constants, Entry, Epoch, Login, Number, Op, Refusal, Request, Response,
    Stamp, Table, Time, UserChange, UserNumber,
};

/// The root user.
pub const ROOT: UserNumber = UserNumber(0);
/// Another user, created at op 2, 3 by [`World::with_user`].
pub const ALICE: UserNumber = UserNumber(1);

/// Small bounds, so that they are reached.
pub const SMALL: Constants = Constants {
    clients: 2,
    ring: 2,
    tombstones: 2,
    grace: 30,
    shards: 4,
};

/// A table and what was fed to it.
pub struct World {
    /// The table.
    pub table: Table,
    /// Time of the next entry.
    pub now: u64,
}

impl World {
    /// Right after Genesis.
    pub fn new(constants: Constants) -> World {
        World {
            table: Table::genesis(constants, Time(1)),
            now: 1,
        }
    }

    /// With [`ALICE`]: client 99 of root came, created her, and left without a trace in numbers.
    pub fn with_user(constants: Constants) -> World {
        let mut world = World::new(constants);
        let epoch = world.bind(99, ROOT, 99);
        world.change(99, epoch, 1, UserChange::Create(ALICE));
        world.act(Act::Logout {
            client: Client(99),
            epoch,
        });
        world
    }

    /// The op of the next entry.
    pub fn next(&self) -> u64 {
        self.table.applied.0 + 1
    }

    /// Applies an act and checks the invariants.
    pub fn act(&mut self, act: Act) -> Response {
        let entry = Entry {
            time: Time(self.now),
            act,
        };
        let response = self.table.apply(Op(self.next()), &entry);
        self.table.check();
        response
    }

    /// A login with the credentials in force.
    pub fn login(&self, client: u128, user: UserNumber, stamp: u128) -> Login {
        let credentials = self.table.clients.users.get(&user);
        Login {
            client: Client(client),
            user,
            credentials: credentials.map_or(Op(0), |user| user.credentials),
            stamp: Stamp(stamp),
            earlier: None,
        }
    }

    /// Registers.
    pub fn register(&mut self, client: u128, user: UserNumber, stamp: u128) -> Response {
        let login = self.login(client, user, stamp);
        self.act(Act::Register(login))
    }

    /// Registers and expects to be bound.
    pub fn bind(&mut self, client: u128, user: UserNumber, stamp: u128) -> Epoch {
        match self.register(client, user, stamp) {
            Response::Bound(epoch) => epoch,
            other => panic!("expected to be bound, got {other:?}"),
        }
    }

    /// A metadata write.
    pub fn request(&mut self, client: u128, epoch: Epoch, number: u64, sum: u128) -> Response {
        self.act(Act::Request(request(client, epoch, number, sum)))
    }

    /// A partition write.
    pub fn produce(&mut self, client: u128, epoch: Epoch, number: u64, sum: u128) -> Response {
        self.act(Act::Request(Request {
            operation: 160,
            partition_write: true,
            ..request(client, epoch, number, sum)
        }))
    }

    /// A change of the users.
    pub fn change(&mut self, client: u128, epoch: Epoch, number: u64, change: UserChange) {
        let response = self.act(Act::Request(Request {
            change: Some(change),
            ..request(client, epoch, number, 7)
        }));
        assert_eq!(response, Response::Executed);
    }

    /// A logout.
    pub fn logout(&mut self, client: u128, epoch: Epoch) -> Response {
        let client = Client(client);
        self.act(Act::Logout { client, epoch })
    }

    /// A release.
    pub fn release(&mut self, client: u128, epoch: Epoch) {
        let client = Client(client);
        assert_eq!(self.act(Act::Release { client, epoch }), Response::Nothing);
    }

    /// Whether the client is in the table.
    pub fn stands(&self, client: u128) -> bool {
        self.table.epoch(Client(client)).is_some()
    }

    /// Whether the client has a tombstone.
    pub fn is_buried(&self, client: u128) -> bool {
        self.table.clients.tombstones.contains_key(&Client(client))
    }
}

/// A metadata write.
pub fn request(client: u128, epoch: Epoch, number: u64, sum: u128) -> Request {
    Request {
        client: Client(client),
        epoch,
        number: Number(number),
        checksum: Checksum(sum),
        operation: 128,
        partition_write: false,
        secret_reply: false,
        change: None,
    }
}

/// A refusal as a response.
pub fn refused(refusal: Refusal) -> Response {
    Response::Refused(refusal)
}

/// "Applied earlier" with this watermark.
pub fn applied_earlier(watermark: u64) -> Response {
    Response::AppliedEarlier {
        watermark: Number(watermark),
    }
}
