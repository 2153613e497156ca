//! Consumer groups: create, delete, join, leave, and the end of a member's session.

use pawl_wire::commands::groups::{CreateGroup, DeleteGroup, JoinGroup, LeaveGroup};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{ClientId, StreamId, TopicId};
use pawl_wire::primitives::{ConsumerKind, Identifier};

use super::request::{Executed, Execution};
use crate::catalog::Topic;
use crate::catalog::rights::Action;
use crate::check::decode;
use crate::effect::Effect;
use crate::groups::{Group, GroupKey, Groups};
use crate::limits::GROUPS_PER_TOPIC_MAX;
use crate::machine::PawlMachine;
use crate::offsets::OffsetKey;

impl PawlMachine {
    pub(super) fn create_group(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<CreateGroup<'_>>(execution.body)?;
        let (stream, topic) = self.readable_topic(&execution, request.stream, request.topic)?;
        let found = self.topic_groups(stream, topic);
        if found.get(Identifier::Named(request.name)).is_some() {
            return Err(ErrorCode::ConsumerGroupNameAlreadyExists);
        }
        if found.len() >= GROUPS_PER_TOPIC_MAX {
            return Err(ErrorCode::InvalidCommand);
        }
        let name = request.name.as_str();
        let id = self.change_groups(stream, topic, |groups, partitions| {
            groups.create(name, partitions)
        });
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.success_with(|out| {
            let written = self.write_group_details(stream, topic, id, out);
            assert!(written, "the group was just made");
        }))
    }

    pub(super) fn delete_group(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<DeleteGroup<'_>>(execution.body)?;
        let key = self.readable_group(&execution, request.stream, request.topic, request.group)?;
        let (stream, topic, id) = key;
        let removed = self.change_groups(stream, topic, |groups, _| groups.remove(id));
        for (_, client) in removed.members() {
            self.memberships.remove(client, key);
        }
        self.delete_group_offsets(stream, topic, id);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    // spec SES-34
    pub(super) fn join_group(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<JoinGroup<'_>>(execution.body)?;
        let key = self.readable_group(&execution, request.stream, request.topic, request.group)?;
        let client = execution.header.client();
        if self.change_group(key, |group| group.join(client)) {
            self.memberships.add(client, key);
            execution.effects.push(Effect::CatalogChanged);
        }
        Ok(execution.reply.empty())
    }

    // spec SES-34
    pub(super) fn leave_group(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<LeaveGroup<'_>>(execution.body)?;
        let key = self.readable_group(&execution, request.stream, request.topic, request.group)?;
        let client = execution.header.client();
        if !self.change_group(key, |group| group.leave(client)) {
            return Err(ErrorCode::ConsumerGroupMemberNotFound);
        }
        self.memberships.remove(client, key);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    /// A session has ended: so have its memberships.
    // spec SES-33
    pub(super) fn end_memberships(&mut self, client: ClientId, effects: &mut Vec<Effect>) {
        let groups = self.memberships.take(client);
        if groups.is_empty() {
            return;
        }
        for key in groups {
            self.change_group(key, |group| group.leave(client));
        }
        effects.push(Effect::CatalogChanged);
    }

    /// A topic is about to go, and with it its groups.
    pub(super) fn end_groups_of(&mut self, stream: StreamId, topic: TopicId) {
        let groups = self.topic_groups(stream, topic).clone();
        for group in groups.iter() {
            for (_, client) in group.members() {
                self.memberships.remove(client, (stream, topic, group.id));
            }
        }
    }

    /// Whether a client may write the offset of a group in a partition (5009 where not).
    // spec SES-35
    pub(super) fn owns_offset(
        &self,
        client: ClientId,
        (stream, topic): (StreamId, TopicId),
        partition: u32,
        group: u32,
    ) -> Result<(), ErrorCode> {
        let groups = self.topic_groups(stream, topic);
        let group = groups.by_id(group);
        let group = group.ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        match group.owns(client, partition) {
            true => Ok(()),
            false => Err(ErrorCode::ConsumerGroupPartitionNotOwned),
        }
    }

    /// The topic that a request names, if its sender may read it: what every group command needs.
    fn readable_topic(
        &self,
        execution: &Execution<'_>,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
    ) -> Result<(StreamId, TopicId), ErrorCode> {
        let (stream, topic) = self.catalog.topic(stream, topic)?;
        let (stream, topic) = (stream.id, topic.id);
        self.authorise(execution.header, Action::ReadTopic(stream, topic))?;
        Ok((stream, topic))
    }

    fn readable_group(
        &self,
        execution: &Execution<'_>,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
        group: Identifier<'_>,
    ) -> Result<GroupKey, ErrorCode> {
        let (stream, topic) = self.readable_topic(execution, stream, topic)?;
        let group = self.topic_groups(stream, topic).get(group);
        let group = group.ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        Ok((stream, topic, group.id))
    }

    fn topic_groups(&self, stream: StreamId, topic: TopicId) -> &Groups {
        let topic = self.catalog.topic_by_id(stream, topic);
        &topic.expect("the topic was found before").groups
    }

    fn change_groups<T>(
        &mut self,
        stream: StreamId,
        topic: TopicId,
        change: impl FnOnce(&mut Groups, usize) -> T,
    ) -> T {
        let found = self.catalog.topic_by_id(stream, topic);
        let mut topic = Topic::clone(found.expect("the topic was found before"));
        let changed = change(&mut topic.groups, topic.partitions.len());
        self.catalog.replace_topic(stream, topic);
        changed
    }

    fn change_group<T>(
        &mut self,
        (stream, topic, id): GroupKey,
        change: impl FnOnce(&mut Group) -> T,
    ) -> T {
        self.change_groups(stream, topic, |groups, _| groups.change(id, change))
    }

    /// The progress of a group goes with it; its number never comes back.
    fn delete_group_offsets(&mut self, stream: StreamId, topic: TopicId, group: u32) {
        let topic = self.catalog.topic_by_id(stream, topic);
        let slots = topic
            .expect("the topic was found before")
            .partitions
            .clone();
        for slot in slots.iter() {
            self.offsets.delete(OffsetKey {
                partition: slot.uid,
                kind: ConsumerKind::Group,
                consumer: group,
            });
        }
    }
}
