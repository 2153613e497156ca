use proptest::prelude::*;

use super::*;

fn place(stream: u32, topic: u32) -> PartitionPlace {
    PartitionPlace {
        stream: StreamId(stream),
        topic: TopicId(topic),
        partition: PartitionId(0),
        segment_size: 1_000,
    }
}

fn table_of(uids: &[(u64, u32, u32)]) -> PartitionTable {
    let mut table = PartitionTable::default();
    for (uid, stream, topic) in uids {
        table.insert(
            PartitionUid(*uid),
            PartitionState::empty(place(*stream, *topic), Op(1)),
        );
    }
    table
}

#[test]
fn offsets_follow_each_other_and_segments_are_sealed_at_their_size() {
    let mut table = table_of(&[(1, 0, 0)]);
    let uid = PartitionUid(1);
    for batch in 0..6 {
        let appended = table.append(uid, 10, 400).expect("the partition exists");
        assert_eq!(appended.base_offset, batch * 10);
    }
    let view = table.view(uid).expect("the partition exists");
    assert_eq!(
        (view.next_offset, view.messages, view.bytes),
        (60, 60, 2_400)
    );
    // Three batches of 400 pass 1,000 bytes; the fourth opens a segment.
    assert_eq!(view.segments, 2);
    assert_eq!(table.trim(uid, 1), Some(30));
    assert_eq!(table.trim(uid, 1), None, "the open segment stays");
    let view = table.view(uid).expect("the partition exists");
    assert_eq!(
        (view.first_offset, view.next_offset, view.messages),
        (30, 60, 30)
    );
    assert_eq!(view.current_offset(), 59);
    table.assert_invariants();
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let mut table = table_of(&[(1, 0, 0)]);
    table.append(PartitionUid(1), 1, 10).expect("it fits");
    let before = table.clone();
    assert_eq!(table.append(PartitionUid(2), 1, 10), None);
    assert_eq!(table.append(PartitionUid(1), 1, u64::MAX), None);
    assert_eq!(table, before);
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u32, u64),
    Purge(u64),
    Trim(u64, u32),
    Replace(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let uid = 0..4u64;
    prop_oneof![
        4 => (uid.clone(), 1..50u32, 300..700u64).prop_map(|(p, m, b)| Step::Append(p, m, b)),
        1 => uid.clone().prop_map(Step::Purge),
        1 => (uid.clone(), 0..3u32).prop_map(|(p, n)| Step::Trim(p, n)),
        1 => uid.prop_map(Step::Replace),
    ]
}

proptest! {
    // Known fault 10.4: counts and sizes at every level equal a recount of what is left.
    #[test]
    fn totals_equal_a_recount(steps in prop::collection::vec(step(), 0..100)) {
        let mut table = table_of(&[(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 1, 0)]);
        for step in steps {
            match step {
                Step::Append(uid, messages, bytes) => {
                    table.append(PartitionUid(uid), messages, bytes);
                }
                Step::Purge(uid) => table.purge(PartitionUid(uid), Op(9)),
                Step::Trim(uid, count) => {
                    table.trim(PartitionUid(uid), count);
                }
                Step::Replace(uid) => {
                    table.remove(PartitionUid(uid));
                    let state = PartitionState::empty(place(uid as u32 / 3, 0), Op(2));
                    table.insert(PartitionUid(uid), state);
                }
            }
            table.assert_invariants();
        }
    }
}
