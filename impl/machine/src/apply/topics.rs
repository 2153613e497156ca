//! Topics: create, update, delete, purge.

use std::sync::Arc;

use pawl_wire::commands::topics::{CreateTopic, DeleteTopic, PurgeTopic, UpdateTopic};
use pawl_wire::entry::EntryHeader;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId};
use pawl_wire::primitives::Identifier;
use pawl_wire::topic_options::TopicOptions;

use super::request::{Executed, Execution};
use crate::catalog::rights::Action;
use crate::catalog::{NewTopic, PartitionSlot, Topic};
use crate::check::{decode, partitions_count, topic_options};
use crate::effect::Effect;
use crate::limits::TOPICS_PER_STREAM_MAX;
use crate::machine::PawlMachine;
use crate::partitions::{PartitionPlace, PartitionState};

impl PawlMachine {
    pub(super) fn create_topic(&mut self, execution: Execution<'_>) -> Executed {
        let Execution {
            header,
            reply,
            effects,
            ..
        } = execution;
        let request = decode::<CreateTopic<'_>>(execution.body)?;
        let stream = self.catalog.stream(request.stream)?;
        let stream_id = stream.id;
        self.authorise(execution.header, Action::CreateTopic(stream_id))?;
        let count = request.partitions_count;
        partitions_count(count, 0)?;
        let options = topic_options(TopicOptions::create(&request.options, count))?;
        if stream.topic(Identifier::Named(request.name)).is_some() {
            return Err(ErrorCode::TopicNameAlreadyExists);
        }
        if stream.topics().len() >= TOPICS_PER_STREAM_MAX as usize {
            return Err(ErrorCode::TooManyTopics);
        }
        let segment_size = options.segment_size;
        let partitions = new_slots(header, count);
        let topic = NewTopic {
            name: request.name.as_str(),
            op: header.op(),
            now: header.timestamp(),
            options,
            partitions: partitions.clone(),
        };
        let topic = self.catalog.insert_topic(stream_id, topic);
        for (id, slot) in (0..).zip(partitions.iter()) {
            let place = PartitionPlace {
                stream: stream_id,
                topic,
                partition: PartitionId(id),
                segment_size,
            };
            self.create_partition(slot.uid, place, effects);
        }
        effects.push(Effect::CatalogChanged);
        Ok(reply.success_with(|out| {
            let written = self.write_topic_details(stream_id, topic, out);
            assert!(written, "the topic was just made");
        }))
    }

    pub(super) fn update_topic(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<UpdateTopic<'_>>(execution.body)?;
        let (stream, topic) = self.catalog.topic(request.stream, request.topic)?;
        let stream_id = stream.id;
        self.authorise(execution.header, Action::ManageTopic(stream_id, topic.id))?;
        let options = topic_options(topic.options.updated(&request.options))?;
        let namesake = stream.topic(Identifier::Named(request.name));
        if namesake.is_some_and(|namesake| namesake.id != topic.id) {
            return Err(ErrorCode::TopicNameAlreadyExists);
        }
        let changed = Topic {
            name: Arc::from(request.name.as_str()),
            options,
            ..Topic::clone(topic)
        };
        self.catalog.replace_topic(stream_id, changed);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    pub(super) fn delete_topic(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<DeleteTopic<'_>>(execution.body)?;
        let (stream, topic) = self.managed_topic(&execution, request.stream, request.topic)?;
        self.drop_topic_data(stream, topic, execution.effects);
        self.catalog.remove_topic(stream, topic);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    pub(super) fn purge_topic(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<PurgeTopic<'_>>(execution.body)?;
        let (stream, topic) = self.managed_topic(&execution, request.stream, request.topic)?;
        self.purge_topic_data(stream, topic, execution.effects);
        Ok(execution.reply.empty())
    }

    /// The topic that a request names, if its sender may manage it.
    pub(super) fn managed_topic(
        &self,
        execution: &Execution<'_>,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
    ) -> Result<(StreamId, TopicId), ErrorCode> {
        let (stream, topic) = self.catalog.topic(stream, topic)?;
        let (stream, topic) = (stream.id, topic.id);
        self.authorise(execution.header, Action::ManageTopic(stream, topic))?;
        Ok((stream, topic))
    }

    /// Begins a partition.
    pub(super) fn create_partition(
        &mut self,
        uid: PartitionUid,
        place: PartitionPlace,
        effects: &mut Vec<Effect>,
    ) {
        let state = PartitionState::empty(place, self.applied);
        self.partitions.insert(uid, state);
        effects.push(Effect::PartitionCreated {
            uid,
            stream: place.stream,
            topic: place.topic,
            partition: place.partition,
        });
    }

    /// Ends a partition with its messages and offsets.
    pub(super) fn drop_partition(&mut self, uid: PartitionUid, effects: &mut Vec<Effect>) {
        self.partitions.remove(uid);
        self.offsets.delete_partition(uid);
        effects.push(Effect::PartitionDropped { uid });
    }

    /// Ends all partitions of a topic that is about to go.
    pub(super) fn drop_topic_data(
        &mut self,
        stream: StreamId,
        topic: TopicId,
        effects: &mut Vec<Effect>,
    ) {
        self.end_groups_of(stream, topic);
        for slot in self.slots_of(stream, topic).iter() {
            self.drop_partition(slot.uid, effects);
        }
    }

    /// Removes all messages and stored offsets of a topic.
    pub(super) fn purge_topic_data(
        &mut self,
        stream: StreamId,
        topic: TopicId,
        effects: &mut Vec<Effect>,
    ) {
        let op = self.applied;
        for slot in self.slots_of(stream, topic).iter() {
            self.partitions.purge(slot.uid, op);
            self.offsets.delete_partition(slot.uid);
            effects.push(Effect::PartitionPurged { uid: slot.uid, op });
        }
    }

    /// The partitions of a topic.
    fn slots_of(&self, stream: StreamId, topic: TopicId) -> Arc<[PartitionSlot]> {
        let topic = self.catalog.topic_by_id(stream, topic);
        topic
            .expect("the topic was found before")
            .partitions
            .clone()
    }
}

/// Identities of partitions that this op creates.
pub(super) fn new_slots(header: &EntryHeader, count: u32) -> Arc<[PartitionSlot]> {
    let slot = |index| PartitionSlot {
        uid: PartitionUid::new(header.op(), index),
        created_at: header.timestamp(),
    };
    let count = u16::try_from(count).expect("a request creates at most as many as its limit");
    (0..count).map(slot).collect()
}
