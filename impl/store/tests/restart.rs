//! A node that writes, drains, takes checkpoints and restarts holds what it acknowledged.

mod util;

use pawl_store::FaultyDisk;
use util::{Node, Truth, options_small};

#[test]
fn messages_survive_draining_power_cuts_and_clean_stops() {
    let disk = FaultyDisk::new();
    let mut truth = Truth::default();
    let options = options_small();
    let mut node = Node::open(&disk, &options, &mut truth).expect("an empty disk opens");
    node.create(&mut truth);
    node.write().expect("there is room");
    node.flush(&mut truth).expect("the flush works");
    let uid = *node
        .machine
        .partitions
        .keys()
        .next()
        .expect("it was created");
    let mut segments_drained = 0;
    for round in 0..200 {
        node.send(&mut truth, uid, 3, 100 + round * 37, round % 7 == 0);
        node.write().expect("there is room");
        node.flush(&mut truth).expect("the flush works");
        if round % 20 == 0 {
            node.checkpoint(&mut truth).expect("there is room");
        }
        let drained = node.store.drainer.tick().expect("there is room");
        segments_drained += u32::from(drained.segment.is_some());
        node.store.preparer.tick().expect("there is room");
    }
    node.compare(&truth).expect("every message is there");
    assert!(segments_drained > 10, "{segments_drained} segments drained");
    drop(node);
    disk.power_cut(7);
    let node = Node::open(&disk, &options, &mut truth).expect("it restarts");
    node.close(&mut truth).expect("it stops");
    disk.power_cut(8);
    Node::open(&disk, &options, &mut truth).expect("it restarts");
}
