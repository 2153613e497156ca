//! Topics (300 to 305).

use crate::layout::{record, wire_enum};
use crate::options::{Options, OptionsBlock};
use crate::primitives::{Identifier, List, Name, Reader, Wire, WireError};

wire_enum! {
    /// How messages of a topic are compressed by their producers.
    pub enum CompressionAlgorithm: "a compression" {
        /// Not at all.
        None = 1,
        /// Gzip.
        Gzip = 2,
    }
}

record! {
    /// Asks for one topic (300).
    #[derive(Copy, Eq)]
    pub struct GetTopic<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
    }

    /// Asks for the topics of a stream (301).
    #[derive(Copy, Eq)]
    pub struct GetTopics<'a> {
        stream: Identifier<'a>,
    }

    /// Creates a topic (302).
    #[derive(Copy, Eq)]
    pub struct CreateTopic<'a> {
        stream: Identifier<'a>,
        partitions_count: u32,
        name: Name<'a>,
        options: Options<'a>,
    }

    /// Deletes a topic (303).
    #[derive(Copy, Eq)]
    pub struct DeleteTopic<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
    }

    /// Renames a topic and changes options; keys that are not sent keep their value (304).
    #[derive(Copy, Eq)]
    pub struct UpdateTopic<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
        name: Name<'a>,
        options: Options<'a>,
    }

    /// Removes all messages and stored offsets of a topic (305).
    #[derive(Copy, Eq)]
    pub struct PurgeTopic<'a> {
        stream: Identifier<'a>,
        topic: Identifier<'a>,
    }

    /// A topic in a list (301), in its stream (200) and at the head of its details (300, 302).
    #[derive(Copy, Eq)]
    pub struct TopicHeader<'a> {
        id: u32,
        /// µs
        created_at: u64,
        partitions_count: u32,
        /// µs; 2^64 − 1: never
        message_expiry: u64,
        compression: CompressionAlgorithm,
        /// bytes; 2^64 − 1: unlimited
        max_topic_size: u64,
        /// bytes
        size: u64,
        messages: u64,
        name: Name<'a>,
        /// Options that the client sent.
        explicit: OptionsBlock<'a>,
        /// Options that were filled in.
        derived: OptionsBlock<'a>,
    }

    /// A partition in its topic's details.
    #[derive(Copy, Eq)]
    pub struct Partition {
        id: u32,
        /// µs
        created_at: u64,
        segments_count: u32,
        /// Highest offset; 0 when empty
        current_offset: u64,
        /// bytes
        size: u64,
        messages: u64,
    }

    /// The topics of a stream (301).
    #[derive(Eq)]
    pub struct TopicsReply<'a> {
        topics: List<TopicHeader<'a>>,
    }
}

/// A topic with its partitions (300, 302). `topic.partitions_count` is the number that follows.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct TopicDetails<'a> {
    pub topic: TopicHeader<'a>,
    pub partitions: Vec<Partition>,
}

impl<'a> Wire<'a> for TopicDetails<'a> {
    const BYTES_MIN: usize = TopicHeader::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let topic = TopicHeader::read(reader)?;
        Ok(TopicDetails {
            topic,
            partitions: reader.read_counted("partitions", topic.partitions_count)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        assert!(
            self.topic.partitions_count as usize == self.partitions.len(),
            "a topic's header counts the partitions that follow"
        );
        self.topic.write(out);
        self.partitions
            .iter()
            .for_each(|partition| partition.write(out));
    }
}
