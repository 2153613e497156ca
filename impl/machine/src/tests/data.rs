//! Messages and stored offsets.

use pawl_wire::commands::messages::SendReply;
use pawl_wire::commands::partitions::DeleteSegments;
use pawl_wire::commands::streams::PurgeStream;
use pawl_wire::commands::topics::PurgeTopic;
use pawl_wire::entry_arguments::{OffsetArguments, SendMessagesArguments};
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId};
use pawl_wire::options::Tlv;
use pawl_wire::primitives::{ConsumerKind, Identifier};

use super::catalog::Root;
use super::*;
use crate::offsets::OffsetKey;
use crate::query::Totals;

/// A send to a partition.
pub(super) fn send(session: Session, uid: PartitionUid, number: u64, messages: u32) -> EntryHeader {
    let arguments = SendMessagesArguments {
        partition_uid: uid,
        message_count: messages,
        stream: StreamId(0),
        topic: TopicId(0),
        partition: PartitionId(0),
        batch_length: 256 + 100 * messages as u64,
        batch_position: 26,
        origin_timestamp: Timestamp(5),
    };
    EntryHeader {
        arguments: arguments.encode(),
        ..session.header(EntryKind::SendMessages, number)
    }
}

pub(super) fn key(uid: PartitionUid, consumer: u32) -> OffsetKey {
    OffsetKey {
        partition: uid,
        kind: ConsumerKind::Plain,
        consumer,
    }
}

pub(super) fn offset(
    session: Session,
    kind: EntryKind,
    key: OffsetKey,
    offset: u64,
) -> EntryHeader {
    let arguments = OffsetArguments {
        partition_uid: key.partition,
        stream: StreamId(0),
        topic: TopicId(0),
        partition: PartitionId(0),
        consumer_kind: key.kind,
        consumer_key: key.consumer,
        offset,
    };
    EntryHeader {
        arguments: arguments.encode(),
        ..session.header(kind, 1)
    }
}

fn with_topic(partitions: u32) -> Root {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", partitions);
    root
}

fn base_offset(said: &Said) -> u64 {
    let reply = SendReply::decode(said.payload()).expect("receipts");
    reply.receipts[0].base_offset
}

#[test]
fn a_send_gets_its_offset_and_the_time_of_its_op() {
    let mut root = with_topic(2);
    let uid = root.uid(0, 0, 1);
    root.log.apply(send(root.session, uid, 9, 10), b"");
    let said = root.log.apply(send(root.session, uid, 9, 3), b"");
    let reply = SendReply::decode(said.payload()).expect("receipts");
    let receipt = reply.receipts[0];
    assert_eq!(
        (receipt.stream, receipt.topic, receipt.partition),
        (0, 0, 1)
    );
    assert_eq!(receipt.base_offset, 10);
    assert_eq!(root.log.frame.len(), 256 + 24);
    assert_eq!(said.header().op, root.log.op().0);
    let appended = Effect::Appended {
        partition: uid,
        op: root.log.op(),
        base_offset: 10,
        timestamp: Timestamp(root.log.time),
        message_count: 3,
        batch_position: 26,
        batch_length: 556,
    };
    assert_eq!(root.log.effects, [appended]);
    let expected = Totals {
        messages: 13,
        bytes: 1_256 + 556,
        segments: 2,
    };
    let machine = &root.log.machine;
    assert_eq!(machine.topic_totals(StreamId(0), TopicId(0)), expected);
    assert_eq!(machine.stream_totals(StreamId(0)), expected);
    assert_eq!(machine.totals().data, expected);
}

// spec DED-9: published clients send many produces under one number.
#[test]
fn a_produce_without_checksum_is_executed_each_time_and_spends_no_number() {
    let mut root = with_topic(1);
    let uid = root.uid(0, 0, 0);
    let number = root.number;
    for expected in 0..3 {
        let said = root.log.apply(send(root.session, uid, 1, 1), b"");
        assert_eq!(base_offset(&said), expected);
    }
    let view = root.log.machine.client(ClientId(5)).expect("an entry");
    assert_eq!(view.watermark.0, number);
    assert!(
        root.create_stream("next").is_done(),
        "the next number is free"
    );
}

// spec DED-10
#[test]
fn a_produce_is_fenced() {
    let mut root = with_topic(1);
    let uid = root.uid(0, 0, 0);
    let old = root.session;
    root.log.sign_in(5);
    let said = root.log.apply(send(old, uid, 1, 1), b"");
    assert_eq!(said, Said::Evicted(EvictionReason::SessionTooLow));
    let stranger = Session { client: 6, ..old };
    let said = root.log.apply(send(stranger, uid, 1, 1), b"");
    assert_eq!(said, Said::Evicted(EvictionReason::NoSession));
    assert_eq!(root.log.machine.totals().data.messages, 0);
}

// spec DED-11, known fault 2.4
#[test]
fn a_produce_with_checksum_is_stored_once_and_confirmed_where_it_is() {
    let mut root = with_topic(1);
    let uid = root.uid(0, 0, 0);
    let header = |number, checksum| EntryHeader {
        request_checksum: checksum,
        ..send(root.session, uid, number, 2)
    };
    let (first, other, next) = (header(50, 7), header(50, 8), header(51, 8));
    assert_eq!(base_offset(&root.log.apply(first, b"")), 0);
    let frame = root.log.frame.clone();
    assert_eq!(base_offset(&root.log.apply(first, b"")), 0);
    assert_eq!(root.log.frame, frame);
    assert!(root.log.effects.is_empty());
    let reused = root.log.apply(other, b"");
    assert_eq!((reused.header().status, reused.header().op), (3, 0));
    assert_eq!(base_offset(&root.log.apply(next, b"")), 2);
    for number in 52..60 {
        root.log.apply(
            EntryHeader {
                request: number,
                ..next
            },
            b"",
        );
    }
    let earlier = root.log.apply(first, b"");
    assert_eq!(
        earlier.header().status,
        59,
        "a partition's refusal is a status"
    );
    assert_eq!(earlier.header().context, 59);
    assert_eq!(root.log.machine.totals().data.messages, 2 * 10);
}

#[test]
fn a_send_without_place_or_messages_is_a_status_and_changes_nothing() {
    let mut root = with_topic(1);
    let gone = PartitionUid(1);
    let said = root.log.apply(send(root.session, gone, 1, 1), b"");
    assert_eq!(said.header().status, ErrorCode::ResourceNotFound.code());
    let uid = root.uid(0, 0, 0);
    let said = root.log.apply(send(root.session, uid, 1, 0), b"");
    assert_eq!(said.header().status, 3);
    let mut garbage = send(root.session, uid, 1, 1);
    garbage.arguments[63] = 1;
    assert_eq!(root.log.apply(garbage, b"").header().status, 3);
    assert_eq!(root.log.machine.totals().data.messages, 0);
}

#[test]
fn offsets_are_stored_up_to_the_current_one_and_may_move_back() {
    let mut root = with_topic(1);
    let uid = root.uid(0, 0, 0);
    let session = root.session;
    let key = key(uid, 7);
    let store = |root: &mut Root, to| {
        let said = root
            .log
            .apply(offset(session, EntryKind::StoreOffset, key, to), b"");
        if said.is_done() {
            assert_eq!(root.log.frame.len(), 256 + 4, "result-framed");
        }
        said.code()
    };
    assert_eq!(store(&mut root, 0), 4100, "the partition is empty");
    root.log.apply(send(session, uid, 1, 10), b"");
    assert_eq!(store(&mut root, 10), 4100);
    assert_eq!(store(&mut root, 9), 0);
    assert_eq!(store(&mut root, 3), 0);
    assert_eq!(root.log.machine.offset(key), Some(3));
    let group = OffsetKey {
        kind: ConsumerKind::Group,
        ..key
    };
    assert_eq!(root.log.machine.offset(group), None);
    let delete = offset(session, EntryKind::DeleteOffset, key, 0);
    assert!(root.log.apply(delete, b"").is_done());
    let said = root.log.apply(delete, b"");
    assert_eq!(
        said.header().status,
        3021,
        "a partition's refusal is a status"
    );
    let gone = OffsetKey {
        partition: PartitionUid(1),
        ..key
    };
    for kind in [EntryKind::StoreOffset, EntryKind::DeleteOffset] {
        let said = root.log.apply(offset(session, kind, gone, 0), b"");
        assert_eq!(said.header().status, 20);
    }
}

// Known fault 9.4
#[test]
fn a_new_offset_key_above_the_limit_is_refused_and_those_there_are_go_on() {
    let mut root = with_topic(1);
    root.log.machine.constants.offsets_per_partition_max = 2;
    let uid = root.uid(0, 0, 0);
    let session = root.session;
    root.log.apply(send(session, uid, 1, 10), b"");
    let write = |root: &mut Root, kind, consumer| {
        root.log
            .apply(offset(session, kind, key(uid, consumer), 1), b"")
            .code()
    };
    assert_eq!(write(&mut root, EntryKind::StoreOffset, 1), 0);
    assert_eq!(write(&mut root, EntryKind::StoreOffset, 2), 0);
    assert_eq!(write(&mut root, EntryKind::StoreOffset, 3), 3024);
    assert_eq!(write(&mut root, EntryKind::StoreOffset, 2), 0);
    assert_eq!(write(&mut root, EntryKind::DeleteOffset, 1), 0);
    assert_eq!(write(&mut root, EntryKind::StoreOffset, 3), 0);
}

#[test]
fn a_purge_removes_messages_and_offsets_and_starts_offsets_anew() {
    let mut root = with_topic(1);
    let uid = root.uid(0, 0, 0);
    let session = root.session;
    let stream = Identifier::Numeric(0);
    for whole_stream in [false, true] {
        root.log.apply(send(session, uid, 1, 10), b"");
        root.log
            .apply(offset(session, EntryKind::StoreOffset, key(uid, 7), 5), b"");
        let said = match whole_stream {
            false => root.ask(
                EntryKind::PurgeTopic,
                &PurgeTopic {
                    stream,
                    topic: stream,
                },
            ),
            true => root.ask(EntryKind::PurgeStream, &PurgeStream { stream }),
        };
        assert!(said.is_done());
        let op = root.log.op();
        assert_eq!(root.log.effects, [Effect::PartitionPurged { uid, op }]);
        assert_eq!(root.log.machine.offset(key(uid, 7)), None);
        let view = root.log.machine.partition(uid).expect("it stays");
        assert_eq!((view.next_offset, view.messages, view.bytes), (0, 0, 0));
        assert_eq!(view.purged_at, op);
        let said = root.log.apply(send(session, uid, 1, 1), b"");
        assert_eq!(base_offset(&said), 0);
        root.ask(EntryKind::PurgeStream, &PurgeStream { stream });
    }
}

// Known fault 5.4: the end offset is unchanged by the deletion of old segments.
#[test]
fn deleting_segments_moves_the_start_and_never_the_end() {
    let mut root = Root::new();
    root.create_stream("s");
    let mut small = Vec::new();
    Tlv::text("segment_size").write(&mut small);
    let bytes = (1u64 << 20).to_le_bytes();
    Tlv {
        kind: 12,
        bytes: &bytes,
    }
    .write(&mut small);
    root.create_topic_with(0, "t", 1, &small);
    let uid = root.uid(0, 0, 0);
    let session = root.session;
    for _ in 0..5 {
        // 5,000 messages of 100 bytes: three batches pass 1 MiB.
        root.log.apply(send(session, uid, 1, 5_000), b"");
    }
    root.log.apply(
        offset(session, EntryKind::StoreOffset, key(uid, 7), 100),
        b"",
    );
    let delete = DeleteSegments {
        stream: Identifier::Numeric(0),
        topic: Identifier::Numeric(0),
        partition: 0,
        segments: 9,
    };
    assert!(root.ask(EntryKind::DeleteSegments, &delete).is_done());
    let first_offset = 15_000;
    assert_eq!(root.log.effects, [Effect::Trimmed { uid, first_offset }]);
    let view = root.log.machine.partition(uid).expect("it stays");
    assert_eq!(
        (view.first_offset, view.next_offset, view.messages),
        (15_000, 25_000, 10_000)
    );
    assert_eq!(root.log.machine.offset(key(uid, 7)), Some(100));
    let said = root.log.apply(send(session, uid, 1, 1), b"");
    assert_eq!(base_offset(&said), 25_000);
    assert!(root.ask(EntryKind::DeleteSegments, &delete).is_done());
    assert!(root.log.effects.is_empty(), "only the open segment is left");
}
