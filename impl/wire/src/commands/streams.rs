//! Streams (200 to 205).

use crate::commands::topics::TopicHeader;
use crate::layout::record;
use crate::options::{Options, OptionsBlock};
use crate::primitives::{Identifier, Name, Reader, Wire, WireError};

record! {
    /// Asks for one stream (200).
    #[derive(Copy, Eq)]
    pub struct GetStream<'a> {
        stream: Identifier<'a>,
    }

    /// Creates a stream (202).
    #[derive(Copy, Eq)]
    pub struct CreateStream<'a> {
        name: Name<'a>,
        options: Options<'a>,
    }

    /// Deletes a stream and everything below it (203).
    #[derive(Copy, Eq)]
    pub struct DeleteStream<'a> {
        stream: Identifier<'a>,
    }

    /// Renames a stream (204).
    #[derive(Copy, Eq)]
    pub struct UpdateStream<'a> {
        stream: Identifier<'a>,
        name: Name<'a>,
        options: Options<'a>,
    }

    /// Removes all messages of a stream (205).
    #[derive(Copy, Eq)]
    pub struct PurgeStream<'a> {
        stream: Identifier<'a>,
    }

    /// A stream in a list (201), and the answer to its creation (202).
    #[derive(Copy, Eq)]
    pub struct Stream<'a> {
        id: u32,
        /// µs
        created_at: u64,
        topics_count: u32,
        /// bytes
        size: u64,
        messages: u64,
        name: Name<'a>,
        options: OptionsBlock<'a>,
    }
}

/// A stream with its topics (200). `stream.topics_count` is the number of topics that follow.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct StreamDetails<'a> {
    pub stream: Stream<'a>,
    pub topics: Vec<TopicHeader<'a>>,
}

impl<'a> Wire<'a> for StreamDetails<'a> {
    const BYTES_MIN: usize = Stream::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let stream = Stream::read(reader)?;
        Ok(StreamDetails {
            stream,
            topics: reader.read_counted("topics", stream.topics_count)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        assert!(
            self.stream.topics_count as usize == self.topics.len(),
            "a stream's header counts the topics that follow"
        );
        self.stream.write(out);
        self.topics.iter().for_each(|topic| topic.write(out));
    }
}
