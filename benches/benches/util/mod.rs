//! What the benches work on: frames as a client sends them, and a machine with clients and a topic.
#![allow(dead_code, reason = "each bench uses its part")]

use bytes::Bytes;
use pawl_machine::genesis::ClusterSecret;
use pawl_machine::{ClusterConstants, Effect, Genesis, PawlMachine};
use pawl_vsr::Machine;
use pawl_wire::batch_client::{Message, write_batch};
use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::messages::SendMessages;
use pawl_wire::commands::streams::CreateStream;
use pawl_wire::commands::topics::CreateTopic;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::{RegisterArguments, SendMessagesArguments};
use pawl_wire::headers::{RequestHeader, request_checksum};
use pawl_wire::ids::Timestamp;
use pawl_wire::options::Options;
use pawl_wire::primitives::{Identifier, Name, Partitioning, Wire};

/// Bytes of a message's payload.
pub const MESSAGE_BYTES: usize = 1000;

/// A batch of `count` messages, as a producer sends it.
pub fn batch(count: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..MESSAGE_BYTES).map(|at| (at * 31) as u8).collect();
    let message = Message {
        id: 7,
        origin_timestamp: 1,
        payload: &payload,
        user_headers: &[],
    };
    let mut bytes = Vec::new();
    write_batch(&vec![message; count], &mut bytes).expect("the messages are valid");
    bytes
}

/// The body of a send of `count` messages.
pub fn send_body(count: usize) -> Vec<u8> {
    SendMessages {
        stream: Identifier::Numeric(0),
        topic: Identifier::Numeric(0),
        partitioning: Partitioning::Partition(0),
        messages_count: count as u32,
        batch: &batch(count),
    }
    .encode()
}

/// The whole frame of a send of `count` messages.
pub fn send_frame(count: usize) -> Vec<u8> {
    let body = send_body(count);
    let header = RequestHeader {
        client: 1,
        session: 2,
        request: 1,
        ..RequestHeader::for_command(CommandCode::SendMessages, &body)
    };
    [header.as_bytes().as_slice(), &body].concat()
}

/// A machine and what is needed to apply the next op.
pub struct Log {
    /// The machine.
    pub machine: PawlMachine,
    effects: Vec<Effect>,
}

impl Log {
    /// A machine with `clients` signed-in clients (numbered from 1), a stream and a topic.
    pub fn new(clients: u32) -> Log {
        let mut log = Log {
            machine: PawlMachine::new(),
            effects: Vec::new(),
        };
        let genesis = Genesis {
            constants: ClusterConstants::default(),
            secret: ClusterSecret([9; 32]),
            root_name: "iggy".to_owned(),
            root_password_hash: "$argon2id$".to_owned(),
        };
        let body = genesis.encode().expect("it is valid");
        log.apply(EntryHeader::new(EntryKind::Genesis), &body.into());
        let root = log.machine.catalog().users().next().expect("root is there");
        let credential_version = root.credential_version;
        for client in 1..=clients {
            let arguments = RegisterArguments {
                credential_version,
                stamp: client.into(),
            };
            let header = EntryHeader {
                client: client.into(),
                arguments: arguments.encode(),
                ..EntryHeader::new(EntryKind::Register)
            };
            log.apply(header, &Bytes::new());
        }
        let name = Name::new("bench").expect("it is short");
        let options = Options::EMPTY;
        let stream = Command::CreateStream(CreateStream { name, options }).encode();
        log.apply(
            log.request(EntryKind::CreateStream, 1, 1, &stream),
            &stream.into(),
        );
        let topic = Command::CreateTopic(CreateTopic {
            stream: Identifier::Numeric(0),
            partitions_count: 1,
            name,
            options,
        })
        .encode();
        log.apply(
            log.request(EntryKind::CreateTopic, 1, 2, &topic),
            &topic.into(),
        );
        log
    }

    /// A request of a client, as admission sees it.
    pub fn request(&self, kind: EntryKind, client: u32, request: u64, body: &[u8]) -> EntryHeader {
        EntryHeader {
            client: client.into(),
            // Op 1 is the genesis, then the clients sign in one after another.
            epoch: 1 + u64::from(client),
            request,
            request_checksum: request_checksum(body),
            ..EntryHeader::new(kind)
        }
    }

    /// The header of a send of `count` messages by client 1.
    pub fn send(&self, count: u32) -> EntryHeader {
        let place =
            self.machine
                .catalog()
                .partition(Identifier::Numeric(0), Identifier::Numeric(0), 0);
        let place = place.expect("the topic has a partition");
        let arguments = SendMessagesArguments {
            partition_uid: place.uid,
            message_count: count,
            stream: place.stream,
            topic: place.topic,
            partition: place.partition,
            batch_length: 256 + u64::from(count) * (48 + MESSAGE_BYTES as u64),
            batch_position: 26,
            origin_timestamp: Timestamp(1),
        };
        EntryHeader {
            request_checksum: 0,
            arguments: arguments.encode(),
            ..self.request(EntryKind::SendMessages, 1, 3, &[])
        }
    }

    /// Applies the next op.
    pub fn apply(&mut self, mut header: EntryHeader, body: &Bytes) -> Bytes {
        header.op = self.machine.applied().0 + 1;
        header.timestamp = header.op;
        self.effects.clear();
        self.machine.apply(&header, body, &mut self.effects)
    }
}
