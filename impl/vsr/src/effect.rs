//! What a replica orders its driver to do.

use std::fmt;

use bytes::Bytes;
use pawl_wire::entry::EntryHeader;
use pawl_wire::ids::{Lsn, Op, ReplicaIndex};

use crate::checkpoint::CheckpointHeader;
use crate::input::Ticket;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::timer::Timer;
use crate::vote::VoteRecord;

/// What goes to the log. Each record has the number after the one before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Record {
    /// An entry at its op. A later record of an entry at the same op replaces it.
    Entry {
        /// Sealed: op, view, parent and timestamp are set, and the checksum covers them.
        header: EntryHeader,
        /// What `header.checksum_body` covers, as it was received.
        body: Bytes,
    },
    /// What the replica promises about views. The latest one counts.
    View(VoteRecord),
}

/// Why the process must stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Fatal {
    /// The log failed; nothing above this record is known to be durable (spec REC-3).
    #[error("the log failed; {durable} is the last durable record")]
    DiskFailed {
        /// The last durable record.
        durable: Lsn,
    },
    /// The driver reported a record as durable that was never handed out (spec CON-36).
    #[error("{reported} was reported durable, and {last} is the last that was handed out")]
    DurableAhead {
        /// What was reported.
        reported: Lsn,
        /// The last that was handed out.
        last: Lsn,
    },
    /// The machine differs from a peer's at the same op (spec CON-33).
    #[error("the machine at {op} has digest {own:032x}, {peer} has {other:032x}")]
    DigestDiffers {
        /// Where both took a checkpoint.
        op: Op,
        /// Who differs.
        peer: ReplicaIndex,
        /// The digest here.
        own: u128,
        /// The digest there.
        other: u128,
    },
    /// Two decided entries at one op: the protocol or a disk has failed (spec CON-4).
    #[error("two entries at {op} are decided")]
    DecidedTwice {
        /// The op.
        op: Op,
    },
}

/// An order to the driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect<E> {
    /// Hand this record to the log, as number `lsn`, after all before it.
    Append {
        /// The record's number.
        lsn: Lsn,
        /// The record.
        record: Record,
    },
    /// Send, or lose, this message.
    Send {
        /// To whom.
        to: ReplicaIndex,
        /// What.
        message: Message,
    },
    /// Remind the replica after so many ticks; replaces an earlier order of the same name.
    Arm {
        /// Which timer.
        timer: Timer,
        /// In how many ticks.
        ticks: u32,
    },
    /// Remind it no more.
    Disarm(Timer),
    /// Read the entry at this op from the log and report it as `Input::Loaded`.
    Load {
        /// Which op.
        op: Op,
    },
    /// The machine has applied this op and orders this.
    Apply {
        /// Which op.
        op: Op,
        /// What.
        effect: E,
    },
    /// Answer this request. It comes after every `Apply` of its op.
    Reply {
        /// Whose request.
        ticket: Ticket,
        /// The one answer.
        outcome: Outcome,
    },
    /// Write this checkpoint, make the anchor name it, and report `Input::SnapshotWritten`.
    Checkpoint {
        /// What stands before the snapshot.
        header: CheckpointHeader,
        /// The machine at `header.op`.
        snapshot: Vec<u8>,
    },
    /// A checkpoint is durable: no restart needs a record below `replay_from`.
    Reclaim {
        /// The checkpoint's op.
        op: Op,
        /// The first record that a restart needs.
        replay_from: Lsn,
    },
    /// Stop the process.
    Fatal(Fatal),
}

/// The orders of one or several steps, in order. Reused, so that a step allocates nothing of its
/// own.
#[derive(Clone, PartialEq, Debug)]
pub struct Effects<E> {
    list: Vec<Effect<E>>,
    /// Where apply puts what it orders, before it is named with its op.
    pub(crate) applied: Vec<E>,
}

impl<E> Default for Effects<E> {
    fn default() -> Effects<E> {
        Effects {
            list: Vec::new(),
            applied: Vec::new(),
        }
    }
}

impl<E> Effects<E> {
    /// No orders.
    pub fn new() -> Effects<E> {
        Effects::default()
    }

    /// Adds an order at the end.
    pub fn push(&mut self, effect: Effect<E>) {
        self.list.push(effect);
    }

    /// The orders, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Effect<E>> {
        self.list.iter()
    }

    /// Takes the orders out, in order; the room they took is kept.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect<E>> {
        self.list.drain(..)
    }

    /// Forgets the orders; the room they took is kept.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// How many orders there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Entry { header, body } => write!(f, "{header:?}, {} bytes", body.len()),
            Record::View(vote) => write!(f, "vote {vote}"),
        }
    }
}

impl<E: fmt::Debug> fmt::Display for Effect<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Append { lsn, record } => write!(f, "append {lsn}: {record}"),
            Effect::Send { to, message } => write!(f, "send to {to}: {message}"),
            Effect::Arm { timer, ticks } => write!(f, "arm {timer} in {ticks}"),
            Effect::Disarm(timer) => write!(f, "disarm {timer}"),
            Effect::Load { op } => write!(f, "load {op}"),
            Effect::Apply { op, effect } => write!(f, "apply {op}: {effect:?}"),
            Effect::Reply { ticket, outcome } => match outcome {
                Outcome::Reply { op, frame } => {
                    write!(f, "reply {ticket}: {op}, {} bytes", frame.len())
                }
                Outcome::Answer { applied, frame } => {
                    write!(
                        f,
                        "answer {ticket}: applied {applied}, {} bytes",
                        frame.len()
                    )
                }
                Outcome::Refused(refusal) => write!(f, "refuse {ticket}: {refusal}"),
            },
            Effect::Checkpoint { header, snapshot } => write!(
                f,
                "checkpoint {}: {} bytes, replay from {}",
                header.op,
                snapshot.len(),
                header.replay_from
            ),
            Effect::Reclaim { op, replay_from } => {
                write!(f, "reclaim {op}: replay from {replay_from}")
            }
            Effect::Fatal(fatal) => write!(f, "fatal: {fatal}"),
        }
    }
}
