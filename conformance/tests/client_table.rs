//! The client table of the machine against the executable definition, op by op.
//!
//! Random logs over few clients, stamps, numbers and checksums, with constants so small that every
//! bound is reached. After every op: equal entries, tombstones and answers; a kept reply is the
//! very bytes of the first one; what admission answers without an op is what the definition says
//! apply would; and a machine restored from its snapshot is the same machine.

use std::collections::BTreeMap;

use bytes::Bytes;
use pawl_machine::genesis::ClusterSecret;
use pawl_machine::{ClusterConstants, Genesis, PawlMachine};
use pawl_spec::{
    Act, Checksum, Client, Constants, Entry, Epoch, Login, Number, Op, Refusal, Request, Response,
    Stamp, Table, Time, UserNumber,
};
use pawl_vsr::machine::{Judgement, Machine};
use pawl_wire::commands::session::LoginReply;
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::{OffsetArguments, RegisterArguments, SendMessagesArguments};
use pawl_wire::headers::EvictionReason;
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, Timestamp, TopicId};
use pawl_wire::primitives::{ConsumerKind, Wire};
use pawl_wire::reply::Answer;
use proptest::prelude::*;

const CLIENTS: u128 = 5;
const ROOT: UserNumber = UserNumber(0);

/// Codes of the dialect that answer a request which was not executed.
const INVALID_COMMAND: u32 = 3;
const APPLIED_EARLIER: u32 = 59;

/// What a run does next; epochs are picked from those that it was granted.
#[derive(Clone, Debug)]
enum Step {
    Register {
        client: u128,
        stamp: u128,
        known_password: bool,
        earlier: Option<u8>,
    },
    Write {
        client: u128,
        epoch: u8,
        number: u64,
        checksum: u128,
        kind: EntryKind,
    },
    Logout {
        client: u128,
        epoch: u8,
    },
    Release {
        client: u128,
        epoch: u8,
    },
    Noop,
    Wait(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 1..=CLIENTS;
    let epoch = prop_oneof![4 => Just(0u8), 1 => 1..8u8, 1 => Just(255u8)];
    let kind = prop_oneof![
        Just(EntryKind::CreateStream),
        Just(EntryKind::DeleteStream),
        Just(EntryKind::SendMessages),
        Just(EntryKind::DeleteOffset),
    ];
    let write = (client.clone(), epoch.clone(), 1..6u64, 0..3u128, kind);
    let earlier = prop_oneof![4 => Just(None), 1 => (0..8u8).prop_map(Some)];
    let known = prop_oneof![9 => Just(true), 1 => Just(false)];
    let register = (client.clone(), 1..4u128, known, earlier);
    let owned = (client, epoch);
    prop_oneof![
        4 => register.prop_map(|(client, stamp, known_password, earlier)| Step::Register {
            client, stamp, known_password, earlier,
        }),
        8 => write.prop_map(|(client, epoch, number, checksum, kind)| Step::Write {
            client, epoch, number, checksum, kind,
        }),
        1 => owned.clone().prop_map(|(client, epoch)| Step::Logout { client, epoch }),
        2 => owned.prop_map(|(client, epoch)| Step::Release { client, epoch }),
        1 => Just(Step::Noop),
        1 => (1..40u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

fn constants() -> impl Strategy<Value = Constants> {
    (1..4usize, 1..3usize, 1..4usize, 0..30u64).prop_map(|(clients, ring, tombstones, grace)| {
        Constants {
            clients,
            ring,
            tombstones,
            grace,
            shards: 0,
        }
    })
}

/// The machine and the definition, fed with one log.
struct Pair {
    machine: PawlMachine,
    table: Table,
    frames: BTreeMap<Op, Bytes>,
    granted: Vec<(u128, u64)>,
    partition: PartitionUid,
    now: u64,
}

impl Pair {
    /// Both after Genesis, a stream and a topic with one partition, made by a client that left.
    fn new(constants: Constants) -> Pair {
        let genesis = Genesis {
            constants: ClusterConstants {
                reply_ring: constants.ring as u32,
                clients_max: constants.clients as u32,
                tombstones_max: constants.tombstones as u32,
                release_grace_us: constants.grace,
                ..ClusterConstants::default()
            },
            secret: ClusterSecret([7; 32]),
            root_name: "root".to_owned(),
            root_password_hash: "hash".to_owned(),
        };
        let body = Bytes::from(genesis.encode().expect("the constants are within bounds"));
        let mut header = EntryHeader::new(EntryKind::Genesis);
        header.set_body(&body);
        header.op = 1;
        header.timestamp = 1;
        let mut machine = PawlMachine::new();
        machine.apply(&header, &body, &mut Vec::new());
        let mut pair = Pair {
            machine,
            table: Table::genesis(constants, Time(1)),
            frames: BTreeMap::new(),
            granted: Vec::new(),
            partition: PartitionUid(0),
            now: 1,
        };
        pair.make_partition();
        pair
    }

    fn make_partition(&mut self) {
        let client = 99;
        self.register(client, 99, true, None);
        self.write(client, 0, 1, 0, EntryKind::CreateStream, b"\x01s");
        let topic = b"\x01\x04\0\0\0\0\x01\0\0\0\x01t";
        self.partition = PartitionUid::new(pawl_wire::ids::Op(self.next().0), 0);
        self.write(client, 0, 2, 0, EntryKind::CreateTopic, topic);
        self.logout(client, 0);
    }

    fn next(&self) -> Op {
        Op(self.table.applied.0 + 1)
    }

    /// 0: the latest granted to the client; 255: one that was never granted; else any.
    fn epoch(&self, client: u128, pick: u8) -> u64 {
        let of_client = |(c, _): &&(u128, u64)| *c == client;
        match pick {
            0 => self
                .granted
                .iter()
                .rev()
                .find(of_client)
                .map_or(1, |(_, epoch)| *epoch),
            255 => self.next().0 + 100,
            pick => self.granted[pick as usize % self.granted.len()].1,
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Register {
                client,
                stamp,
                known_password,
                earlier,
            } => self.register(client, stamp, known_password, earlier),
            Step::Write {
                client,
                epoch,
                number,
                checksum,
                kind,
            } => {
                let body: &[u8] = match kind {
                    EntryKind::CreateStream => b"\x02s2",
                    EntryKind::DeleteStream => b"\x02\x02s2",
                    _ => b"",
                };
                self.write(client, epoch, number, checksum, kind, body);
            }
            Step::Logout { client, epoch } => self.logout(client, epoch),
            Step::Release { client, epoch } => {
                let epoch = self.epoch(client, epoch);
                let mut header = self.header(EntryKind::Release, client);
                header.epoch = epoch;
                let act = Act::Release {
                    client: Client(client),
                    epoch: Epoch(epoch),
                };
                self.apply(header, b"", act);
            }
            Step::Noop => {
                let header = self.header(EntryKind::Noop, 0);
                self.apply(header, b"", Act::Noop);
            }
            Step::Wait(time) => self.now += time,
            Step::Restart => {
                let snapshot = self.machine.snapshot();
                let restored = PawlMachine::restore(&snapshot).expect("a snapshot of our own");
                assert!(
                    restored == self.machine,
                    "DED-14, REC-15: the snapshot is the machine"
                );
                self.machine = restored;
            }
        }
    }

    fn header(&self, kind: EntryKind, client: u128) -> EntryHeader {
        let mut header = EntryHeader::new(kind);
        header.client = client;
        header.op = self.next().0;
        header.timestamp = self.now;
        header
    }

    fn register(&mut self, client: u128, stamp: u128, known: bool, earlier: Option<u8>) {
        let earlier = earlier.map(|pick| self.epoch(client, pick));
        let mut header = self.header(EntryKind::Register, client);
        let credential_version = if known { 1 } else { 77 };
        header.arguments = RegisterArguments {
            credential_version,
            stamp,
        }
        .encode();
        let context = earlier.map_or(String::new(), |epoch| format!("pawl/1 epoch={epoch}"));
        let act = Act::Register(Login {
            client: Client(client),
            user: ROOT,
            credentials: Op(credential_version),
            stamp: Stamp(stamp),
            earlier: earlier.map(Epoch),
        });
        if let Response::Bound(epoch) = self.apply(header, context.as_bytes(), act) {
            self.granted.push((client, epoch.0));
        }
    }

    fn write(
        &mut self,
        client: u128,
        epoch: u8,
        number: u64,
        checksum: u128,
        kind: EntryKind,
        body: &[u8],
    ) {
        let epoch = self.epoch(client, epoch);
        let mut header = self.header(kind, client);
        header.epoch = epoch;
        header.request = number;
        header.request_checksum = checksum;
        match kind {
            EntryKind::SendMessages => header.arguments = self.send_arguments(),
            EntryKind::DeleteOffset => header.arguments = self.offset_arguments(),
            _ => (),
        }
        let act = Act::Request(Request {
            client: Client(client),
            epoch: Epoch(epoch),
            number: Number(number),
            checksum: Checksum(checksum),
            operation: kind as u8,
            partition_write: is_partition_write(kind),
            secret_reply: false,
            change: None,
        });
        self.apply(header, body, act);
    }

    fn send_arguments(&self) -> [u8; 64] {
        SendMessagesArguments {
            partition_uid: self.partition,
            message_count: 1,
            stream: StreamId(0),
            topic: TopicId(0),
            partition: PartitionId(0),
            batch_length: 400,
            batch_position: 0,
            origin_timestamp: Timestamp(1),
        }
        .encode()
    }

    fn offset_arguments(&self) -> [u8; 64] {
        OffsetArguments {
            partition_uid: self.partition,
            stream: StreamId(0),
            topic: TopicId(0),
            partition: PartitionId(0),
            consumer_kind: ConsumerKind::Plain,
            consumer_key: 1,
            offset: 0,
        }
        .encode()
    }

    fn logout(&mut self, client: u128, epoch: u8) {
        let epoch = self.epoch(client, epoch);
        let mut header = self.header(EntryKind::Logout, client);
        header.epoch = epoch;
        header.request = 9;
        let act = Act::Logout {
            client: Client(client),
            epoch: Epoch(epoch),
        };
        self.apply(header, b"", act);
    }

    /// One op to both.
    fn apply(&mut self, mut header: EntryHeader, body: &[u8], act: Act) -> Response {
        let body = Bytes::copy_from_slice(body);
        header.set_body(&body);
        self.check_admission(&header, &act);
        let op = self.next();
        let entry = Entry {
            time: Time(self.now),
            act,
        };
        let response = self.table.apply(op, &entry);
        self.table.check();
        let frame = self.machine.apply(&header, &body, &mut Vec::new());
        self.check_answer(op, &header, &frame, response);
        self.check_state();
        self.frames.insert(op, frame);
        response
    }

    /// SES-6: what is answered without an op is certain, and is what apply would answer.
    fn check_admission(&self, header: &EntryHeader, act: &Act) {
        let mut proposal = *header;
        proposal.op = 0;
        proposal.timestamp = 0;
        if let Judgement::Answer(frame) = self.machine.judge(&proposal) {
            let certain = self.table.certain(act);
            let certain = certain.expect("SES-6: only what changes nothing is answered");
            self.check_answer(self.next(), &proposal, &frame, certain);
        }
    }

    fn check_answer(&self, op: Op, header: &EntryHeader, frame: &Bytes, response: Response) {
        if response == Response::Nothing {
            assert!(frame.is_empty(), "nobody asked");
            return;
        }
        if let Response::Repeat(first) = response {
            assert_eq!(
                Some(frame),
                self.frames.get(&first),
                "DED-4: the same bytes"
            );
            return;
        }
        let answer = Answer::decode(frame).expect("an answer of our own");
        let told = told(op, header, &answer);
        assert_eq!(told, expected(response), "{op:?} {header:?}: {answer:?}");
    }

    /// Equal entries and equal tombstones.
    fn check_state(&self) {
        let clients = self.machine.clients();
        let entries: Vec<String> = clients
            .iter()
            .map(|(client, e)| {
                let ring = e
                    .ring
                    .iter()
                    .map(|r| (r.request.0, r.checksum, r.kind as u8));
                line(
                    client.0,
                    (e.epoch().0, e.owner.created_op.0, e.registration.stamp),
                    (e.watermark.0, e.watermark_checksum),
                    (
                        ring.collect(),
                        e.latest_commit.0,
                        e.released_at.map(|t| t.0),
                    ),
                )
            })
            .collect();
        let defined: Vec<String> = self
            .table
            .clients
            .table
            .iter()
            .map(|(client, e)| {
                let ring = e
                    .ring
                    .iter()
                    .map(|(n, kept)| (n.0, kept.checksum.0, kept.operation));
                line(
                    client.0,
                    (e.fence.epoch.0, e.fence.owner.0, e.fence.stamp.0),
                    mark(&e.fence),
                    (ring.collect(), e.latest.0, e.released.map(|t| t.0)),
                )
            })
            .collect();
        assert_eq!(entries, defined, "entries");
        let tombstones: Vec<_> = clients
            .tombstones()
            .iter()
            .map(|(client, t)| {
                let fence = (t.epoch.0, t.owner.created_op.0, t.stamp);
                let watermark = (t.watermark.0, t.watermark_checksum);
                (client.0, fence, watermark, t.made_at.0, t.by_logout)
            })
            .collect();
        let defined: Vec<_> = self
            .table
            .clients
            .tombstones
            .iter()
            .map(|(client, t)| {
                let fence = (t.fence.epoch.0, t.fence.owner.0, t.fence.stamp.0);
                (client.0, fence, mark(&t.fence), t.made.0, t.logout)
            })
            .collect();
        assert_eq!(tombstones, defined, "tombstones");
    }
}

type Ring = Vec<(u64, u128, u8)>;

/// An entry, printed alike for both sides.
fn line(
    client: u128,
    fence: (u64, u64, u128),
    watermark: (u64, u128),
    rest: (Ring, u64, Option<u64>),
) -> String {
    format!("{client} fence {fence:?} watermark {watermark:?} ring, latest, released {rest:?}")
}

fn mark(fence: &pawl_spec::Fence) -> (u64, u128) {
    fence
        .last
        .map_or((0, 0), |last| (last.number.0, last.checksum.0))
}

fn is_partition_write(kind: EntryKind) -> bool {
    use EntryKind::*;
    matches!(kind, SendMessages | StoreOffset | DeleteOffset)
}

/// An answer as the client understands it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Bound(u64),
    Executed,
    AppliedEarlier(u64),
    LoggedOut,
    Invalid,
    Evicted(u8),
}

fn told(op: Op, header: &EntryHeader, answer: &Answer<'_>) -> Told {
    match answer {
        Answer::Evicted(eviction) => {
            assert_eq!(eviction.client, header.client);
            Told::Evicted(eviction.reason)
        }
        Answer::Refused(reply, APPLIED_EARLIER) => Told::AppliedEarlier(reply.context as u64),
        Answer::Refused(reply, INVALID_COMMAND) => {
            assert_eq!(reply.op, 0, "no op stands behind it");
            Told::Invalid
        }
        Answer::Refused(reply, _) => {
            let of_partition = is_partition_write(header.entry_kind());
            assert!(
                reply.op == op.0 || of_partition,
                "ANS-8: a committed rejection"
            );
            assert_eq!(reply.request, header.request, "ANS-9");
            Told::Executed
        }
        Answer::Payload(_, body) if header.entry_kind() == EntryKind::Register => {
            let login = LoginReply::decode(body).expect("a login's reply");
            Told::Bound(login.session)
        }
        Answer::Payload(..) if header.entry_kind() == EntryKind::Logout => Told::LoggedOut,
        Answer::Payload(reply, _) => {
            assert_eq!((reply.op, reply.commit), (op.0, op.0), "ANS-10");
            Told::Executed
        }
    }
}

fn expected(response: Response) -> Told {
    let evicted = |reason: EvictionReason| Told::Evicted(reason as u8);
    match response {
        Response::Bound(epoch) => Told::Bound(epoch.0),
        Response::Executed => Told::Executed,
        Response::AppliedEarlier { watermark } => Told::AppliedEarlier(watermark.0),
        Response::LoggedOut => Told::LoggedOut,
        Response::Refused(Refusal::Credentials) => evicted(EvictionReason::InvalidCredentials),
        Response::Refused(Refusal::NotOwner) => evicted(EvictionReason::SessionError),
        Response::Refused(Refusal::Forgotten | Refusal::Evicted) => {
            evicted(EvictionReason::NoSession)
        }
        Response::Refused(Refusal::Fenced { .. }) => evicted(EvictionReason::SessionTooLow),
        Response::Refused(Refusal::EpochUnknown | Refusal::NumberReused) => Told::Invalid,
        other => panic!("{other:?} is no answer to these acts"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_table_of_the_machine_is_the_defined_one(
        constants in constants(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(constants);
        for step in steps {
            pair.run(step);
        }
    }
}
