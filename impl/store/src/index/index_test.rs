use pawl_wire::ids::{Op, PartitionUid, Timestamp};

use super::*;

const UID: PartitionUid = PartitionUid(7 << 16);

fn place(segment: u64) -> Place {
    Place {
        file: PlaceFile::Log(SegmentId(segment)),
        position: 4096,
        bytes: 100,
        checksum: 5,
    }
}

/// Batches of 10 messages: ops 1.., offsets 0.., times 100 apart; two batches a segment.
fn ten_batches() -> PartitionIndex {
    let mut index = PartitionIndex::new(UID);
    for at in 0..10 {
        index.push(BatchEntry {
            base_offset: at * 10,
            message_count: 10,
            timestamp: Timestamp(1000 + at * 100),
            op: Op(at + 1),
            batch_position: 12,
            batch_length: 88,
            place: place(1 + at / 2),
        });
    }
    index
}

fn ops(entries: &[BatchEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.op.0).collect()
}

#[test]
fn an_offset_is_found_in_the_batch_that_holds_it() {
    let index = ten_batches();
    for offset in 0..100 {
        let entry = index.find(offset).expect("it is there");
        assert!((entry.base_offset..entry.end_offset()).contains(&offset));
    }
    assert_eq!(index.find(100), None);
    assert_eq!(index.first().map(|e| e.base_offset), Some(0));
    assert_eq!(index.last().map(|e| e.end_offset()), Some(100));
    assert_eq!(index.iter_from(8).count(), 2);
    assert_eq!(index.iter_from(99).count(), 0);
}

#[test]
fn a_timestamp_is_found_at_the_first_batch_not_before_it() {
    let index = ten_batches();
    let table = [
        (0, 0),
        (1000, 0),
        (1001, 1),
        (1100, 1),
        (1899, 9),
        (1900, 9),
        (1901, 10),
    ];
    for (time, expected) in table {
        assert_eq!(
            index.index_of_timestamp(Timestamp(time)),
            expected,
            "time {time}"
        );
    }
}

#[test]
fn what_comes_out_is_what_went_in() {
    let mut index = PartitionIndex::new(UID);
    let entry = BatchEntry {
        base_offset: u64::from(u32::MAX) + 3,
        message_count: 4,
        timestamp: Timestamp(5),
        op: Op(6),
        batch_position: 7,
        batch_length: 8,
        place: Place {
            file: PlaceFile::Partition {
                uid: UID,
                number: 9,
            },
            position: 10,
            bytes: 11,
            checksum: u64::MAX - 12,
        },
    };
    index.push(entry);
    assert_eq!(index.get(0), Some(entry));
}

#[test]
fn a_trim_keeps_the_batch_that_it_cuts() {
    let mut index = ten_batches();
    index.trim(25, Op(20));
    assert_eq!(index.first().map(|e| e.base_offset), Some(20));
    index.trim(30, Op(21));
    assert_eq!(index.first().map(|e| e.base_offset), Some(30));
    index.trim(0, Op(22));
    assert_eq!(index.batch_count(), 7);
}

#[test]
fn the_dead_are_remembered_until_a_checkpoint_covers_their_death() {
    let mut index = ten_batches();
    index.trim(20, Op(20));
    index.purge(Op(6));
    assert_eq!(index.batch_count(), 4);
    assert_eq!(ops(&index.in_segment(SegmentId(1))), [1, 2]);
    assert_eq!(ops(&index.in_segment(SegmentId(2))), [3, 4]);
    // The purge died at op 6, after the trim in the list: it waits for the one before it.
    index.forget(Op(19));
    assert_eq!(ops(&index.in_segment(SegmentId(1))), [1, 2]);
    index.forget(Op(20));
    assert_eq!(ops(&index.in_segment(SegmentId(1))), Vec::<u64>::new());
    assert_eq!(ops(&index.in_segment(SegmentId(2))), Vec::<u64>::new());
    assert_eq!(ops(&index.in_segment(SegmentId(4))), [7, 8]);
}

#[test]
fn drained_batches_come_first_and_are_found_by_their_file() {
    let mut index = ten_batches();
    for op in 1..=4 {
        let moved = Place {
            file: PlaceFile::Partition {
                uid: UID,
                number: 1 + (op as u32 - 1) / 2,
            },
            ..place(0)
        };
        assert!(index.relocate(Op(op), moved));
    }
    assert!(!index.relocate(Op(77), place(3)));
    assert_eq!(ops(&index.in_segment(SegmentId(1))), Vec::<u64>::new());
    assert_eq!(ops(&index.in_segment(SegmentId(3))), [5, 6]);
    assert_eq!(ops(&index.in_partition_file(1)), [1, 2]);
    assert_eq!(ops(&index.in_partition_file(2)), [3, 4]);
    assert_eq!(index.partition_file_oldest(), Some(1));
    index.trim(20, Op(30));
    assert_eq!(
        index.partition_file_oldest(),
        Some(1),
        "retired, not forgotten"
    );
    index.forget(Op(30));
    assert_eq!(index.partition_file_oldest(), Some(2));
}

#[test]
#[should_panic(expected = "contiguous")]
fn a_hole_is_refused() {
    let mut index = ten_batches();
    let mut entry = index.last().expect("it is there");
    entry.base_offset = 101;
    entry.op = Op(11);
    index.push(entry);
}

#[test]
#[should_panic(expected = "partition files come before the log")]
fn a_batch_in_a_partition_file_behind_one_in_the_log_is_refused() {
    let mut index = ten_batches();
    let mut entry = index.last().expect("it is there");
    entry.base_offset = 100;
    entry.op = Op(11);
    entry.place.file = PlaceFile::Partition {
        uid: UID,
        number: 1,
    };
    index.push(entry);
}

#[test]
fn a_dropped_partition_is_known_until_a_checkpoint_covers_it() {
    let set = IndexSet::default();
    set.push(UID, ten_batches().get(0).expect("it is there"));
    set.drop_partition(UID, Op(50));
    assert!(set.get(UID).is_none());
    assert_eq!(set.partition_count(), 0);
    assert_eq!(set.in_segment(SegmentId(1)).len(), 1);
    assert!(set.relocate(UID, Op(1), place(2)));
    set.forget(Op(49));
    assert!(set.knows(UID));
    set.forget(Op(50));
    assert!(!set.knows(UID));
}
