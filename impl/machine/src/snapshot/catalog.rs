//! Sections USER and STRM.
//!
//! USER: `[n u32]` n × `[id u32][created op u64][created at u64][name][status u8]`
//! `[credential version u64][hash text32][permissions]`, ids rising.
//!
//! STRM: `[n u32]` n × `[id u32][created op u64][created at u64][name][topics u32]` topics ×
//! `[id u32][created op u64][created at u64][name][explicit options][partitions u32]` partitions ×
//! `[uid u64][created at u64]`, then `[next group u32][n u32]` n × `[id u32][generation u64][name]`
//! `[members u32]` members × `[slot u32][client u128]`, partitions × `[owner + 1 u32]`, 0 where
//! nobody owns it; ids and slots rising.

use std::collections::BTreeMap;
use std::sync::Arc;

use pawl_vsr::machine::RestoreError;
use pawl_wire::commands::users::UserStatus;
use pawl_wire::ids::{ClientId, Op, PartitionUid, StreamId, Timestamp, TopicId, UserId};
use pawl_wire::options::{OptionsBlock, encode_options, keep_options};
use pawl_wire::permissions::PermissionsTail;
use pawl_wire::primitives::{Name, Text32, Wire};
use pawl_wire::topic_options::TopicOptions;

use super::{Section, rises};
use crate::catalog::{Catalog, PartitionSlot, PasswordHash, Stream, Topic, User};
use crate::groups::{Group, Groups};
use crate::limits::{PARTITIONS_PER_TOPIC_MAX, STREAMS_MAX, TOPICS_PER_STREAM_MAX, USERS_MAX};
use crate::machine::PawlMachine;

const USER_BYTES_MIN: usize = 4 + 8 + 8 + 2 + 1 + 8 + 4 + 4;
const STREAM_BYTES_MIN: usize = 4 + 8 + 8 + 2 + 4;
const TOPIC_BYTES_MIN: usize = 4 + 8 + 8 + 2 + 4 + 4;
const SLOT_BYTES: usize = 8 + 8;
const GROUP_BYTES_MIN: usize = 4 + 8 + 2 + 4;
const MEMBER_BYTES: usize = 4 + 16;

pub(super) fn write_users(machine: &PawlMachine, out: &mut Vec<u8>) {
    let users = machine.catalog.users();
    (users.len() as u32).write(out);
    for user in users {
        user.id.0.write(out);
        user.created_op.0.write(out);
        user.created_at.0.write(out);
        write_name(&user.name, out);
        user.status.write(out);
        user.credential_version.write(out);
        Text32(&user.password_hash.0).write(out);
        PermissionsTail(user.permissions.clone()).write(out);
    }
}

pub(super) fn write_streams(machine: &PawlMachine, out: &mut Vec<u8>) {
    let streams = machine.catalog.streams();
    (streams.len() as u32).write(out);
    for stream in streams {
        stream.id.0.write(out);
        stream.created_op.0.write(out);
        stream.created_at.0.write(out);
        write_name(&stream.name, out);
        (stream.topics().len() as u32).write(out);
        stream.topics().for_each(|topic| write_topic(topic, out));
    }
}

fn write_topic(topic: &Topic, out: &mut Vec<u8>) {
    topic.id.0.write(out);
    topic.created_op.0.write(out);
    topic.created_at.0.write(out);
    write_name(&topic.name, out);
    let explicit = encode_options(topic.options.explicit());
    (explicit.len() as u32).write(out);
    out.extend_from_slice(&explicit);
    (topic.partitions.len() as u32).write(out);
    for slot in topic.partitions.iter() {
        slot.uid.0.write(out);
        slot.created_at.0.write(out);
    }
    topic.groups.next_id().write(out);
    (topic.groups.len() as u32).write(out);
    for group in topic.groups.iter() {
        write_group(group, out);
    }
}

fn write_group(group: &Group, out: &mut Vec<u8>) {
    group.id.write(out);
    group.generation.write(out);
    write_name(&group.name, out);
    (group.members().len() as u32).write(out);
    for (slot, client) in group.members() {
        slot.write(out);
        client.0.write(out);
    }
    for owner in group.owners() {
        owner.map_or(0, |slot| slot + 1).write(out);
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    let name = Name::new(name).expect("kept names came in as names");
    name.write(out);
}

pub(super) fn read(
    users: &mut Section<'_>,
    streams: &mut Section<'_>,
) -> Result<Catalog, RestoreError> {
    let users_read = read_users(users)?;
    let streams_read = read_streams(streams)?;
    let catalog = Catalog::assemble(users_read, streams_read);
    catalog.ok_or_else(|| streams.refuse("a name of a user or stream stands twice"))
}

fn read_users(section: &mut Section<'_>) -> Result<Vec<User>, RestoreError> {
    let mut users = Vec::new();
    let mut before = None;
    for _ in 0..section.count(USER_BYTES_MIN)? {
        let id: u32 = section.read()?;
        section.require(
            id < USERS_MAX && rises(&mut before, id),
            "user ids do not rise",
        )?;
        users.push(User {
            id: UserId(id),
            created_op: Op(section.read()?),
            created_at: Timestamp(section.read()?),
            name: read_name(section)?,
            status: section.read::<UserStatus>()?,
            credential_version: section.read()?,
            password_hash: PasswordHash(Arc::from(section.read::<Text32<'_>>()?.0)),
            permissions: section.read::<PermissionsTail>()?.0,
        });
    }
    Ok(users)
}

fn read_streams(section: &mut Section<'_>) -> Result<Vec<Stream>, RestoreError> {
    let mut streams = Vec::new();
    let mut before = None;
    for _ in 0..section.count(STREAM_BYTES_MIN)? {
        let id: u32 = section.read()?;
        section.require(
            id < STREAMS_MAX && rises(&mut before, id),
            "stream ids do not rise",
        )?;
        let created_op = Op(section.read()?);
        let created_at = Timestamp(section.read()?);
        let name = read_name(section)?;
        let topics = read_topics(section)?;
        let stream = Stream::assemble(StreamId(id), created_op, created_at, name, topics);
        let stream = stream.ok_or_else(|| section.refuse("a topic's name stands twice"))?;
        streams.push(stream);
    }
    Ok(streams)
}

fn read_topics(section: &mut Section<'_>) -> Result<Vec<Topic>, RestoreError> {
    let mut topics = Vec::new();
    let mut before = None;
    for _ in 0..section.count(TOPIC_BYTES_MIN)? {
        let id: u32 = section.read()?;
        let in_bounds = id < TOPICS_PER_STREAM_MAX;
        section.require(in_bounds && rises(&mut before, id), "topic ids do not rise")?;
        let mut topic = Topic {
            id: TopicId(id),
            created_op: Op(section.read()?),
            created_at: Timestamp(section.read()?),
            name: read_name(section)?,
            options: read_options(section)?,
            partitions: read_slots(section)?,
            groups: Groups::default(),
        };
        topic.groups = read_groups(section, topic.partitions.len())?;
        topics.push(topic);
    }
    Ok(topics)
}

fn read_groups(section: &mut Section<'_>, partitions: usize) -> Result<Groups, RestoreError> {
    let next_id: u32 = section.read()?;
    let mut groups = Vec::new();
    let mut before = None;
    for _ in 0..section.count(GROUP_BYTES_MIN)? {
        let group = read_group(section, partitions)?;
        section.require(rises(&mut before, group.id), "group ids do not rise")?;
        groups.push(group);
    }
    let groups = Groups::assemble(next_id, groups);
    groups.ok_or_else(|| section.refuse("a group's id or name is not possible"))
}

fn read_group(section: &mut Section<'_>, partitions: usize) -> Result<Group, RestoreError> {
    let id: u32 = section.read()?;
    let generation: u64 = section.read()?;
    let name = read_name(section)?;
    let mut members = BTreeMap::new();
    let mut before = None;
    for _ in 0..section.count(MEMBER_BYTES)? {
        let slot: u32 = section.read()?;
        section.require(rises(&mut before, slot), "slots of a group do not rise")?;
        members.insert(slot, ClientId(section.read()?));
    }
    let mut owners = Vec::new();
    for _ in 0..partitions {
        owners.push(section.read::<u32>()?.checked_sub(1));
    }
    let group = Group::assemble(id, name, generation, members, owners);
    group.ok_or_else(|| section.refuse("members or owners of a group are not possible"))
}

fn read_options(section: &mut Section<'_>) -> Result<TopicOptions, RestoreError> {
    let OptionsBlock(block) = section.read()?;
    let explicit = keep_options(&block);
    let canonical = encode_options(&explicit) == block.as_bytes();
    section.require(canonical, "options are not in order")?;
    let options = TopicOptions::restore(explicit);
    options.map_err(|_| section.refuse("an option's value is not possible"))
}

fn read_slots(section: &mut Section<'_>) -> Result<Arc<[PartitionSlot]>, RestoreError> {
    let count = section.count(SLOT_BYTES)?;
    let in_bounds = count <= PARTITIONS_PER_TOPIC_MAX as usize;
    section.require(in_bounds, "a topic has too many partitions")?;
    let mut slots = Vec::with_capacity(count);
    for _ in 0..count {
        slots.push(PartitionSlot {
            uid: PartitionUid(section.read()?),
            created_at: Timestamp(section.read()?),
        });
    }
    Ok(slots.into())
}

fn read_name(section: &mut Section<'_>) -> Result<Arc<str>, RestoreError> {
    Ok(Arc::from(section.read::<Name<'_>>()?.as_str()))
}
