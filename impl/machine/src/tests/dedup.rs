//! Watermark, ring, repeats, produces: clause by clause.

use pawl_wire::commands::streams::{CreateStream, DeleteStream};
use pawl_wire::options::Options;
use pawl_wire::primitives::{Identifier, Name};

use super::*;

fn create(name: &str) -> Vec<u8> {
    let name = Name::new(name).expect("a name");
    let options = Options::EMPTY;
    CreateStream { name, options }.encode()
}

fn header(session: Session, number: u64, checksum: u128) -> EntryHeader {
    EntryHeader {
        request_checksum: checksum,
        ..session.header(EntryKind::CreateStream, number)
    }
}

fn watermark(log: &Log) -> u64 {
    log.machine
        .client(ClientId(5))
        .expect("an entry")
        .watermark
        .0
}

// spec DED-1, DED-2
#[test]
fn numbers_may_be_skipped_and_refusals_by_the_state_spend_them() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    assert!(log.apply(header(session, 4, 0), &create("s")).is_done());
    let refused = log.apply(header(session, 9, 0), &create("s"));
    assert!(refused.is(ErrorCode::StreamNameAlreadyExists));
    let first = log.frame.clone();
    assert_eq!(watermark(&log), 9);
    // The name becomes free; the repeat is told what the first one was told.
    let delete = DeleteStream {
        stream: Identifier::Numeric(0),
    };
    assert!(
        log.request(session, 10, EntryKind::DeleteStream, &delete)
            .is_done()
    );
    log.apply(header(session, 9, 0), &create("s"));
    assert_eq!(log.frame, first);
    assert_eq!(log.machine.catalog.streams().len(), 0);
}

// spec DED-4
#[test]
fn a_repeat_gets_the_same_bytes_in_a_later_view_and_epoch() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    log.apply(header(session, 1, 8), &create("s"));
    let first = log.frame.clone();
    let back = log.sign_in(5);
    log.pass(100);
    let mut repeat = header(back, 1, 8);
    repeat.replica = 2;
    log.apply(repeat, &create("s"));
    assert_eq!(log.frame, first);
}

// spec DED-5, DED-6
#[test]
fn one_number_is_one_request_and_zero_says_nothing() {
    for (kept, sent, same) in [(8, 8, true), (8, 0, true), (0, 8, true), (8, 9, false)] {
        let mut log = Log::new();
        let session = log.sign_in(5);
        log.apply(header(session, 1, kept), &create("s"));
        let first = log.frame.clone();
        let clients = log.machine.clients.clone();
        let said = log.apply(header(session, 1, sent), &create("s"));
        match same {
            true => assert_eq!(log.frame, first),
            false => {
                assert_eq!(said.header().status, ErrorCode::InvalidCommand.code());
                assert_eq!(said.header().op, 0);
            }
        }
        assert_eq!(log.machine.clients, clients, "a repeat changes nothing");
    }
}

// spec DED-19
#[test]
fn a_number_that_was_used_for_another_operation_is_refused() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    log.apply(header(session, 1, 0), &create("s"));
    let delete = DeleteStream {
        stream: Identifier::Numeric(0),
    };
    let said = log.request(session, 1, EntryKind::DeleteStream, &delete);
    assert_eq!(said.header().status, 3);
    assert_eq!(log.machine.catalog.streams().len(), 1);
}

// spec DED-7, DED-8, known fault 2.2
#[test]
fn past_the_ring_a_repeat_is_told_that_it_was_applied_earlier() {
    let mut log = Log::new();
    let session = log.sign_in(5);
    let mut frames = Vec::new();
    for number in 1..=8 {
        log.apply(
            header(session, number, number as u128),
            &create(&format!("s{number}")),
        );
        frames.push(log.frame.clone());
    }
    for number in 1..=8 {
        let said = log.apply(header(session, number, number as u128), &create("x"));
        if number > 3 {
            assert_eq!(log.frame, frames[number as usize - 1]);
            continue;
        }
        assert!(said.is(ErrorCode::RequestAlreadyApplied));
        let reply = said.header();
        assert_eq!(
            (reply.context, reply.status),
            (8, 0),
            "a result section names the watermark"
        );
        assert_eq!((reply.op, reply.commit), (log.op().0, log.op().0));
        assert_eq!(reply.request, number);
    }
    assert_eq!(log.machine.catalog.streams().len(), 8);
}

// spec DED-5
#[test]
fn another_checksum_at_a_watermark_without_reply_is_refused() {
    let mut log = Log::with(ClusterConstants {
        clients_max: 1,
        ..ClusterConstants::default()
    });
    let session = log.sign_in(5);
    log.apply(header(session, 3, 8), &create("s"));
    log.sign_in(6);
    let back = log.sign_in(5);
    assert_eq!(
        log.apply(header(back, 3, 9), &create("t")).header().status,
        3
    );
    let earlier = ErrorCode::RequestAlreadyApplied;
    assert!(log.apply(header(back, 3, 8), &create("s")).is(earlier));
    assert!(log.apply(header(back, 3, 0), &create("s")).is(earlier));
    assert!(log.apply(header(back, 2, 9), &create("s")).is(earlier));
}

// spec DED-15
#[test]
fn numbers_of_two_clients_have_nothing_to_do_with_each_other() {
    let mut log = Log::new();
    let one = log.sign_in(5);
    let other = log.sign_in(6);
    assert!(log.apply(header(one, 3, 8), &create("s")).is_done());
    assert!(log.apply(header(other, 3, 9), &create("t")).is_done());
    assert!(log.apply(header(other, 4, 0), &create("u")).is_done());
    assert!(log.apply(header(one, 4, 0), &create("v")).is_done());
}
