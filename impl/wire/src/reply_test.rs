use super::*;
use crate::entry::EntryKind;

fn request(operation: Operation) -> RequestHeader {
    RequestHeader {
        client: 0x1122,
        session: 5,
        request: 9,
        request_checksum: 77,
        ..RequestHeader::new(operation, 0)
    }
}

#[test]
fn refusals_take_the_channel_of_the_operation() {
    for operation in Operation::ALL {
        let reply = Reply::to_request(&request(operation), 40);
        let rejected = reply.rejected(ErrorCode::StreamIdNotFound);
        let framed = reply.operation.is_result_framed() || operation == Operation::Register;
        let bytes = HEADER_BYTES + if framed { RESULT_REJECTION_BYTES } else { 0 };
        assert_eq!(rejected.len(), bytes, "{operation:?}");
        let Ok(Answer::Refused(header, 1009)) = Answer::decode(&rejected) else {
            panic!("{operation:?} is refused");
        };
        assert_eq!(header.status == 0, framed, "{operation:?}");
        assert_eq!((header.client, header.request), (0x1122, 9));

        let denied = reply.denied(ErrorCode::Unauthorized);
        assert_eq!(denied.len(), HEADER_BYTES);
        let Ok(Answer::Refused(header, 41)) = Answer::decode(&denied) else {
            panic!("{operation:?} is denied");
        };
        assert_eq!((header.op, header.commit), (0, 40));
    }
}

#[test]
fn successes_reach_the_client_without_their_result_section() {
    for operation in Operation::ALL {
        let reply = Reply::to_request(&request(operation), 40);
        let frame = reply.success_with(|out| out.extend_from_slice(b"payload"));
        let Ok(Answer::Payload(header, b"payload")) = Answer::decode(&frame) else {
            panic!("{operation:?} succeeds");
        };
        assert_eq!((header.op, header.commit), (5, 40));
        let empty = reply.empty();
        assert!(matches!(
            Answer::decode(&empty),
            Ok(Answer::Payload(_, b""))
        ));
    }
}

#[test]
fn unknown_operations_are_answered_as_reads() {
    let header = RequestHeader {
        operation: 99,
        ..request(Operation::NonReplicated)
    };
    let denied = Reply::to_request(&header, 1).denied(ErrorCode::InvalidCommand);
    let Ok(Answer::Refused(header, 3)) = Answer::decode(&denied) else {
        panic!("a refusal");
    };
    assert_eq!(header.operation, 2);
}

#[test]
fn replies_to_entries_name_the_op_and_the_first_view() {
    let entry = EntryHeader {
        client: 1,
        request: 2,
        request_checksum: 3,
        op: 4,
        timestamp: 5,
        cluster: 6,
        view: 7,
        replica: 1,
        ..EntryHeader::new(EntryKind::DeleteSegments)
    };
    let frame = Reply::to_entry(&entry).expect("a client's entry").empty();
    let Ok(Answer::Payload(header, b"")) = Answer::decode(&frame) else {
        panic!("a success");
    };
    assert_eq!(header.operation, Operation::TruncatePartition as u8);
    assert_eq!((header.op, header.commit, header.view), (4, 4, 7));
    assert_eq!(
        (header.timestamp, header.cluster, header.replica),
        (5, 6, 1)
    );
    for kind in [EntryKind::Genesis, EntryKind::Noop, EntryKind::Release] {
        assert_eq!(Reply::to_entry(&EntryHeader::new(kind)), None);
    }
}

#[test]
fn damaged_answers_are_errors() {
    let frame = Reply::to_request(&request(Operation::CreateStream), 1).empty();
    for cut in 0..frame.len() {
        assert!(Answer::decode(&frame[..cut]).is_err(), "{cut}");
    }
    let changed = |at: usize, value: u8| {
        let mut bytes = frame.to_vec();
        bytes[at] = value;
        Answer::decode(&bytes).map(|_| ()).expect_err("damaged")
    };
    assert_eq!(changed(60, 5), AnswerError::Command(5));
    assert_eq!(changed(208, 99), AnswerError::Operation(99));
    assert!(matches!(changed(HEADER_BYTES, 1), AnswerError::Result(_)));
}
