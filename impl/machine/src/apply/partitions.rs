//! Partitions at the end of a topic, and segments at the start of a partition.

use std::sync::Arc;

use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions, DeleteSegments};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{PartitionId, StreamId};

use super::request::{Executed, Execution};
use super::topics::new_slots;
use crate::catalog::rights::Action;
use crate::catalog::{PartitionSlot, Topic};
use crate::check::{decode, partitions_count};
use crate::effect::Effect;
use crate::limits::PARTITIONS_PER_TOPIC_MAX;
use crate::machine::PawlMachine;
use crate::partitions::PartitionPlace;

impl PawlMachine {
    pub(super) fn create_partitions(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<CreatePartitions<'_>>(execution.body)?;
        let (stream, topic) = self.catalog.topic(request.stream, request.topic)?;
        let stream = stream.id;
        self.authorise(execution.header, Action::ManageTopic(stream, topic.id))?;
        partitions_count(request.count, 1)?;
        let before = topic.partitions.len() as u32;
        if request.count > PARTITIONS_PER_TOPIC_MAX - before {
            return Err(ErrorCode::PartitionIdSpaceExhausted);
        }
        let topic = Topic::clone(topic);
        let slots = new_slots(execution.header, request.count);
        let segment_size = topic.options.segment_size;
        for (id, slot) in (before..).zip(slots.iter()) {
            let place = PartitionPlace {
                stream,
                topic: topic.id,
                partition: PartitionId(id),
                segment_size,
            };
            self.create_partition(slot.uid, place, execution.effects);
        }
        let partitions = topic
            .partitions
            .iter()
            .chain(slots.iter())
            .copied()
            .collect();
        self.replace_partitions(stream, topic, partitions);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    /// A topic has these partitions now; its groups are dealt anew.
    // spec SES-34
    fn replace_partitions(
        &mut self,
        stream: StreamId,
        mut topic: Topic,
        partitions: Arc<[PartitionSlot]>,
    ) {
        topic.groups.resize(partitions.len());
        topic.partitions = partitions;
        self.catalog.replace_topic(stream, topic);
    }

    pub(super) fn delete_partitions(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<DeletePartitions<'_>>(execution.body)?;
        let (stream, topic) = self.catalog.topic(request.stream, request.topic)?;
        let stream = stream.id;
        self.authorise(execution.header, Action::ManageTopic(stream, topic.id))?;
        partitions_count(request.count, 1)?;
        let topic = Topic::clone(topic);
        let left = topic.partitions.len().checked_sub(request.count as usize);
        let left = left.ok_or(ErrorCode::InvalidPartitionsCount)?;
        for slot in &topic.partitions[left..] {
            self.drop_partition(slot.uid, execution.effects);
        }
        let partitions = topic.partitions[..left].into();
        self.replace_partitions(stream, topic, partitions);
        execution.effects.push(Effect::CatalogChanged);
        Ok(execution.reply.empty())
    }

    /// Deletes the oldest sealed segments; that there is none is a success.
    pub(super) fn delete_segments(&mut self, execution: Execution<'_>) -> Executed {
        let request = decode::<DeleteSegments<'_>>(execution.body)?;
        self.managed_topic(&execution, request.stream, request.topic)?;
        let (stream, topic) = (request.stream, request.topic);
        let uid = self
            .catalog
            .partition(stream, topic, request.partition)?
            .uid;
        if let Some(first_offset) = self.partitions.trim(uid, request.segments) {
            execution
                .effects
                .push(Effect::Trimmed { uid, first_offset });
        }
        Ok(execution.reply.empty())
    }
}
