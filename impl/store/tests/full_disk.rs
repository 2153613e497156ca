//! A full volume is a state, not a fault (spec REC-32): the log goes on with its reserve, deletions
//! free room, and service resumes without a restart.

mod util;

use pawl_store::WriteError;
use pawl_wire::entry::EntryKind;
use util::fixture::{Fixture, drain_all, send, sync};
use util::{Node, Truth};

/// Sends until the preparer says that the volume is full.
fn fill(node: &mut Node, truth: &mut Truth) {
    for _ in 0..500 {
        node.store
            .preparer
            .tick()
            .expect("a full volume is no error");
        if node.store.status.disk_full() {
            return;
        }
        send(node, truth, 1, 3000);
    }
    panic!("the volume never filled up");
}

fn full() -> (Fixture, Node) {
    let mut fixture = Fixture::empty();
    fixture.options.log_bytes_max = 1 << 30;
    fixture.options.segment_bytes = 64 << 10;
    let mut node = fixture.open();
    let truth = &mut fixture.truth;
    node.create(truth);
    node.create(truth);
    sync(&mut node, truth);
    send(&mut node, truth, 1, 100);
    node.checkpoint(truth).expect("there is room");
    fixture.disk.set_capacity(Some(1500 << 10));
    fill(&mut node, truth);
    // To the last byte: a snapshot has only the room that was kept for it.
    fixture.disk.set_capacity(Some(fixture.disk.used()));
    (fixture, node)
}

#[test]
fn deletions_and_reads_go_on_and_service_resumes() {
    let (mut fixture, mut node) = full();
    let truth = &mut fixture.truth;
    node.compare(&truth.clone()).expect("reads go on");
    let uid = *node.machine.partitions.keys().next().expect("there is one");
    node.on_partition(truth, EntryKind::DeletePartitions, uid, 0);
    sync(&mut node, truth);
    // Two checkpoints cover the deletion; then its segments are dead, and free room unread.
    for _ in 0..2 {
        node.create(truth);
        sync(&mut node, truth);
        node.checkpoint(truth)
            .expect("room was kept for the snapshot");
    }
    assert!(node.store.status.disk_full());
    assert!(drain_all(&mut node) > 0, "dead segments are given back");
    node.store.preparer.tick().expect("there is room");
    assert!(!node.store.status.disk_full(), "service resumes");
    send(&mut node, truth, 5, 3000);
    node.compare(&truth.clone()).expect("everything is there");
    drop(node);
    fixture.disk.set_capacity(None);
    fixture.disk.power_cut(3);
    fixture.open();
}

#[test]
fn beyond_the_reserve_a_write_is_refused_whole_and_may_be_repeated() {
    let (mut fixture, mut node) = full();
    let truth = &mut fixture.truth;
    let uid = *node.machine.partitions.keys().next().expect("there is one");
    let mut refused = 0;
    for _ in 0..60 {
        node.send(truth, uid, 1, 3000, false);
        match node.write() {
            Ok(()) => {
                node.flush(truth).expect("the flush works");
            }
            Err(WriteError::NoSpace) => {
                refused += 1;
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(refused, 1, "the reserve is not endless");
    node.compare(&truth.clone()).expect("reads go on");
    fixture.disk.set_capacity(None);
    sync(&mut node, truth);
    assert_eq!(
        truth.acknowledged,
        truth.head(),
        "the same call, once there is room"
    );
    node.compare(&truth.clone()).expect("everything is there");
    node.store.preparer.tick().expect("there is room");
    assert!(!node.store.status.disk_full());
    drop(node);
    fixture.disk.power_cut(4);
    fixture.open();
}

#[test]
fn a_failed_flush_is_final() {
    let mut fixture = Fixture::written(3, 200);
    let mut node = fixture.open();
    let truth = &mut fixture.truth;
    node.create(truth);
    node.write().expect("there is room");
    fixture.disk.fail_flush_after(1);
    assert!(matches!(node.flush(truth), Err(WriteError::Disk(_))));
    assert!(node.store.status.poisoned());
    for _ in 0..3 {
        assert!(matches!(node.flush(truth), Err(WriteError::Poisoned)));
        assert!(matches!(node.write(), Err(WriteError::Poisoned)));
    }
    assert!(node.checkpoint(truth).is_err());
    assert!(node.store.drainer.tick().is_err());
}

/// One entry larger than a segment, at each place of a segment, gets a longer segment of its own.
#[test]
fn entries_larger_than_a_segment_are_written_and_drained() {
    let mut fixture = Fixture::empty();
    fixture.run(|node, truth| {
        node.create(truth);
        sync(node, truth);
        for round in 0..12 {
            send(node, truth, round % 4, 2000);
            send(node, truth, 1, 60_000 + 5_000 * round);
            node.checkpoint(truth).expect("there is room");
            drain_all(node);
            node.compare(&truth.clone()).expect("everything is there");
        }
    });
    fixture.disk.power_cut(9);
    fixture.open();
}

#[test]
fn a_write_that_is_out_of_order_or_not_what_its_header_says_is_refused() {
    let mut fixture = Fixture::written(1, 100);
    let mut node = fixture.open();
    let records = util::node::recover(&fixture.disk.copy(), &fixture.options)
        .expect("it opens")
        .recovered
        .records;
    let applied = pawl_wire::ids::Op(0);
    let writer = &mut node.store.writer;
    let result = writer.write(&records, &[], applied, &mut Vec::new());
    assert!(matches!(result, Err(WriteError::OutOfOrder { .. })));
    let (_, record) = records[0].clone();
    let pawl_vsr::Record::Entry { header, .. } = record else {
        panic!("{record}");
    };
    let body = bytes::Bytes::from_static(b"longer than the header says");
    let record = pawl_vsr::Record::Entry { header, body };
    let lsn = writer.lsn_next();
    let result = writer.write(&[(lsn, record)], &[], applied, &mut Vec::new());
    assert!(matches!(result, Err(WriteError::BodyLength(_))));
    assert!(!node.store.status.poisoned(), "nothing was tried");
}
