//! Signing in and out, who a connection speaks for, and what fences it.

use pawl_wire::command::CommandCode;
use pawl_wire::commands::session::{
    ClientVersion, LoginRegisterWithToken, LoginReply, PROTOCOL_VERSION, pack_version,
};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::EvictionReason;
use pawl_wire::primitives::{Name, Secret, Text32, Wire};

use crate::util::{Answer, TestNode, until};

#[test]
fn a_login_is_answered_with_user_session_and_version() {
    let node = TestNode::start();
    let mut client = node.connect();
    let answer = client.login("iggy", "iggy");
    let header = answer.header();
    let payload = answer.payload();
    let reply = LoginReply::decode(&payload).expect("a login reply");
    assert_eq!(reply.user_id, 0);
    assert_eq!(reply.session, header.op);
    assert_eq!(reply.server_protocol_version, PROTOCOL_VERSION);
    assert!(header.commit >= reply.session);
    assert_ne!(header.request_checksum, 0, "the client's own checksum");
}

/// spec ANS-17, ANS-18
#[test]
fn logins_are_refused_in_the_order_of_their_judgement() {
    use EvictionReason::*;
    let node = TestNode::start();
    let mut client = node.connect();
    for body in [&b""[..], b"\0", b"\0\x2c\0\0", b"\0\x2c\0\0\x01a\x01b"] {
        client.login_body(body).assert_evicted(MalformedLogin);
    }
    for version in [
        0,
        pack_version(0, 10, 9),
        pack_version(0, 12, 0),
        pack_version(1, 0, 0),
    ] {
        let answer = client.login_with(version, "iggy", "iggy", "");
        answer.assert_evicted(IncompatibleProtocol);
    }
    for (username, password) in [("iggy", "wrong"), ("nobody", "iggy"), ("iggy", "")] {
        let answer = client.login(username, password);
        answer.assert_evicted(InvalidCredentials);
    }
    let token = LoginRegisterWithToken {
        version: ClientVersion {
            protocol_version: PROTOCOL_VERSION,
            sdk_name: Name::new("test").expect("a name"),
            sdk_version: Name::new("1").expect("a name"),
        },
        token: Secret("no such token"),
        context: Text32(""),
    };
    client
        .login_body(&token.encode())
        .assert_evicted(InvalidToken);
    // Any patch of our minor version is served, on the same connection.
    let answer = client.login_with(pack_version(0, 11, 7), "iggy", "iggy", "");
    assert!(matches!(answer, Answer::Payload(..)));
}

/// spec SES-15
#[test]
fn headers_that_name_another_session_do_nothing() {
    let node = TestNode::start();
    let mut holder = node.sign_in();
    let mut thief = node.connect();
    // Not signed in, but with id and session of a live client.
    (thief.id, thief.session) = (holder.id, holder.session);
    thief
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_evicted(EvictionReason::NoSession);
    let read = thief.body(CommandCode::GetStreams, b"");
    read.assert_status(ErrorCode::Unauthenticated);
    assert_eq!(thief.body(CommandCode::Logout, b"").payload(), b"");

    // Signed in as itself, but naming the other's client.
    let mut other = node.sign_in();
    (other.id, other.session) = (holder.id, holder.session);
    other
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_evicted(EvictionReason::NoSession);
    assert_eq!(holder.body(CommandCode::GetStreams, b"").payload(), b"");
    assert!(matches!(
        holder.body(CommandCode::CreateStream, b"\x01s"),
        Answer::Payload(..)
    ));
}

#[test]
fn older_and_newer_sessions_in_a_header_are_told_apart() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    client.session += 1;
    client
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_status(ErrorCode::InvalidCommand);
    client.session -= 2;
    client
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_evicted(EvictionReason::SessionTooLow);
    client
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_evicted(EvictionReason::NoSession);
}

/// spec SES-5, SES-12
#[test]
fn a_second_sign_in_of_a_client_fences_the_first() {
    let node = TestNode::start();
    let mut first = node.sign_in();
    let mut second = node.connect();
    second.id = first.id;
    second.sign_in();
    assert!(second.session > first.session);
    let answer = first.body(CommandCode::CreateStream, b"\x01s");
    answer.assert_evicted(EvictionReason::SessionTooLow);
    let read = first.body(CommandCode::GetStreams, b"");
    read.assert_status(ErrorCode::Unauthenticated);
    let answer = second.body(CommandCode::CreateStream, b"\x01s");
    assert!(matches!(answer, Answer::Payload(..)));
    // The end of the fenced connection releases nothing of the second.
    drop(first);
    assert_eq!(
        second.body(CommandCode::GetStreams, b"").payload().len(),
        38
    );
}

#[test]
fn a_fenced_connection_cannot_even_read() {
    let node = TestNode::start();
    let mut first = node.sign_in();
    let mut second = node.connect();
    second.id = first.id;
    second.sign_in();
    let answer = first.body(CommandCode::GetStreams, b"");
    answer.assert_evicted(EvictionReason::SessionTooLow);
    assert!(first.is_alive());
}

/// spec SES-23
#[test]
fn after_a_logout_the_connection_is_nobody_and_may_sign_in_again() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let session = client.session;
    assert_eq!(client.body(CommandCode::Logout, b"").payload(), b"");
    let read = client.body(CommandCode::GetStreams, b"");
    read.assert_status(ErrorCode::Unauthenticated);
    client
        .body(CommandCode::CreateStream, b"\x01s")
        .assert_evicted(EvictionReason::NoSession);
    client.sign_in();
    assert!(client.session > session);
}

/// spec DED-4, DED-5, DED-7
#[test]
fn repeats_of_writes_are_recognised_and_counted() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let create = client.header(CommandCode::CreateStream, b"\x01a");
    let first = client.exchange(&create, b"\x01a");
    assert!(matches!(first, Answer::Payload(..)));
    let again = client.exchange(&create, b"\x01a");
    assert_eq!(again, first, "byte for byte");
    let other = pawl_wire::headers::RequestHeader {
        request_checksum: pawl_wire::headers::request_checksum(b"\x01b"),
        ..create
    };
    let answer = client.exchange(&other, b"\x01b");
    assert_eq!(answer.code(), Some(ErrorCode::InvalidCommand.code()));
    for number in 2..=8 {
        client.number = number;
        let body = [1, b'b' + number as u8];
        let answer = client.body(CommandCode::CreateStream, &body);
        assert!(matches!(answer, Answer::Payload(..)));
    }
    let answer = client.exchange(&create, b"\x01a");
    answer.assert_result(ErrorCode::RequestAlreadyApplied);
    assert_eq!(answer.header().context, 8, "the watermark");
    for (reason, count) in [
        ("kept_reply", 1.0),
        ("number_used", 1.0),
        ("applied_earlier", 1.0),
    ] {
        let line = format!("pawl_repeats_total{{reason=\"{reason}\"}}");
        assert_eq!(node.metric(&line), count, "{reason}");
    }
}

/// spec DED-4, DED-14
#[test]
fn a_client_that_comes_back_after_a_restart_gets_its_reply_again() {
    let node = TestNode::start();
    let mut client = node.sign_in();
    let create = client.header(CommandCode::CreateStream, b"\x01a");
    let first = client.exchange(&create, b"\x01a");
    let (id, session) = (client.id, client.session);
    let node = node.restart();
    let mut client = node.connect();
    client.id = id;
    client.sign_in();
    assert!(client.session > session);
    let again = pawl_wire::headers::RequestHeader {
        session: client.session,
        ..create
    };
    assert_eq!(client.exchange(&again, b"\x01a"), first);
}

/// spec SES-26
#[test]
fn a_closed_connection_is_released() {
    let node = TestNode::start();
    let client = node.sign_in();
    let id = client.id;
    drop(client);
    // Genesis, two sign-ins and the release: the log has four ops before anything else comes.
    let mut witness = node.sign_in();
    until(|| witness.body(CommandCode::Ping, b"").header().commit == 4);
    let mut back = node.connect();
    back.id = id;
    back.sign_in();
}
