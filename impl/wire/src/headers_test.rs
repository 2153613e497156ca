use super::*;

fn request(operation: u8, session: u64, number: u64) -> RequestHeader {
    RequestHeader {
        command: COMMAND_REQUEST,
        client: 7,
        operation,
        session,
        request: number,
        ..RequestHeader::zeroed()
    }
}

#[test]
fn numbers_are_judged_by_operation() {
    for operation in Operation::ALL {
        for (session, number) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let verdict = request(operation as u8, session, number).validate();
            let valid = match operation {
                Operation::NonReplicated => true,
                Operation::Register => (session, number) == (0, 0),
                _ => (session, number) == (1, 1),
            };
            assert_eq!(verdict.is_ok(), valid, "{operation:?} {session} {number}");
            if let Ok(named) = verdict {
                assert_eq!(named, operation);
            }
        }
    }
}

#[test]
fn every_unlisted_operation_is_refused() {
    for operation in (0..=255).filter(|value| Operation::from_u8(*value).is_none()) {
        let refused = Err(HeaderError::Operation(operation));
        assert_eq!(request(operation, 1, 1).validate(), refused);
    }
}

#[test]
fn every_command_but_a_request_closes() {
    for command in (0..=255).filter(|command| *command != COMMAND_REQUEST) {
        let header = RequestHeader {
            command,
            ..request(2, 0, 0)
        };
        let refused = header.validate().expect_err("not a request");
        assert_eq!(refused, HeaderError::Command(command));
        assert!(refused.closes());
        assert_eq!(refused.code(), ErrorCode::InvalidCommand);
    }
}

#[test]
fn client_zero_is_refused_and_the_connection_stays() {
    let header = RequestHeader {
        client: 0,
        ..request(2, 0, 0)
    };
    assert_eq!(header.validate(), Err(HeaderError::ClientZero));
    assert!(!HeaderError::ClientZero.closes());
}

#[test]
fn reserved_bytes_of_a_request_are_not_looked_at() {
    let mut header = request(2, 0, 0);
    header.reserved = [0xff; 56];
    header.reserved_frame = [0xff; 66];
    header.padding = [0xff; 7];
    assert_eq!(header.validate(), Ok(Operation::NonReplicated));
}

#[test]
fn checksum_zero_covers_everything_and_others_only_their_body() {
    let mut header = request(128, 1, 1);
    assert!(header.covers(b"any"));
    header.request_checksum = request_checksum(b"body");
    assert!(header.covers(b"body"));
    assert!(!header.covers(b"bodY"));
    header.request_checksum |= 1 << 64;
    assert!(!header.covers(b"body"), "the high half must be zero");
    assert_eq!(request_checksum(b""), 0x2d06_8005_38d3_94c2);
}

#[test]
fn reasons_follow_the_table_of_client_errors() {
    let errors = [40, 3, 3, 3, 3, 3, 40, 40, 42, 53, 40, 40, 30, 14003, 4];
    for (number, error) in (1..=15).zip(errors) {
        let reason = EvictionReason::from_u8(number).expect("a listed reason");
        assert_eq!(reason as u8, number);
        assert_eq!(reason.client_error().code(), error, "{reason:?}");
    }
    for number in [0].into_iter().chain(16..=255) {
        assert_eq!(EvictionReason::from_u8(number), None);
    }
}
