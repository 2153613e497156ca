//! Everything that can be read from a node, in the form in which it is compared.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pawl_wire::batch_client::PolledBatches;
use pawl_wire::command::CommandCode;
use pawl_wire::commands::messages::{PollMessages, PollReply};
use pawl_wire::commands::offsets::{GetOffset, OffsetReply};
use pawl_wire::commands::streams::{self, GetStream, StreamDetails};
use pawl_wire::commands::topics::{GetTopic, TopicDetails};
use pawl_wire::primitives::{
    Consumer, Empty, Identifier, OptionalPartition, OrEmpty, PollingStrategy, ToEnd,
};
use xxhash_rust::xxh3::Xxh3Default;

use super::catalog::{Catalog, Stream, Topic};
use super::ledger::Observed;
use super::message::Content;
use super::violation::Violation;
use super::{SHARED_PARTITIONS, SHARED_STREAM, SHARED_TOPIC};
use crate::client::{ClientError, Credentials, Session};

/// Identity under which everything is read.
const OBSERVER: u128 = 0x6f62_7365_7276_6572;

/// Messages asked for in one poll.
const POLL_COUNT: u32 = 1000;

/// What a node shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// The messages of each shared partition.
    pub partitions: Vec<Vec<Observed>>,
    /// All streams but the shared one.
    pub catalog: Catalog,
    /// Stored offsets of each client, by partition.
    pub stored: Vec<BTreeMap<u32, u64>>,
    /// Over all that was read, times and sizes included.
    pub digest: u64,
}

impl Observation {
    /// Messages read.
    pub fn messages(&self) -> u64 {
        self.partitions
            .iter()
            .map(|messages| messages.len() as u64)
            .sum()
    }

    /// What differs from another observation, in words.
    pub fn difference(&self, other: &Observation) -> Option<String> {
        for (partition, (left, right)) in self.partitions.iter().zip(&other.partitions).enumerate()
        {
            if left != right {
                let (left, right) = (left.len(), right.len());
                let text = format!("the messages of partition {partition} ({left}, now {right})");
                return Some(text);
            }
        }
        if self.catalog != other.catalog {
            let (left, right) = (self.catalog.describe(), other.catalog.describe());
            return Some(format!("the catalog: {left}, now {right}"));
        }
        if self.stored != other.stored {
            return Some("the stored offsets".to_owned());
        }
        (self.digest != other.digest).then(|| "times, sizes or counts".to_owned())
    }
}

/// Reads everything. Reading changes nothing but signs the observer in.
pub fn observe(address: SocketAddr, clients: u16) -> Result<Observation, Violation> {
    let mut reader = Reader {
        session: Session::open(address, OBSERVER, &Credentials::root()).map_err(malformed)?,
        digest: Xxh3Default::new(),
    };
    let mut partitions = Vec::new();
    for partition in 0..SHARED_PARTITIONS {
        partitions.push(reader.partition(partition)?);
    }
    let catalog = reader.catalog().map_err(malformed)?;
    let mut stored = Vec::new();
    for client in 0..clients {
        stored.push(reader.stored(client).map_err(malformed)?);
    }
    Ok(Observation {
        partitions,
        catalog,
        stored,
        digest: reader.digest.digest(),
    })
}

fn malformed(error: impl std::fmt::Display) -> Violation {
    Violation::Malformed(error.to_string())
}

fn shared() -> (Identifier<'static>, Identifier<'static>) {
    let named = |name| Identifier::named(name).expect("a short name");
    (named(SHARED_STREAM), named(SHARED_TOPIC))
}

struct Reader {
    session: Session,
    digest: Xxh3Default,
}

impl Reader {
    fn number(&mut self, value: u64) {
        self.digest.update(&value.to_le_bytes());
    }

    fn partition(&mut self, partition: u32) -> Result<Vec<Observed>, Violation> {
        let mut messages: Vec<Observed> = Vec::new();
        loop {
            let before = messages.len();
            self.poll(partition, before as u64, &mut messages)?;
            if messages.len() == before {
                return Ok(messages);
            }
        }
    }

    /// Appends the messages from `offset` on.
    fn poll(
        &mut self,
        partition: u32,
        offset: u64,
        messages: &mut Vec<Observed>,
    ) -> Result<(), Violation> {
        let (stream, topic) = shared();
        let poll = PollMessages {
            consumer: Consumer::Plain(Identifier::Numeric(u32::MAX)),
            stream,
            topic,
            partition: OptionalPartition(Some(partition)),
            strategy: PollingStrategy::Offset(offset),
            count: POLL_COUNT,
            auto_commit: false,
        };
        let answer = self
            .session
            .read(CommandCode::PollMessages, &poll)
            .map_err(malformed)?;
        let reply: PollReply<'_> = answer.payload().map_err(malformed)?;
        let before = messages.len();
        for batch in PolledBatches::new(reply.records.0) {
            let batch = batch.map_err(malformed)?;
            let mut checksums = Vec::new();
            for message in batch.messages() {
                let message = message.map_err(malformed)?;
                let frame = message.frame;
                if frame.checksum() != frame.checksum_computed() {
                    return Err(malformed("a message checksum does not match"));
                }
                checksums.push(frame.checksum());
                let observed = Observed {
                    offset: message.offset,
                    id: frame.id(),
                    fingerprint: Content::fingerprint(frame.payload(), frame.user_headers()),
                };
                messages.push(observed);
                for value in [observed.offset, message.timestamp, message.origin_timestamp] {
                    self.number(value);
                }
                self.number(observed.fingerprint);
            }
            if batch.header.checksum_computed(&checksums) != batch.header.batch_checksum {
                return Err(malformed("a batch checksum does not match"));
            }
        }
        let found = (messages.len() - before) as u32;
        if reply.count != found || reply.partition != partition || found > POLL_COUNT {
            let (announced, asked) = (reply.count, partition);
            return Err(malformed(format!(
                "a poll of partition {asked} announced {announced} messages of partition {} and \
                 brought {found}",
                reply.partition
            )));
        }
        Ok(())
    }

    fn catalog(&mut self) -> Result<Catalog, ClientError> {
        let answer = self.session.read(CommandCode::GetStreams, &Empty {})?;
        let listed: ToEnd<streams::Stream<'_>> = answer.payload()?;
        let mut catalog = Catalog::default();
        for stream in listed.0 {
            for value in [
                stream.id.into(),
                stream.created_at,
                stream.size,
                stream.messages,
            ] {
                self.number(value);
            }
            let topics = self.topics(stream.id)?;
            let id = Some(stream.id);
            let name = stream.name.as_str().to_owned();
            catalog.0.insert(name, Stream { id, topics });
        }
        catalog.0.remove(SHARED_STREAM);
        Ok(catalog)
    }

    fn topics(&mut self, stream: u32) -> Result<BTreeMap<String, Topic>, ClientError> {
        let stream = Identifier::Numeric(stream);
        let answer = self
            .session
            .read(CommandCode::GetStream, &GetStream { stream })?;
        let details: OrEmpty<StreamDetails<'_>> = answer.payload()?;
        let mut topics = BTreeMap::new();
        for topic in details.0.map(|details| details.topics).unwrap_or_default() {
            let partitions = self.partitions_of(stream, Identifier::Numeric(topic.id))?;
            let id = Some(topic.id);
            topics.insert(topic.name.as_str().to_owned(), Topic { id, partitions });
            for value in [
                topic.id.into(),
                topic.created_at,
                topic.size,
                topic.messages,
            ] {
                self.number(value);
            }
        }
        Ok(topics)
    }

    /// The partitions of a topic, counted one by one.
    fn partitions_of(
        &mut self,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
    ) -> Result<u32, ClientError> {
        let answer = self
            .session
            .read(CommandCode::GetTopic, &GetTopic { stream, topic })?;
        let details: OrEmpty<TopicDetails<'_>> = answer.payload()?;
        let partitions = details
            .0
            .map(|details| details.partitions)
            .unwrap_or_default();
        for partition in &partitions {
            for value in [
                partition.created_at,
                partition.current_offset,
                partition.messages,
            ] {
                self.number(value);
            }
        }
        Ok(partitions.len() as u32)
    }

    fn stored(&mut self, client: u16) -> Result<BTreeMap<u32, u64>, ClientError> {
        let (stream, topic) = shared();
        let mut stored = BTreeMap::new();
        for partition in 0..SHARED_PARTITIONS {
            let get = GetOffset {
                consumer: Consumer::Plain(Identifier::Numeric(client.into())),
                stream,
                topic,
                partition: OptionalPartition(Some(partition)),
            };
            let answer = self.session.read(CommandCode::GetOffset, &get)?;
            let reply: OrEmpty<OffsetReply> = answer.payload()?;
            if let Some(reply) = reply.0 {
                stored.insert(partition, reply.stored);
            }
        }
        Ok(stored)
    }
}
