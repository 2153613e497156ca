//! Apply: what a committed op does, and the only judge of it (law 6).
//!
//! | kind | module |
//! | --- | --- |
//! | Register, Logout, Release, the end of a grace | [`session`] |
//! | every other request of a client | [`request`]: judged by the table, then executed by |
//! | | [`streams`], [`topics`], [`partitions`], [`groups`], [`messages`] |
//! | Genesis, Noop | here |
//!
//! What one `SendMessages` costs: a look-up of the client, a move in the order of eviction, a
//! look-up of the partition, three sums, and one allocation for the reply. Bodies are not touched.

use std::sync::Arc;

use bytes::Bytes;
use pawl_vsr::machine::{Judgement, Machine, RestoreError};
use pawl_wire::commands::users::UserStatus;
use pawl_wire::entry::{EntryHeader, EntryKind};

use crate::catalog::{PasswordHash, ROOT, User};
use crate::effect::Effect;
use crate::genesis::Genesis;
use crate::machine::PawlMachine;
use crate::snapshot;

mod admission;
mod groups;
mod messages;
mod partitions;
mod request;
mod session;
mod streams;
mod topics;

impl Machine for PawlMachine {
    type Effect = Effect;

    fn apply(&mut self, header: &EntryHeader, body: &Bytes, effects: &mut Vec<Effect>) -> Bytes {
        assert!(
            header.op() == self.applied.next(),
            "ops are applied once, in order"
        );
        assert!(
            header.timestamp() >= self.log_time,
            "log time never goes back"
        );
        self.applied = header.op();
        self.log_time = header.timestamp();
        self.end_graces(effects);
        match header.entry_kind() {
            EntryKind::Genesis => self.genesis(header, body, effects),
            EntryKind::Noop => Bytes::new(),
            EntryKind::Release => self.release(header, effects),
            EntryKind::Register => self.register(header, body, effects),
            EntryKind::Logout => self.logout(header, effects),
            _ => self.request(header, body, effects),
        }
    }

    fn judge(&self, header: &EntryHeader) -> Judgement {
        self.admission(header)
    }

    fn snapshot(&self) -> Vec<u8> {
        snapshot::write(self)
    }

    fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        snapshot::read(bytes)
    }

    fn digest(&self) -> u128 {
        snapshot::digest(&self.snapshot())
    }

    fn snapshot_and_digest(&self) -> (Vec<u8>, u128) {
        let bytes = self.snapshot();
        let digest = snapshot::digest(&bytes);
        (bytes, digest)
    }
}

impl PawlMachine {
    /// Op 1: constants, secret, root.
    fn genesis(&mut self, header: &EntryHeader, body: &[u8], effects: &mut Vec<Effect>) -> Bytes {
        assert!(
            header.op == 1,
            "a log begins with its genesis, and has no other"
        );
        let genesis = Genesis::decode(body);
        let genesis = genesis.expect("a verified genesis entry is one that we encoded");
        self.constants = genesis.constants;
        self.secret = genesis.secret;
        self.catalog.insert_user(User {
            id: ROOT,
            created_op: header.op(),
            created_at: header.timestamp(),
            name: genesis.root_name.into(),
            status: UserStatus::Active,
            credential_version: header.op,
            password_hash: PasswordHash(Arc::from(genesis.root_password_hash)),
            permissions: None,
        });
        effects.push(Effect::CatalogChanged);
        Bytes::new()
    }
}
