//! Sending and polling: strategies, slices, offsets, and what a poll sees.

use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::messages::PollReply;
use pawl_wire::commands::offsets::OffsetReply;
use pawl_wire::commands::streams::PurgeStream;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::primitives::{Consumer, Identifier, Name, Partitioning, PollingStrategy, Wire};

use crate::util::{Answer, Client, TestNode, messages, poll_of, receipt, send_body};

/// Ten messages at the offsets 0 to 9, in batches of 1, 4 and 5.
fn ten_messages(client: &mut Client) {
    client.create_topic("s", 3);
    assert_eq!(client.send_ok(&[b"0"]), 0);
    assert_eq!(client.send_ok(&[b"1", b"2", b"3", b"4"]), 1);
    assert_eq!(client.send_ok(&[b"5", b"6", b"7", b"8", b"9"]), 5);
}

fn offsets(found: &[(u64, Vec<u8>)]) -> Vec<u64> {
    for (offset, payload) in found {
        assert_eq!(payload, offset.to_string().as_bytes());
    }
    found.iter().map(|(offset, _)| *offset).collect()
}

#[test]
fn every_strategy_returns_what_the_table_says() {
    use PollingStrategy::*;
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let mut check = |strategy, count, expected: std::ops::Range<u64>| {
        let found = offsets(&client.poll_ok(strategy, count));
        assert!(
            found.iter().copied().eq(expected),
            "{strategy:?} {count}: {found:?}"
        );
    };
    check(Offset(0), 100, 0..10);
    check(Offset(0), 1, 0..1);
    check(Offset(2), 2, 2..4);
    check(Offset(4), 3, 4..7);
    check(Offset(9), 9, 9..10);
    check(Offset(10), 9, 0..0);
    check(Offset(u64::MAX), u32::MAX, 0..0);
    check(First, 6, 0..6);
    check(Last, 6, 4..10);
    check(Last, 100, 0..10);
    check(Next, 3, 0..3);
    check(Timestamp(0), 100, 0..10);
    check(Timestamp(u64::MAX), 100, 0..0);
    check(First, 0, 0..0);
}

#[test]
fn polls_read_the_same_from_memory_and_from_disk() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let polls = [
        (PollingStrategy::First, 100),
        (PollingStrategy::Offset(3), 4),
        (PollingStrategy::Last, 3),
    ];
    let answers = |client: &mut Client| -> Vec<Vec<u8>> {
        let mut one = |(strategy, count)| client.poll(strategy, count, false).payload();
        polls.into_iter().map(&mut one).collect()
    };
    let from_memory = answers(&mut client);
    assert!(node.metric("pawl_poll_batches_cached_total ") > 0.0);
    assert_eq!(node.metric("pawl_poll_batches_read_total "), 0.0);
    let node = node.restart();
    let mut client = node.sign_in();
    assert_eq!(answers(&mut client), from_memory);
    assert_eq!(node.metric("pawl_poll_batches_cached_total "), 0.0);
    assert!(node.metric("pawl_poll_batches_read_total ") > 0.0);
}

#[test]
fn a_timestamp_finds_the_first_batch_that_is_not_older() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let payload = client.poll(PollingStrategy::Offset(1), 1, false).payload();
    let reply = PollReply::decode(&payload).expect("a poll reply");
    let batch = pawl_wire::batch_client::PolledBatches::new(reply.records.0).next();
    let second = batch
        .expect("a batch")
        .expect("valid")
        .header
        .base_timestamp;
    let found = client.poll_ok(PollingStrategy::Timestamp(second), 1);
    assert_eq!(offsets(&found), [1]);
}

#[test]
fn an_empty_partition_answers_at_once_and_never_shorter_than_its_head() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    for strategy in [
        PollingStrategy::First,
        PollingStrategy::Next,
        PollingStrategy::Last,
    ] {
        let payload = client.poll(strategy, 10, true).payload();
        assert_eq!(payload, [0; 16]);
    }
}

#[test]
fn partitions_are_chosen_in_turn_by_key_or_by_name() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 3);
    let turns: Vec<u32> = (0..6)
        .map(|_| {
            let answer = client.send_payloads(Partitioning::Balanced, &[b"x"]);
            receipt(&answer.payload()).partition
        })
        .collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    for key in [&b"k1"[..], b"another", b"\0"] {
        let partitioning = Partitioning::Key(key);
        let answer = client.send_payloads(partitioning, &[b"x"]);
        let expected = partitioning.key_partition(3);
        assert_eq!(Some(receipt(&answer.payload()).partition), expected);
    }
    let answer = client.send_payloads(Partitioning::Partition(2), &[b"x"]);
    assert_eq!(receipt(&answer.payload()).partition, 2);
    let answer = client.send_payloads(Partitioning::Partition(3), &[b"x"]);
    answer.assert_status(ErrorCode::PartitionNotFound);
}

#[test]
fn a_topic_without_partitions_takes_no_message() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 0);
    for partitioning in [
        Partitioning::Balanced,
        Partitioning::Key(b"k"),
        Partitioning::Partition(0),
    ] {
        let answer = client.send_payloads(partitioning, &[b"x"]);
        answer.assert_status(ErrorCode::PartitionNotFound);
    }
}

#[test]
fn malformed_batches_are_refused_by_their_fault() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let good = send_body(Partitioning::Partition(0), &[b"one", b"two"]);
    let frame = 26 + 256;
    let cases: [(usize, u8, ErrorCode); 5] = [
        (frame + 48, b'O', ErrorCode::InvalidMessageChecksum),
        (frame, 1, ErrorCode::InvalidMessageChecksum),
        (26 + 100, 1, ErrorCode::InvalidCommand),
        (22, 3, ErrorCode::InvalidCommand),
        (26 + 48, 3, ErrorCode::InvalidCommand),
    ];
    for (at, value, expected) in cases {
        let mut body = good.clone();
        assert_ne!(body[at], value);
        body[at] = value;
        let answer = client.body(CommandCode::SendMessages, &body);
        answer.assert_status(expected);
    }
    let longer = [&good[..], &[0]].concat();
    let answer = client.body(CommandCode::SendMessages, &longer);
    answer.assert_status(ErrorCode::InvalidCommand);
    assert_eq!(client.send_ok(&[b"0"]), 0, "nothing was stored");
}

/// spec ANS-30
#[test]
fn an_acknowledged_message_is_found_at_once_by_another_connection() {
    let node = TestNode::start();
    let mut producer = node.sign_in();
    let mut consumer = node.sign_in();
    producer.create_topic("s", 1);
    for number in 0..300u64 {
        let text = number.to_string();
        assert_eq!(producer.send_ok(&[text.as_bytes()]), number);
        let found = consumer.poll_ok(PollingStrategy::Offset(number), 1);
        assert_eq!(offsets(&found), [number]);
    }
}

#[test]
fn next_goes_on_after_the_stored_offset() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let next = |client: &mut Client, count| {
        let answer = client.poll(PollingStrategy::Next, count, true);
        offsets(&messages(&answer.payload()))
    };
    assert_eq!(next(&mut client, 4), [0, 1, 2, 3]);
    assert_eq!(next(&mut client, 4), [4, 5, 6, 7]);
    let stored = stored_offset(&mut client).expect("stored by the poll");
    assert_eq!((stored.partition, stored.current, stored.stored), (0, 9, 7));
    let node = node.restart();
    let mut client = node.sign_in();
    assert_eq!(next(&mut client, 100), [8, 9]);
    assert_eq!(next(&mut client, 100), []);
}

fn target_bytes() -> Vec<u8> {
    let poll = poll_of(PollingStrategy::First, 1, false).encode();
    poll[..24].to_vec()
}

fn stored_offset(client: &mut Client) -> Option<OffsetReply> {
    let payload = client
        .body(CommandCode::GetOffset, &target_bytes())
        .payload();
    (!payload.is_empty()).then(|| OffsetReply::decode(&payload).expect("an offset"))
}

#[test]
fn offsets_are_stored_read_and_deleted() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let store = |client: &mut Client, offset: u64| {
        let body = [&target_bytes()[..], &offset.to_le_bytes(), &[1]].concat();
        client.body(CommandCode::StoreOffset, &body)
    };
    let delete = [&target_bytes()[..], &[1]].concat();
    assert_eq!(stored_offset(&mut client), None);
    client
        .body(CommandCode::DeleteOffset, &delete)
        .assert_status(ErrorCode::ConsumerOffsetNotFound);
    store(&mut client, 10).assert_status(ErrorCode::InvalidOffset);
    assert_eq!(store(&mut client, 9).payload(), b"");
    assert_eq!(store(&mut client, 3).payload(), b"", "it may move back");
    assert_eq!(stored_offset(&mut client).expect("stored").stored, 3);
    assert_eq!(
        client.body(CommandCode::DeleteOffset, &delete).payload(),
        b""
    );
    assert_eq!(stored_offset(&mut client), None);

    // A write must name its partition; "5" and 5 are different consumers.
    let mut absent = [&target_bytes()[..], &3u64.to_le_bytes(), &[1]].concat();
    absent[19] = 0;
    client
        .body(CommandCode::StoreOffset, &absent)
        .assert_status(ErrorCode::ResourceNotFound);
    let named = Consumer::Plain(Identifier::Named(Name::new("1").expect("a name")));
    let mut poll = poll_of(PollingStrategy::Next, 2, true);
    poll.consumer = named;
    client.command(&Command::PollMessages(poll)).payload();
    assert_eq!(stored_offset(&mut client), None);
}

#[test]
fn a_purge_empties_the_partition_and_offsets_begin_again() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    client.poll(PollingStrategy::Next, 5, true).payload();
    let purge = Command::PurgeStream(PurgeStream {
        stream: Identifier::Numeric(0),
    });
    assert_eq!(client.command(&purge).payload(), b"");
    assert_eq!(client.poll_ok(PollingStrategy::First, 10), []);
    assert_eq!(stored_offset(&mut client), None);
    assert_eq!(client.send_ok(&[b"0"]), 0);
    let node = node.restart();
    let mut client = node.sign_in();
    assert_eq!(offsets(&client.poll_ok(PollingStrategy::First, 10)), [0]);
}

#[test]
fn a_deleted_stream_takes_its_messages_with_it() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    ten_messages(&mut client);
    let deleted = client.body(CommandCode::DeleteStream, &[1, 4, 0, 0, 0, 0]);
    assert_eq!(deleted.payload(), b"");
    let poll = client.poll(PollingStrategy::First, 10, false);
    poll.assert_status(ErrorCode::StreamIdNotFound);
    // The number is given again, and nothing of the old stream shows.
    client.create_topic("again", 1);
    assert_eq!(client.poll_ok(PollingStrategy::First, 10), []);
    assert_eq!(client.send_ok(&[b"0"]), 0);
}

#[test]
fn large_batches_and_many_small_ones_come_back_whole() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let large: Vec<u8> = (0..5_000_000u32).map(|i| (i * 31) as u8).collect();
    assert_eq!(client.send_ok(&[&large]), 0);
    let thousand: Vec<Vec<u8>> = (0..1_000u32).map(|i| i.to_le_bytes().repeat(64)).collect();
    let slices: Vec<&[u8]> = thousand.iter().map(Vec::as_slice).collect();
    assert_eq!(client.send_ok(&slices), 1);
    for number in 0..200u64 {
        assert_eq!(client.send_ok(&[b"s"]), 1_001 + number);
    }
    for round in 0..2 {
        let found = client.poll_ok(PollingStrategy::First, 10_000);
        assert_eq!(found.len(), 1_201, "round {round}");
        assert!(found[0].1 == large);
        assert!(found[1..=1_000].iter().map(|(_, p)| p).eq(&thousand));
        assert!(found.iter().map(|(offset, _)| *offset).eq(0..1_201));
    }
}

/// spec DED-9, DED-11
#[test]
fn a_send_with_a_checksum_and_a_fresh_number_is_stored_once() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let body = send_body(Partitioning::Partition(0), &[b"0"]);
    let mut header = client.header(CommandCode::SendMessages, &body);
    for offset in 0..3 {
        let answer = client.exchange(&header, &body);
        assert_eq!(
            receipt(&answer.payload()).base_offset,
            offset,
            "at least once"
        );
    }
    header.request_checksum = pawl_wire::headers::request_checksum(&body);
    header.request += 10;
    let first = client.exchange(&header, &body);
    assert_eq!(receipt(&first.clone().payload()).base_offset, 3);
    assert_eq!(client.exchange(&header, &body), first);
    assert!(matches!(first, Answer::Payload(..)));
    assert_eq!(client.poll_ok(PollingStrategy::First, 10).len(), 4);
}

#[test]
fn a_checkpoint_is_written_when_due_and_a_restart_goes_on_from_it() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let count = 4_300u64;
    let mut frames = Vec::new();
    for number in 0..count {
        let body = send_body(Partitioning::Partition(0), &[number.to_string().as_bytes()]);
        frames.extend_from_slice(client.header(CommandCode::SendMessages, &body).as_bytes());
        frames.extend_from_slice(&body);
    }
    let mut sender = client.stream.try_clone().expect("a second handle");
    let sending = std::thread::spawn(move || {
        std::io::Write::write_all(&mut sender, &frames).expect("sent");
    });
    for number in 0..count {
        assert_eq!(receipt(&client.receive().payload()).base_offset, number);
    }
    sending.join().expect("sent");
    crate::util::until(|| node.metric("pawl_checkpoints_total ") >= 1.0);
    client.poll(PollingStrategy::Next, 7, true).payload();
    let node = node.restart();
    let mut client = node.sign_in();
    let found = client.poll_ok(PollingStrategy::First, u32::MAX);
    assert!(offsets(&found).into_iter().eq(0..count));
    assert_eq!(stored_offset(&mut client).expect("stored").stored, 6);
    assert_eq!(client.send_ok(&[b"x"]), count);
}
