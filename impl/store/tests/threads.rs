//! The parts of a store on threads of their own, as the server runs them.

mod util;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pawl_store::{BatchEntry, ReadError, Store};
use util::Truth;
use util::fixture::{Fixture, send, sync};

/// Ends the other thread, whatever happens to this one.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Zeros are written ahead of the log while batches are written: they never meet.
#[test]
fn zeros_ahead_of_the_log_never_hit_a_batch() {
    let mut fixture = Fixture::empty();
    fixture.options.zone_bytes = 64 << 10;
    fixture.options.bulk_bytes_per_tick = u64::MAX;
    fixture.options.segment_bytes = 256 << 10;
    fixture.options.log_bytes_max = 1 << 30;
    let mut node = fixture.open();
    let Store { preparer, .. } = {
        // A second node on a disk of its own lends its preparer's place while this one runs apart.
        let mut other = Fixture::empty();
        other.open().store
    };
    let mut preparer = std::mem::replace(&mut node.store.preparer, preparer);
    let done = AtomicBool::new(false);
    let zeros = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let prepared = preparer.tick().expect("there is room");
                zeros.fetch_add(prepared.zeros_bytes, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        let _done = Done(&done);
        let truth = &mut fixture.truth;
        node.create(truth);
        sync(&mut node, truth);
        send(&mut node, truth, 600, 500);
    });
    assert!(zeros.load(Ordering::Relaxed) > 0, "zeros were written");
    node.compare(&fixture.truth).expect("every batch is whole");
    drop(node);
    fixture.disk.power_cut(5);
    fixture.open();
}

/// Reads while segments are drained and recycled: the body, or "moved", never "damaged".
#[test]
fn a_reader_never_mistakes_a_recycled_segment_for_damage() {
    let mut fixture = Fixture::empty();
    let mut node = fixture.open();
    let truth = &mut fixture.truth;
    node.create(truth);
    sync(&mut node, truth);
    let uid = *node.machine.partitions.keys().next().expect("there is one");
    let (reader, index) = (node.store.reader.clone(), node.store.index.clone());
    let done = AtomicBool::new(false);
    let (reads, moved) = (AtomicU64::new(0), AtomicU64::new(0));
    let read_all = || {
        let handle = index.get(pawl_wire::ids::PartitionUid(uid));
        let handle = handle.expect("it is there");
        while !done.load(Ordering::Acquire) {
            let entries: Vec<BatchEntry> = handle.read().iter_from(0).collect();
            for entry in entries {
                match reader.read(&entry.place) {
                    Ok(body) => assert_eq!(body.len(), entry.place.bytes as usize),
                    Err(ReadError::Moved) => {
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => panic!("{error}"),
                }
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read_all);
        let _done = Done(&done);
        for round in 0..60 {
            drain_round(&mut node, truth, round);
        }
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    node.compare(truth).expect("every batch is whole");
}

fn drain_round(node: &mut util::Node, truth: &mut Truth, round: usize) {
    send(node, truth, 6, 1000 + round);
    node.checkpoint(truth).expect("there is room");
    util::fixture::drain_all(node);
    node.store.preparer.tick().expect("there is room");
}
