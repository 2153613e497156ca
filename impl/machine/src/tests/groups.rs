//! Consumer groups through the log: refusals, memberships over sessions, offsets of owners.

use pawl_wire::commands::groups::{CreateGroup, DeleteGroup, GroupDetails, JoinGroup, LeaveGroup};
use pawl_wire::commands::partitions::{CreatePartitions, DeletePartitions};
use pawl_wire::commands::topics::DeleteTopic;
use pawl_wire::entry_arguments::{OffsetArguments, SendMessagesArguments};
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId};
use pawl_wire::primitives::{ConsumerKind, Identifier};

use super::catalog::{Root, named};
use super::*;
use crate::groups::Group;
use crate::offsets::OffsetKey;

const ZERO: Identifier<'static> = Identifier::Numeric(0);

/// Stream 0, topic 0 with so many partitions, group 0.
fn with_group(partitions: u32) -> Root {
    let mut root = Root::new();
    root.create_stream("s");
    root.create_topic(0, "t", partitions);
    assert!(create(&mut root, ZERO, ZERO, "g").is_done());
    root
}

fn create(root: &mut Root, stream: Identifier<'_>, topic: Identifier<'_>, name: &str) -> Said {
    let name = named(name);
    let body = CreateGroup {
        stream,
        topic,
        name,
    };
    root.ask(EntryKind::CreateConsumerGroup, &body)
}

fn join(root: &mut Root, session: Session, number: u64, group: Identifier<'_>) -> Said {
    let body = JoinGroup {
        stream: ZERO,
        topic: ZERO,
        group,
    };
    root.log
        .request(session, number, EntryKind::JoinConsumerGroup, &body)
}

fn leave(root: &mut Root, session: Session, number: u64) -> Said {
    let body = LeaveGroup {
        stream: ZERO,
        topic: ZERO,
        group: ZERO,
    };
    root.log
        .request(session, number, EntryKind::LeaveConsumerGroup, &body)
}

fn group(root: &Root) -> &Group {
    let topic = root
        .log
        .machine
        .catalog()
        .topic_by_id(StreamId(0), TopicId(0));
    topic
        .expect("the topic exists")
        .groups
        .by_id(0)
        .expect("the group exists")
}

fn members(root: &Root) -> Vec<u128> {
    group(root).members().map(|(_, client)| client.0).collect()
}

// spec ANS-12, known fault 5.8
#[test]
fn what_is_missing_or_taken_is_named() {
    let mut root = with_group(2);
    let nine = Identifier::Numeric(9);
    assert!(create(&mut root, nine, ZERO, "h").is(ErrorCode::StreamIdNotFound));
    assert!(create(&mut root, ZERO, nine, "h").is(ErrorCode::TopicIdNotFound));
    let taken = create(&mut root, ZERO, ZERO, "g");
    assert!(taken.is(ErrorCode::ConsumerGroupNameAlreadyExists));
    let session = root.log.sign_in(6);
    let missing = join(&mut root, session, 1, nine);
    assert!(missing.is(ErrorCode::ConsumerGroupIdNotFound));
    let stranger = leave(&mut root, session, 2);
    assert!(stranger.is(ErrorCode::ConsumerGroupMemberNotFound));
    let body = DeleteGroup {
        stream: ZERO,
        topic: ZERO,
        group: nine,
    };
    let missing = root.ask(EntryKind::DeleteConsumerGroup, &body);
    assert!(missing.is(ErrorCode::ConsumerGroupIdNotFound));
}

#[test]
fn a_create_reply_has_no_members_and_ids_are_not_reused() {
    let mut root = with_group(2);
    let said = create(&mut root, ZERO, ZERO, "h");
    let details = GroupDetails::decode(said.payload()).expect("details");
    assert_eq!((details.id, details.partitions_count), (1, 2));
    assert!(details.members.is_empty());
    let body = DeleteGroup {
        stream: ZERO,
        topic: ZERO,
        group: Identifier::Numeric(1),
    };
    assert!(root.ask(EntryKind::DeleteConsumerGroup, &body).is_done());
    let said = create(&mut root, ZERO, ZERO, "h");
    let details = GroupDetails::decode(said.payload()).expect("details");
    assert_eq!(details.id, 2);
}

// spec SES-33
#[test]
fn memberships_end_with_the_session_whichever_way_it_ends() {
    for way in 0..4 {
        let mut root = with_group(3);
        let stays = root.log.sign_in(6);
        let goes = root.log.sign_in(7);
        join(&mut root, stays, 1, ZERO);
        join(&mut root, goes, 1, ZERO);
        assert_eq!(members(&root), [6, 7]);
        assert!(
            join(&mut root, goes, 2, ZERO).is_done(),
            "joining again is a success"
        );
        match way {
            0 => assert!(root.log.logout(goes).is_done()),
            1 => assert_eq!(root.log.release(goes), Said::Nothing),
            2 => drop(root.log.sign_in(7)),
            _ => assert!(leave(&mut root, goes, 3).is_done()),
        }
        assert!(
            root.log.effects.contains(&Effect::CatalogChanged),
            "way {way}"
        );
        assert_eq!(members(&root), [6], "way {way}");
        assert!((0..3).all(|partition| group(&root).owns(ClientId(6), partition)));
    }
}

// spec SES-33
#[test]
fn an_evicted_member_is_one_no_more() {
    let mut root = with_group(1);
    root.log.machine.constants.clients_max = 2;
    let member = root.log.sign_in(6);
    join(&mut root, member, 1, ZERO);
    root.create_stream("root is active");
    root.log.sign_in(7);
    assert_eq!(members(&root), [0; 0]);
}

#[test]
fn a_deleted_topic_takes_groups_and_memberships_with_it() {
    let mut root = with_group(1);
    let member = root.log.sign_in(6);
    join(&mut root, member, 1, ZERO);
    let body = DeleteTopic {
        stream: ZERO,
        topic: ZERO,
    };
    assert!(root.ask(EntryKind::DeleteTopic, &body).is_done());
    assert_eq!(root.log.machine.memberships().of(ClientId(6)).count(), 0);
    assert!(root.log.logout(member).is_done());
}

// spec SES-34
#[test]
fn adding_and_removing_partitions_deals_them_anew() {
    let mut root = with_group(1);
    for client in [6, 7] {
        let member = root.log.sign_in(client);
        join(&mut root, member, 1, ZERO);
    }
    let generation = group(&root).generation;
    let (stream, topic, count) = (ZERO, ZERO, 3);
    let body = CreatePartitions {
        stream,
        topic,
        count,
    };
    assert!(root.ask(EntryKind::CreatePartitions, &body).is_done());
    let owned: Vec<u32> = group(&root).partitions_of(0).collect();
    assert_eq!(owned, [0, 2]);
    assert_eq!(group(&root).generation, generation + 1);
    let body = DeletePartitions {
        stream,
        topic,
        count,
    };
    assert!(root.ask(EntryKind::DeletePartitions, &body).is_done());
    let owned: Vec<u32> = group(&root).partitions_of(1).collect();
    assert_eq!(owned, [0; 0]);
}

/// Stores or deletes the offset of group 0 in a partition.
fn offset(session: Session, kind: EntryKind, uid: PartitionUid, partition: u32) -> EntryHeader {
    let arguments = OffsetArguments {
        partition_uid: uid,
        stream: StreamId(0),
        topic: TopicId(0),
        partition: PartitionId(partition),
        consumer_kind: ConsumerKind::Group,
        consumer_key: 0,
        offset: 0,
    };
    EntryHeader {
        arguments: arguments.encode(),
        ..session.header(kind, 9)
    }
}

// spec SES-35, known fault 5.5
#[test]
fn only_the_owner_moves_a_groups_offset_and_progress_outlives_members() {
    let mut root = with_group(2);
    let one = root.log.sign_in(6);
    let other = root.log.sign_in(7);
    join(&mut root, one, 1, ZERO);
    join(&mut root, other, 1, ZERO);
    let uid = root.uid(0, 0, 0);
    let send = SendMessagesArguments {
        partition_uid: uid,
        message_count: 1,
        stream: StreamId(0),
        topic: TopicId(0),
        partition: PartitionId(0),
        batch_length: 305,
        batch_position: 26,
        origin_timestamp: Timestamp(0),
    };
    let mut header = one.header(EntryKind::SendMessages, 9);
    header.arguments = send.encode();
    assert!(root.log.apply(header, b"").is_done());
    let store = |session| offset(session, EntryKind::StoreOffset, uid, 0);
    let refused = root.log.apply(store(other), b"");
    assert!(refused.is(ErrorCode::ConsumerGroupPartitionNotOwned));
    assert_eq!(
        refused.header().status,
        refused.code(),
        "a status, as for every partition"
    );
    assert!(root.log.apply(store(one), b"").is_done());
    let delete = offset(other, EntryKind::DeleteOffset, uid, 0);
    let refused = root.log.apply(delete, b"");
    assert!(refused.is(ErrorCode::ConsumerGroupPartitionNotOwned));
    assert!(leave(&mut root, one, 2).is_done());
    let key = OffsetKey {
        partition: uid,
        kind: ConsumerKind::Group,
        consumer: 0,
    };
    assert_eq!(root.log.machine.offset(key), Some(0), "progress stays");
    assert!(
        root.log.apply(delete, b"").is_done(),
        "the partition is the other's now"
    );
}
