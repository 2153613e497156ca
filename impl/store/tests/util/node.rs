//! A node that drives the store as the server does, single-threaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pawl_store::disk::faulty::Dice;
use pawl_store::{
    BatchEntry, CheckpointError, Disk, FaultyDisk, Finding, OpenError, Opened, Outcome, Place,
    Placed, ReadError, Recovery, Store, StoreOptions, WriteError, open,
};
use pawl_vsr::{CheckpointHeader, Record, VoteRecord};
use pawl_wire::entry::{EntryHeader, EntryId, EntryKind};
use pawl_wire::entry_arguments::SendMessagesArguments;
use pawl_wire::ids::{Lsn, Op, PartitionId, ReplicaIndex, StreamId, Timestamp, TopicId, View};
use xxhash_rust::xxh3::xxh3_128;

use super::machine::{Did, STREAM_REFUSED, TestMachine};
use super::truth::{Truth, TruthEntry};
use super::{CLUSTER, NONCE, identity};

pub fn options_small() -> StoreOptions {
    StoreOptions {
        segment_bytes: 32 << 10,
        log_bytes_max: 96 << 10,
        zone_bytes: 8 << 10,
        bulk_bytes_per_tick: 16 << 10,
        copy_bytes_max: 512,
        batch_bytes_max: 24 << 10,
        partition_segment_bytes: 24 << 10,
        snapshot_reserve_bytes: 4 << 10,
        reader_files_max: 4,
        cut_files_max: 2,
    }
}

/// Why a node did not come up.
#[derive(Debug)]
pub enum OpenFailure {
    /// The store refused.
    Refused(OpenError),
    /// It came up with something that is not the truth.
    Wrong(String),
}

impl From<OpenError> for OpenFailure {
    fn from(error: OpenError) -> OpenFailure {
        OpenFailure::Refused(error)
    }
}

macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(OpenFailure::Wrong(format!($($text)*)));
        }
    };
}

pub struct Node {
    pub store: Store,
    pub machine: TestMachine,
    pub findings: Vec<Finding>,
    pub places: BTreeMap<u64, Place>,
    outcomes: Vec<Outcome>,
    /// Appended by the replica, not handed to the writer yet.
    queue: Vec<(Lsn, Record)>,
    lsn: u64,
    /// First lsn of each op: where a replay from the checkpoint below it begins.
    lsn_of: BTreeMap<u64, u64>,
    written_op: u64,
    vote: VoteRecord,
    vote_written: u32,
}

pub fn vote(view: u32) -> VoteRecord {
    VoteRecord {
        cluster: CLUSTER,
        replica: ReplicaIndex(0),
        view: View(view),
        log_view: View(view),
        commit: Op(0),
        op_head: Op(0),
        head: EntryId(0),
        suffix: Vec::new(),
    }
}

/// Opens, and formats if empty.
pub fn recover(disk: &FaultyDisk, options: &StoreOptions) -> Result<Recovery, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    match open(disk, options.clone())? {
        Opened::Empty(empty) => empty.format(identity(), NONCE),
        Opened::Holds(recovery) => Ok(*recovery),
    }
}

/// Every recovered entry is the one that was submitted, without holes.
pub fn check_records(recovery: &Recovery, truth: &Truth) -> Result<u64, OpenFailure> {
    let recovered = &recovery.recovered;
    let mut head = recovered.checkpoint.as_ref().map_or(0, |(h, _)| h.op.0);
    let mut places = recovery.placed.iter();
    for (_, record) in &recovered.records {
        let Record::Entry { header, body } = record else {
            continue;
        };
        let placed = places.next();
        ensure!(
            placed.is_some_and(|p| p.op == header.op()),
            "{header:?} has no place"
        );
        ensure!(header.op <= head + 1, "op {} follows op {head}", header.op);
        ensure!(
            header.op <= truth.head(),
            "op {} was never submitted",
            header.op
        );
        let true_entry = truth.entry(header.op);
        ensure!(
            true_entry.header == *header,
            "another header at op {}",
            header.op
        );
        ensure!(true_entry.body == *body, "another body at op {}", header.op);
        head = head.max(header.op);
    }
    Ok(head)
}

impl Node {
    /// Opens, restores, starts, replays, and compares with the truth; the truth is cut to what was
    /// recovered.
    pub fn open(
        disk: &FaultyDisk,
        options: &StoreOptions,
        truth: &mut Truth,
    ) -> Result<Node, OpenFailure> {
        let mut recovery = recover(disk, options)?;
        let head = check_records(&recovery, truth)?;
        ensure!(
            head >= truth.acknowledged,
            "op {} was acknowledged, the log ends at {head}",
            truth.acknowledged
        );
        let recovered = std::mem::take(&mut recovery.recovered);
        let mut vote_found = vote(0);
        let mut machine = TestMachine::default();
        if let Some((header, snapshot)) = &recovered.checkpoint {
            machine = TestMachine::restore(snapshot);
            ensure!(machine.op == header.op.0, "the snapshot is of another op");
            vote_found = header.vote.clone();
        }
        let mut findings = recovery.findings;
        let store = recovery.starter.start(&machine.bounds(), &mut findings)?;
        let mut node = Node {
            store,
            machine,
            findings,
            places: recovery.placed.iter().map(|p| (p.op.0, p.place)).collect(),
            outcomes: Vec::new(),
            queue: Vec::new(),
            lsn: recovered.lsn_last.0,
            lsn_of: BTreeMap::new(),
            written_op: head,
            vote: vote_found,
            vote_written: 0,
        };
        for (lsn, record) in &recovered.records {
            match record {
                Record::Entry { header, .. } => {
                    node.lsn_of.insert(header.op, lsn.0);
                    if header.op > node.machine.op {
                        node.apply(truth, header.op);
                    }
                }
                Record::View(vote) => node.vote = vote.clone(),
            }
        }
        node.vote_written = node.vote.view.0;
        ensure!(
            node.machine.op == head,
            "replay ends at op {}",
            node.machine.op
        );
        ensure!(
            node.vote.view.0 >= truth.vote_acknowledged,
            "the vote of view {} is lost",
            truth.vote_acknowledged
        );
        truth.entries.truncate(head as usize);
        node.compare(truth)?;
        Ok(node)
    }

    /// The machine and every message are what they must be.
    pub fn compare(&self, truth: &Truth) -> Result<(), OpenFailure> {
        if self.machine.op > 0 {
            let digest = truth.entry(self.machine.op).digest;
            ensure!(self.machine.digest == digest, "the machine differs");
        }
        let count = self.store.index.partition_count();
        ensure!(
            count == self.machine.partitions.len(),
            "{count} partitions indexed"
        );
        for (uid, partition) in &self.machine.partitions {
            let handle = self.store.index.get(pawl_wire::ids::PartitionUid(*uid));
            let Some(handle) = handle else {
                return Err(OpenFailure::Wrong(format!(
                    "partition {uid} is not indexed"
                )));
            };
            let entries: Vec<BatchEntry> = handle.read().iter_from(0).collect();
            ensure!(
                entries.len() == partition.batches.len(),
                "partition {uid} has {} batches, {} indexed",
                partition.batches.len(),
                entries.len()
            );
            for (entry, batch) in entries.iter().zip(&partition.batches) {
                ensure!(
                    (entry.op.0, entry.base_offset, entry.message_count)
                        == (batch.op, batch.base, batch.count),
                    "partition {uid}: {entry:?} for {batch:?}"
                );
                let body = match self.store.reader.read(&entry.place) {
                    Ok(body) => body,
                    Err(error) => return Err(OpenFailure::Wrong(format!("{entry:?}: {error}"))),
                };
                ensure!(
                    body == truth.entry(batch.op).body,
                    "another body at op {}",
                    batch.op
                );
            }
        }
        Ok(())
    }

    /// Like `compare`, but damage that is named is not a lie.
    pub fn compare_or_damaged(&self, truth: &Truth) -> Result<u32, String> {
        let mut damaged = 0;
        for (uid, partition) in &self.machine.partitions {
            let handle = self.store.index.get(pawl_wire::ids::PartitionUid(*uid));
            let entries: Vec<BatchEntry> =
                handle.ok_or("not indexed")?.read().iter_from(0).collect();
            if entries.len() != partition.batches.len() {
                return Err(format!("partition {uid} lacks batches"));
            }
            for (entry, batch) in entries.iter().zip(&partition.batches) {
                match self.store.reader.read(&entry.place) {
                    Ok(body) if body == truth.entry(batch.op).body => {}
                    Ok(_) => return Err(format!("another body at op {}", batch.op)),
                    Err(ReadError::Damaged(_)) => damaged += 1,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(damaged)
    }

    fn apply(&mut self, truth: &Truth, op: u64) {
        let entry = truth.entry(op);
        let did = self.machine.apply(&entry.header, &entry.body);
        let index = &self.store.index;
        match did {
            Did::Nothing => {}
            Did::Created(uid) => {
                index.create(uid);
            }
            Did::Dropped(uid) => index.drop_partition(uid, Op(op)),
            Did::Purged(uid) => index.purge(uid, Op(op)),
            Did::Trimmed(uid, first) => index.trim(uid, first, Op(op)),
            Did::Appended(uid, outcome, message_count, batch_position, batch_length) => {
                self.outcomes.push(outcome);
                index.push(
                    uid,
                    BatchEntry {
                        base_offset: outcome.base_offset,
                        message_count,
                        timestamp: entry.header.timestamp(),
                        op: Op(op),
                        batch_position,
                        batch_length,
                        place: self.places[&op],
                    },
                );
            }
        }
        self.places.remove(&op);
        index.applied(Op(op));
    }

    /// Appends an entry: it is in the truth from now on, and lost if the node crashes before a
    /// write.
    pub fn submit(&mut self, truth: &mut Truth, kind: EntryKind, arguments: [u8; 64], body: Bytes) {
        let previous = truth.entries.last();
        let mut header = EntryHeader::new(kind);
        header.checksum_body = xxh3_128(&body);
        header.parent = previous.map_or(0, |e| e.header.checksum);
        header.cluster = CLUSTER;
        header.op = truth.head() + 1;
        header.timestamp = 1000 * header.op;
        header.body_bytes = body.len() as u32;
        header.arguments = arguments;
        header.seal();
        let digest = previous.map_or(0, |e| e.digest);
        let chained = [digest.to_le_bytes(), header.checksum.to_le_bytes()].concat();
        truth.entries.push(TruthEntry {
            header,
            body: body.clone(),
            digest: xxh3_128(&chained),
        });
        self.lsn += 1;
        self.lsn_of.insert(header.op, self.lsn);
        self.queue
            .push((Lsn(self.lsn), Record::Entry { header, body }));
    }

    pub fn create(&mut self, truth: &mut Truth) {
        self.submit(truth, EntryKind::CreatePartitions, [0; 64], Bytes::new());
    }

    pub fn on_partition(&mut self, truth: &mut Truth, kind: EntryKind, uid: u64, first: u64) {
        let body = [uid.to_le_bytes(), first.to_le_bytes()].concat();
        self.submit(truth, kind, [0; 64], body.into());
    }

    pub fn send(&mut self, truth: &mut Truth, uid: u64, count: u32, bytes: usize, refused: bool) {
        let op = truth.head() + 1;
        let mut dice = Dice::new(op ^ (bytes as u64) << 32);
        let body: Vec<u8> = (0..bytes).map(|_| dice.roll() as u8).collect();
        let arguments = SendMessagesArguments {
            partition_uid: pawl_wire::ids::PartitionUid(uid),
            message_count: count,
            stream: StreamId(if refused { STREAM_REFUSED } else { 1 }),
            topic: TopicId(1),
            partition: PartitionId(0),
            batch_length: bytes as u64,
            batch_position: 0,
            origin_timestamp: Timestamp(5),
        };
        self.submit(
            truth,
            EntryKind::SendMessages,
            arguments.encode(),
            body.into(),
        );
    }

    pub fn vote(&mut self) {
        self.vote_written += 1;
        self.lsn += 1;
        let record = Record::View(vote(self.vote_written));
        self.queue.push((Lsn(self.lsn), record));
    }

    /// Hands what is queued to the writer. After `NoSpace` it stays queued.
    pub fn write(&mut self) -> Result<(), WriteError> {
        let mut placed: Vec<Placed> = Vec::new();
        let applied = Op(self.machine.op);
        let writer = &mut self.store.writer;
        writer.write(&self.queue, &self.outcomes, applied, &mut placed)?;
        let ops = self.queue.iter().filter_map(|(_, r)| match r {
            Record::Entry { header, .. } => Some(header.op),
            Record::View(_) => None,
        });
        self.written_op = ops.max().unwrap_or(self.written_op);
        self.queue.clear();
        self.outcomes.clear();
        self.places.extend(placed.iter().map(|p| (p.op.0, p.place)));
        Ok(())
    }

    /// Flushes, acknowledges, applies.
    pub fn flush(&mut self, truth: &mut Truth) -> Result<(), WriteError> {
        let vote_queued = self
            .queue
            .iter()
            .filter(|(_, r)| matches!(r, Record::View(_)));
        let vote_flushed = self.vote_written - vote_queued.count() as u32;
        self.store.writer.flush()?;
        truth.acknowledged = truth.acknowledged.max(self.written_op);
        truth.vote_acknowledged = truth.vote_acknowledged.max(vote_flushed);
        self.vote = vote(truth.vote_acknowledged);
        for op in self.machine.op + 1..=self.written_op {
            self.apply(truth, op);
        }
        Ok(())
    }

    /// Takes a checkpoint at the last applied op.
    pub fn checkpoint(&mut self, truth: &mut Truth) -> Result<(), CheckpointError> {
        let write = |error| match error {
            WriteError::NoSpace => CheckpointError::NoSpace,
            WriteError::Disk(error) => CheckpointError::Disk(error),
            _ => CheckpointError::Poisoned,
        };
        self.write().map_err(write)?;
        self.flush(truth).map_err(write)?;
        self.write().map_err(write)?;
        self.flush(truth).map_err(write)?;
        let op = self.machine.op;
        if op == 0 || self.store.status.checkpoint() == Op(op) {
            return Ok(());
        }
        let header = CheckpointHeader {
            cluster: CLUSTER,
            replica: ReplicaIndex(0),
            op: Op(op),
            id: EntryId(truth.entry(op).header.checksum),
            view: View(0),
            timestamp: truth.entry(op).header.timestamp(),
            digest: self.machine.digest,
            replay_from: Lsn(self.lsn_of.get(&(op + 1)).copied().unwrap_or(self.lsn + 1)),
            vote: self.vote.clone(),
        };
        let snapshot = self.machine.snapshot();
        self.store.checkpointer.write(&header, &snapshot)
    }

    /// A clean stop.
    pub fn close(mut self, truth: &mut Truth) -> Result<(), String> {
        self.write().map_err(|e| e.to_string())?;
        self.flush(truth).map_err(|e| e.to_string())?;
        self.store.writer.close().map_err(|e| e.to_string())?;
        self.store.drainer.close().map_err(|e| e.to_string())
    }
}
