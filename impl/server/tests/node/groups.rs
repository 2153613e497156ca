//! Consumer groups over TCP: membership, ownership, offsets, and their end with the session.

use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::groups::GroupAssignment;
use pawl_wire::commands::messages::{PARTITION_RESYNC, PollMessages, PollReply};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::primitives::{
    Consumer, Identifier, OptionalPartition, Partitioning, PollingStrategy, Wire,
};

use crate::util::{Client, TestNode, poll_of, until};

/// Stream 0, topic 0.
const TOPIC: [u8; 12] = [1, 4, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0];

fn group_body() -> Vec<u8> {
    [&TOPIC[..], &[1, 4, 0, 0, 0, 0]].concat()
}

fn assignment(client: &mut Client) -> Option<Vec<u32>> {
    let payload = client.body(CommandCode::SyncGroup, &group_body()).payload();
    (!payload.is_empty()).then(|| {
        let assignment = GroupAssignment::decode(&payload).expect("an assignment");
        assignment.partitions.0
    })
}

fn poll_of_group(partition: u32) -> Command<'static> {
    Command::PollMessages(PollMessages {
        consumer: Consumer::Group(Identifier::Numeric(0)),
        partition: OptionalPartition(Some(partition)),
        ..poll_of(PollingStrategy::Next, 10, true)
    })
}

fn polled(client: &mut Client, partition: u32) -> (u32, u32) {
    let payload = client.command(&poll_of_group(partition)).payload();
    let reply = PollReply::decode(&payload).expect("a poll reply");
    (reply.partition, reply.count)
}

/// A topic of two partitions with two messages each, and group `g` with `client` in it.
fn group_of_one(client: &mut Client) {
    client.create_topic("s", 2);
    for partition in [0, 0, 1, 1] {
        let answer = client.send_payloads(Partitioning::Partition(partition), &[b"x"]);
        answer.payload();
    }
    let create = [&TOPIC[..], b"\x01g"].concat();
    client.body(CommandCode::CreateGroup, &create).payload();
    let joined = client.body(CommandCode::JoinGroup, &group_body());
    assert_eq!(joined.payload(), b"");
}

#[test]
fn only_the_owner_polls_and_others_are_told_to_sync() {
    let node = TestNode::start();
    let mut first = node.sign_in();
    group_of_one(&mut first);
    assert_eq!(assignment(&mut first), Some(vec![0, 1]));
    assert_eq!(polled(&mut first, 0), (0, 2));
    let mut stranger = node.sign_in();
    assert_eq!(assignment(&mut stranger), None);
    assert_eq!(polled(&mut stranger, 0), (PARTITION_RESYNC, 0));

    stranger
        .body(CommandCode::JoinGroup, &group_body())
        .payload();
    let mine = assignment(&mut stranger).expect("a member");
    let theirs = assignment(&mut first).expect("a member");
    assert_eq!((mine.len(), theirs.len()), (1, 1));
    assert_ne!(mine, theirs);
    assert_eq!(polled(&mut stranger, mine[0]).0, mine[0]);
    assert_eq!(polled(&mut stranger, theirs[0]), (PARTITION_RESYNC, 0));
}

/// spec SES-26
#[test]
fn a_closed_connection_leaves_its_groups() {
    let node = TestNode::start();
    let mut first = node.sign_in();
    group_of_one(&mut first);
    let mut second = node.sign_in();
    second.body(CommandCode::JoinGroup, &group_body()).payload();
    assert_eq!(assignment(&mut second).expect("a member").len(), 1);
    drop(first);
    until(|| assignment(&mut second).is_some_and(|partitions| partitions == [0, 1]));
}

#[test]
fn a_missing_group_and_a_missing_partition_are_named() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let answer = client.command(&poll_of_group(0));
    answer.assert_status(ErrorCode::ConsumerGroupIdNotFound);
    let target = [&[2, 1, 4, 0, 0, 0, 0][..], &TOPIC, &[1, 0, 0, 0, 0]].concat();
    let stored = client.body(CommandCode::GetOffset, &target);
    assert_eq!(stored.payload(), b"");
    client
        .body(CommandCode::JoinGroup, &group_body())
        .assert_result(ErrorCode::ConsumerGroupIdNotFound);
    client
        .body(CommandCode::SyncGroup, &group_body())
        .assert_status(ErrorCode::ConsumerGroupIdNotFound);
}
