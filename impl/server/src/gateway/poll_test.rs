use pawl_store::{Place, PlaceFile, SegmentId};
use pawl_wire::ids::Op;
use pawl_wire::primitives::{Consumer, Identifier, OptionalPartition};

use super::*;

fn entry(base_offset: u64, message_count: u32) -> BatchEntry {
    BatchEntry {
        base_offset,
        message_count,
        timestamp: Timestamp(base_offset * 10),
        op: Op(base_offset + 1),
        batch_position: 0,
        batch_length: 1000,
        place: Place {
            file: PlaceFile::Log(SegmentId(1)),
            position: 0,
            bytes: 1000,
            checksum: 0,
        },
    }
}

fn poll(strategy: PollingStrategy, count: u32) -> PollMessages<'static> {
    PollMessages {
        consumer: Consumer::Plain(Identifier::Numeric(1)),
        stream: Identifier::Numeric(0),
        topic: Identifier::Numeric(0),
        partition: OptionalPartition(None),
        strategy,
        count,
        auto_commit: false,
    }
}

/// A partition that holds the offsets 5 to 24.
fn start(strategy: PollingStrategy, count: u32, stored: Option<u64>) -> Option<u64> {
    let by_time = |t| (t <= 200).then_some(t / 10);
    let poll = poll(strategy, count);
    let start = start_of(&poll, stored, &entry(5, 10), &entry(15, 10), by_time);
    assert_eq!(start.current, 24);
    start.offset
}

#[test]
fn strategies_start_where_the_table_says() {
    use PollingStrategy::*;
    assert_eq!(start(Offset(7), 3, None), Some(7));
    assert_eq!(
        start(Offset(0), 3, None),
        Some(5),
        "below the first retained"
    );
    assert_eq!(start(Offset(24), 3, None), Some(24));
    assert_eq!(start(Offset(25), 3, None), None);
    assert_eq!(start(Offset(u64::MAX), 3, None), None);
    assert_eq!(start(Timestamp(150), 3, None), Some(15));
    assert_eq!(start(Timestamp(201), 3, None), None);
    assert_eq!(start(First, 3, None), Some(5));
    assert_eq!(start(Last, 3, None), Some(22));
    assert_eq!(start(Last, 1000, None), Some(5));
    assert_eq!(start(Next, 3, None), Some(5));
    assert_eq!(start(Next, 3, Some(9)), Some(10));
    assert_eq!(start(Next, 3, Some(24)), None);
    assert_eq!(start(Next, 3, Some(u64::MAX)), None);
    assert_eq!(start(First, 0, None), None);
}

#[test]
fn parts_span_batches_and_keep_the_count() {
    let batches = || [entry(5, 10), entry(15, 10), entry(25, 10)].into_iter();
    let ranges = |start, count| -> Vec<(u64, u32, u32)> {
        parts_from(batches(), Some(start), count)
            .iter()
            .map(|part| (part.entry.base_offset, part.first, part.end))
            .collect()
    };
    assert_eq!(ranges(5, 10), [(5, 0, 10)]);
    assert_eq!(ranges(5, 11), [(5, 0, 10), (15, 0, 1)]);
    assert_eq!(ranges(7, 2), [(5, 2, 4)]);
    assert_eq!(ranges(14, 12), [(5, 9, 10), (15, 0, 10), (25, 0, 1)]);
    assert_eq!(ranges(5, u32::MAX).len(), 3);
}

#[test]
fn an_answer_is_cut_at_a_batch() {
    let large = |base| BatchEntry {
        batch_length: (POLL_BYTES_MAX / 2) as u32,
        ..entry(base, 1)
    };
    let parts = parts_from((0..10).map(large), Some(0), 100);
    assert_eq!(parts.len(), 2);
    let alone = |base| BatchEntry {
        batch_length: (POLL_BYTES_MAX + 1) as u32,
        ..entry(base, 1)
    };
    assert_eq!(parts_from((0..10).map(alone), Some(0), 100).len(), 1);
}
