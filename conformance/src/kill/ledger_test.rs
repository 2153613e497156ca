//! The comparison finds each planted fault, and nothing where there is none.

use super::*;

fn key(client: u16, sequence: u64) -> MessageKey {
    MessageKey { client, sequence }
}

fn content(key: MessageKey) -> u64 {
    key.sequence * 31 + key.client as u64
}

fn batch(partition: u32, client: u16, first: u64, count: u64) -> Batch {
    Batch {
        partition,
        first: key(client, first),
        count,
    }
}

/// Client 0 has 0..3 confirmed at 0, client 1 has 0..2 at 3, client 0 has 3..5 at 5.
fn ledger() -> Ledger {
    let mut ledger = Ledger::new(2);
    ledger.confirm(batch(0, 0, 0, 3), 0).expect("free");
    ledger.confirm(batch(0, 1, 0, 2), 3).expect("free");
    ledger.confirm(batch(0, 0, 3, 2), 5).expect("free");
    ledger
}

fn observed(keys: &[MessageKey]) -> Vec<Observed> {
    (0u64..)
        .zip(keys)
        .map(|(offset, key)| Observed {
            offset,
            id: key.id(),
            fingerprint: content(*key),
        })
        .collect()
}

/// What [`ledger`] confirmed.
fn keys() -> Vec<MessageKey> {
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (0, 3), (0, 4)]
        .map(|(client, sequence)| key(client, sequence))
        .to_vec()
}

fn compare(keys: &[MessageKey], open: &[Batch]) -> Vec<Violation> {
    ledger().compare(&[observed(keys), Vec::new()], open, content)
}

#[test]
fn what_was_confirmed_and_nothing_else_passes() {
    assert_eq!(compare(&keys(), &[]), []);
    assert_eq!(ledger().count(), 7);
}

#[test]
fn a_lost_message_at_the_end_is_found() {
    let keys = keys();
    let found = compare(&keys[..5], &[]);
    let lost = Violation::Lost {
        partition: 0,
        offset: 5,
        key: key(0, 3),
        end: 5,
        lost: 2,
    };
    assert_eq!(found, [lost]);
}

#[test]
fn a_lost_message_in_the_middle_is_found() {
    let mut keys = keys();
    keys.remove(3);
    let found = compare(&keys, &[]);
    assert!(
        found
            .iter()
            .any(|v| matches!(v, Violation::WrongMessage { offset: 3, .. }))
    );
    assert!(
        found
            .iter()
            .any(|v| matches!(v, Violation::Lost { offset: 6, .. }))
    );
}

#[test]
fn a_lost_partition_is_found() {
    let found = ledger().compare(&[Vec::new(), Vec::new()], &[], content);
    assert!(matches!(found[..], [Violation::Lost { lost: 7, .. }]));
}

#[test]
fn a_duplicate_is_found_also_while_requests_are_open() {
    let mut keys = keys();
    keys.push(key(1, 0));
    let duplicate = Violation::Duplicate {
        partition: 0,
        offset: 7,
        key: key(1, 0),
        confirmed_partition: 0,
        confirmed: 3,
    };
    assert_eq!(compare(&keys, &[]), std::slice::from_ref(&duplicate));
    assert_eq!(compare(&keys, &[batch(0, 1, 2, 2)]), [duplicate]);
}

#[test]
fn a_duplicate_in_another_partition_is_found() {
    let copy = observed(&[key(0, 0)]);
    let found = ledger().compare(&[observed(&keys()), copy], &[], content);
    assert!(matches!(
        found[..],
        [Violation::Duplicate { partition: 1, .. }]
    ));
}

#[test]
fn a_message_at_a_wrong_offset_is_found() {
    let mut keys = keys();
    keys.swap(2, 3);
    let found = compare(&keys, &[]);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|v| matches!(v, Violation::WrongMessage { .. }))
    );

    let mut shifted = observed(&self::keys());
    shifted[6].offset = 7;
    let found = ledger().compare(&[shifted, Vec::new()], &[], content);
    assert!(matches!(
        found[..],
        [Violation::Offset {
            expected: 6,
            found: 7,
            ..
        }]
    ));
}

#[test]
fn an_altered_message_is_found() {
    let mut altered = observed(&keys());
    altered[4].fingerprint ^= 1;
    let found = ledger().compare(&[altered, Vec::new()], &[], content);
    assert!(matches!(found[..], [Violation::Altered { offset: 4, .. }]));
}

#[test]
fn an_open_batch_may_be_there_whole_or_not_at_all() {
    let open = [batch(0, 1, 2, 2)];
    assert_eq!(compare(&keys(), &open), []);
    let mut whole = keys();
    whole.extend([key(1, 2), key(1, 3)]);
    assert_eq!(compare(&whole, &open), []);
    // Once answered, nothing is open: the same messages are unknown.
    assert_eq!(compare(&whole, &[]).len(), 2);
}

#[test]
fn a_torn_or_doubled_open_batch_is_found() {
    let open = [batch(0, 1, 2, 2)];
    let mut half = keys();
    half.push(key(1, 2));
    assert!(matches!(
        compare(&half, &open)[..],
        [Violation::TornBatch { found: 1, .. }]
    ));
    let mut twice = keys();
    twice.extend([key(1, 2), key(1, 3), key(1, 2), key(1, 3)]);
    assert!(matches!(
        compare(&twice, &open)[..],
        [Violation::TornBatch { found: 4, .. }]
    ));
}

#[test]
fn a_message_of_nobody_is_found() {
    let mut messages = observed(&keys());
    messages.push(Observed {
        offset: 7,
        id: 99,
        fingerprint: 0,
    });
    let found = ledger().compare(&[messages, Vec::new()], &[], content);
    assert!(matches!(found[..], [Violation::Unknown { found: 99, .. }]));
}

#[test]
fn an_offset_that_is_confirmed_twice_is_found() {
    let twice = ledger().confirm(batch(0, 2, 0, 1), 4);
    assert!(matches!(
        twice,
        Err(Violation::ConfirmedTwice { offset: 4, .. })
    ));
}
