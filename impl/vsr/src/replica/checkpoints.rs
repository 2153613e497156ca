//! Which ops get a checkpoint, and what becomes of it.
//!
//! A checkpoint is due at an op that is a function of the log alone (spec REC-13): the first op at
//! which, since the op of the checkpoint due before it, `checkpoint_ops_interval` ops were applied
//! or their entries, header and body, have `checkpoint_log_bytes_interval` bytes. Every due
//! checkpoint is taken; whether it is written depends on the disk. A restart counts from the
//! checkpoint it starts from, which was due, and so finds the same ops.

use pawl_wire::ids::{Lsn, Op};

use crate::checkpoint::CheckpointHeader;
use crate::effect::{Effect, Effects};
use crate::ignored::IgnoreReason;
use crate::log::Position;
use crate::machine::Machine;
use crate::message::CheckpointDigest;

use super::Replica;

/// A checkpoint that the driver is writing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct InFlight {
    op: Op,
    replay_from: Lsn,
}

/// A checkpoint that was taken and waits for the one before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiting {
    header: CheckpointHeader,
    snapshot: Vec<u8>,
}

/// Which ops get a checkpoint, and what becomes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Checkpoints {
    /// The op of the latest one due.
    due_last: Op,
    /// Bytes of the entries applied since.
    bytes_since: u64,
    in_flight: Option<InFlight>,
    waiting: Option<Waiting>,
    /// What replicas compare.
    latest: Option<CheckpointDigest>,
}

impl Checkpoints {
    /// Counting from a checkpoint at `op`, or from the beginning.
    pub(super) fn after(op: Op) -> Checkpoints {
        Checkpoints {
            due_last: op,
            bytes_since: 0,
            in_flight: None,
            waiting: None,
            latest: None,
        }
    }

    pub(super) fn latest(&self) -> Option<CheckpointDigest> {
        self.latest
    }

    /// Checks invariant 7 of the replica.
    pub(super) fn invariants(&self, applied: Op) {
        assert!(self.due_last <= applied, "replica 7");
        let in_flight = self.in_flight.map(|in_flight| in_flight.op);
        assert!(in_flight <= Some(applied), "replica 7");
        if let Some(waiting) = &self.waiting {
            assert!(Some(waiting.header.op) > in_flight, "replica 7");
            assert!(in_flight.is_some(), "replica 7");
            assert_eq!(waiting.header.op, self.due_last, "replica 7");
        }
    }
}

impl<M: Machine> Replica<M> {
    /// Counts the op just applied, and takes a checkpoint when it is due.
    pub(super) fn count_for_checkpoint(&mut self, bytes: u64, effects: &mut Effects<M::Effect>) {
        self.checkpoints.bytes_since += bytes;
        let ops = self.applied.0 - self.checkpoints.due_last.0;
        let due = ops >= self.config.checkpoint_ops_interval
            || self.checkpoints.bytes_since >= self.config.checkpoint_log_bytes_interval;
        if due {
            self.checkpoints.due_last = self.applied;
            self.checkpoints.bytes_since = 0;
            self.take_checkpoint(effects);
        }
    }

    /// Takes the checkpoint at the op just applied, which is decided and durable here.
    fn take_checkpoint(&mut self, effects: &mut Effects<M::Effect>) {
        let op = self.applied;
        assert!(
            op <= self.commit,
            "a checkpoint covers only what is decided"
        );
        assert!(
            op <= self.log.durable_op(),
            "a checkpoint covers only what is durable"
        );
        let slot = self
            .log
            .get(op)
            .expect("the op just applied is in the window");
        let entry = Position::of(slot.header().expect("an applied op is held"));
        let vote = self
            .votes
            .durable
            .as_ref()
            .expect("a normal replica's vote is durable");
        let (snapshot, digest) = self.machine.snapshot_and_digest();
        let header = CheckpointHeader {
            cluster: self.config.cluster,
            replica: self.config.replica,
            op,
            id: entry.id,
            timestamp: entry.timestamp,
            view: entry.view,
            digest,
            replay_from: self.replay_from(op),
            vote: vote.vote().clone(),
        };
        self.checkpoints.latest = Some(CheckpointDigest { op, digest });
        // A checkpoint that still waits is overtaken: the later one makes it useless.
        self.checkpoints.waiting = Some(Waiting { header, snapshot });
        self.write_waiting(effects);
    }

    /// The first record that a restart from a checkpoint at `op` needs: the oldest one of an entry
    /// above it, or else the one after the last durable one.
    ///
    /// Never a later one: a crash may take every record that is not durable, and the next record
    /// then gets its number. A vote that is not in the header is not durable, and so is covered.
    fn replay_from(&self, op: Op) -> Lsn {
        let next = self.durable.next();
        self.log.lsn_min_above(op).map_or(next, |lsn| lsn.min(next))
    }

    /// Orders the waiting checkpoint to be written, unless one is being written.
    fn write_waiting(&mut self, effects: &mut Effects<M::Effect>) {
        if self.checkpoints.in_flight.is_some() {
            return;
        }
        if let Some(Waiting { header, snapshot }) = self.checkpoints.waiting.take() {
            self.checkpoints.in_flight = Some(InFlight {
                op: header.op,
                replay_from: header.replay_from,
            });
            effects.push(Effect::Checkpoint { header, snapshot });
        }
    }

    /// The checkpoint at `op` is durable: the log below it may go (spec REC-18).
    pub(super) fn on_snapshot_written(&mut self, op: Op, effects: &mut Effects<M::Effect>) {
        match self.checkpoints.in_flight {
            Some(in_flight) if in_flight.op == op => {
                self.checkpoints.in_flight = None;
                let replay_from = in_flight.replay_from;
                effects.push(Effect::Reclaim { op, replay_from });
                self.write_waiting(effects);
            }
            _ => self.ignore(IgnoreReason::SnapshotNotInFlight),
        }
    }

    /// The checkpoint at `op` could not be written: the one before it stands.
    pub(super) fn on_snapshot_failed(&mut self, op: Op, effects: &mut Effects<M::Effect>) {
        match self.checkpoints.in_flight {
            Some(in_flight) if in_flight.op == op => {
                self.checkpoints.in_flight = None;
                self.write_waiting(effects);
            }
            _ => self.ignore(IgnoreReason::SnapshotNotInFlight),
        }
    }
}
