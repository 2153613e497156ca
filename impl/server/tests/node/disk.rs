//! Disks that fill up and disks that fail.

use std::sync::Arc;

use pawl_server::boot::NodeEnd;
use pawl_server::log::driver::LogFailure;
use pawl_store::FaultyDisk;
use pawl_wire::command::CommandCode;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::primitives::{Partitioning, PollingStrategy};

use crate::util::{Answer, TestNode, until};

/// spec ANS-28
#[test]
fn a_full_disk_refuses_produce_serves_reads_and_deletes_and_resumes() {
    let disk = FaultyDisk::new();
    disk.set_capacity(Some(280 << 20));
    let node = TestNode::start_on(Arc::new(disk.clone()));
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let megabyte = vec![b'x'; 1 << 20];
    let mut acknowledged = 0;
    let refused = loop {
        let answer = client.send_payloads(Partitioning::Partition(0), &[&megabyte]);
        match answer {
            Answer::Payload(..) => acknowledged += 1,
            other => break other,
        }
        assert!(acknowledged < 400, "the disk never filled up");
    };
    refused.assert_status(ErrorCode::TransientNotAccepted);
    let refused = client.body(CommandCode::CreateStream, b"\x01z");
    refused.assert_result(ErrorCode::TransientNotAccepted);

    let found = client.poll_ok(PollingStrategy::Last, 1);
    assert_eq!(found[0].0, acknowledged - 1);
    assert!(found[0].1 == megabyte);
    let mut other = node.sign_in();
    assert!(other.is_alive(), "sessions are served");

    disk.set_capacity(None);
    until(|| {
        let answer = client.send_payloads(Partitioning::Partition(0), &[b"y"]);
        matches!(answer, Answer::Payload(..))
    });
    let found = client.poll_ok(PollingStrategy::Last, 1);
    assert_eq!(found[0], (acknowledged, b"y".to_vec()));
    let deleted = client.body(CommandCode::DeleteStream, &[1, 4, 0, 0, 0, 0]);
    assert_eq!(deleted.payload(), b"");
}

/// spec ANS-28
#[test]
fn deletes_are_accepted_on_a_full_disk() {
    let disk = FaultyDisk::new();
    disk.set_capacity(Some(280 << 20));
    let node = TestNode::start_on(Arc::new(disk));
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    let megabyte = vec![b'x'; 1 << 20];
    let mut full = false;
    for _ in 0..400 {
        let answer = client.send_payloads(Partitioning::Partition(0), &[&megabyte]);
        if !matches!(answer, Answer::Payload(..)) {
            full = true;
            break;
        }
    }
    assert!(full, "the disk never filled up");
    let deleted = client.body(CommandCode::DeleteStream, &[1, 4, 0, 0, 0, 0]);
    assert_eq!(deleted.payload(), b"");
}

/// spec REC-3
#[test]
fn a_failed_flush_ends_the_node_and_nothing_unflushed_was_acknowledged() {
    let disk = FaultyDisk::new();
    let node = TestNode::start_on(Arc::new(disk.clone()));
    let mut client = node.sign_in();
    client.create_topic("s", 1);
    assert_eq!(client.send_ok(&[b"0"]), 0);
    disk.fail_flush_after(1);
    let answer = client.send_payloads(Partitioning::Partition(0), &[b"1"]);
    match answer {
        Answer::Closed => {}
        other => other.assert_status(ErrorCode::TransientNotCommitted),
    }
    match node.wait() {
        NodeEnd::Failed(LogFailure::Disk(_) | LogFailure::Store(_)) => {}
        other => panic!("the node ended otherwise: {other:?}"),
    }
    assert!(disk.flush_has_failed());
}
