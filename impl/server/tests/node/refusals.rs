//! The whole table of commands before and after sign-in, and what is not served.

use pawl_wire::command::{CommandClass, CommandCode};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{EvictionReason, RequestHeader};
use pawl_wire::operation::Operation;
use pawl_wire::primitives::{ConsumerKind, Wire};

use crate::util::{Answer, TestNode};

/// Commands that this release does not carry out (spec ANS-15).
const NOT_SERVED: [CommandCode; 13] = {
    use CommandCode::*;
    [
        GetSnapshot,
        FlushUnsaved,
        GetUser,
        GetUsers,
        CreateUser,
        DeleteUser,
        UpdateUser,
        UpdatePermissions,
        ChangePassword,
        GetTokens,
        CreateToken,
        DeleteToken,
        DeleteSegments,
    ]
};

/// spec ANS-14
#[test]
fn before_sign_in_every_command_gets_the_refusal_of_its_kind() {
    let node = TestNode::start();
    let mut client = node.connect();
    for code in CommandCode::ALL {
        let is_read = code.operation() == Operation::NonReplicated;
        let mut header = client.header(*code, b"");
        header.session = if is_read { 0 } else { 1 };
        if code.operation() == Operation::Register {
            continue;
        }
        let answer = client.exchange(&header, b"");
        match code {
            CommandCode::Ping | CommandCode::Logout => {
                assert_eq!(answer.payload(), b"", "{code:?}");
            }
            _ if is_read => answer.assert_status(ErrorCode::Unauthenticated),
            _ => answer.assert_evicted(EvictionReason::NoSession),
        }
    }
    client.sign_in();
    assert!(client.is_alive());
}

/// spec ANS-15
#[test]
fn what_is_not_served_is_refused_in_its_channel_and_the_session_lives() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    for code in &NOT_SERVED {
        let answer = client.body(*code, b"");
        if code.class() == CommandClass::MetadataWrite {
            answer.assert_result(ErrorCode::FeatureUnavailable);
        } else {
            answer.assert_status(ErrorCode::FeatureUnavailable);
        }
        assert!(client.is_alive(), "{code:?}");
    }
}

/// spec ANS-16
#[test]
fn codes_by_the_wrong_door_and_unknown_codes_are_refused_by_type() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let read = |code: u32| RequestHeader {
        client: 7,
        request: 1,
        code,
        ..RequestHeader::new(Operation::NonReplicated, 0)
    };
    for code in CommandCode::ALL {
        if code.operation() != Operation::NonReplicated {
            let answer = client.exchange(&read(code.code()), b"");
            answer.assert_status(ErrorCode::FeatureUnavailable);
        }
    }
    for code in [0, 2, 99, 999, u32::MAX] {
        client
            .exchange(&read(code), b"")
            .assert_status(ErrorCode::InvalidCommand);
    }
    assert!(client.is_alive());
    for code in [38, 44] {
        let mut client = node.sign_in();
        let old_login = client.exchange(&read(code), b"");
        old_login.assert_evicted(EvictionReason::MalformedLogin);
        // spec ANS-11
        client
            .body(CommandCode::GetStreams, b"")
            .assert_status(ErrorCode::Unauthenticated);
        client.sign_in();
    }
}

#[test]
fn internal_operations_are_evicted() {
    let node = TestNode::start();
    for operation in [
        Operation::CreateTopicAssigned,
        Operation::CreatePartitionsAssigned,
        Operation::RemoveGroupMember,
        Operation::CompleteGroupRevocation,
        Operation::TruncatePartition,
    ] {
        let mut client = node.sign_in();
        let header = RequestHeader {
            client: client.id,
            session: client.session,
            request: 1,
            ..RequestHeader::new(operation, 0)
        };
        let answer = client.exchange(&header, b"");
        answer.assert_evicted(EvictionReason::InvalidRequestOperation);
        let answer = client.exchange(&header, b"");
        answer.assert_evicted(EvictionReason::NoSession);
    }
}

/// spec ANS-19
#[test]
fn headers_that_break_a_rule_are_answered_and_the_connection_stays() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let good = client.header(CommandCode::CreateStream, b"\x01s");
    let cases = [
        RequestHeader { client: 0, ..good },
        RequestHeader {
            operation: 0,
            ..good
        },
        RequestHeader {
            operation: 4,
            ..good
        },
        RequestHeader {
            operation: 127,
            ..good
        },
        RequestHeader {
            operation: 150,
            ..good
        },
        RequestHeader {
            operation: 255,
            ..good
        },
        RequestHeader { session: 0, ..good },
        RequestHeader { request: 0, ..good },
        RequestHeader {
            operation: Operation::Register as u8,
            ..good
        },
    ];
    for header in cases {
        let answer = client.exchange(&header, b"\x01s");
        answer.assert_status(ErrorCode::InvalidCommand);
        assert_eq!(answer.header().request, header.request, "spec ANS-9");
        assert!(client.is_alive());
    }
    let streams = client.body(CommandCode::GetStreams, b"").payload();
    assert_eq!(streams, b"", "nothing was created");
}

/// spec ANS-22
#[test]
fn a_body_that_does_not_match_its_checksum_is_refused_before_all_else() {
    let node = TestNode::start();
    let mut stranger = node.connect();
    let mut signed_in = node.sign_in();
    for client in [&mut stranger, &mut signed_in] {
        for code in [CommandCode::CreateStream, CommandCode::SendMessages] {
            let mut header = client.header(code, b"\x01s");
            header.session = header.session.max(1);
            header.request_checksum = 5;
            let answer = client.exchange(&header, b"\x01s");
            answer.assert_status(ErrorCode::InvalidFormat);
        }
        let mut header = client.header(CommandCode::GetStreams, b"");
        header.request_checksum = 5;
        let answer = client.exchange(&header, b"");
        answer.assert_status(ErrorCode::InvalidFormat);
        let mut header = client.header(CommandCode::CreateStream, b"\x01s");
        (header.client, header.request_checksum) = (0, 5);
        let answer = client.exchange(&header, b"\x01s");
        answer.assert_status(ErrorCode::InvalidFormat);
    }
}

/// spec ANS-13: bounds that need no state take no op.
#[test]
fn static_bounds_are_a_status_and_take_no_op() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let before = client.body(CommandCode::Ping, b"").header().commit;
    let topic = |partitions: u32, tail: &[u8]| {
        let mut body = vec![1, 4, 0, 0, 0, 0];
        body.extend_from_slice(&partitions.to_le_bytes());
        body.extend_from_slice(tail);
        body
    };
    let count = |partitions: u32| {
        let mut body = vec![1, 4, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0];
        body.extend_from_slice(&partitions.to_le_bytes());
        body
    };
    let option = b"\x01u\x02\x03\0\0\0odd\x02\x01\0\0\0x";
    let cases: [(CommandCode, Vec<u8>, ErrorCode); 10] = [
        (CommandCode::CreateStream, vec![], ErrorCode::InvalidCommand),
        (
            CommandCode::CreateStream,
            vec![0],
            ErrorCode::InvalidCommand,
        ),
        (
            CommandCode::CreateStream,
            vec![2, b'x'],
            ErrorCode::InvalidCommand,
        ),
        (
            CommandCode::CreateStream,
            vec![1, 0xff],
            ErrorCode::InvalidCommand,
        ),
        (
            CommandCode::CreateTopic,
            topic(1_001, b"\x01u"),
            ErrorCode::TooManyPartitions,
        ),
        (
            CommandCode::CreateTopic,
            topic(1, option),
            ErrorCode::UnsupportedOptionKey,
        ),
        (
            CommandCode::CreatePartitions,
            count(0),
            ErrorCode::TooManyPartitions,
        ),
        (
            CommandCode::CreatePartitions,
            count(1_001),
            ErrorCode::TooManyPartitions,
        ),
        (
            CommandCode::DeletePartitions,
            count(0),
            ErrorCode::TooManyPartitions,
        ),
        (
            CommandCode::DeleteTopic,
            vec![1, 4],
            ErrorCode::InvalidCommand,
        ),
    ];
    for (code, body, expected) in cases {
        client.body(code, &body).assert_status(expected);
    }
    assert_eq!(client.body(CommandCode::Ping, b"").header().commit, before);
}

/// spec ANS-12
#[test]
fn the_first_missing_level_is_named() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.create_topic("s", 2);
    let place = |stream: u8, topic: u8| vec![1, 4, stream, 0, 0, 0, 1, 4, topic, 0, 0, 0];
    let consumer = [ConsumerKind::Plain as u8, 1, 4, 1, 0, 0, 0];
    let cases = [
        (9, 0, 0, ErrorCode::StreamIdNotFound),
        (0, 9, 0, ErrorCode::TopicIdNotFound),
        (0, 0, 9, ErrorCode::PartitionNotFound),
    ];
    for (stream, topic, partition, expected) in cases {
        let target = [
            &consumer[..],
            &place(stream, topic),
            &[1, partition, 0, 0, 0],
        ]
        .concat();
        let poll = [&target[..], &[3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
        let offset = [&target[..], &[0; 8], &[1]].concat();
        let delete = [&target[..], &[1]].concat();
        let (get, poll_code) = (CommandCode::GetOffset, CommandCode::PollMessages);
        client.body(poll_code, &poll).assert_status(expected);
        client.body(get, &target).assert_status(expected);
        client
            .body(CommandCode::StoreOffset, &offset)
            .assert_status(expected);
        client
            .body(CommandCode::DeleteOffset, &delete)
            .assert_status(expected);
        let mut send = crate::util::send_body(
            pawl_wire::primitives::Partitioning::Partition(partition.into()),
            &[b"x"],
        );
        send[4..16].copy_from_slice(&place(stream, topic));
        client
            .body(CommandCode::SendMessages, &send)
            .assert_status(expected);
    }
    client
        .body(CommandCode::DeleteStream, &place(9, 0)[..6])
        .assert_result(ErrorCode::StreamIdNotFound);
    client
        .body(CommandCode::DeleteTopic, &place(0, 9))
        .assert_result(ErrorCode::TopicIdNotFound);
    // Reads of what is missing are empty.
    let empty = |answer: Answer| assert_eq!(answer.payload(), b"");
    empty(client.body(CommandCode::GetStream, &place(9, 0)[..6]));
    empty(client.body(CommandCode::GetTopic, &place(0, 9)));
    let topics = client.body(CommandCode::GetTopics, &place(9, 0)[..6]);
    assert_eq!(topics.payload(), 0u32.encode());
}
