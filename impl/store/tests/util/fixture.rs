//! Disks with known content, and ways to damage them.

use pawl_store::{FaultyDisk, Finding, OpenError, StoreOptions};

use super::node::{Node, OpenFailure};
use super::{Truth, options_small};

pub const BLOCK: usize = 4096;

/// A disk, what was written to it, and how it is opened.
#[derive(Clone)]
pub struct Fixture {
    pub disk: FaultyDisk,
    pub truth: Truth,
    pub options: StoreOptions,
}

impl Fixture {
    pub fn empty() -> Fixture {
        Fixture {
            disk: FaultyDisk::new(),
            truth: Truth::default(),
            options: options_small(),
        }
    }

    /// Partition 1, then so many sends of about this many bytes, each flushed on its own; then
    /// killed.
    pub fn written(sends: usize, bytes: usize) -> Fixture {
        let mut fixture = Fixture::empty();
        fixture.run(|node, truth| {
            node.create(truth);
            sync(node, truth);
            send(node, truth, sends, bytes);
        });
        fixture
    }

    /// As `written`, with checkpoints after a third and two thirds of the sends; sidecars written.
    pub fn checkpointed(sends: usize, bytes: usize) -> Fixture {
        let mut fixture = Fixture::empty();
        fixture.run(|node, truth| {
            node.create(truth);
            sync(node, truth);
            for _ in 0..2 {
                send(node, truth, sends / 3, bytes);
                node.checkpoint(truth).expect("there is room");
                node.store.drainer.tick().expect("there is room");
            }
            send(node, truth, sends / 3, bytes);
        });
        fixture
    }

    /// Most of the log has been drained to partition files.
    pub fn drained() -> Fixture {
        let mut fixture = Fixture::empty();
        fixture.run(|node, truth| {
            node.create(truth);
            sync(node, truth);
            for _ in 0..12 {
                send(node, truth, 6, 1500);
                node.checkpoint(truth).expect("there is room");
                drain_all(node);
            }
        });
        fixture
    }

    /// Opens, does something, kills the process.
    pub fn run(&mut self, act: impl FnOnce(&mut Node, &mut Truth)) {
        let mut node = self.open();
        act(&mut node, &mut self.truth);
        drop(node);
        self.disk.kill();
    }

    /// Opens, compares with the truth, and demands that it works.
    pub fn open(&mut self) -> Node {
        match Node::open(&self.disk, &self.options, &mut self.truth) {
            Ok(node) => node,
            Err(failure) => panic!("{failure:?}"),
        }
    }

    /// Opens and kills; what was found.
    pub fn findings(&mut self) -> Vec<Finding> {
        let node = self.open();
        let findings = node.findings.clone();
        drop(node);
        self.disk.kill();
        findings
    }

    /// Demands a refusal that leaves every byte as it was.
    pub fn refused(&mut self) -> OpenError {
        let before = contents(&self.disk);
        let result = Node::open(&self.disk, &self.options, &mut self.truth);
        let error = match result {
            Err(OpenFailure::Refused(error)) => error,
            Err(OpenFailure::Wrong(text)) => panic!("{text}"),
            Ok(_) => panic!("it was not refused"),
        };
        self.disk.kill();
        assert!(before == contents(&self.disk), "a refusal changes nothing");
        error
    }

    /// It restarts, can be written to, restarts again, and finds nothing more to mend.
    pub fn goes_on(&mut self) {
        self.run(|node, truth| {
            node.create(truth);
            sync(node, truth);
            send(node, truth, 5, 900);
        });
        let findings = self.findings();
        assert!(findings.is_empty(), "{findings:?}");
    }

    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut content = self.disk.content(name).expect("the file is there");
        change(&mut content);
        self.disk.set_content(name, content);
    }

    /// Names that begin so.
    pub fn names(&self, prefix: &str, extension: &str) -> Vec<String> {
        let files = self.disk.files().into_iter();
        let wanted = |name: &String| name.starts_with(prefix) && name.ends_with(extension);
        files.filter(wanted).collect()
    }

    /// Batches of the log: segment, position, bytes.
    pub fn batches(&self) -> Vec<(String, usize, usize)> {
        let mut found = Vec::new();
        for name in self.names("wal/", ".wal") {
            let content = self.disk.content(&name).expect("the file is there");
            let segment = u64::from_str_radix(&name[4..20], 16).expect("a segment's name");
            let mut position = BLOCK;
            while position + BLOCK <= content.len() {
                let word = |at: usize| {
                    let bytes = content[position + at..position + at + 8].try_into();
                    u64::from_le_bytes(bytes.expect("8 bytes"))
                };
                let here = word(56) == segment && word(64) == position as u64;
                if &content[position + 48..position + 56] != b"PAWLBAT1" || !here {
                    break;
                }
                let bytes = word(104) as usize;
                found.push((name.clone(), position, bytes));
                position += bytes;
            }
        }
        found
    }
}

pub fn contents(disk: &FaultyDisk) -> Vec<(String, Vec<u8>)> {
    let files = disk.files().into_iter();
    let files = files.filter(|name| name != "lock");
    files
        .map(|name| {
            let content = disk.content(&name).expect("it was listed");
            (name, content)
        })
        .collect()
}

pub fn sync(node: &mut Node, truth: &mut Truth) {
    node.write().expect("there is room");
    node.flush(truth).expect("the flush works");
}

/// Sends to the first partition, each flushed on its own.
pub fn send(node: &mut Node, truth: &mut Truth, sends: usize, bytes: usize) {
    let uid = *node.machine.partitions.keys().next().expect("there is one");
    for index in 0..sends {
        node.send(truth, uid, 1 + index as u32 % 3, bytes + index, false);
        sync(node, truth);
    }
}

pub fn drain_all(node: &mut Node) -> u64 {
    let mut segments = 0;
    loop {
        let drained = node.store.drainer.tick().expect("there is room");
        if drained.segment.is_none() && drained.sidecars == 0 {
            return segments;
        }
        segments += u64::from(drained.segment.is_some());
    }
}
