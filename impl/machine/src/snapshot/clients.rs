//! Sections CLNT and TOMB: the whole client table (spec DED-14, REC-15).
//!
//! CLNT: `[n u32]` n × `[client u128][registration][since u64][owner][watermark u64]`
//! `[its checksum u128][latest commit u64][released u8][released at u64][replies u32]` replies ×
//! `[request u64][checksum u128][kind u8][frame bytes32]`, clients rising.
//!
//! registration: `[epoch u64][stamp u128][timestamp u64][view u32][replica u8]`;
//! owner: `[user u32][created op u64]`.
//!
//! TOMB: `[n u32]` n × `[client u128][epoch u64][since u64][stamp u128][owner][watermark u64]`
//! `[its checksum u128][reply digest u128][made at u64][by logout u8]`, clients rising.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use pawl_vsr::machine::RestoreError;
use pawl_wire::entry::EntryKind;
use pawl_wire::ids::{ClientId, Epoch, Op, RequestNumber, Timestamp, UserId};
use pawl_wire::primitives::{Bytes32, Wire};

use super::{Section, rises};
use crate::catalog::UserIdentity;
use crate::clients::{CachedReply, ClientTable, Entry, Registration, Tombstone};
use crate::machine::PawlMachine;

const REGISTRATION_BYTES: usize = 8 + 16 + 8 + 4 + 1;
const OWNER_BYTES: usize = 4 + 8;
const ENTRY_BYTES_MIN: usize = 16 + REGISTRATION_BYTES + 8 + OWNER_BYTES + 8 + 16 + 8 + 1 + 8 + 4;
const REPLY_BYTES_MIN: usize = 8 + 16 + 1 + 4;
const TOMBSTONE_BYTES: usize = 16 + 8 + 8 + 16 + OWNER_BYTES + 8 + 16 + 16 + 8 + 1;

pub(super) fn write_entries(machine: &PawlMachine, out: &mut Vec<u8>) {
    (machine.clients.len() as u32).write(out);
    for (client, entry) in machine.clients.iter() {
        client.0.write(out);
        write_registration(&entry.registration, out);
        entry.since.0.write(out);
        write_owner(entry.owner, out);
        entry.watermark.0.write(out);
        entry.watermark_checksum.write(out);
        entry.latest_commit.0.write(out);
        entry.released_at.is_some().write(out);
        entry.released_at.unwrap_or_default().0.write(out);
        (entry.ring.len() as u32).write(out);
        for reply in &entry.ring {
            reply.request.0.write(out);
            reply.checksum.write(out);
            (reply.kind as u8).write(out);
            Bytes32(&reply.frame).write(out);
        }
    }
}

pub(super) fn write_tombstones(machine: &PawlMachine, out: &mut Vec<u8>) {
    let tombstones = machine.clients.tombstones();
    (tombstones.len() as u32).write(out);
    for (client, tombstone) in tombstones.iter() {
        client.0.write(out);
        tombstone.epoch.0.write(out);
        tombstone.since.0.write(out);
        tombstone.stamp.write(out);
        write_owner(tombstone.owner, out);
        tombstone.watermark.0.write(out);
        tombstone.watermark_checksum.write(out);
        tombstone.reply_digest.write(out);
        tombstone.made_at.0.write(out);
        tombstone.by_logout.write(out);
    }
}

fn write_registration(registration: &Registration, out: &mut Vec<u8>) {
    registration.epoch.0.write(out);
    registration.stamp.write(out);
    registration.timestamp.0.write(out);
    registration.view.write(out);
    registration.replica.write(out);
}

fn write_owner(owner: UserIdentity, out: &mut Vec<u8>) {
    owner.user.0.write(out);
    owner.created_op.0.write(out);
}

pub(super) fn read(
    entries: &mut Section<'_>,
    tombstones: &mut Section<'_>,
    machine: &PawlMachine,
) -> Result<ClientTable, RestoreError> {
    let entries_read = read_entries(entries, machine)?;
    let tombstones_read = read_tombstones(tombstones)?;
    let table = ClientTable::assemble(entries_read, tombstones_read, &machine.constants);
    table.ok_or_else(|| tombstones.refuse("the client table cannot be"))
}

fn read_entries(
    section: &mut Section<'_>,
    machine: &PawlMachine,
) -> Result<BTreeMap<ClientId, Entry>, RestoreError> {
    let mut entries = BTreeMap::new();
    let mut before = None;
    for _ in 0..section.count(ENTRY_BYTES_MIN)? {
        let client = ClientId(section.read()?);
        section.require(rises(&mut before, client), "clients do not rise")?;
        let registration = read_registration(section)?;
        let since = Epoch(section.read()?);
        let in_order = since <= registration.epoch;
        section.require(in_order, "a history begins after its latest epoch")?;
        let owner = read_owner(section)?;
        let watermark = RequestNumber(section.read()?);
        let watermark_checksum = section.read()?;
        let latest_commit = Op(section.read()?);
        let released = read_flag(section)?;
        let released_at = Timestamp(section.read()?);
        let none_is_zero = released || released_at == Timestamp(0);
        section.require(none_is_zero, "a live client has a time of release")?;
        let ring = read_ring(section, watermark, machine.constants.reply_ring)?;
        let entry = Entry {
            registration,
            since,
            owner,
            watermark,
            watermark_checksum,
            ring,
            latest_commit,
            released_at: released.then_some(released_at),
        };
        entries.insert(client, entry);
    }
    Ok(entries)
}

fn read_ring(
    section: &mut Section<'_>,
    watermark: RequestNumber,
    ring_max: u32,
) -> Result<VecDeque<CachedReply>, RestoreError> {
    let count = section.count(REPLY_BYTES_MIN)?;
    section.require(count <= ring_max as usize, "a ring is too long")?;
    let mut ring = VecDeque::with_capacity(count);
    let mut before = None;
    for _ in 0..count {
        let request = RequestNumber(section.read()?);
        let in_order = rises(&mut before, request) && request <= watermark;
        section.require(in_order, "request numbers do not rise to the watermark")?;
        let checksum = section.read()?;
        let kind = EntryKind::from_u8(section.read()?);
        ring.push_back(CachedReply {
            request,
            checksum,
            kind: kind.ok_or_else(|| section.refuse("a kind is not known"))?,
            frame: Bytes::copy_from_slice(section.read::<Bytes32<'_>>()?.0),
        });
    }
    Ok(ring)
}

fn read_tombstones(
    section: &mut Section<'_>,
) -> Result<BTreeMap<ClientId, Tombstone>, RestoreError> {
    let mut tombstones = BTreeMap::new();
    let mut before = None;
    for _ in 0..section.count(TOMBSTONE_BYTES)? {
        let client = ClientId(section.read()?);
        section.require(rises(&mut before, client), "clients do not rise")?;
        let tombstone = Tombstone {
            epoch: Epoch(section.read()?),
            since: Epoch(section.read()?),
            stamp: section.read()?,
            owner: read_owner(section)?,
            watermark: RequestNumber(section.read()?),
            watermark_checksum: section.read()?,
            reply_digest: section.read()?,
            made_at: Op(section.read()?),
            by_logout: read_flag(section)?,
        };
        tombstones.insert(client, tombstone);
    }
    Ok(tombstones)
}

fn read_registration(section: &mut Section<'_>) -> Result<Registration, RestoreError> {
    Ok(Registration {
        epoch: Epoch(section.read()?),
        stamp: section.read()?,
        timestamp: Timestamp(section.read()?),
        view: section.read()?,
        replica: section.read()?,
    })
}

fn read_owner(section: &mut Section<'_>) -> Result<UserIdentity, RestoreError> {
    Ok(UserIdentity {
        user: UserId(section.read()?),
        created_op: Op(section.read()?),
    })
}

/// A truth value that is exactly 0 or 1, so that equal states have equal bytes.
fn read_flag(section: &mut Section<'_>) -> Result<bool, RestoreError> {
    let flag: u8 = section.read()?;
    section.require(flag <= 1, "a flag is neither 0 nor 1")?;
    Ok(flag == 1)
}
