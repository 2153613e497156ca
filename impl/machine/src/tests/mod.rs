//! Tests of the machine as a whole: ops in, answers out.
//!
//! [`Log`] applies ops one after another. After each it checks every invariant, and that the
//! machine survives a snapshot: what is tested holds over a restart at any op.

use bytes::Bytes;
use pawl_vsr::machine::{Judgement, Machine};
use pawl_wire::commands::users::UserStatus;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::RegisterArguments;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, ReplyHeader};
use pawl_wire::ids::{ClientId, Epoch, Op, Timestamp, UserId};
use pawl_wire::permissions::Permissions;
use pawl_wire::primitives::Wire;
use pawl_wire::reply::Answer;

use crate::catalog::{PasswordHash, User};
use crate::effect::Effect;
use crate::genesis::{ClusterSecret, Genesis};
use crate::limits::ClusterConstants;
use crate::machine::PawlMachine;

mod admission;
mod catalog;
mod data;
mod dedup;
mod groups;
mod lives;
mod reference;
mod rights;
mod sessions;
mod snapshots;

/// What a client was told.
#[derive(Clone, PartialEq, Debug)]
enum Said {
    /// A success with this payload.
    Done(Box<ReplyHeader>, Vec<u8>),
    /// A refusal with this code.
    Refused(Box<ReplyHeader>, u32),
    /// The session's end.
    Evicted(EvictionReason),
    /// Nothing: an entry that no client asked for.
    Nothing,
}

impl Said {
    fn of(frame: &[u8]) -> Said {
        if frame.is_empty() {
            return Said::Nothing;
        }
        match Answer::decode(frame).expect("the machine makes whole frames") {
            Answer::Payload(header, payload) => Said::Done(Box::new(header), payload.to_vec()),
            Answer::Refused(header, code) => Said::Refused(Box::new(header), code),
            Answer::Evicted(header) => {
                let reason = EvictionReason::from_u8(header.reason);
                Said::Evicted(reason.expect("the reason is listed"))
            }
        }
    }

    /// The code of a refusal; 0 for a success.
    fn code(&self) -> u32 {
        match self {
            Said::Done(..) => 0,
            Said::Refused(_, code) => *code,
            other => panic!("neither success nor refusal: {other:?}"),
        }
    }

    fn header(&self) -> &ReplyHeader {
        match self {
            Said::Done(header, _) | Said::Refused(header, _) => header,
            other => panic!("no reply: {other:?}"),
        }
    }

    fn payload(&self) -> &[u8] {
        match self {
            Said::Done(_, payload) => payload,
            other => panic!("no success: {other:?}"),
        }
    }

    fn is_done(&self) -> bool {
        matches!(self, Said::Done(..))
    }

    fn is(&self, code: ErrorCode) -> bool {
        self.code() == code.code()
    }
}

/// A machine and the ops that are applied to it.
#[derive(Clone)]
struct Log {
    machine: PawlMachine,
    /// Of the last op.
    effects: Vec<Effect>,
    /// Of the last op.
    frame: Bytes,
    time: u64,
    stamps: u128,
}

impl Log {
    fn new() -> Log {
        Log::with(ClusterConstants::default())
    }

    fn with(constants: ClusterConstants) -> Log {
        let mut log = Log {
            machine: PawlMachine::new(),
            effects: Vec::new(),
            frame: Bytes::new(),
            time: 1_000,
            stamps: 0,
        };
        let genesis = Genesis {
            constants,
            secret: ClusterSecret([9; 32]),
            root_name: "iggy".to_owned(),
            root_password_hash: "$argon2id$".to_owned(),
        };
        let body = genesis.encode().expect("it is valid");
        log.apply(EntryHeader::new(EntryKind::Genesis), &body);
        log
    }

    /// Adds a user beside the log: the commands that do are not carried out yet.
    fn add_user(&mut self, name: &str, permissions: Option<Permissions>) -> UserId {
        let id = UserId(self.machine.catalog.users().len() as u32);
        self.machine.catalog.insert_user(User {
            id,
            created_op: self.machine.applied,
            created_at: Timestamp(self.time),
            name: name.into(),
            status: UserStatus::Active,
            credential_version: self.machine.applied.0,
            password_hash: PasswordHash("$argon2id$".into()),
            permissions,
        });
        id
    }

    /// Changes a user beside the log.
    fn change_user(&mut self, user: UserId, change: impl FnOnce(&mut User)) {
        let (mut users, streams): (Vec<User>, Vec<_>) = (
            self.machine
                .catalog
                .users()
                .map(|user| User::clone(user))
                .collect(),
            self.machine
                .catalog
                .streams()
                .map(|s| (**s).clone())
                .collect(),
        );
        change(&mut users[user.0 as usize]);
        let catalog = crate::Catalog::assemble(users, streams);
        self.machine.catalog = catalog.expect("names stay unique");
    }

    /// Applies the next op.
    fn apply(&mut self, mut header: EntryHeader, body: &[u8]) -> Said {
        self.time += 1;
        header.op = self.machine.applied.0 + 1;
        header.timestamp = self.time;
        header.view = 3;
        header.cluster = 77;
        self.effects.clear();
        let body = Bytes::copy_from_slice(body);
        self.frame = self.machine.apply(&header, &body, &mut self.effects);
        self.machine.assert_invariants();
        let snapshot = self.machine.snapshot();
        let restored = PawlMachine::restore(&snapshot).expect("a snapshot can be restored");
        assert!(restored == self.machine, "a restored machine is the same");
        assert!(restored.snapshot() == snapshot, "and has the same snapshot");
        assert_eq!(
            self.machine.snapshot_and_digest(),
            (snapshot, restored.digest())
        );
        Said::of(&self.frame)
    }

    fn op(&self) -> Op {
        self.machine.applied
    }

    /// A Register of root with a stamp of its own: the epoch.
    fn sign_in(&mut self, client: u128) -> Session {
        self.stamps += 1;
        let stamp = self.stamps;
        let said = self.register(client, UserId(0), stamp, b"");
        assert!(said.is_done(), "{said:?}");
        Session {
            client,
            epoch: said.header().op,
        }
    }

    fn register(&mut self, client: u128, user: UserId, stamp: u128, context: &[u8]) -> Said {
        let header = self.register_header(client, user, stamp);
        self.apply(header, context)
    }

    fn register_header(&self, client: u128, user: UserId, stamp: u128) -> EntryHeader {
        let known = self.machine.catalog.user_by_id(user);
        let arguments = RegisterArguments {
            credential_version: known.map_or(0, |user| user.credential_version),
            stamp,
        };
        EntryHeader {
            client,
            user: user.0,
            arguments: arguments.encode(),
            ..EntryHeader::new(EntryKind::Register)
        }
    }

    fn logout(&mut self, session: Session) -> Said {
        self.apply(session.header(EntryKind::Logout, 1), b"")
    }

    fn release(&mut self, session: Session) -> Said {
        self.apply(session.header(EntryKind::Release, 0), b"")
    }

    /// Lets log time pass.
    fn pass(&mut self, us: u64) {
        self.time += us;
        self.apply(EntryHeader::new(EntryKind::Noop), b"");
    }

    /// A request of a session.
    fn request<'a>(
        &mut self,
        session: Session,
        number: u64,
        kind: EntryKind,
        body: &impl Wire<'a>,
    ) -> Said {
        self.apply(session.header(kind, number), &body.encode())
    }

    fn judge(&self, header: &EntryHeader) -> Option<Said> {
        match self.machine.judge(header) {
            Judgement::Propose => None,
            Judgement::Answer(frame) => Some(Said::of(&frame)),
        }
    }

    fn epoch(&self, client: u128) -> Option<Epoch> {
        self.machine.client(ClientId(client)).map(|view| view.epoch)
    }
}

/// A client under an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Session {
    client: u128,
    epoch: u64,
}

impl Session {
    fn header(self, kind: EntryKind, request: u64) -> EntryHeader {
        EntryHeader {
            client: self.client,
            epoch: self.epoch,
            request,
            ..EntryHeader::new(kind)
        }
    }
}
