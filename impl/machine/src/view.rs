//! Payloads of the dialect's replies about streams and topics, made from applied state.
//!
//! Create replies and reads come from the same functions, so they cannot differ.

use pawl_wire::commands::groups::{
    Group as GroupRecord, GroupAssignment, GroupDetails, GroupMember,
};
use pawl_wire::commands::streams::Stream as StreamRecord;
use pawl_wire::commands::topics::{Partition as PartitionRecord, TopicHeader};
use pawl_wire::ids::{ClientId, StreamId, TopicId};
use pawl_wire::options::{Options, OptionsBlock, encode_options};
use pawl_wire::primitives::{List, Name, Wire};

use crate::catalog::{Stream, Topic};
use crate::groups::Group;
use crate::machine::PawlMachine;
use crate::query::PartitionView;

impl PawlMachine {
    /// Payload of a stream in a list (201), and of the reply to its creation (202).
    pub fn write_stream(&self, stream: &Stream, out: &mut Vec<u8>) {
        let totals = self.stream_totals(stream.id);
        let record = StreamRecord {
            id: stream.id.0,
            created_at: stream.created_at.0,
            topics_count: stream.topics().len() as u32,
            size: totals.bytes,
            messages: totals.messages,
            name: name(&stream.name),
            options: OptionsBlock(Options::EMPTY),
        };
        record.write(out);
    }

    /// Payload of a stream's details (200). Whether there is such a stream.
    pub fn write_stream_details(&self, stream: StreamId, out: &mut Vec<u8>) -> bool {
        let Some(stream) = self.catalog.stream_by_id(stream) else {
            return false;
        };
        self.write_stream(stream, out);
        for topic in stream.topics() {
            self.write_topic(stream.id, topic, out);
        }
        true
    }

    /// Payload of all streams (201).
    pub fn write_streams(&self, out: &mut Vec<u8>) {
        for stream in self.catalog.streams() {
            self.write_stream(stream, out);
        }
    }

    /// Payload of a topic in a list (301), in its stream (200) and at the head of its details.
    pub fn write_topic(&self, stream: StreamId, topic: &Topic, out: &mut Vec<u8>) {
        let totals = self.topic_totals(stream, topic.id);
        let explicit = encode_options(topic.options.explicit());
        let derived = encode_options(&topic.options.derived());
        let record = TopicHeader {
            id: topic.id.0,
            created_at: topic.created_at.0,
            partitions_count: topic.partitions.len() as u32,
            message_expiry: topic.options.message_expiry,
            compression: topic.options.compression,
            max_topic_size: topic.options.max_topic_size,
            size: totals.bytes,
            messages: totals.messages,
            name: name(&topic.name),
            explicit: OptionsBlock(Options::new(&explicit).expect("kept options are valid")),
            derived: OptionsBlock(Options::new(&derived).expect("kept options are valid")),
        };
        record.write(out);
    }

    /// Payload of a stream's topics (301): their count, then each; 0 where the stream is missing.
    pub fn write_topics(&self, stream: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.catalog.stream_by_id(stream) else {
            return 0u32.write(out);
        };
        (stream.topics().len() as u32).write(out);
        for topic in stream.topics() {
            self.write_topic(stream.id, topic, out);
        }
    }

    /// Payload of a topic's details (300, 302). Whether there is such a topic.
    pub fn write_topic_details(&self, stream: StreamId, topic: TopicId, out: &mut Vec<u8>) -> bool {
        let Some(topic) = self.catalog.topic_by_id(stream, topic) else {
            return false;
        };
        self.write_topic(stream, topic, out);
        for (id, slot) in topic.partitions.iter().enumerate() {
            let view = self
                .partition(slot.uid)
                .expect("the catalog names what exists");
            partition_record(id as u32, slot.created_at.0, view).write(out);
        }
        true
    }
}

impl PawlMachine {
    /// Payload of a group's details (600, 602). Whether there is such a group.
    pub fn write_group_details(
        &self,
        stream: StreamId,
        topic: TopicId,
        group: u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let topic = self.catalog.topic_by_id(stream, topic);
        let Some((topic, group)) = topic.and_then(|t| Some((t, t.groups.by_id(group)?))) else {
            return false;
        };
        let members = group.members().map(|(id, _)| GroupMember {
            id,
            partitions: List(group.partitions_of(id).collect()),
        });
        let details = GroupDetails {
            id: group.id,
            partitions_count: topic.partitions.len() as u32,
            name: name(&group.name),
            members: members.collect(),
        };
        details.write(out);
        true
    }

    /// Payload of a topic's groups (601).
    pub fn write_groups(&self, topic: &Topic, out: &mut Vec<u8>) {
        for group in topic.groups.iter() {
            let record = GroupRecord {
                id: group.id,
                partitions_count: topic.partitions.len() as u32,
                members_count: group.members().len() as u32,
                name: name(&group.name),
            };
            record.write(out);
        }
    }
}

/// Payload of a member's own assignment (606); nothing for a client that is not a member.
pub fn write_assignment(group: &Group, client: ClientId, out: &mut Vec<u8>) {
    if let Some(slot) = group.slot_of(client) {
        let assignment = GroupAssignment {
            generation: group.generation,
            partitions: List(group.partitions_of(slot).collect()),
        };
        assignment.write(out);
    }
}

/// A kept name as it travels.
fn name(text: &str) -> Name<'_> {
    Name::new(text).expect("kept names came in as names")
}

fn partition_record(id: u32, created_at: u64, view: PartitionView) -> PartitionRecord {
    PartitionRecord {
        id,
        created_at,
        segments_count: view.segments,
        current_offset: view.current_offset(),
        size: view.bytes,
        messages: view.messages,
    }
}
