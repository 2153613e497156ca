//! Malformed input: cut, flipped, oversized. Only the sender notices (spec ANS-24).

use std::net::Shutdown;

use pawl_wire::command::CommandCode;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, HEADER_BYTES, RequestHeader};
use pawl_wire::operation::Operation;
use pawl_wire::primitives::Partitioning;

use crate::util::{Answer, Client, TestNode, send_body};

/// A body for every command, as a client would send it: valid in layout.
fn bodies() -> Vec<(CommandCode, Vec<u8>)> {
    let stream = [1, 4, 0, 0, 0, 0];
    let topic = [stream, stream].concat();
    let consumer = [1, 1, 4, 1, 0, 0, 0];
    let target = [&consumer[..], &topic, &[1, 0, 0, 0, 0]].concat();
    let poll = [&target[..], &[1], &[0; 8], &[10, 0, 0, 0], &[0]].concat();
    use CommandCode::*;
    vec![
        (CreateStream, vec![1, b's']),
        (UpdateStream, [&stream[..], &[1, b's']].concat()),
        (PurgeStream, stream.to_vec()),
        (
            CreateTopic,
            [&stream[..], &[1, 0, 0, 0], &[1, b'u']].concat(),
        ),
        (UpdateTopic, [&topic[..], &[1, b't']].concat()),
        (PurgeTopic, topic.clone()),
        (CreatePartitions, [&topic[..], &[1, 0, 0, 0]].concat()),
        (GetStream, stream.to_vec()),
        (GetTopics, stream.to_vec()),
        (GetTopic, topic.clone()),
        (DescribeOptions, vec![1]),
        (GetClient, vec![1, 0, 0, 0]),
        (AttachConsumerSession, vec![1; 32]),
        (PollMessages, poll.clone()),
        (GetPollRoute, poll),
        (GetOffset, target.clone()),
        (GetOffsetRoute, target.clone()),
        (StoreOffset, [&target[..], &[0; 8], &[1]].concat()),
        (DeleteOffset, [&target[..], &[1]].concat()),
        (
            SendMessages,
            send_body(Partitioning::Partition(0), &[b"one", b"two"]),
        ),
    ]
}

/// Every answer is a frame, and the connection serves on.
fn assert_answered(client: &mut Client, what: &str) {
    let answer = client.receive();
    assert!(!matches!(answer, Answer::Closed), "{what}");
    if matches!(answer, Answer::Evicted(_)) {
        client.sign_in();
    }
}

#[test]
fn every_body_cut_at_every_length_is_answered() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    for (code, body) in bodies() {
        for cut in 0..=body.len() {
            let header = client.header(code, &body[..cut]);
            client.number += 1;
            client.send(&header, &body[..cut]);
            assert_answered(&mut client, &format!("{code:?} cut at {cut}"));
        }
    }
    assert!(client.is_alive());
}

#[test]
fn every_body_with_any_byte_flipped_is_answered() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    for (code, body) in bodies() {
        for at in 0..body.len() {
            let mut flipped = body.clone();
            flipped[at] ^= 0x81;
            let header = client.header(code, &flipped);
            client.number += 1;
            client.send(&header, &flipped);
            assert_answered(&mut client, &format!("{code:?} flipped at {at}"));
        }
    }
    assert!(client.is_alive());
}

#[test]
fn every_header_byte_flipped_is_answered_or_closes_and_others_do_not_notice() {
    let node = TestNode::start();
    let mut witness = node.sign_in();
    let body = [1, b's'];
    let mut client = node.sign_in();
    for at in 0..HEADER_BYTES {
        let mut frame = client
            .header(CommandCode::CreateStream, &body)
            .as_bytes()
            .to_vec();
        frame.extend_from_slice(&body);
        frame[at] ^= 0x81;
        client.send_bytes(&frame);
        let closes = (48..52).contains(&at) || at == 60;
        if closes {
            // A size that claims more than comes must not wait for ever.
            client
                .stream
                .shutdown(Shutdown::Write)
                .expect("half closed");
        }
        let answer = client.receive();
        assert_eq!(
            matches!(answer, Answer::Closed),
            closes,
            "byte {at}: {answer:?}"
        );
        if !matches!(answer, Answer::Payload(..)) {
            client = node.sign_in();
        }
        client.number += 1;
    }
    assert!(witness.is_alive());
}

/// spec ANS-20, ANS-21
#[test]
fn sizes_and_commands_that_are_not_allowed_close_the_connection() {
    let node = TestNode::start();
    for signed_in in [false, true] {
        for size in [0u32, 255, (64 << 20) + 1, u32::MAX] {
            let mut client = if signed_in {
                node.sign_in()
            } else {
                node.connect()
            };
            let header = RequestHeader {
                size,
                client: 1,
                ..RequestHeader::new(Operation::NonReplicated, 0)
            };
            assert_eq!(client.exchange(&header, b""), Answer::Closed, "size {size}");
        }
        for command in (0..=30).filter(|command| *command != 5) {
            let mut client = if signed_in {
                node.sign_in()
            } else {
                node.connect()
            };
            let header = RequestHeader {
                command,
                client: 1,
                ..RequestHeader::new(Operation::NonReplicated, 0)
            };
            let answer = client.exchange(&header, b"");
            assert_eq!(answer, Answer::Closed, "command {command}");
        }
    }
    assert_eq!(
        node.metric("pawl_connections_closed_total{reason=\"size\"}"),
        8.0
    );
    assert_eq!(
        node.metric("pawl_connections_closed_total{reason=\"command\"}"),
        60.0
    );
}

/// spec ANS-23
#[test]
fn a_large_body_before_sign_in_is_read_away_and_refused() {
    let node = TestNode::start();
    let mut client = node.connect();
    let body = vec![7; 3 << 20];
    let mut header = client.header(CommandCode::SendMessages, &body);
    header.session = 1;
    let answer = client.exchange(&header, &body);
    answer.assert_evicted(EvictionReason::NoSession);
    let header = client.header(CommandCode::PollMessages, &body);
    let answer = client.exchange(&header, &body);
    answer.assert_status(ErrorCode::Unauthenticated);
    let answer = client.login_body(&body);
    answer.assert_evicted(EvictionReason::MalformedLogin);
    client.sign_in();
}

/// spec ANS-23: claims alone take nothing from the budget of the others.
#[test]
fn many_claims_of_large_frames_do_not_keep_others_waiting() {
    let node = TestNode::start();
    let claims: Vec<Client> = (0..64)
        .map(|_| {
            let mut client = node.connect();
            let header = RequestHeader {
                size: 64 << 20,
                client: 1,
                ..RequestHeader::new(Operation::SendMessages, 0)
            };
            client.send(&header, &[0; 1000]);
            client
        })
        .collect();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let large = vec![b'x'; 1 << 20];
    client.send_ok(&[&large]);
    assert_eq!(node.metric("pawl_request_bytes "), 0.0);
    drop(claims);
}

#[test]
fn requests_sent_together_are_answered_in_order() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let mut frames = Vec::new();
    for number in 1..=50u64 {
        let body = send_body(Partitioning::Partition(0), &[&number.to_le_bytes()]);
        let mut header = client.header(CommandCode::SendMessages, &body);
        header.request = 100 + number;
        frames.extend_from_slice(header.as_bytes());
        frames.extend_from_slice(&body);
    }
    client.send_bytes(&frames);
    for number in 1..=50u64 {
        let answer = client.receive();
        assert_eq!(answer.header().request, 100 + number);
        let receipt = crate::util::receipt(&answer.payload());
        assert_eq!(receipt.base_offset, number - 1);
    }
}
