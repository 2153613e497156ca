//! Every single flipped bit and every cut of a small log, anchor, snapshot, partition file and
//! sidecar: recovered, repaired, or refused with file and position. Never a wrong record, never a
//! panic, and a refusal changes nothing.

mod util;

use std::sync::atomic::{AtomicUsize, Ordering};

use pawl_store::{Finding, OpenError, StoreOptions};
use util::fixture::{BLOCK, Fixture, contents, drain_all, send, sync};
use util::node::{check_records, recover};
use util::{Node, OpenFailure, options_small};

/// What became of a damaged directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    Recovered,
    Repaired,
    Cut,
    Refused,
}

/// Three segments with two batches each, a checkpoint, and nothing drained.
fn small() -> Fixture {
    let mut fixture = Fixture::empty();
    fixture.options = StoreOptions {
        segment_bytes: 3 * BLOCK as u32,
        copy_bytes_max: 200,
        ..options_small()
    };
    fixture.run(|node, truth| {
        node.create(truth);
        sync(node, truth);
        send(node, truth, 1, 150);
        node.checkpoint(truth).expect("there is room");
        send(node, truth, 1, 700);
        node.vote();
        sync(node, truth);
    });
    fixture
}

fn drained() -> Fixture {
    let mut fixture = small();
    fixture.options.log_bytes_max = 0;
    fixture.run(|node, truth| {
        send(node, truth, 2, 90);
        node.checkpoint(truth).expect("there is room");
        send(node, truth, 1, 50);
        node.checkpoint(truth).expect("there is room");
        drain_all(node);
        send(node, truth, 1, 60);
    });
    let node = fixture.open();
    node.close(&mut fixture.truth).expect("it stops");
    fixture.disk.kill();
    fixture
}

/// Opens a damaged directory, and checks what it says. `whole`: starts and reads it, too.
fn judge(damaged: &Fixture, file: &str, whole: bool) -> Fate {
    // The newest batch has no later one that vouches for it: it may be cut as torn.
    let mut truth = damaged.truth.clone();
    truth.acknowledged -= 1;
    truth.vote_acknowledged = 0;
    let recovered = recover(&damaged.disk, &damaged.options);
    damaged.disk.kill();
    let recovery = match recovered {
        Ok(recovery) => recovery,
        Err(error) => return refused(&error, file),
    };
    let head = check_records(&recovery, &truth).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert!(head >= truth.acknowledged, "the log ends at {head}");
    let fate = fate(&recovery.findings);
    drop(recovery);
    if whole || fate != Fate::Recovered {
        return start(damaged, truth, file).max(fate);
    }
    fate
}

fn fate(findings: &[Finding]) -> Fate {
    let fates = findings.iter().map(|finding| match finding {
        Finding::TornTail { .. } | Finding::Kept { .. } => Fate::Cut,
        Finding::Repaired { .. } | Finding::OlderCheckpoint { .. } => Fate::Repaired,
        Finding::Ignored { .. } => Fate::Recovered,
    });
    fates.max().unwrap_or(Fate::Recovered)
}

fn refused(error: &OpenError, file: &str) -> Fate {
    let text = error.to_string();
    assert!(text.contains(file), "{text} does not name {file}");
    let position = text.contains("bytes ") || text.contains("missing");
    assert!(position, "{text} names no position");
    Fate::Refused
}

/// Starts a copy, reads everything, writes, and restarts.
fn start(damaged: &Fixture, mut truth: util::Truth, file: &str) -> Fate {
    let disk = damaged.disk.copy();
    let before = contents(&disk);
    let mut node = match Node::open(&disk, &damaged.options, &mut truth) {
        Ok(node) => node,
        Err(OpenFailure::Refused(error)) => {
            assert!(contents(&disk) == before, "a refusal changes nothing");
            return refused(&error, file);
        }
        // What is damaged may be a body: it is named, and not served.
        Err(OpenFailure::Wrong(text)) if text.contains("damaged: ") => {
            assert!(text.contains(file), "{text} does not name {file}");
            return Fate::Refused;
        }
        Err(OpenFailure::Wrong(text)) => panic!("{text}"),
    };
    let fate = fate(&node.findings);
    node.create(&mut truth);
    sync(&mut node, &mut truth);
    drop(node);
    disk.power_cut(1);
    let again = Node::open(&disk, &damaged.options, &mut truth);
    again.unwrap_or_else(|failure| panic!("the second start: {failure:?}"));
    fate
}

/// Runs over all positions on two threads.
fn each(
    fixture: &Fixture,
    count: usize,
    judge: impl Fn(&Fixture, usize) -> Fate + Sync,
) -> [usize; 4] {
    let next = AtomicUsize::new(0);
    let worker = || {
        let own = Fixture {
            disk: fixture.disk.copy(),
            ..fixture.clone()
        };
        let mut fates = [0; 4];
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= count {
                return fates;
            }
            fates[judge(&own, position) as usize] += 1;
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        let mine = worker();
        let theirs = other.join().expect("no position panics");
        std::array::from_fn(|index| mine[index] + theirs[index])
    })
}

/// Every position is judged by what recovery says. A start, which takes longer, by every 7th of a
/// large file; always where only a start reads what is damaged.
fn starts(file: &str, position: usize) -> bool {
    file.starts_with("partitions/") || position.is_multiple_of(7)
}

fn flip_all(fixture: &Fixture, file: &str) -> [usize; 4] {
    let bits = fixture.disk.content(file).expect("it is there").len() * 8;
    let fates = each(fixture, bits, |own, bit| {
        own.disk.flip(file, bit);
        let fate = judge(own, file, starts(file, bit));
        own.disk.flip(file, bit);
        fate
    });
    println!("{file}: {bits} bits: recovered, repaired, cut, refused: {fates:?}");
    fates
}

fn cut_all(fixture: &Fixture, file: &str) -> [usize; 4] {
    let content = fixture.disk.content(file).expect("it is there");
    let fates = each(fixture, content.len(), |own, length| {
        own.disk.set_content(file, content[..length].to_vec());
        let fate = judge(own, file, starts(file, length));
        own.disk.set_content(file, content.clone());
        fate
    });
    println!(
        "{file}: {} cuts: recovered, repaired, cut, refused: {fates:?}",
        content.len()
    );
    fates
}

/// Segments of the log, without those that are only ready.
fn log_segments(fixture: &Fixture) -> Vec<String> {
    let mut names: Vec<String> = fixture.batches().into_iter().map(|b| b.0).collect();
    names.dedup();
    names
}

#[test]
fn every_flipped_bit_of_the_log() {
    let fixture = small();
    let segments = log_segments(&fixture);
    assert_eq!(segments.len(), 3, "{:?}", fixture.batches());
    for (index, file) in segments.iter().enumerate() {
        let [recovered, repaired, cut, refused] = flip_all(&fixture, file);
        assert!(
            recovered > 0 && repaired > 0,
            "padding, and the first block"
        );
        match index {
            0 | 1 => assert!(refused > 0 && cut == 0, "later batches vouch for these"),
            _ => assert!(cut > 0, "nothing vouches for the last batch"),
        }
    }
}

#[test]
fn every_cut_of_the_log() {
    let fixture = small();
    let segments = log_segments(&fixture);
    let [_, _, _, refused] = cut_all(&fixture, &segments[0]);
    assert!(
        refused > 2 * BLOCK,
        "later batches vouch for the first segment"
    );
}

/// The last segment may lose several batches at once to a cut: then nothing vouches for any of
/// them.
#[test]
fn every_cut_of_the_newest_segment() {
    let mut fixture = small();
    let newest = log_segments(&fixture).pop().expect("there are two");
    let below = fixture.batches().iter().filter(|b| b.0 != newest).count() as u64;
    fixture.truth.acknowledged = fixture.truth.acknowledged.min(below);
    let [_, _, cut, refused] = cut_all(&fixture, &newest);
    assert!(cut > 0 && refused == 0, "{cut} cut, {refused} refused");
}

#[test]
fn every_flipped_bit_of_the_anchor() {
    let fixture = small();
    let [recovered, repaired, cut, refused] = flip_all(&fixture, "anchor");
    assert_eq!((cut, refused), (0, 0));
    assert!(recovered > 0, "behind the anchor in each slot");
    assert_eq!(repaired, 4 * 448 * 8, "each bit of each slot");
}

#[test]
fn every_cut_of_the_anchor() {
    let fixture = small();
    let [_, repaired, _, refused] = cut_all(&fixture, "anchor");
    assert!(repaired > 0);
    assert_eq!(refused, BLOCK, "no whole slot is left");
}

#[test]
fn every_flipped_bit_and_cut_of_a_snapshot() {
    let fixture = small();
    let file = fixture
        .names("snapshots/", ".snap")
        .pop()
        .expect("there is one");
    let [recovered, _, _, refused] = flip_all(&fixture, &file);
    assert_eq!(
        (recovered, refused),
        (0, 0),
        "the log is replayed from op 1"
    );
    let [recovered, _, _, refused] = cut_all(&fixture, &file);
    assert_eq!((recovered, refused), (0, 0));
}

#[test]
fn every_flipped_bit_and_cut_of_partition_files_and_sidecars() {
    let fixture = drained();
    let files = fixture.names("partitions/", ".seg");
    assert!(!files.is_empty());
    for file in &files {
        // With a sidecar damage shows when a body is read, without one when records are scanned.
        flip_all(&fixture, file);
        cut_all(&fixture, file);
    }
    for file in fixture.names("", ".idx") {
        // A sidecar is rebuilt; behind the replay position none is read.
        for fates in [flip_all(&fixture, &file), cut_all(&fixture, &file)] {
            let [recovered, repaired, cut, refused] = fates;
            assert_eq!((cut, refused), (0, 0));
            assert!(recovered == 0 || repaired == 0);
        }
        fixture.disk.forget(&file);
    }
    for file in &files {
        let [_, _, _, refused] = flip_all(&fixture, file);
        assert!(refused > 0);
        cut_all(&fixture, file);
    }
}
