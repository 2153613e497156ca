//! What a client asks for next, and what a single execution of it gives. Pure.

use std::collections::BTreeMap;
use std::fmt;

use pawl_wire::command::CommandCode;
use pawl_wire::commands::messages::{SendMessages, SendReply};
use pawl_wire::commands::offsets::StoreOffset;
use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions};
use pawl_wire::commands::streams::{self, CreateStream, DeleteStream, UpdateStream};
use pawl_wire::commands::topics::{CreateTopic, DeleteTopic, TopicDetails, UpdateTopic};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::options::Options;
use pawl_wire::primitives::{
    AckLevel, Consumer, Identifier, Name, OptionalPartition, Partitioning, Wire,
};

use super::catalog::Catalog;
use super::ledger::Batch;
use super::message::{self, MessageKey};
use super::random::Random;
use super::{SHARED_PARTITIONS, SHARED_STREAM, SHARED_TOPIC};
use crate::client::{AnswerFrame, ClientError, Request};

/// Most messages of a batch.
const BATCH_MAX: u64 = 8;

/// A client keeps about this many streams of its own.
const STREAMS_MAX: usize = 3;

/// One write.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the variants are the dialect's commands")]
pub enum Action {
    Produce(Batch),
    /// Under the consumer that has the client's number.
    StoreOffset {
        partition: u32,
        offset: u64,
    },
    CreateStream {
        name: String,
    },
    /// Creates a stream whose name is taken: the committed refusal is the outcome.
    CreateTaken {
        name: String,
    },
    RenameStream {
        name: String,
        to: String,
    },
    DeleteStream {
        name: String,
    },
    CreateTopic {
        stream: String,
        name: String,
        partitions: u32,
    },
    RenameTopic {
        stream: String,
        name: String,
        to: String,
    },
    DeleteTopic {
        stream: String,
        name: String,
    },
    CreatePartitions {
        stream: String,
        topic: String,
        count: u32,
    },
    DeletePartitions {
        stream: String,
        topic: String,
        count: u32,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Produce(batch) => write!(
                f,
                "send {} messages from {} on to partition {}",
                batch.count, batch.first.sequence, batch.partition
            ),
            other => write!(f, "{other:?}"),
        }
    }
}

/// What an answered action says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Messages are confirmed from this offset on.
    Confirmed(Batch, u64),
    /// A metadata or offset write took effect, or was refused as it must be.
    Done,
}

/// An answer that no single execution gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongOutcome {
    /// What a single execution gives.
    pub expected: String,
    /// What came.
    pub answered: String,
}

/// One client: what it has been told, and what it asks next.
#[derive(Clone, Debug)]
pub struct Workload {
    seed: u64,
    client: u16,
    random: Random,
    /// The streams of this client by the answers so far.
    pub catalog: Catalog,
    /// Its stored offsets by the answers so far.
    pub stored: BTreeMap<u32, u64>,
    /// The highest offset confirmed to it, by partition.
    confirmed: BTreeMap<u32, u64>,
    sequence: u64,
    names: u64,
    number: u64,
}

impl Workload {
    /// A client that has done nothing.
    pub fn new(seed: u64, client: u16) -> Workload {
        Workload {
            seed,
            client,
            random: Random::new(seed, 0x100 + client as u64),
            catalog: Catalog::default(),
            stored: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            sequence: 0,
            names: 0,
            number: 0,
        }
    }

    /// What the names of this client's streams begin with.
    pub fn prefix(client: u16) -> String {
        format!("c{client}-")
    }

    /// The next write. Numbers rise, with gaps now and then, as published clients leave them.
    pub fn next(&mut self) -> (Action, Request) {
        let action = match self.random.below(100) {
            0..84 => self.produce(),
            84..90 => self.store_offset(),
            _ => self.metadata(),
        };
        self.number += 1 + self.random.below(20) / 19;
        let request = self.request(&action);
        (action, request)
    }

    fn produce(&mut self) -> Action {
        let count = 1 + self.random.below(BATCH_MAX);
        let first = MessageKey {
            client: self.client,
            sequence: self.sequence,
        };
        self.sequence += count;
        Action::Produce(Batch {
            partition: self.random.below(SHARED_PARTITIONS.into()) as u32,
            first,
            count,
        })
    }

    fn store_offset(&mut self) -> Action {
        let known: Vec<(u32, u64)> = self.confirmed.iter().map(|(p, o)| (*p, *o)).collect();
        if known.is_empty() {
            return self.produce();
        }
        let (partition, newest) = known[self.random.below(known.len() as u64) as usize];
        let offset = self.random.below(newest + 1);
        Action::StoreOffset { partition, offset }
    }

    fn name(&mut self, kind: char) -> String {
        self.names += 1;
        format!("{}{kind}{}", Workload::prefix(self.client), self.names)
    }

    fn metadata(&mut self) -> Action {
        let names: Vec<String> = self.catalog.0.keys().cloned().collect();
        if names.is_empty() {
            return Action::CreateStream {
                name: self.name('s'),
            };
        }
        let name = names[self.random.below(names.len() as u64) as usize].clone();
        match self.random.below(12) {
            0..2 if names.len() < STREAMS_MAX => Action::CreateStream {
                name: self.name('s'),
            },
            0..2 => Action::DeleteStream { name },
            2 => Action::CreateTaken { name },
            3 => Action::RenameStream {
                name,
                to: self.name('s'),
            },
            _ => self.topic_action(name),
        }
    }

    fn topic_action(&mut self, stream: String) -> Action {
        let topics = self.catalog.0[&stream].topics.clone();
        let index = self.random.below(topics.len().max(1) as u64) as usize;
        let Some((name, topic)) = topics.into_iter().nth(index) else {
            return Action::CreateTopic {
                stream,
                name: self.name('t'),
                partitions: 1 + self.random.below(3) as u32,
            };
        };
        match self.random.below(8) {
            0 => Action::DeleteTopic { stream, name },
            1 => Action::RenameTopic {
                stream,
                name,
                to: self.name('t'),
            },
            2 => Action::CreateTopic {
                stream,
                name: self.name('t'),
                partitions: 1 + self.random.below(3) as u32,
            },
            3..5 if topic.partitions > 1 => Action::DeletePartitions {
                stream,
                topic: name,
                count: 1,
            },
            _ => Action::CreatePartitions {
                stream,
                topic: name,
                count: 1 + self.random.below(2) as u32,
            },
        }
    }

    fn request(&self, action: &Action) -> Request {
        let (code, body) = body(action, self.seed, self.client);
        Request::once(code, self.number, body)
    }

    /// Takes the answer to an action into account. The inner error is a finding; the outer one is
    /// an answer that settles nothing (transient refusals, damage), for the caller to judge.
    pub fn settle(
        &mut self,
        action: &Action,
        answer: &AnswerFrame,
    ) -> Result<Result<Effect, WrongOutcome>, ClientError> {
        let payload = match answer.success() {
            Ok((_, payload)) => payload,
            Err(ClientError::Refused(code)) => return Ok(self.settle_refusal(action, code)),
            Err(error) => return Err(error),
        };
        Ok(match action {
            Action::Produce(batch) => self.settle_produce(*batch, &SendReply::decode(payload)?),
            Action::StoreOffset { partition, offset } => {
                self.stored.insert(*partition, *offset);
                Ok(Effect::Done)
            }
            Action::CreateTaken { .. } => Err(WrongOutcome {
                expected: ErrorCode::StreamNameAlreadyExists.to_string(),
                answered: "success".to_owned(),
            }),
            Action::CreateStream { name } => {
                let stream = streams::Stream::decode(payload)?;
                self.created(action, name, stream.name, stream.id)
            }
            Action::CreateTopic { name, .. } => {
                let details = TopicDetails::decode(payload)?;
                self.created(action, name, details.topic.name, details.topic.id)
            }
            other => {
                self.catalog.apply(other, None);
                Ok(Effect::Done)
            }
        })
    }

    fn settle_refusal(&self, action: &Action, code: u32) -> Result<Effect, WrongOutcome> {
        let taken = ErrorCode::StreamNameAlreadyExists;
        let expected = match action {
            Action::CreateTaken { .. } if code == taken.code() => return Ok(Effect::Done),
            Action::CreateTaken { .. } => taken.to_string(),
            _ => "success".to_owned(),
        };
        Err(WrongOutcome {
            expected,
            answered: match ErrorCode::from_u32(code) {
                Some(code) => code.to_string(),
                None => code.to_string(),
            },
        })
    }

    fn settle_produce(&mut self, batch: Batch, reply: &SendReply) -> Result<Effect, WrongOutcome> {
        match reply.receipts[..] {
            [receipt] if receipt.partition == batch.partition => {
                let newest = receipt.base_offset + batch.count - 1;
                let entry = self.confirmed.entry(batch.partition).or_default();
                *entry = newest.max(*entry);
                Ok(Effect::Confirmed(batch, receipt.base_offset))
            }
            _ => Err(WrongOutcome {
                expected: format!("one receipt for partition {}", batch.partition),
                answered: format!("{reply:?}"),
            }),
        }
    }

    fn created(
        &mut self,
        action: &Action,
        name: &str,
        found: Name<'_>,
        id: u32,
    ) -> Result<Effect, WrongOutcome> {
        if found.as_str() != name {
            return Err(WrongOutcome {
                expected: name.to_owned(),
                answered: found.as_str().to_owned(),
            });
        }
        self.catalog.apply(action, Some(id));
        Ok(Effect::Done)
    }
}

fn named(name: &str) -> Identifier<'_> {
    Identifier::named(name).expect("the names of this test are short")
}

fn name(name: &str) -> Name<'_> {
    Name::new(name).expect("the names of this test are short")
}

fn options() -> Options<'static> {
    Options::new(&[]).expect("an empty block is well formed")
}

/// Code and body of an action.
fn body(action: &Action, seed: u64, client: u16) -> (CommandCode, Vec<u8>) {
    use CommandCode as Code;
    match action {
        Action::Produce(batch) => (Code::SendMessages, produce_body(seed, batch)),
        Action::StoreOffset { partition, offset } => {
            let store = StoreOffset {
                consumer: Consumer::Plain(Identifier::Numeric(client.into())),
                stream: named(SHARED_STREAM),
                topic: named(SHARED_TOPIC),
                partition: OptionalPartition(Some(*partition)),
                offset: *offset,
                ack: AckLevel::Quorum,
            };
            (Code::StoreOffset, store.encode())
        }
        Action::CreateStream { name: new } | Action::CreateTaken { name: new } => {
            (Code::CreateStream, create_stream_body(new))
        }
        Action::RenameStream { name: old, to } => {
            let update = UpdateStream {
                stream: named(old),
                name: name(to),
                options: options(),
            };
            (Code::UpdateStream, update.encode())
        }
        Action::DeleteStream { name } => {
            let stream = named(name);
            (Code::DeleteStream, DeleteStream { stream }.encode())
        }
        topic => topic_body(topic),
    }
}

/// Code and body of an action below a stream.
fn topic_body(action: &Action) -> (CommandCode, Vec<u8>) {
    use CommandCode as Code;
    match action {
        Action::CreateTopic {
            stream,
            name: new,
            partitions,
        } => (
            Code::CreateTopic,
            create_topic_body(stream, new, *partitions),
        ),
        Action::RenameTopic {
            stream,
            name: old,
            to,
        } => {
            let update = UpdateTopic {
                stream: named(stream),
                topic: named(old),
                name: name(to),
                options: options(),
            };
            (Code::UpdateTopic, update.encode())
        }
        Action::DeleteTopic { stream, name } => {
            let (stream, topic) = (named(stream), named(name));
            (Code::DeleteTopic, DeleteTopic { stream, topic }.encode())
        }
        Action::CreatePartitions {
            stream,
            topic,
            count,
        } => {
            let create = CreatePartitions {
                stream: named(stream),
                topic: named(topic),
                count: *count,
            };
            (Code::CreatePartitions, create.encode())
        }
        Action::DeletePartitions {
            stream,
            topic,
            count,
        } => {
            let delete = DeletePartitions {
                stream: named(stream),
                topic: named(topic),
                count: *count,
            };
            (Code::DeletePartitions, delete.encode())
        }
        other => unreachable!("{other} is not below a stream"),
    }
}

fn produce_body(seed: u64, batch: &Batch) -> Vec<u8> {
    let records = message::batch(seed, batch.first, batch.count, batch.first.sequence + 1);
    let send = SendMessages {
        stream: named(SHARED_STREAM),
        topic: named(SHARED_TOPIC),
        partitioning: Partitioning::Partition(batch.partition),
        messages_count: batch.count as u32,
        batch: &records,
    };
    send.encode()
}

/// The body that creates a stream.
pub fn create_stream_body(new: &str) -> Vec<u8> {
    let create = CreateStream {
        name: name(new),
        options: options(),
    };
    create.encode()
}

/// The body that creates a topic.
pub fn create_topic_body(stream: &str, new: &str, partitions: u32) -> Vec<u8> {
    let create = CreateTopic {
        stream: named(stream),
        partitions_count: partitions,
        name: name(new),
        options: options(),
    };
    create.encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pawl_wire::reply::Reply;

    fn refusal(request: &Request, code: ErrorCode) -> AnswerFrame {
        let frame = request.frame(1, 1);
        let header = pawl_wire::headers::RequestHeader::from_bytes(
            frame.first_chunk().expect("a whole header"),
        );
        AnswerFrame(Reply::to_request(&header, 9).rejected(code).to_vec())
    }

    #[test]
    fn every_kind_of_write_is_asked_for_and_numbers_rise() {
        let mut workload = Workload::new(1, 0);
        let mut codes = std::collections::BTreeSet::new();
        let mut number = 0;
        for _ in 0..5000 {
            let (action, request) = workload.next();
            assert!(request.number > number);
            number = request.number;
            codes.insert(request.code);
            workload.catalog.apply(&action, Some(0));
            if let Action::Produce(batch) = action {
                workload.confirmed.insert(batch.partition, 10);
            }
        }
        assert_eq!(codes.len(), 10);
    }

    #[test]
    fn a_doubled_metadata_write_is_found_by_its_refusal() {
        let mut workload = Workload::new(1, 0);
        let action = Action::CreateStream {
            name: "c0-s1".to_owned(),
        };
        let request = workload.request(&action);
        let answer = refusal(&request, ErrorCode::StreamNameAlreadyExists);
        let outcome = workload.settle(&action, &answer).expect("it settles");
        assert!(outcome.is_err());
        assert_eq!(workload.catalog, Catalog::default());
    }

    #[test]
    fn a_taken_name_must_be_refused() {
        let mut workload = Workload::new(1, 0);
        let action = Action::CreateTaken {
            name: "c0-s1".to_owned(),
        };
        let request = workload.request(&action);
        let answer = refusal(&request, ErrorCode::StreamNameAlreadyExists);
        assert_eq!(
            workload.settle(&action, &answer).expect("it settles"),
            Ok(Effect::Done)
        );
        let answer = refusal(&request, ErrorCode::StreamIdNotFound);
        assert!(
            workload
                .settle(&action, &answer)
                .expect("it settles")
                .is_err()
        );
    }
}
