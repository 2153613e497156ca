//! The real disk: the same store on files of the host, and what `inspect` says of each of them.

mod util;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pawl_store::{OpenError, Opened, RealDisk, Recovery, Store, StoreOptions, inspect, open};
use pawl_vsr::Record;
use util::fixture::{Fixture, contents};
use util::{identity, options_small};

fn open_real(root: &Path, options: &StoreOptions) -> Result<Recovery, OpenError> {
    let disk = Arc::new(RealDisk::new(root).expect("the folder can be made"));
    match open(disk, options.clone())? {
        Opened::Empty(empty) => empty.format(identity(), util::NONCE),
        Opened::Holds(recovery) => Ok(*recovery),
    }
}

/// Writes what is on a disk in memory to a folder.
fn export(fixture: &Fixture, root: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let files = contents(&fixture.disk).into_iter();
    for (name, content) in files.filter(|(name, _)| !name.starts_with("tmp/")) {
        let path = root.join(name);
        let parent = path.parent().expect("it is inside the root");
        std::fs::create_dir_all(parent).expect("the folder can be made");
        std::fs::write(&path, content).expect("the file can be written");
        paths.push(path);
    }
    paths
}

fn start(recovery: Recovery) -> Store {
    let machine = match &recovery.recovered.checkpoint {
        Some((_, snapshot)) => util::machine::TestMachine::restore(snapshot),
        None => util::machine::TestMachine::default(),
    };
    let mut findings = recovery.findings;
    let started = recovery.starter.start(&machine.bounds(), &mut findings);
    assert!(findings.is_empty(), "{findings:?}");
    started.expect("it starts")
}

#[test]
fn a_folder_is_formatted_written_locked_and_read_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = options_small();
    let fixture = Fixture::written(30, 900);
    let records = {
        let recovery = util::node::recover(&fixture.disk, &options).expect("it opens");
        fixture.disk.kill();
        recovery.recovered.records
    };
    let mut store = start(open_real(folder.path(), &options).expect("it is formatted"));
    let second = open_real(folder.path(), &options).map(|_| ());
    let Err(OpenError::Locked(root)) = second else {
        panic!("{second:?}");
    };
    assert_eq!(root, folder.path());
    let mut placed = Vec::new();
    let outcomes_op = pawl_wire::ids::Op(0);
    for chunk in records.chunks(3) {
        let written = store.writer.write(chunk, &[], outcomes_op, &mut placed);
        written.expect("there is room");
        store.writer.flush().expect("the flush works");
        store.preparer.tick().expect("there is room");
    }
    let bodies = records.iter().filter_map(|(_, record)| match record {
        Record::Entry { body, .. } => Some(body),
        Record::View(_) => None,
    });
    for (placed, body) in placed.iter().zip(bodies) {
        assert_eq!(
            store.reader.read(&placed.place).expect("it is there"),
            *body
        );
    }
    store.writer.close().expect("it stops");
    store.drainer.close().expect("it stops");
    // Every part holds the lock.
    drop((
        store.reader,
        store.status,
        store.preparer,
        store.checkpointer,
    ));
    let again = open_real(folder.path(), &options).expect("it opens");
    assert!(again.recovered.records == records, "every record is there");
    start(again);
}

#[test]
fn a_directory_from_memory_opens_on_the_host() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fixture = Fixture::drained();
    export(&fixture, folder.path());
    let recovery = open_real(folder.path(), &fixture.options).expect("it opens");
    let partitions = {
        let store = start(recovery);
        store.index.partition_count()
    };
    assert_eq!(partitions, 1);
}

fn lines(path: &Path) -> Vec<String> {
    inspect(path).expect("it can be read").collect()
}

#[test]
fn inspect_describes_every_kind_of_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut fixture = Fixture::drained();
    fixture.run(|node, _| node.vote());
    let node = fixture.open();
    node.close(&mut fixture.truth).expect("it stops");
    for path in export(&fixture, folder.path()) {
        let lines = lines(&path);
        let name = path.to_string_lossy().into_owned();
        assert!(lines.len() > 1, "{name}: {lines:?}");
        let kind = match name {
            _ if name.ends_with(".wal") => "log segment",
            _ if name.ends_with(".idx") => "sidecar",
            _ if name.ends_with(".seg") => "partition file",
            _ if name.ends_with(".snap") => "snapshot",
            _ => "anchor",
        };
        assert!(lines[0].contains(kind), "{}", lines[0]);
        for line in &lines {
            assert!(
                !line.contains("cannot be read") && !line.contains("DAMAGED"),
                "{line}"
            );
        }
    }
}

#[test]
fn inspect_says_where_a_file_is_damaged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fixture = Fixture::drained();
    for path in export(&fixture, folder.path()) {
        let whole = std::fs::read(&path).expect("it was written");
        for (at, change) in [(3, 1), (whole.len() / 2, 2), (whole.len() - 1, 3)] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            std::fs::write(&path, &damaged).expect("it can be written");
            assert!(!lines(&path).is_empty());
            std::fs::write(&path, &damaged[..at]).expect("it can be written");
            assert!(!lines(&path).is_empty());
        }
        std::fs::write(&path, &whole).expect("it can be written");
    }
    let segment = folder.path().join(&fixture.batches()[0].0);
    let mut damaged = std::fs::read(&segment).expect("it was written");
    damaged[4096 + 100] ^= 1;
    std::fs::write(&segment, &damaged).expect("it can be written");
    let said = lines(&segment)
        .iter()
        .any(|line| line.starts_with("bytes 4096.."));
    assert!(said, "{:?}", lines(&segment));
}

#[test]
fn inspect_knows_a_foreign_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("notes");
    std::fs::write(&path, "hello").expect("it can be written");
    assert!(lines(&path)[0].contains("not a file of a data directory"));
}
