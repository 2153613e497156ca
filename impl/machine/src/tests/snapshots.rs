//! Snapshots of a machine that holds everything: damaged, cut, and fed to the reader as garbage.

use pawl_wire::commands::streams::CreateStream;
use pawl_wire::entry_arguments::{OffsetArguments, SendMessagesArguments};
use pawl_wire::ids::{PartitionId, StreamId, TopicId};
use pawl_wire::options::{Options, Tlv};
use pawl_wire::permissions::StreamPermissions;
use pawl_wire::primitives::{ConsumerKind, Name};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::catalog::Root;
use super::*;

/// A machine with something in every section.
fn full() -> PawlMachine {
    let mut root = Root::new();
    let mut permissions = Permissions::default();
    permissions.streams.insert(3, StreamPermissions::default());
    root.log.add_user("bob", Some(permissions));
    root.create_stream("s");
    let mut options = Vec::new();
    Tlv::text("enforce_fsync").write(&mut options);
    Tlv {
        kind: 3,
        bytes: &[1],
    }
    .write(&mut options);
    root.create_topic_with(0, "t", 2, &options);
    root.create_topic(0, "u", 1);
    let session = root.session;
    let uid = root.uid(0, 0, 1);
    let (stream, topic, partition) = (StreamId(0), TopicId(0), PartitionId(1));
    let send = SendMessagesArguments {
        partition_uid: uid,
        message_count: 4,
        stream,
        topic,
        partition,
        batch_length: 700,
        batch_position: 26,
        origin_timestamp: Timestamp(5),
    };
    let mut header = session.header(EntryKind::SendMessages, 50);
    header.arguments = send.encode();
    header.request_checksum = 99;
    root.log.apply(header, b"");
    let store = OffsetArguments {
        partition_uid: uid,
        stream,
        topic,
        partition,
        consumer_kind: ConsumerKind::Plain,
        consumer_key: 8,
        offset: 2,
    };
    let mut header = session.header(EntryKind::StoreOffset, 1);
    header.arguments = store.encode();
    root.log.apply(header, b"");
    let gone = root.log.sign_in(6);
    let released = root.log.sign_in(7);
    let body = CreateStream {
        name: Name::new("v").expect("a name"),
        options: Options::EMPTY,
    };
    root.log.request(gone, 3, EntryKind::CreateStream, &body);
    root.log.logout(gone);
    root.log.release(released);
    root.log.machine
}

// spec REC-20
#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    let snapshot = full().snapshot();
    for index in 0..snapshot.len() {
        let mut damaged = snapshot.clone();
        damaged[index] ^= 1 << (index % 8);
        let error = PawlMachine::restore(&damaged).expect_err("a flipped bit");
        assert!(error.position <= snapshot.len());
        assert!(
            PawlMachine::restore(&snapshot[..index]).is_err(),
            "cut at {index}"
        );
    }
    let longer = [&snapshot[..], &[0]].concat();
    assert!(PawlMachine::restore(&longer).is_err());
}

// spec DED-14, REC-15
#[test]
fn a_snapshot_holds_the_whole_client_table() {
    let machine = full();
    let restored = PawlMachine::restore(&machine.snapshot()).expect("it can be restored");
    assert_eq!(restored.clients, machine.clients);
    let view = restored.client(ClientId(5)).expect("an entry");
    assert_eq!(view.watermark.0, 50);
    assert!(
        restored
            .client(ClientId(7))
            .expect("an entry")
            .released_at
            .is_some()
    );
    assert!(restored.clients.tombstones().get(ClientId(6)).is_some());
}

/// Where the sections of a snapshot are: header position and length of the body.
fn sections(snapshot: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut position = 16;
    while position < snapshot.len() {
        let length = snapshot[position + 8..position + 16]
            .try_into()
            .expect("8 bytes");
        let length = u64::from_le_bytes(length) as usize;
        found.push((position, length));
        position += 32 + length;
    }
    found
}

/// Puts another body into a section, with the right length and hash.
fn with_body(snapshot: &[u8], section: usize, body: &[u8]) -> Vec<u8> {
    let (position, length) = sections(snapshot)[section];
    let mut out = snapshot[..position + 8].to_vec();
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&xxh3_128(body).to_le_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&snapshot[position + 32 + length..]);
    out
}

/// Whatever is accepted is a machine like any other.
fn restore_or_refuse(bytes: &[u8]) {
    if let Ok(machine) = PawlMachine::restore(bytes) {
        assert_eq!(
            PawlMachine::restore(&machine.snapshot()).as_ref(),
            Ok(&machine)
        );
    }
}

#[test]
fn bodies_that_are_wrong_under_a_right_hash_never_panic() {
    let snapshot = full().snapshot();
    for (index, (position, length)) in sections(&snapshot).into_iter().enumerate() {
        let body = &snapshot[position + 32..position + 32 + length];
        for at in 0..body.len() {
            restore_or_refuse(&with_body(&snapshot, index, &body[..at]));
            for change in [0x01, 0x80, 0xff] {
                let mut changed = body.to_vec();
                changed[at] ^= change;
                restore_or_refuse(&with_body(&snapshot, index, &changed));
            }
        }
    }
}

#[test]
fn unknown_sections_and_newer_versions_are_refused_by_name() {
    let snapshot = full().snapshot();
    let (position, _) = sections(&snapshot)[2];
    let mut unknown = snapshot.clone();
    unknown[position] = b'X';
    let error = PawlMachine::restore(&unknown).expect_err("an unknown section");
    assert_eq!(error.reason, "this section is not known here");
    let mut newer = snapshot.clone();
    newer[position + 4] = 2;
    let error = PawlMachine::restore(&newer).expect_err("a newer version");
    assert_eq!(error.reason, "this version of the section is not known");
    let mut damaged = snapshot;
    damaged[position + 40] ^= 1;
    let error = PawlMachine::restore(&damaged).expect_err("damage");
    assert_eq!(error.section, "STRM");
    assert_eq!(error.reason, "the hash does not match");
}

proptest! {
    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(PawlMachine::restore(&bytes).is_err());
    }

    #[test]
    fn garbage_under_a_right_hash_never_panics(
        section in 0..7usize,
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        restore_or_refuse(&with_body(&full().snapshot(), section, &body));
    }
}

#[test]
fn digests_differ_where_states_do() {
    let mut log = Log::new();
    let before = log.machine.digest();
    log.pass(1);
    assert_ne!(log.machine.digest(), before, "the op is part of the state");
}
