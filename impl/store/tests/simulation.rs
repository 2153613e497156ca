//! Seeded lives of a node on a faulty disk: write, drain, crash, recover, compare, again.
//!
//! `cargo test -p pawl-store --test simulation` runs 2,000 seeds. `PAWL_SEEDS=10000` runs that
//! many, `PAWL_SEED=17` that one alone. What is checked after every crash, by [`Node::open`]:
//!
//! 1. every acknowledged op and vote is there; every recovered record is one that was submitted;
//! 2. replay from the checkpoint gives the machine that the whole log gives;
//! 3. the index holds exactly the machine's batches, and every body reads back as it was sent.
//!
//! A planted fault, one for each flush of the store, proves that the simulation can fail.

mod util;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use pawl_store::disk::faulty::Dice;
use pawl_store::{CheckpointError, DrainError, FaultyDisk, Finding, StoreOptions, WriteError};
use pawl_wire::entry::EntryKind;
use util::{Node, OpenFailure, Truth, options_small};

/// What a run has met. A simulation that never met one of these has proved nothing about it.
#[derive(Clone, Copy, Default, Debug)]
struct Met {
    lives: u64,
    acknowledged: u64,
    power_cuts_inside_an_operation: u64,
    power_cuts_between: u64,
    power_cuts_while_opening: u64,
    kills: u64,
    clean_stops: u64,
    flush_failures: u64,
    full_disks: u64,
    torn_tails: u64,
    segments_drained: u64,
    batches_drained: u64,
    checkpoints: u64,
    files_removed: u64,
}

impl Met {
    fn add(&mut self, other: &Met) {
        for (mine, theirs) in self.fields().into_iter().zip((*other).clone().fields()) {
            *mine.1 += *theirs.1;
        }
    }

    fn fields(&mut self) -> [(&'static str, &mut u64); 14] {
        [
            ("lives", &mut self.lives),
            ("acknowledged", &mut self.acknowledged),
            (
                "power cuts inside an operation",
                &mut self.power_cuts_inside_an_operation,
            ),
            ("power cuts between", &mut self.power_cuts_between),
            (
                "power cuts while opening",
                &mut self.power_cuts_while_opening,
            ),
            ("kills", &mut self.kills),
            ("clean stops", &mut self.clean_stops),
            ("flush failures", &mut self.flush_failures),
            ("full disks", &mut self.full_disks),
            ("torn tails", &mut self.torn_tails),
            ("segments drained", &mut self.segments_drained),
            ("batches drained", &mut self.batches_drained),
            ("checkpoints", &mut self.checkpoints),
            ("files removed", &mut self.files_removed),
        ]
    }
}

/// A fault that is planted on purpose.
#[derive(Clone, Copy, Debug)]
enum Planted {
    Nothing,
    /// Flushes of these names do nothing.
    Flush(&'static str),
    /// A start does not flush what it read.
    StartFlush,
}

/// Why a life ended.
enum End {
    Crashed(String),
    Wrong(String),
}

struct Run {
    dice: Dice,
    disk: FaultyDisk,
    options: StoreOptions,
    truth: Truth,
    planted: Planted,
    met: Met,
}

impl Run {
    fn new(seed: u64, planted: Planted) -> Run {
        let mut dice = Dice::new(seed);
        let segment_bytes = 4096 * (4 + dice.below(5) as u32);
        Run {
            options: StoreOptions {
                segment_bytes,
                log_bytes_max: u64::from(segment_bytes) * (2 + dice.below(3)),
                partition_segment_bytes: 4096 * (1 + dice.below(6) as u32),
                copy_bytes_max: 64 + dice.below(2000) as u32,
                ..options_small()
            },
            dice,
            disk: FaultyDisk::new(),
            truth: Truth::default(),
            planted,
            met: Met::default(),
        }
    }

    fn all(mut self) -> Result<Met, String> {
        for _ in 0..2 + self.dice.below(3) {
            self.life()?;
        }
        // The last start must work, and show everything.
        let node = self.open()?;
        drop(node);
        Ok(self.met)
    }

    fn life(&mut self) -> Result<(), String> {
        let Some(mut node) = self.open()? else {
            return Ok(());
        };
        self.met.lives += 1;
        match self.dice.below(4) {
            0 => {}
            1 => self.disk.fail_flush_after(1 + self.dice.below(40)),
            _ => self.disk.fail_power_after(1 + self.dice.below(200)),
        }
        let steps = 5 + self.dice.below(60);
        for _ in 0..steps {
            match self.step(&mut node) {
                Ok(()) => {}
                Err(End::Crashed(why)) => return self.crash(&why),
                Err(End::Wrong(text)) => return Err(text),
            }
        }
        self.end(node)
    }

    /// Opens; power may fail meanwhile, once.
    fn open(&mut self) -> Result<Option<Node>, String> {
        self.disk.set_capacity(None);
        match self.planted {
            Planted::Nothing => {}
            Planted::Flush(prefix) => self.disk.ignore_flushes(Some(prefix)),
            Planted::StartFlush => self.disk.ignore_flushes(Some("wal/0")),
        }
        let fails = self.dice.once_in(5);
        if fails {
            self.disk.fail_power_after(1 + self.dice.below(25));
        }
        let opened = Node::open(&self.disk, &self.options, &mut self.truth);
        if let Planted::StartFlush = self.planted {
            self.disk.ignore_flushes(None);
        }
        match opened {
            Ok(node) => {
                let torn = |f: &&Finding| matches!(f, Finding::TornTail { .. });
                self.met.torn_tails += node.findings.iter().filter(torn).count() as u64;
                Ok(Some(node))
            }
            Err(OpenFailure::Refused(_)) if fails && self.disk.power_has_failed() => {
                self.met.power_cuts_while_opening += 1;
                self.disk.power_cut(self.dice.roll());
                Ok(None)
            }
            Err(OpenFailure::Refused(error)) => Err(format!("refused: {error}")),
            Err(OpenFailure::Wrong(text)) => Err(text),
        }
    }

    fn step(&mut self, node: &mut Node) -> Result<(), End> {
        match self.dice.below(20) {
            0 => self.checkpoint(node),
            1 => self.prepare(node),
            2 | 3 => self.drain(node),
            4 if self.dice.once_in(4) => {
                let room = self.disk.used() + self.dice.below(60_000);
                self.disk.set_capacity(Some(room));
                Ok(())
            }
            4 => {
                self.disk.set_capacity(None);
                Ok(())
            }
            5 => node
                .compare(&self.truth)
                .map_err(|failure| End::Wrong(format!("while running: {failure:?}"))),
            6 => {
                node.vote();
                Ok(())
            }
            _ => {
                for _ in 0..1 + self.dice.below(4) {
                    self.submit(node);
                }
                self.write(node)
            }
        }
    }

    fn submit(&mut self, node: &mut Node) {
        let uids: Vec<u64> = node.machine.partitions.keys().copied().collect();
        if uids.is_empty() || (uids.len() < 4 && self.dice.once_in(12)) {
            return node.create(&mut self.truth);
        }
        let uid = uids[self.dice.below(uids.len() as u64) as usize];
        let next = node.machine.partitions[&uid].next;
        let kind = match self.dice.below(40) {
            0 => EntryKind::DeletePartitions,
            1 => EntryKind::PurgeTopic,
            2 | 3 => EntryKind::DeleteSegments,
            _ => {
                let bytes = match self.dice.below(20) {
                    0 => self.dice.below(50_000),
                    1..=4 => self.dice.below(6_000),
                    _ => self.dice.below(600),
                };
                let refused = self.dice.once_in(10);
                let count = 1 + self.dice.below(9) as u32;
                return node.send(&mut self.truth, uid, count, bytes as usize, refused);
            }
        };
        let first = self.dice.below(next + 1);
        node.on_partition(&mut self.truth, kind, uid, first);
    }

    fn write(&mut self, node: &mut Node) -> Result<(), End> {
        let written = node.write();
        self.judge_write(node, written)?;
        if self.dice.once_in(3) {
            return Ok(());
        }
        let flushed = node.flush(&mut self.truth);
        self.judge_write(node, flushed)
    }

    fn judge_write(&mut self, node: &mut Node, result: Result<(), WriteError>) -> Result<(), End> {
        match result {
            Ok(()) => Ok(()),
            Err(WriteError::NoSpace) => {
                self.met.full_disks += 1;
                if self.dice.once_in(2) {
                    self.disk.set_capacity(None);
                }
                Ok(())
            }
            Err(WriteError::Disk(error)) => {
                // Whatever failed, nothing is written or acknowledged from here on (spec REC-3).
                match (node.write(), node.flush(&mut self.truth)) {
                    (Err(WriteError::Poisoned), Err(WriteError::Poisoned)) => {
                        Err(End::Crashed(error.to_string()))
                    }
                    other => Err(End::Wrong(format!("not poisoned: {other:?}"))),
                }
            }
            Err(error) => Err(End::Wrong(error.to_string())),
        }
    }

    fn checkpoint(&mut self, node: &mut Node) -> Result<(), End> {
        match node.checkpoint(&mut self.truth) {
            Ok(()) => self.met.checkpoints += 1,
            Err(CheckpointError::NoSpace) => self.met.full_disks += 1,
            Err(error @ (CheckpointError::Disk(_) | CheckpointError::Poisoned)) => {
                return Err(End::Crashed(error.to_string()));
            }
            Err(error) => return Err(End::Wrong(error.to_string())),
        }
        Ok(())
    }

    fn prepare(&mut self, node: &mut Node) -> Result<(), End> {
        match node.store.preparer.tick() {
            Ok(_) => Ok(()),
            Err(error) => Err(End::Crashed(error.to_string())),
        }
    }

    fn drain(&mut self, node: &mut Node) -> Result<(), End> {
        match node.store.drainer.tick() {
            Ok(drained) => {
                self.met.segments_drained += u64::from(drained.segment.is_some());
                self.met.batches_drained += drained.batches;
                self.met.files_removed += u64::from(drained.files_removed);
                Ok(())
            }
            Err(DrainError::NoSpace) => Ok(()),
            Err(error @ (DrainError::Disk(_) | DrainError::Poisoned)) => {
                Err(End::Crashed(error.to_string()))
            }
            Err(error @ DrainError::Damaged(_)) => Err(End::Wrong(error.to_string())),
        }
    }

    /// Something failed: power, or a flush after which the process must stop.
    fn crash(&mut self, why: &str) -> Result<(), String> {
        if self.disk.power_has_failed() {
            self.met.power_cuts_inside_an_operation += 1;
        } else if self.disk.flush_has_failed() {
            self.met.flush_failures += 1;
        } else {
            return Err(format!("a disk that works failed: {why}"));
        }
        self.disk.power_cut(self.dice.roll());
        Ok(())
    }

    fn end(&mut self, node: Node) -> Result<(), String> {
        match self.dice.below(3) {
            0 => {
                self.met.kills += 1;
                self.disk.kill();
            }
            1 => {
                self.disk.set_capacity(None);
                if node.close(&mut self.truth).is_ok() {
                    self.met.clean_stops += 1;
                }
                match self.dice.once_in(2) {
                    true => self.disk.kill(),
                    false => self.disk.power_cut(self.dice.roll()),
                }
            }
            _ => {
                self.met.power_cuts_between += 1;
                self.disk.power_cut(self.dice.roll());
            }
        }
        self.met.acknowledged += self.truth.acknowledged;
        Ok(())
    }
}

fn run(seed: u64, planted: Planted) -> Result<Met, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| Run::new(seed, planted).all()));
    match outcome {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs seeds on two threads; the first failure, or what was met.
fn run_all(seeds: std::ops::Range<u64>, planted: Planted, show: bool) -> Result<Met, String> {
    let next = AtomicU64::new(seeds.start);
    let worker = || {
        let mut met = Met::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(met);
            }
            match run(seed, planted) {
                Ok(one) => met.add(&one),
                Err(text) => {
                    next.store(seeds.end, Ordering::Relaxed);
                    return Err(format!("seed {seed}: {text}"));
                }
            }
            if show && (seed + 1).is_multiple_of(500) {
                // Past the capture of the test harness: this is progress, not a result.
                let _ = writeln!(std::io::stderr(), "{} of {} seeds", seed + 1, seeds.end);
            }
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        let mut met = worker()?;
        met.add(&other.join().expect("a worker catches panics")?);
        Ok(met)
    })
}

#[test]
fn every_life_ends_in_a_log_that_holds_what_was_acknowledged() {
    if let Some(seed) = number("PAWL_SEED") {
        let met = run(seed, Planted::Nothing).unwrap_or_else(|text| panic!("seed {seed}: {text}"));
        println!("{met:?}");
        return;
    }
    let seeds = number("PAWL_SEEDS").unwrap_or(2_000);
    let mut met = run_all(0..seeds, Planted::Nothing, true).unwrap_or_else(|text| panic!("{text}"));
    println!("{seeds} seeds: {met:?}");
    for (name, count) in met.fields() {
        assert!(*count > 0, "no seed has met: {name}");
    }
}

/// One planted fault for each flush of the store: each must be caught.
#[test]
fn every_flush_that_is_left_out_is_caught() {
    let planted = [
        Planted::Flush("wal/0"),
        Planted::Flush("wal/"),
        Planted::Flush("anchor"),
        Planted::Flush("/"),
        Planted::Flush("tmp/0"),
        Planted::Flush("tmp/anchor"),
        Planted::Flush("snapshots/"),
        Planted::Flush("partitions/0"),
        Planted::Flush("partitions/"),
        Planted::Flush("partitions/0/"),
        Planted::StartFlush,
    ];
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<String> = planted
        .iter()
        .filter_map(|planted| match run_all(0..2_000, *planted, false) {
            Ok(_) => Some(format!("{planted:?}")),
            Err(text) => {
                println!("{planted:?}: {text}");
                None
            }
        })
        .collect();
    std::panic::set_hook(hook);
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
