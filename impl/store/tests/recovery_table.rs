//! One test a row of the decision table in `src/recover/mod.rs`, named after it.

mod util;

use std::sync::Arc;

use pawl_store::{Disk, FaultyDisk, Finding, OpenError, Opened, Unreadable, open};
use util::fixture::{BLOCK, Fixture, drain_all, send, sync};
use util::{Node, Truth, options_small};
use xxhash_rust::xxh3::xxh3_128;

#[test]
fn every_row_has_a_test() {
    let table = include_str!("../src/recover/mod.rs");
    let tests = include_str!("recovery_table.rs");
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | "));
    let names = rows.filter_map(|row| row.split(" | ").next());
    let names = names.flat_map(|names| names.split(", "));
    let names: Vec<&str> = names.filter(|n| !["row", "---"].contains(n)).collect();
    assert!(names.len() >= 30, "the table was found: {names:?}");
    for name in names {
        let test = format!("#[test]\nfn {name}() {{");
        assert!(tests.contains(&test), "row {name} has no test");
    }
}

fn flip(content: &mut [u8], at: usize) {
    content[at] ^= 0x10;
}

#[test]
fn directory_locked() {
    let mut fixture = Fixture::written(1, 100);
    let _node = fixture.open();
    let disk: Arc<dyn Disk> = Arc::new(fixture.disk.clone());
    let second = open(disk, fixture.options.clone());
    let Err(OpenError::Locked(folder)) = second else {
        panic!("{second:?}");
    };
    assert_eq!(folder, fixture.disk.root());
}

#[test]
fn directory_empty() {
    let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new());
    let opened = open(disk, options_small()).expect("it opens");
    assert!(matches!(opened, Opened::Empty(_)));
}

#[test]
fn format_interrupted() {
    let (mut formatted, mut empty) = (0, 0);
    for operations in 1..30 {
        for seed in 0..40 {
            let disk = FaultyDisk::new();
            disk.fail_power_after(operations);
            let _ = Node::open(&disk, &options_small(), &mut Truth::default());
            disk.power_cut(seed);
            let opened = open(Arc::new(disk.clone()), options_small()).expect("not refused");
            match opened {
                Opened::Empty(_) => empty += 1,
                Opened::Holds(_) => formatted += 1,
            }
            disk.kill();
            let mut fixture = Fixture {
                disk,
                ..Fixture::empty()
            };
            fixture.open();
            fixture.disk.kill();
            fixture.goes_on();
        }
    }
    assert!(
        formatted > 0 && empty > 0,
        "{formatted} formatted, {empty} empty"
    );
}

#[test]
fn anchor_missing() {
    let mut fixture = Fixture::written(3, 100);
    fixture.disk.forget("anchor");
    let error = fixture.refused();
    let OpenError::AnchorMissing { evidence } = &error else {
        panic!("{error}");
    };
    assert_eq!(evidence, "wal/0000000000000001.wal");
}

#[test]
fn anchor_unreadable() {
    for content in [Vec::new(), vec![0; 4 * BLOCK], vec![7; 100]] {
        let mut fixture = Fixture::written(3, 100);
        fixture.disk.set_content("anchor", content);
        let error = fixture.refused();
        assert!(
            matches!(error, OpenError::AnchorUnreadable { .. }),
            "{error}"
        );
    }
}

#[test]
fn anchor_one_copy_damaged() {
    for slot in 0..4 {
        let mut fixture = Fixture::checkpointed(9, 200);
        fixture.damage("anchor", |content| flip(content, slot * BLOCK + 100));
        let findings = fixture.findings();
        assert!(
            matches!(&findings[..], [Finding::Repaired { .. }]),
            "{findings:?}"
        );
        fixture.goes_on();
    }
}

#[test]
fn anchor_newest_pair_damaged() {
    let mut fixture = Fixture::checkpointed(9, 200);
    let content = fixture.disk.content("anchor").expect("it is there");
    let sequence = |slot: usize| content[slot * BLOCK + 56];
    let newest = if sequence(0) > sequence(2) { 0 } else { 2 };
    fixture.damage("anchor", |content| {
        flip(content, newest * BLOCK + 100);
        flip(content, (newest + 1) * BLOCK + 100);
    });
    assert_eq!(fixture.findings().len(), 2);
    fixture.goes_on();
}

#[test]
fn anchor_newer_version() {
    let mut fixture = Fixture::written(3, 100);
    fixture.damage("anchor", |content| {
        let slot = &mut content[..448];
        slot[72] = 2;
        let checksum = xxh3_128(&slot[16..]);
        slot[..16].copy_from_slice(&checksum.to_le_bytes());
    });
    let error = fixture.refused();
    let newer = matches!(
        error,
        OpenError::AnchorUnreadable {
            reason: Unreadable::Version(2),
            ..
        }
    );
    assert!(newer, "{error}");
}

#[test]
fn log_clean_end() {
    let mut fixture = Fixture::written(20, 700);
    assert_eq!(fixture.findings(), []);
    let node = fixture.open();
    node.close(&mut fixture.truth).expect("it stops");
    fixture.disk.kill();
    assert_eq!(fixture.findings(), []);
    fixture.goes_on();
}

/// Cuts a record that the truth says was acknowledged: only a test may do so.
fn forget_last(fixture: &mut Fixture, count: u64) {
    fixture.truth.acknowledged -= count;
}

#[test]
fn log_torn_tail() {
    for at in [0, 17, 49, 130, 300, 400, 700] {
        let mut fixture = Fixture::written(5, 700);
        let (name, position, bytes) = fixture.batches().pop().expect("there are batches");
        fixture.damage(&name, |content| flip(content, position + at));
        let torn = fixture.disk.content(&name).expect("it is there");
        forget_last(&mut fixture, 1);
        let findings = fixture.findings();
        let [Finding::TornTail { range }, Finding::Kept { file, .. }] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(range.file, name);
        assert_eq!(
            (range.from, range.to),
            (position as u64, (position + bytes) as u64)
        );
        let kept = fixture.disk.content(file).expect("a copy is kept");
        assert_eq!(kept, torn[position..position + bytes]);
        fixture.goes_on();
    }
}

#[test]
fn log_unflushed_batches_behind_a_hole() {
    let mut fixture = Fixture::written(3, 500);
    fixture.run(|node, truth| {
        for _ in 0..3 {
            let uid = *node.machine.partitions.keys().next().expect("there is one");
            node.send(truth, uid, 1, 600, false);
            node.write().expect("there is room");
        }
    });
    let batches = fixture.batches();
    let (name, position, _) = batches[batches.len() - 3].clone();
    fixture.damage(&name, |content| flip(content, position + 300));
    let findings = fixture.findings();
    let Finding::TornTail { range } = &findings[0] else {
        panic!("{findings:?}");
    };
    assert_eq!(
        (range.from, range.to),
        (position as u64, (position + 3 * BLOCK) as u64)
    );
    fixture.goes_on();
}

#[test]
fn log_faulty() {
    let whole = Fixture::written(12, 700);
    let batches = whole.batches();
    for (name, position, bytes) in &batches[..batches.len() - 1] {
        for at in [0, 20, 50, 64, 200, 270, 500] {
            let mut fixture = Fixture {
                disk: whole.disk.copy(),
                ..whole.clone()
            };
            fixture.damage(name, |content| flip(content, position + at));
            let error = fixture.refused();
            let OpenError::LogFaulty { range, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!(&range.file, name);
            assert_eq!(range.from, *position as u64);
            assert!(range.to >= (position + bytes) as u64);
        }
    }
}

#[test]
fn log_faulty_below_checkpoint() {
    let whole = Fixture::checkpointed(30, 1500);
    for sidecar in whole.names("wal/", ".idx") {
        whole.disk.forget(&sidecar);
    }
    let (name, position, _) = whole.batches()[2].clone();
    for at in [3, 60, 300] {
        let mut fixture = Fixture {
            disk: whole.disk.copy(),
            ..whole.clone()
        };
        fixture.damage(&name, |content| flip(content, position + at));
        let error = fixture.refused();
        let OpenError::LogFaulty { range, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((&range.file, range.from), (&name, position as u64));
    }
}

#[test]
fn log_segment_missing() {
    let mut fixture = Fixture::written(40, 1500);
    let names = fixture.names("wal/", ".wal");
    assert!(names.len() >= 4, "{names:?}");
    fixture.disk.forget(&names[1]);
    let error = fixture.refused();
    let OpenError::SegmentMissing { file } = &error else {
        panic!("{error}");
    };
    assert_eq!(*file, names[1]);
}

#[test]
fn log_first_segment_missing() {
    let mut fixture = Fixture::written(3, 500);
    fixture.disk.forget("wal/0000000000000001.wal");
    let error = fixture.refused();
    assert!(matches!(error, OpenError::SegmentMissing { .. }), "{error}");
}

#[test]
fn log_duplicate_batch() {
    let mut fixture = Fixture::written(4, 500);
    let batches = fixture.batches();
    let (name, last, bytes) = batches[batches.len() - 1].clone();
    let (_, from, _) = batches[1];
    fixture.damage(&name, |content| {
        content.copy_within(from..from + BLOCK, last + bytes);
    });
    let segment = fixture.disk.content(&name).expect("it is there");
    fixture
        .disk
        .set_content("wal/0000000000000002.wal", segment);
    // Bytes of ours where none must be: cut, but no record of theirs counts.
    let findings = fixture.findings();
    assert!(
        matches!(findings[0], Finding::TornTail { .. }),
        "{findings:?}"
    );
    fixture.goes_on();
}

#[test]
fn log_recycled_bytes() {
    let mut fixture = Fixture::drained();
    fixture.run(|node, truth| {
        node.store.preparer.tick().expect("there is room");
        send(node, truth, 8, 3000);
    });
    let names = fixture.names("wal/", ".wal");
    let recycled = names.iter().filter(|name| {
        let content = fixture.disk.content(name).expect("it was listed");
        content[58] == 1
    });
    assert!(recycled.count() > 0, "a segment was recycled");
    assert_eq!(fixture.findings(), []);
    fixture.goes_on();
}

#[test]
fn segment_header_damaged() {
    for at in [0, 20, 33, 41, 50, 58, 70] {
        let mut fixture = Fixture::written(5, 700);
        fixture.damage("wal/0000000000000001.wal", |content| flip(content, at));
        let findings = fixture.findings();
        let [Finding::Repaired { range, .. }] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!((range.from, range.to), (0, BLOCK as u64));
        fixture.goes_on();
    }
}

#[test]
fn segment_leftover() {
    let mut fixture = Fixture::drained();
    let names = fixture.names("wal/", ".wal");
    let oldest = fixture.disk.content(&names[0]).expect("it is there");
    fixture
        .disk
        .set_content("wal/0000000000000001.wal", oldest.clone());
    fixture
        .disk
        .set_content("wal/00000000000000ff.wal", vec![0; oldest.len()]);
    assert_eq!(fixture.findings(), []);
    let left = fixture.names("wal/", ".wal");
    assert!(!left.contains(&"wal/0000000000000001.wal".to_owned()));
    assert!(!left.contains(&"wal/00000000000000ff.wal".to_owned()));
    fixture.goes_on();
}

#[test]
fn snapshot_damaged() {
    let whole = Fixture::checkpointed(30, 400);
    let newest = whole
        .names("snapshots/", ".snap")
        .pop()
        .expect("there are two");
    let bytes = whole.disk.content(&newest).expect("it is there").len();
    for at in [0, 40, 60, 130, bytes - 1] {
        let mut fixture = Fixture {
            disk: whole.disk.copy(),
            ..whole.clone()
        };
        fixture.damage(&newest, |content| flip(content, at));
        let findings = fixture.findings();
        let [Finding::OlderCheckpoint { range, op, .. }] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(range.file, newest);
        assert!(op.0 > 0);
        fixture.run(|node, truth| node.checkpoint(truth).expect("there is room"));
        fixture.goes_on();
    }
}

#[test]
fn snapshot_damaged_first() {
    let mut fixture = Fixture::written(6, 400);
    fixture.run(|node, truth| node.checkpoint(truth).expect("there is room"));
    let only = fixture.names("snapshots/", ".snap");
    assert_eq!(only.len(), 1);
    fixture.damage(&only[0], |content| flip(content, 200));
    let findings = fixture.findings();
    let [Finding::OlderCheckpoint { op, .. }] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(op.0, 0);
    fixture.goes_on();
}

#[test]
fn snapshot_damaged_out_of_reach() {
    let mut fixture = Fixture::drained();
    let names = fixture.names("snapshots/", ".snap");
    assert_eq!(names.len(), 2);
    for name in &names {
        fixture.damage(name, |content| flip(content, 200));
    }
    let error = fixture.refused();
    let OpenError::SnapshotUnreadable { range, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(range.file, names[1]);
}

#[test]
fn snapshot_missing() {
    let mut fixture = Fixture::checkpointed(30, 400);
    let newest = fixture
        .names("snapshots/", ".snap")
        .pop()
        .expect("there are two");
    fixture.disk.forget(&newest);
    let findings = fixture.findings();
    assert!(
        matches!(findings[..], [Finding::OlderCheckpoint { .. }]),
        "{findings:?}"
    );
    fixture.goes_on();
}

#[test]
fn snapshot_unfinished() {
    let mut fixture = Fixture::checkpointed(9, 400);
    fixture
        .disk
        .set_content("tmp/00000000000000aa.snap", vec![1; 50]);
    assert_eq!(fixture.findings(), []);
    assert_eq!(fixture.names("tmp/", ""), ["tmp/reserve"]);
    fixture.goes_on();
}

#[test]
fn sidecar_missing() {
    let mut fixture = Fixture::drained();
    let sidecars = fixture.names("", ".idx");
    assert!(sidecars.iter().any(|name| name.starts_with("wal/")));
    for name in sidecars {
        fixture.disk.forget(&name);
    }
    assert_eq!(fixture.findings(), []);
    fixture.goes_on();
}

#[test]
fn sidecar_damaged() {
    let mut fixture = Fixture::checkpointed(60, 1500);
    let sidecars = fixture.names("wal/", ".idx");
    assert!(!sidecars.is_empty());
    for name in &sidecars {
        fixture.damage(name, |content| flip(content, 200));
    }
    let findings = fixture.findings();
    assert!(!findings.is_empty());
    for finding in &findings {
        assert!(matches!(finding, Finding::Repaired { .. }), "{finding}");
    }
    fixture.run(|node, _| {
        drain_all(node);
    });
    fixture.goes_on();
}

#[test]
fn partition_torn_tail() {
    let mut fixture = Fixture::drained();
    let name = fixture
        .names("partitions/", ".seg")
        .pop()
        .expect("there are files");
    let whole = fixture.disk.content(&name).expect("it is there");
    fixture.damage(&name, |content| content.extend([9; 777]));
    let findings = fixture.findings();
    let torn = findings.iter().any(|finding| match finding {
        Finding::TornTail { range } => range.file == name && range.from == whole.len() as u64,
        _ => false,
    });
    assert!(torn, "{findings:?}");
    assert_eq!(fixture.disk.content(&name), Some(whole));
    fixture.goes_on();
}

#[test]
fn partition_file_damaged() {
    let mut fixture = Fixture::drained();
    for name in fixture.names("partitions/", ".idx") {
        fixture.disk.forget(&name);
    }
    let name = fixture.names("partitions/", ".seg")[0].clone();
    fixture.damage(&name, |content| flip(content, 128 + 70));
    let error = fixture.refused();
    let OpenError::MessagesMissing { offset, range, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*offset, 0);
    assert_eq!((&range.file, range.from), (&name, 128));
}

#[test]
fn partition_file_missing() {
    let mut fixture = Fixture::drained();
    let name = fixture.names("partitions/", ".seg")[0].clone();
    fixture.disk.forget(&name);
    let error = fixture.refused();
    assert!(
        matches!(error, OpenError::MessagesMissing { offset: 0, .. }),
        "{error}"
    );
}

#[test]
fn partition_dropped() {
    let mut fixture = Fixture::drained();
    fixture.run(|node, truth| {
        let uid = *node.machine.partitions.keys().next().expect("there is one");
        node.create(truth);
        node.on_partition(truth, pawl_wire::entry::EntryKind::DeletePartitions, uid, 0);
        sync(node, truth);
    });
    // Until a kept checkpoint covers the drop the files are needed: a restart replays it.
    assert!(!fixture.names("partitions/", ".seg").is_empty());
    fixture.findings();
    fixture.run(|node, truth| {
        for _ in 0..2 {
            send(node, truth, 1, 100);
            node.checkpoint(truth).expect("there is room");
            drain_all(node);
        }
    });
    assert_eq!(fixture.names("partitions/", ""), Vec::<String>::new());
    fixture.goes_on();
}

#[test]
fn drain_interrupted() {
    let mut ready = Fixture::empty();
    ready.options.partition_segment_bytes = 4096;
    ready.run(|node, truth| {
        node.create(truth);
        node.create(truth);
        sync(node, truth);
        let uids: Vec<u64> = node.machine.partitions.keys().copied().collect();
        for round in 0..50 {
            node.send(truth, uids[round % 2], 2, 900 + round, false);
            sync(node, truth);
            if round % 10 == 9 {
                node.checkpoint(truth).expect("there is room");
            }
        }
    });
    let mut interrupted = 0;
    for operations in 1..80 {
        for seed in 0..12 {
            let mut fixture = Fixture {
                disk: ready.disk.copy(),
                ..ready.clone()
            };
            let mut node = fixture.open();
            fixture.disk.fail_power_after(operations);
            let result = (0..3).try_for_each(|_| node.store.drainer.tick().map(|_| ()));
            interrupted += u32::from(result.is_err());
            drop(node);
            // A kill first: the next start must flush what it finds.
            match seed % 3 {
                0 => fixture.disk.kill(),
                _ => fixture.disk.power_cut(seed),
            }
            fixture.run(|node, _| {
                drain_all(node);
            });
            fixture.disk.power_cut(seed + 100);
            fixture.open();
        }
    }
    assert!(interrupted > 300, "{interrupted} drains were interrupted");
}

#[test]
fn foreign_files() {
    let mut fixture = Fixture::drained();
    let foreign = [
        "lost+found.txt",
        "wal/README",
        "wal/0000000000000001.wal.bak",
        "snapshots/notes",
        "partitions/x",
        "partitions/0000000000010000/y",
    ];
    for name in foreign {
        fixture.disk.set_content(name, vec![1, 2, 3]);
    }
    let findings = fixture.findings();
    assert_eq!(findings.len(), foreign.len(), "{findings:?}");
    for finding in &findings {
        let Finding::Ignored { name } = finding else {
            panic!("{finding}");
        };
        assert!(foreign.contains(&name.as_str()), "{name}");
        assert_eq!(fixture.disk.content(name), Some(vec![1, 2, 3]));
    }
}
