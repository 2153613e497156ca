//! A disk in memory that really loses what was not flushed, and more, by a seed.
//!
//! Faults, and what a real disk does to deserve them:
//!
//! 1. A power cut loses unflushed writes, per sector of 512 bytes and in any order: each sector of
//!    each unflushed write survives or not on its own, so that writes are lost, torn and reordered.
//! 2. It loses names that were not flushed with their directory: files made, renamed, removed. Each
//!    change survives or not on its own; only a renamed file never loses both names.
//! 3. It loses lengths that were not flushed.
//! 4. A kill loses nothing, but what was not flushed stays unflushed for the next power cut.
//! 5. A flush fails, once; what it was to make durable may or may not be.
//! 6. The volume is full.
//! 7. Bits flip and files are cut, at the test's order.
//! 8. Power fails in the middle of an operation, after a given count of them: that operation is
//!    unflushed, and every later one fails.
//! 9. A planted fault: flushes of names with a given prefix do nothing. A checker that does not
//!    notice has proved nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{DirectoryEntry, Disk, DiskFile};

/// A sector survives a power cut as a whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Draws numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// How much of what was not flushed a power cut leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Survival {
    Nothing,
    Everything,
    Some { in_eight: u64 },
}

impl Survival {
    fn draw(dice: &mut Dice) -> Survival {
        match dice.below(5) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Some {
                in_eight: 1 + dice.below(7),
            },
        }
    }

    fn keeps(self, dice: &mut Dice) -> bool {
        match self {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Some { in_eight } => dice.below(8) < in_eight,
        }
    }
}

#[derive(Clone, Debug)]
enum Pending {
    Write { position: u64, bytes: Vec<u8> },
    Length(u64),
}

/// A file's content, as read now and as a power cut would leave it at least.
#[derive(Clone, Default, Debug)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

impl Inode {
    fn apply(content: &mut Vec<u8>, pending: &Pending) {
        match pending {
            Pending::Length(bytes) => content.resize(*bytes as usize, 0),
            Pending::Write { position, bytes } => {
                let from = *position as usize;
                let to = from + bytes.len();
                if content.len() < to {
                    content.resize(to, 0);
                }
                content[from..to].copy_from_slice(bytes);
            }
        }
    }

    fn change(&mut self, pending: Pending) {
        Inode::apply(&mut self.now, &pending);
        self.pending.push(pending);
    }

    fn flush(&mut self) {
        for pending in self.pending.drain(..) {
            Inode::apply(&mut self.durable, &pending);
        }
    }

    fn power_cut(&mut self, survival: Survival, dice: &mut Dice) {
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            match change {
                Pending::Length(_) if survival.keeps(dice) => {
                    Inode::apply(&mut self.durable, &change);
                }
                Pending::Length(_) => {}
                Pending::Write { position, bytes } => {
                    self.power_cut_write(position, &bytes, survival, dice);
                }
            }
        }
        self.now = self.durable.clone();
    }

    fn power_cut_write(&mut self, at: u64, bytes: &[u8], survival: Survival, dice: &mut Dice) {
        let mut from = 0;
        while from < bytes.len() {
            let to_sector = SECTOR_BYTES - (at + from as u64) % SECTOR_BYTES;
            let to = bytes.len().min(from + to_sector as usize);
            if survival.keeps(dice) {
                let kept = Pending::Write {
                    position: at + from as u64,
                    bytes: bytes[from..to].to_vec(),
                };
                Inode::apply(&mut self.durable, &kept);
            }
            from = to;
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    File(usize),
    Directory,
}

/// A change of names that no directory flush has covered.
#[derive(Clone, Debug)]
enum NameChange {
    Link {
        name: String,
        node: Node,
    },
    Unlink {
        name: String,
    },
    /// The old name of a rename: it goes only if the new one has come.
    Renamed {
        name: String,
        new_name: String,
        node: Node,
    },
}

impl NameChange {
    fn directory(&self) -> &str {
        match self {
            NameChange::Link { name, .. }
            | NameChange::Unlink { name }
            | NameChange::Renamed { name, .. } => parent(name),
        }
    }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[derive(Default, Debug)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, Node>,
    names_durable: BTreeMap<String, Node>,
    names_pending: Vec<NameChange>,
    locked: bool,
    operations: u64,
    power_fails_at: Option<u64>,
    flush_fails_at: Option<u64>,
    flushes: u64,
    capacity: Option<u64>,
    flushes_ignored: Option<String>,
}

/// What an operation is, for the faults that it may meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Change,
    Flush,
}

impl State {
    /// Counts an operation. `Err`: power failed before it; `Ok(true)`: power fails during it.
    fn begin(&mut self, operation: Operation) -> io::Result<bool> {
        self.operations += 1;
        if operation == Operation::Flush {
            self.flushes += 1;
        }
        match self.power_fails_at {
            Some(at) if self.operations > at => Err(power_failed()),
            Some(at) => Ok(self.operations == at),
            None => Ok(false),
        }
    }

    fn used(&self) -> u64 {
        let files = self.names.values().filter_map(|node| match node {
            Node::File(inode) => Some(self.inodes[*inode].now.len() as u64),
            Node::Directory => None,
        });
        files.sum()
    }

    fn room_for(&self, more: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if self.used() + more > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        match self.names.get(name) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.names_pending.push(change);
    }

    fn flush_directory(&mut self, directory: &str) {
        let pending = std::mem::take(&mut self.names_pending);
        let (now, later) = pending
            .into_iter()
            .partition(|change| change.directory() == directory);
        self.names_pending = later;
        let now: Vec<NameChange> = now;
        for change in now {
            apply_name(&mut self.names_durable, &change);
        }
    }

    /// Directories are named with a slash at the end.
    fn ignores_flush(&self, name: &str) -> bool {
        let directory = |name: &str| name.ends_with('/');
        self.flushes_ignored.as_ref().is_some_and(|planted| {
            directory(planted) == directory(name)
                && name.starts_with(planted.trim_end_matches('/'))
                && (!directory(name) || name.matches('/').count() == planted.matches('/').count())
        })
    }

    fn power_cut(&mut self, seed: u64) {
        let mut dice = Dice::new(seed);
        let survival = Survival::draw(&mut dice);
        for change in std::mem::take(&mut self.names_pending) {
            if survival.keeps(&mut dice) {
                apply_name(&mut self.names_durable, &change);
            }
        }
        // What is in a directory whose own name was lost is lost with it.
        let all = self.names_durable.clone();
        self.names_durable
            .retain(|name, _| parent(name).is_empty() || all.contains_key(parent(name)));
        self.names = self.names_durable.clone();
        for inode in &mut self.inodes {
            let survival = Survival::draw(&mut dice);
            inode.power_cut(survival, &mut dice);
        }
    }
}

fn apply_name(names: &mut BTreeMap<String, Node>, change: &NameChange) {
    match change {
        NameChange::Link { name, node } => {
            names.insert(name.clone(), *node);
        }
        NameChange::Unlink { name } => {
            names.remove(name);
        }
        NameChange::Renamed {
            name,
            new_name,
            node,
        } => {
            if names.get(new_name) == Some(node) && names.get(name) == Some(node) {
                names.remove(name);
            }
        }
    }
}

fn power_failed() -> io::Error {
    io::Error::other("power failed")
}

/// A faulty disk. See the list of faults at the top of this file.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

impl FaultyDisk {
    /// An empty disk.
    pub fn new() -> FaultyDisk {
        FaultyDisk::default()
    }

    /// Power fails during the `count`-th operation from now on that changes something.
    pub fn fail_power_after(&self, count: u64) {
        let mut state = self.state.lock();
        state.power_fails_at = Some(state.operations + count);
    }

    /// The `count`-th flush from now on fails.
    pub fn fail_flush_after(&self, count: u64) {
        let mut state = self.state.lock();
        state.flush_fails_at = Some(state.flushes + count);
    }

    /// Whether power has failed, in or after the operation that was chosen.
    pub fn power_has_failed(&self) -> bool {
        let state = self.state.lock();
        state
            .power_fails_at
            .is_some_and(|at| state.operations >= at)
    }

    /// Whether the flush that was chosen has failed.
    pub fn flush_has_failed(&self) -> bool {
        let state = self.state.lock();
        state.flush_fails_at.is_some_and(|at| state.flushes >= at)
    }

    /// The volume holds this many bytes; `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Operations so far that changed something.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Plants a fault: flushes of files whose name begins so do nothing; with a slash at the end:
    /// of directories whose name begins so, at the same depth. `None`: no longer.
    pub fn ignore_flushes(&self, prefix: Option<&str>) {
        self.state.lock().flushes_ignored = prefix.map(str::to_owned);
    }

    /// Power fails: what was not flushed survives in part, as the seed says. Files that are open
    /// from before must not be used any more. The lock is free.
    pub fn power_cut(&self, seed: u64) {
        let mut state = self.state.lock();
        state.power_cut(seed);
        state.power_fails_at = None;
        state.flush_fails_at = None;
        state.locked = false;
    }

    /// The process is killed: nothing is lost, but nothing more is flushed either.
    pub fn kill(&self) {
        let mut state = self.state.lock();
        state.power_fails_at = None;
        state.flush_fails_at = None;
        state.locked = false;
    }

    /// Names of all files.
    pub fn files(&self) -> Vec<String> {
        let state = self.state.lock();
        let files = state.names.iter().filter(|(_, n)| **n != Node::Directory);
        files.map(|(name, _)| name.clone()).collect()
    }

    /// The content of a file.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let inode = state.file(name).ok()?;
        Some(state.inodes[inode].now.clone())
    }

    /// Replaces the content of a file, durably: how a test flips bits and cuts. A file that is not
    /// there is made.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state.lock();
        let inode = match state.file(name) {
            Ok(inode) => inode,
            Err(_) => {
                state.inodes.push(Inode::default());
                let node = Node::File(state.inodes.len() - 1);
                state.names.insert(name.to_owned(), node);
                state.names_durable.insert(name.to_owned(), node);
                state.inodes.len() - 1
            }
        };
        state.inodes[inode] = Inode {
            now: content.clone(),
            durable: content,
            pending: Vec::new(),
        };
    }

    /// Flips one bit of a file, durably.
    pub fn flip(&self, name: &str, bit: usize) {
        let mut state = self.state.lock();
        if let Ok(inode) = state.file(name) {
            let inode = &mut state.inodes[inode];
            for content in [&mut inode.now, &mut inode.durable] {
                if let Some(byte) = content.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
        }
    }

    /// Removes a file, durably.
    pub fn forget(&self, name: &str) {
        let mut state = self.state.lock();
        state.names.remove(name);
        state.names_durable.remove(name);
    }

    /// A disk of its own with the same content, everything durable.
    pub fn copy(&self) -> FaultyDisk {
        let state = self.state.lock();
        let inodes = state.inodes.iter().map(|inode| Inode {
            now: inode.now.clone(),
            durable: inode.now.clone(),
            pending: Vec::new(),
        });
        let copy = State {
            inodes: inodes.collect(),
            names: state.names.clone(),
            names_durable: state.names.clone(),
            ..State::default()
        };
        FaultyDisk {
            state: Arc::new(Mutex::new(copy)),
        }
    }

    fn handle(&self, inode: usize, name: &str) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile {
            state: self.state.clone(),
            inode,
            name: name.to_owned(),
        })
    }
}

impl Disk for FaultyDisk {
    fn root(&self) -> PathBuf {
        PathBuf::from("memory")
    }

    fn lock(&self) -> io::Result<bool> {
        let mut state = self.state.lock();
        Ok(!std::mem::replace(&mut state.locked, true))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.begin(Operation::Change)?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = parent(name);
        if !directory.is_empty() && state.names.get(directory) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.change_name(NameChange::Link {
            name: name.to_owned(),
            node: Node::File(inode),
        });
        Ok(self.handle(inode, name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.state.lock().file(name)?;
        Ok(self.handle(inode, name))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<DirectoryEntry>> {
        let state = self.state.lock();
        if !directory.is_empty() && state.names.get(directory) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.names.iter().filter(|(n, _)| parent(n) == directory);
        let entries = inside.map(|(name, node)| DirectoryEntry {
            name: name.rsplit('/').next().unwrap_or(name).to_owned(),
            directory: *node == Node::Directory,
        });
        Ok(entries.collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.begin(Operation::Change)?;
        let node = Node::File(state.file(from)?);
        state.change_name(NameChange::Link {
            name: to.to_owned(),
            node,
        });
        state.change_name(NameChange::Renamed {
            name: from.to_owned(),
            new_name: to.to_owned(),
            node,
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.begin(Operation::Change)?;
        state.file(name)?;
        state.change_name(NameChange::Unlink {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn create_directory(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.begin(Operation::Change)?;
        match state.names.get(name) {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            None => {
                state.change_name(NameChange::Link {
                    name: name.to_owned(),
                    node: Node::Directory,
                });
                Ok(())
            }
        }
    }

    fn remove_directory(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.begin(Operation::Change)?;
        if state.names.keys().any(|other| parent(other) == name) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.change_name(NameChange::Unlink {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn flush_directory(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.begin(Operation::Flush)? {
            return Err(power_failed());
        }
        if state.flush_fails_at == Some(state.flushes) {
            return Err(io::Error::other("the flush failed"));
        }
        if !state.ignores_flush(&format!("{name}/")) {
            state.flush_directory(name);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFile {
    state: Arc<Mutex<State>>,
    inode: usize,
    name: String,
}

impl DiskFile for FaultyFile {
    fn write_at(&self, parts: &[Bytes], position: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let fails = state.begin(Operation::Change)?;
        let bytes = parts.concat();
        let end = position + bytes.len() as u64;
        let length = state.inodes[self.inode].now.len() as u64;
        state.room_for(end.saturating_sub(length))?;
        state.inodes[self.inode].change(Pending::Write { position, bytes });
        match fails {
            true => Err(power_failed()),
            false => Ok(()),
        }
    }

    fn read_at(&self, position: u64, bytes: usize) -> io::Result<Bytes> {
        let state = self.state.lock();
        let content = &state.inodes[self.inode].now;
        let from = position as usize;
        match content.get(from..from.saturating_add(bytes)) {
            Some(found) => Ok(Bytes::copy_from_slice(found)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let length = self.length()?;
        if length >= bytes {
            return Ok(());
        }
        self.set_length(bytes)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let fails = state.begin(Operation::Change)?;
        let length = state.inodes[self.inode].now.len() as u64;
        state.room_for(bytes.saturating_sub(length))?;
        state.inodes[self.inode].change(Pending::Length(bytes));
        match fails {
            true => Err(power_failed()),
            false => Ok(()),
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.state.lock().inodes[self.inode].now.len() as u64)
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.begin(Operation::Flush)? {
            return Err(power_failed());
        }
        if state.flush_fails_at == Some(state.flushes) {
            return Err(io::Error::other("the flush failed"));
        }
        if !state.ignores_flush(&self.name) {
            state.inodes[self.inode].flush();
        }
        Ok(())
    }
}
