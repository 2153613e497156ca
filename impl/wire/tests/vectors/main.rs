//! Every golden vector of the dialect, in both directions: its bytes decode to its fields, and its
//! fields encode to its bytes. A line without a checker fails.

mod frames;
mod replies;
mod requests;
mod values;

use pawl_wire::batch::{BatchHeader, Stamp, frame_checksums, slice_batch, verify_batch};
use pawl_wire::batch_client::PolledBatches;
use pawl_wire::command::{Command, CommandCode, Payload};
use pawl_wire::permissions::Permissions;
use pawl_wire::primitives::Wire;
use serde::Deserialize;
use serde_json::Value;

const LINES: &str = include_str!("../../../../spec/vectors/v11.jsonl");
const LINES_COUNT: usize = 125;

/// One line.
#[derive(Deserialize)]
struct Vector {
    name: String,
    kind: String,
    code: Option<u32>,
    operation: Option<u8>,
    fields: Value,
    hex: String,
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        assert!(self.hex.len().is_multiple_of(2), "{}", self.name);
        (0..self.hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&self.hex[at..at + 2], 16).expect("hex digits"))
            .collect()
    }

    fn code(&self) -> CommandCode {
        let code = self.code.expect("the vector names a code");
        CommandCode::from_u32(code).expect("the code is known")
    }
}

fn vectors() -> Vec<Vector> {
    LINES
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is a vector"))
        .collect()
}

/// The vector of this name.
fn vector(name: &str) -> Vector {
    let found = vectors().into_iter().find(|vector| vector.name == name);
    found.unwrap_or_else(|| panic!("there is no vector {name}"))
}

#[test]
fn every_line_is_checked_in_both_directions() {
    let vectors = vectors();
    assert_eq!(vectors.len(), LINES_COUNT);
    let mut names: Vec<&str> = vectors.iter().map(|vector| vector.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LINES_COUNT, "names are unique");
    for vector in &vectors {
        check(vector);
    }
}

#[test]
fn a_line_without_a_checker_fails() {
    for (kind, code) in [
        ("request", None),
        ("response", Some(1)),
        ("response", None),
        ("batch", None),
        ("trace", None),
    ] {
        let invented = Vector {
            name: "invented".into(),
            kind: kind.into(),
            code,
            operation: None,
            fields: serde_json::json!({}),
            hex: String::new(),
        };
        let checked = std::panic::catch_unwind(|| check(&invented));
        assert!(checked.is_err(), "{kind} {code:?}");
    }
}

fn check(vector: &Vector) {
    match (vector.kind.as_str(), vector.code) {
        ("request", Some(_)) => check_request(vector),
        ("request", None) => check_permissions(vector),
        ("response", Some(_)) => check_reply(vector),
        ("response", None) => replies::check_empty(vector),
        ("batch", None) => check_batch(vector),
        ("header", _) => frames::check(vector),
        _ => panic!("no checker for {} of kind {}", vector.name, vector.kind),
    }
}

fn check_request(vector: &Vector) {
    let (name, code, bytes) = (&vector.name, vector.code(), vector.bytes());
    let expected = requests::expected(code, &vector.fields);
    assert_eq!(
        Command::decode(code, &bytes).as_ref(),
        Ok(&expected),
        "{name}"
    );
    assert_eq!(expected.encode(), bytes, "{name}");
    assert_eq!(expected.code(), code, "{name}");
    assert_eq!(vector.operation, Some(code.operation() as u8), "{name}");
}

fn check_reply(vector: &Vector) {
    let (name, code, bytes) = (&vector.name, vector.code(), vector.bytes());
    let expected = replies::expected(name, &vector.fields);
    assert_eq!(
        Payload::decode(code, &bytes).as_ref(),
        Ok(&expected),
        "{name}"
    );
    assert_eq!(expected.encode(), bytes, "{name}");
    assert_eq!(expected.code(), code, "{name}");
    assert_eq!(vector.operation, Some(code.operation() as u8), "{name}");
}

fn check_permissions(vector: &Vector) {
    assert_eq!(vector.name, "permissions", "no checker for {}", vector.name);
    let bytes = vector.bytes();
    let expected = values::permissions(&vector.fields);
    assert_eq!(Permissions::decode(&bytes).as_ref(), Ok(&expected));
    assert_eq!(expected.encode(), bytes);
}

fn check_batch(vector: &Vector) {
    let (name, bytes) = (&vector.name, vector.bytes());
    let header = BatchHeader::decode(&bytes).expect("a batch header");
    let field = |field: &str| vector.fields[field].as_u64().expect("a number");
    assert_eq!(header.partition_id, field("partition_id"), "{name}");
    assert_eq!(header.base_offset, field("base_offset"), "{name}");
    assert_eq!(header.base_timestamp, field("base_timestamp"), "{name}");
    assert_eq!(header.origin_timestamp, field("origin_timestamp"), "{name}");
    assert_eq!(
        u64::from(header.message_count),
        field("message_count"),
        "{name}"
    );
    assert_eq!(header.batch_length, bytes.len() as u64, "{name}");
    let checksums = frame_checksums(&bytes).expect("sound frames");
    assert_eq!(
        header.batch_checksum,
        header.checksum_computed(&checksums),
        "{name}"
    );
    if let Some(checksum) = vector.fields["batch_checksum"].as_str() {
        assert_eq!(
            format!("{:016x}", header.batch_checksum),
            checksum,
            "{name}"
        );
    }
    assert_eq!(made_batch(name), bytes, "{name}");
}

/// The batch of this name made from the one that was sent.
fn made_batch(name: &str) -> Vec<u8> {
    let send = vector("send_messages");
    let messages = values::messages(&send.fields["messages"]);
    let sent = values::batch(&messages);
    let stamped = verify_batch(&sent).expect("sound").stamped(Stamp {
        partition_id: 0,
        base_offset: 10,
        base_timestamp: 2000,
    });
    match name {
        "batch_as_sent" => sent,
        "batch_stamped" => [stamped.as_bytes(), &sent[256..]].concat(),
        "batch_sliced_tail" => {
            let slice = slice_batch(&sent, &stamped, 1..2).expect("within the batch");
            let record = [slice.header.as_bytes(), &sent[slice.frames]].concat();
            let polled = PolledBatches::new(&record).next().expect("a record");
            let message = polled.expect("sound").messages().next().expect("a message");
            let first_offset = vector(name).fields["first_offset"].as_u64();
            assert_eq!(first_offset, Some(message.expect("sound").offset));
            record
        }
        _ => panic!("no checker for {name}"),
    }
}
