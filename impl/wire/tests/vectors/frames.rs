//! Whole frames: requests with their headers, replies, evictions.

use bytes::BytesMut;
use pawl_wire::command::{Command, Target};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::frame::{Decoded, FRAME_BYTES_MAX_DEFAULT, decode_frame};
use pawl_wire::headers::{
    COMMAND_EVICTION, COMMAND_REPLY, COMMAND_REQUEST, EvictionReason, HEADER_BYTES, RequestHeader,
    request_checksum,
};
use pawl_wire::operation::Operation;
use pawl_wire::reply::{Answer, Reply, eviction};

use crate::Vector;
use crate::values::{byte, number, small, text};

pub fn check(vector: &Vector) {
    let bytes = vector.bytes();
    match bytes[60] {
        COMMAND_REQUEST => check_request(vector, &bytes),
        COMMAND_REPLY => check_reply(vector, &bytes),
        COMMAND_EVICTION => check_eviction(vector, &bytes),
        command => panic!("no checker for {} with command {command}", vector.name),
    }
}

fn check_request(vector: &Vector, bytes: &[u8]) {
    let (name, code, fields) = (&vector.name, vector.code(), &vector.fields);
    let Decoded::Frame(frame) = decode_frame(&mut BytesMut::from(bytes), FRAME_BYTES_MAX_DEFAULT)
    else {
        panic!("{name} is one frame");
    };
    let header = frame.header;
    assert_eq!(
        header.client,
        u128::from(number(&fields["client"])),
        "{name}"
    );
    assert_eq!(header.request, number(&fields["request"]), "{name}");
    assert_eq!(header.session, number(&fields["session"]), "{name}");
    assert_eq!(header.size, small(&fields["size"]), "{name}");
    assert_eq!(header.code, small(&fields["code_at_196"]), "{name}");
    let checksum = format!("{:032x}", header.request_checksum);
    assert_eq!(checksum, text(&fields["request_checksum"]), "{name}");
    assert_eq!(Some(header.operation), vector.operation, "{name}");
    assert!(header.covers(&frame.body), "{name}");
    let target = match code.operation() {
        Operation::Register => Target::Register,
        _ => Target::Command(code),
    };
    assert_eq!(header.target(), Ok(target), "{name}");

    let body = Command::decode(code, &frame.body)
        .expect("the body decodes")
        .encode();
    let made = RequestHeader {
        client: header.client,
        request: header.request,
        session: header.session,
        ..RequestHeader::for_command(code, &body)
    };
    assert_eq!([made.as_bytes(), &body[..]].concat(), bytes, "{name}");
}

/// The body of the request that a reply vector answers, where the request has a checksum.
fn request_body(operation: Operation) -> Vec<u8> {
    match operation {
        Operation::Register => crate::vector("login_register").bytes(),
        Operation::CreateStream => crate::vector("stream_create").bytes(),
        Operation::DeleteSegments => crate::vector("segments_delete").bytes(),
        Operation::Logout => Vec::new(),
        operation => panic!("{operation:?} has no checksum"),
    }
}

/// The commit timestamp. Two vectors do not name theirs among the fields; the dialect's table of
/// header frames does.
fn timestamp(name: &str, field: Option<u64>) -> u64 {
    match name {
        "frame_rejected_1012" => 1001,
        "frame_delete_segments_reply" => 1002,
        _ => field.unwrap_or(0),
    }
}

fn check_reply(vector: &Vector, bytes: &[u8]) {
    let (name, fields) = (&vector.name, &vector.fields);
    let optional = |field: &str| fields.get(field).map(number);
    let operation = vector.code().operation();
    assert_eq!(vector.operation, Some(operation.in_reply() as u8), "{name}");
    let reply = Reply {
        operation: operation.in_reply(),
        client: number(&fields["client"]).into(),
        request: number(&fields["request"]),
        request_checksum: match operation.is_checksummed() {
            true => request_checksum(&request_body(operation)),
            false => 0,
        },
        context: 0,
        op: optional("op").unwrap_or(0),
        commit: optional("commit").unwrap_or(0),
        timestamp: timestamp(name, optional("timestamp")),
        cluster: 0,
        view: 0,
        replica: 0,
    };
    let answer = Answer::decode(bytes).expect("the frame is an answer");
    let status = optional("status").expect("a status");
    let refusal = match (optional("result_code"), status) {
        (Some(code), 0) => Some(code),
        (None, 0) => None,
        (_, status) => Some(status),
    };
    let Some(code) = refusal else {
        let payload = fields
            .get("body")
            .map(|body| crate::vector(text(body)).bytes());
        let payload = payload.unwrap_or_default();
        let header = reply.header((bytes.len() - HEADER_BYTES) as u32);
        assert_eq!(answer, Answer::Payload(header, &payload), "{name}");
        let made = reply.success_with(|out| out.extend_from_slice(&payload));
        assert_eq!(made, bytes, "{name}");
        return;
    };
    let code = ErrorCode::from_u32(code as u32).expect("a known code");
    let Answer::Refused(header, refused) = answer else {
        panic!("{name} is a refusal");
    };
    assert_eq!(refused, code.code(), "{name}");
    assert_eq!(header.status, status as u32, "{name}");
    assert_eq!(
        (header.op, header.commit),
        (reply.op, reply.commit),
        "{name}"
    );
    let made = match (status, reply.timestamp) {
        (0, 0) => reply.refused(code),
        (0, _) => reply.rejected(code),
        _ => reply.denied(code),
    };
    assert_eq!(made, bytes, "{name}");
}

fn check_eviction(vector: &Vector, bytes: &[u8]) {
    let (name, fields) = (&vector.name, &vector.fields);
    let client = u128::from(number(&fields["client"]));
    let reason = EvictionReason::from_u8(byte(&fields["reason"])).expect("a known reason");
    assert_eq!(eviction(client, reason), bytes, "{name}");
    let Ok(Answer::Evicted(header)) = Answer::decode(bytes) else {
        panic!("{name} is an eviction");
    };
    assert_eq!(header.client, client, "{name}");
    assert_eq!(header.reason, reason as u8, "{name}");
    let window = (header.protocol_version_max, header.protocol_version_min);
    let optional = |field: &str| fields.get(field).map_or(0, small);
    assert_eq!(window, (optional("max"), optional("min")), "{name}");
}
