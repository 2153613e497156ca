//! The log thread: takes submissions, steps the replica, carries out its effects.
//!
//! It decides nothing about the protocol. What it does decide: who writes a batch, when a
//! checkpoint may be handed to the keeper, and when it is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use pawl_machine::{Catalog, Effect as MachineEffect, PawlMachine};
use pawl_store::{CheckpointError, LogWriter, Status, WriteError};
use pawl_vsr::{
    Effect, Effects, Fatal, Input, LogSpace, NotAccepted, Outcome, Record, Refusal, Replica,
    Request, Ticket, Timer,
};
use pawl_wire::entry::{ENTRY_HEADER_BYTES, EntryHeader, EntryKind};
use pawl_wire::ids::{Lsn, Op};

use super::batch::{Batch, WalThread, Written};
use super::index::Indexer;
use super::keeper::{Checkpoint, Keeper};
use super::submission::{LogInbox, Submission};
use crate::clients::Clients;
use crate::limits::{
    RELEASES_AT_ONCE, WAL_BATCH_BYTES_MAX, WAL_BATCH_RECORDS_MAX, WAL_INLINE_BYTES_MAX,
};
use crate::metrics::{Metrics, ReasonLabels};
use crate::shard::answers::{Answer, Outbox, TICKET_NOBODY, shard_of};
use crate::shard::now;

/// Length of a tick of the replica's timers.
const TICK: Duration = Duration::from_millis(10);

/// How long is waited before a batch that found no room is tried again.
const SPACE_RETRY: Duration = Duration::from_millis(20);

/// Why the log thread ended.
#[derive(Debug)]
pub enum LogEnd {
    /// As asked; the writer is to be closed.
    Stopped(Box<LogWriter>),
    /// The disk failed or the replica found a contradiction.
    Failed(LogFailure),
}

/// Why the log cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LogFailure {
    /// A write or flush failed (spec REC-3).
    #[error("the log cannot be written: {0}")]
    Disk(#[source] WriteError),
    /// A checkpoint or the next segment cannot be written, for another reason than a full disk.
    #[error("the data directory cannot be kept: {0}")]
    Store(String),
    /// The replica stopped.
    #[error("{0}")]
    Fatal(#[source] Fatal),
}

/// What the log thread is made of.
pub struct LogParts {
    /// The replica.
    pub replica: Replica<PawlMachine>,
    /// Effects of starting it, not yet carried out.
    pub effects: Effects<MachineEffect>,
    /// What the store is doing.
    pub status: Status,
    /// Feeds the partition indexes; knows the places of recovered produces.
    pub indexer: Indexer,
    /// Where submissions come from.
    pub inbox: LogInbox,
    /// Where answers go, by shard.
    pub outboxes: Vec<Arc<Outbox>>,
    /// Where shards find names and rights.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// Who is connected.
    pub clients: Arc<Clients>,
    /// Writes checkpoints.
    pub keeper: Keeper,
    /// Writes large batches.
    pub wal: WalThread,
    /// What is counted.
    pub metrics: Metrics,
}

/// The log thread's state.
pub struct LogDriver {
    parts: LogParts,
    /// The writer, unless the WAL thread has it.
    writer: Option<LogWriter>,
    /// Records that no batch has taken yet.
    gathered: Vec<(Lsn, Record)>,
    gathered_bytes: usize,
    /// A batch's vectors, for the next one.
    spare: Batch,
    /// A batch that found no room on the disk, and when it is tried again.
    stalled: Option<(Batch, Instant)>,
    /// A checkpoint that waits for the outcomes below it to be durable.
    checkpoint: Option<Checkpoint>,
    checkpoint_in_flight: bool,
    timers: BTreeMap<Timer, Instant>,
    answers: Vec<Vec<(Ticket, Answer)>>,
    space: LogSpace,
    catalog_changed: bool,
    stopping: bool,
    failure: Option<LogFailure>,
}

impl LogDriver {
    /// A driver that has carried out nothing yet.
    pub fn new(mut parts: LogParts, writer: LogWriter) -> LogDriver {
        let answers = parts.outboxes.iter().map(|_| Vec::new()).collect();
        let start = std::mem::take(&mut parts.effects);
        let mut driver = LogDriver {
            parts,
            writer: Some(writer),
            gathered: Vec::new(),
            gathered_bytes: 0,
            spare: Batch::default(),
            stalled: None,
            checkpoint: None,
            checkpoint_in_flight: false,
            timers: BTreeMap::new(),
            answers,
            space: LogSpace::Ample,
            catalog_changed: true,
            stopping: false,
            failure: None,
        };
        driver.carry_out(start);
        driver
    }
}

impl LogDriver {
    /// Makes the replica's start durable, and releases the sessions whose connections ended with
    /// the process before this one, before anybody is served.
    // spec SES-36
    pub fn settle(&mut self) -> Result<(), LogFailure> {
        self.settle_writes()?;
        let clients = self.parts.replica.machine().clients().iter();
        let left: Vec<_> = clients
            .filter(|(_, entry)| entry.released_at.is_none())
            .map(|(client, entry)| (client, entry.epoch()))
            .collect();
        for some in left.chunks(RELEASES_AT_ONCE) {
            for (client, epoch) in some {
                let mut header = EntryHeader::new(EntryKind::Release);
                header.client = client.0;
                header.epoch = epoch.0;
                self.step(Input::Request(Request {
                    ticket: TICKET_NOBODY,
                    header,
                    body: Bytes::new(),
                    now: now(),
                }));
            }
            self.settle_writes()?;
        }
        Ok(())
    }

    /// Writes what was gathered, until nothing is left.
    fn settle_writes(&mut self) -> Result<(), LogFailure> {
        while !self.gathered.is_empty() && self.failure.is_none() {
            let Some(writer) = self.writer.take() else {
                break;
            };
            let Some(batch) = self.cut_batch() else {
                self.writer = Some(writer);
                break;
            };
            let written = batch.write(writer);
            self.on_written(written);
        }
        self.publish();
        match self.failure.take() {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Runs until told to stop, or until the log fails.
    pub fn run(mut self) -> LogEnd {
        self.parts.inbox.attach();
        let mut taken = Vec::new();
        loop {
            let timeout = self.timeout();
            self.parts.inbox.take(&mut taken, timeout);
            self.parts
                .metrics
                .log_inbox_items
                .observe(taken.len() as f64);
            for submission in taken.drain(..) {
                self.on_submission(submission);
            }
            self.fire_timers();
            self.watch_space();
            self.begin_checkpoint();
            self.begin_write();
            self.publish();
            if let Some(failure) = self.failure.take() {
                return LogEnd::Failed(failure);
            }
            if self.is_done()
                && let Some(writer) = self.writer.take()
            {
                self.parts.wal.join();
                return LogEnd::Stopped(Box::new(writer));
            }
        }
    }

    /// How long the thread may sleep when nothing comes.
    fn timeout(&self) -> Option<Duration> {
        let due =
            !self.gathered.is_empty() || self.checkpoint.is_some() && !self.checkpoint_in_flight;
        if self.writer.is_some() && self.stalled.is_none() && due {
            return Some(Duration::ZERO);
        }
        let stalled = self.stalled.as_ref().map(|(_, retry)| *retry);
        let timer = self.timers.values().min().copied();
        let next = stalled.into_iter().chain(timer).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// A stop was asked for, and nothing is in flight any more.
    fn is_done(&self) -> bool {
        self.stopping
            && !self.checkpoint_in_flight
            && (self.stalled.is_some()
                || self.gathered.is_empty() && self.parts.replica.requests_in_flight() == 0)
    }

    fn on_submission(&mut self, submission: Submission) {
        match submission {
            Submission::Propose(request) => self.on_propose(*request),
            Submission::Ask { ticket, question } => {
                let value = question(self.parts.replica.machine());
                self.answer(ticket, Answer::Value(value));
            }
            Submission::Written(written) => self.on_written(*written),
            Submission::CheckpointDone { op, result } => {
                self.checkpoint_in_flight = false;
                self.on_checkpoint_done(op, result);
            }
            Submission::StoreFailed(reason) => {
                self.step(Input::DiskFailed);
                self.failure = Some(LogFailure::Store(reason));
            }
            // The space is watched, and the stalled batch tried, on every round.
            Submission::SpaceChanged => {}
            Submission::Stop => self.stopping = true,
        }
    }

    fn on_checkpoint_done(&mut self, op: Op, result: Result<(), CheckpointError>) {
        match result {
            Ok(()) => {
                self.parts.metrics.checkpoints.inc();
                self.parts.metrics.checkpoint_op.set(op.0 as i64);
                self.step(Input::SnapshotWritten { op });
            }
            Err(CheckpointError::NoSpace) => {
                tracing::warn!(op = op.0, "no room for a checkpoint: the last one stands");
                self.step(Input::SnapshotFailed { op });
            }
            Err(error) => {
                self.step(Input::DiskFailed);
                self.failure = Some(LogFailure::Store(error.to_string()));
            }
        }
    }

    fn on_propose(&mut self, request: Request) {
        if self.stopping {
            let refusal = Refusal::NotAccepted(NotAccepted::Stopped);
            let answer = Answer::Outcome(Outcome::Refused(refusal));
            return self.answer(request.ticket, answer);
        }
        self.step(Input::Request(request));
    }

    fn on_written(&mut self, written: Written) {
        let Written {
            writer,
            mut batch,
            result,
            took,
        } = written;
        self.writer = Some(writer);
        match result {
            Ok(durable) => {
                self.count_write(&batch, took);
                self.parts.indexer.on_placed(&batch.placed);
                batch.clear();
                self.spare = batch;
                self.step(Input::Durable(durable));
            }
            Err(WriteError::NoSpace) => {
                self.stalled = Some((batch, Instant::now() + SPACE_RETRY));
            }
            Err(error) => {
                self.step(Input::DiskFailed);
                self.failure = Some(LogFailure::Disk(error));
            }
        }
    }

    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        let due = |(timer, at): (&Timer, &Instant)| (*at <= now).then_some(*timer);
        let due: Vec<Timer> = self.timers.iter().filter_map(due).collect();
        for timer in due {
            self.timers.remove(&timer);
            self.step(Input::Timer(timer));
        }
    }

    /// Tells the replica when the disk gets full, and when it is so no more.
    fn watch_space(&mut self) {
        let space = match self.parts.status.disk_full() {
            true => LogSpace::Low,
            false => LogSpace::Ample,
        };
        if space != self.space {
            self.space = space;
            match space {
                LogSpace::Low => tracing::warn!("the disk is full: produce is refused"),
                LogSpace::Ample => tracing::info!("the disk has room again: produce is accepted"),
            }
            self.step(Input::LogSpace(space));
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Effects::new();
        self.parts.replica.step(input, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, mut effects: Effects<MachineEffect>) {
        for effect in effects.drain() {
            self.carry_out_one(effect);
        }
        self.parts.indexer.on_applied(self.parts.replica.applied());
    }

    fn carry_out_one(&mut self, effect: Effect<MachineEffect>) {
        match effect {
            Effect::Append { lsn, record } => self.append(lsn, record),
            Effect::Apply { op, effect } => self.apply(op, &effect),
            Effect::Reply { ticket, outcome } => self.answer(ticket, Answer::Outcome(outcome)),
            Effect::Arm { timer, ticks } => {
                self.timers.insert(timer, Instant::now() + TICK * ticks);
            }
            Effect::Disarm(timer) => {
                self.timers.remove(&timer);
            }
            Effect::Checkpoint { header, snapshot } => {
                self.checkpoint = Some(Checkpoint { header, snapshot });
            }
            Effect::Reclaim { replay_from, .. } => self.parts.status.allow_reclaim(replay_from),
            // A node alone has no peers, and holds every entry that it may need.
            Effect::Send { .. } | Effect::Load { .. } => {
                let labels = ReasonLabels {
                    reason: "peer_effect",
                };
                self.parts.metrics.ignored.get_or_create(&labels).inc();
            }
            Effect::Fatal(fatal) => {
                if self.failure.is_none() {
                    self.failure = Some(LogFailure::Fatal(fatal));
                }
            }
        }
    }

    fn append(&mut self, lsn: Lsn, record: Record) {
        if let Record::Entry { header, body } = &record
            && header.kind == EntryKind::SendMessages as u8
        {
            self.parts.indexer.on_appended(header.op(), body.clone());
        }
        self.gathered_bytes += record_bytes(&record);
        self.gathered.push((lsn, record));
    }

    fn apply(&mut self, op: Op, effect: &MachineEffect) {
        self.parts.indexer.on_effect(op, effect);
        match effect {
            MachineEffect::Appended {
                message_count,
                batch_length,
                ..
            } => {
                let count = u64::from(*message_count);
                self.parts.metrics.messages_appended.inc_by(count);
                self.parts
                    .metrics
                    .message_bytes_appended
                    .inc_by(*batch_length);
            }
            MachineEffect::CatalogChanged => self.catalog_changed = true,
            MachineEffect::ClientFenced { client, epoch } => {
                self.parts.clients.on_fenced(*client, *epoch);
            }
            MachineEffect::ClientEvicted { client } => self.parts.clients.on_evicted(*client),
            MachineEffect::PartitionCreated { .. }
            | MachineEffect::PartitionDropped { .. }
            | MachineEffect::PartitionPurged { .. }
            | MachineEffect::Trimmed { .. } => {}
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        if ticket != TICKET_NOBODY
            && let Some(answers) = self.answers.get_mut(shard_of(ticket))
        {
            answers.push((ticket, answer));
        }
    }

    /// Cuts a batch and writes it, here or on the WAL thread, when the writer is at hand.
    fn begin_write(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        let Some(batch) = self.cut_batch() else {
            self.writer = Some(writer);
            return;
        };
        if batch.bytes <= WAL_INLINE_BYTES_MAX {
            // What was answered so far must not wait for this flush.
            self.publish();
            let written = batch.write(writer);
            self.on_written(written);
        } else {
            self.parts.wal.write(batch, writer);
        }
    }

    /// The next batch: the stalled one when it is time, else what was gathered, else outcomes alone
    /// when a checkpoint waits for them.
    fn cut_batch(&mut self) -> Option<Batch> {
        if let Some((batch, retry)) = self.stalled.take() {
            if Instant::now() >= retry && !self.stopping {
                return Some(batch);
            }
            self.stalled = Some((batch, retry));
            return None;
        }
        if self.gathered.is_empty() && !self.outcomes_are_due() {
            return None;
        }
        let mut batch = std::mem::take(&mut self.spare);
        batch.clear();
        if self.gathered_bytes <= WAL_BATCH_BYTES_MAX
            && self.gathered.len() <= WAL_BATCH_RECORDS_MAX
        {
            std::mem::swap(&mut batch.records, &mut self.gathered);
            batch.bytes = std::mem::take(&mut self.gathered_bytes);
        } else {
            let (count, bytes) = batch_prefix(&self.gathered);
            batch.records.extend(self.gathered.drain(..count));
            batch.bytes = bytes;
            self.gathered_bytes -= bytes;
        }
        self.parts.indexer.take_outcomes(&mut batch.outcomes);
        batch.applied = self.parts.replica.applied();
        Some(batch)
    }

    /// A checkpoint waits for the outcomes below it, and nothing else makes them durable.
    fn outcomes_are_due(&self) -> bool {
        let durable = self.parts.status.outcomes_durable();
        let waiting = self.checkpoint.as_ref();
        !self.checkpoint_in_flight && waiting.is_some_and(|waiting| waiting.op() > durable)
    }

    /// Hands a checkpoint to the keeper once the outcomes below it are durable.
    fn begin_checkpoint(&mut self) {
        if self.checkpoint_in_flight {
            return;
        }
        let durable = self.parts.status.outcomes_durable();
        let Some(checkpoint) = self.checkpoint.take_if(|waiting| waiting.op() <= durable) else {
            return;
        };
        match self.parts.keeper.write(checkpoint) {
            Ok(()) => self.checkpoint_in_flight = true,
            Err(op) => self.step(Input::SnapshotFailed { op }),
        }
    }

    /// Makes what was applied visible: first the catalog, then the answers.
    fn publish(&mut self) {
        if std::mem::take(&mut self.catalog_changed) {
            let catalog = self.parts.replica.machine().catalog();
            self.parts.catalog.store(Arc::new(catalog.clone()));
        }
        for (outbox, answers) in self.parts.outboxes.iter().zip(&mut self.answers) {
            outbox.post(answers);
        }
    }

    fn count_write(&self, batch: &Batch, took: Duration) {
        let metrics = &self.parts.metrics;
        metrics.log_flushes.inc();
        metrics.log_flush_seconds.observe(took.as_secs_f64());
        metrics
            .log_batch_records
            .observe(batch.records.len() as f64);
        metrics.log_batch_bytes.observe(batch.bytes as f64);
    }
}

/// How many records fit into one batch, at least one, and their bytes.
fn batch_prefix(records: &[(Lsn, Record)]) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for (_, record) in records.iter().take(WAL_BATCH_RECORDS_MAX) {
        let more = record_bytes(record);
        if count > 0 && bytes + more > WAL_BATCH_BYTES_MAX {
            break;
        }
        count += 1;
        bytes += more;
    }
    (count, bytes)
}

/// What a record adds to a batch; a vote of a node alone is a few dozen bytes.
fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Entry { body, .. } => ENTRY_HEADER_BYTES + body.len(),
        Record::View(_) => ENTRY_HEADER_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_and_takes_at_least_one_record() {
        let entry = |lsn, bytes: usize| {
            let header = EntryHeader::new(EntryKind::SendMessages);
            let body = vec![0; bytes - ENTRY_HEADER_BYTES].into();
            (Lsn(lsn), Record::Entry { header, body })
        };
        let small: Vec<_> = (1..=WAL_BATCH_RECORDS_MAX as u64 + 5)
            .map(|lsn| entry(lsn, 256))
            .collect();
        let all = WAL_BATCH_RECORDS_MAX;
        assert_eq!(batch_prefix(&small), (all, all * 256));
        let large = [entry(1, WAL_BATCH_BYTES_MAX + 1), entry(2, 256)];
        assert_eq!(batch_prefix(&large), (1, WAL_BATCH_BYTES_MAX + 1));
        let two = [
            entry(1, WAL_BATCH_BYTES_MAX - 256),
            entry(2, 256),
            entry(3, 256),
        ];
        assert_eq!(batch_prefix(&two), (2, WAL_BATCH_BYTES_MAX));
    }
}
