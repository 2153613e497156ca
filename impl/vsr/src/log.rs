//! The window of the log that a replica holds in memory: from some applied op up to the newest.
//!
//! Invariants:
//!
//! 1. The slots are the ops `base + 1 ..= op_head`, one each.
//! 2. A known header's parent is the identity of the entry below it, wherever that is known.
//! 3. The newest op's header is known, unless the log is empty.
//! 4. Every op from `base + 1` to `durable_op` is held and its record is durable; `durable_op` is
//!    as high as that allows for the durable position last reported.
//! 5. `body_bytes` is the sum of the body lengths of the held and known slots above `counted`.

use std::collections::VecDeque;

use bytes::Bytes;
use pawl_wire::entry::{EntryHeader, EntryId};
use pawl_wire::ids::{Lsn, Op, Timestamp, View};

use crate::input::Ticket;

/// An op and what the next one must know of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Position {
    pub op: Op,
    pub id: EntryId,
    pub timestamp: Timestamp,
    pub view: View,
}

impl Position {
    pub(crate) fn of(header: &EntryHeader) -> Position {
        Position {
            op: header.op(),
            id: header.id(),
            timestamp: header.timestamp(),
            view: header.view(),
        }
    }

    /// Whether `header` can stand right above: next op, this entry as parent, time and view not
    /// back.
    pub(crate) fn precedes(&self, header: &EntryHeader) -> bool {
        header.op() == self.op.next() && header.parent == self.id.0 && self.not_after(header)
    }

    /// Whether neither time nor view of `header` is before this entry's.
    pub(crate) fn not_after(&self, header: &EntryHeader) -> bool {
        header.timestamp() >= self.timestamp && header.view() >= self.view
    }
}

/// What is known of one op of the window.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    /// Header and body, handed to the log as record `lsn`.
    Held(HeldEntry),
    /// The header, which a vote or a new view named; the body was never held.
    Header(EntryHeader),
    /// Nothing: the op lies between what was held and what a new view named.
    Unknown,
}

/// A held entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HeldEntry {
    pub header: EntryHeader,
    pub body: Bytes,
    pub lsn: Lsn,
    pub ticket: Option<Ticket>,
}

impl Slot {
    pub(crate) fn header(&self) -> Option<&EntryHeader> {
        match self {
            Slot::Held(held) => Some(&held.header),
            Slot::Header(header) => Some(header),
            Slot::Unknown => None,
        }
    }

    pub(crate) fn held(&self) -> Option<&HeldEntry> {
        match self {
            Slot::Held(held) => Some(held),
            Slot::Header(_) | Slot::Unknown => None,
        }
    }
}

/// The window of the log that a replica holds in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Log {
    base: Position,
    head: Position,
    slots: VecDeque<Slot>,
    durable_op: Op,
    /// Ops up to this one no longer count in `body_bytes`.
    counted: Op,
    body_bytes: u64,
}

impl Log {
    /// An empty window above `base`, which is durable.
    pub(crate) fn above(base: Position) -> Log {
        Log {
            base,
            head: base,
            slots: VecDeque::new(),
            durable_op: base.op,
            counted: base.op,
            body_bytes: 0,
        }
    }

    pub(crate) fn head(&self) -> &Position {
        &self.head
    }

    pub(crate) fn op_head(&self) -> Op {
        self.head.op
    }

    /// The op below the window's first.
    pub(crate) fn base(&self) -> &Position {
        &self.base
    }

    /// Every op up to this one is held durably.
    pub(crate) fn durable_op(&self) -> Op {
        self.durable_op
    }

    /// Body bytes of the ops that are not applied.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    pub(crate) fn get(&self, op: Op) -> Option<&Slot> {
        self.slots.get(self.index(op)?)
    }

    /// The identity at `op`, if it is known.
    pub(crate) fn id(&self, op: Op) -> Option<EntryId> {
        if op == self.base.op {
            return Some(self.base.id);
        }
        if let Some(header) = self.get(op).and_then(Slot::header) {
            return Some(header.id());
        }
        // The entry above names it.
        let above = self.get(op.next()).and_then(Slot::header)?;
        Some(EntryId(above.parent))
    }

    /// The slots from `op` on, with their ops.
    pub(crate) fn from(&self, op: Op) -> impl Iterator<Item = (Op, &Slot)> {
        let first = op.max(self.base.op.next());
        let skip = self.index(first).unwrap_or(self.slots.len());
        let ops = first.0..;
        ops.map(Op).zip(self.slots.iter().skip(skip))
    }

    /// Adds the entry right above the newest.
    pub(crate) fn push(&mut self, held: HeldEntry) {
        assert!(
            self.head.precedes(&held.header),
            "an appended entry continues the chain"
        );
        self.head = Position::of(&held.header);
        self.body_bytes += u64::from(held.header.body_bytes);
        self.slots.push_back(Slot::Held(held));
    }

    /// Puts an entry into a slot of the window, in place of what is known there. The caller has
    /// compared its identity.
    pub(crate) fn fill(&mut self, held: HeldEntry) {
        let op = held.header.op();
        assert!(op > self.durable_op, "a durable entry is not replaced");
        assert_eq!(
            self.id(op),
            Some(held.header.id()),
            "a repaired entry is the expected one"
        );
        let index = self.index(op).expect("a repaired entry lies in the window");
        if op > self.counted && self.slots[index].header().is_none() {
            self.body_bytes += u64::from(held.header.body_bytes);
        }
        self.slots[index] = Slot::Held(held);
    }

    /// Raises `durable_op` as far as held entries with a record up to `lsn` go without a hole.
    pub(crate) fn advance_durable(&mut self, lsn: Lsn) {
        while let Some(held) = self.get(self.durable_op.next()).and_then(Slot::held) {
            if held.lsn > lsn {
                return;
            }
            self.durable_op = self.durable_op.next();
        }
    }

    /// Stops counting the bodies of the ops up to `op`.
    pub(crate) fn count_above(&mut self, op: Op) {
        while self.counted < op {
            let next = self.counted.next();
            let bytes = self.get(next).and_then(Slot::header).map(|h| h.body_bytes);
            self.body_bytes -= u64::from(bytes.expect("what is applied is held"));
            self.counted = next;
        }
    }

    /// Forgets the ops up to `op`, all of which are applied.
    pub(crate) fn release_through(&mut self, op: Op) {
        assert!(op <= self.durable_op, "only durable ops leave the window");
        assert!(op <= self.counted, "only applied ops leave the window");
        while self.base.op < op {
            let slot = self
                .slots
                .pop_front()
                .expect("the window reaches up to its head");
            let header = slot.header().expect("what is applied is held");
            self.base = Position::of(header);
        }
    }

    /// Takes the ticket of the request that was prepared at `op`.
    pub(crate) fn take_ticket(&mut self, op: Op) -> Option<Ticket> {
        let index = self.index(op)?;
        match self.slots.get_mut(index)? {
            Slot::Held(held) => held.ticket.take(),
            Slot::Header(_) | Slot::Unknown => None,
        }
    }

    /// The lowest record among the entries held above `op`.
    pub(crate) fn lsn_min_above(&self, op: Op) -> Option<Lsn> {
        let held = self.from(op.next()).filter_map(|(_, slot)| slot.held());
        held.map(|held| held.lsn).min()
    }

    /// The first op above `durable_op` that is not held.
    pub(crate) fn first_missing(&self) -> Option<Op> {
        self.from(self.durable_op.next())
            .find(|(_, slot)| slot.held().is_none())
            .map(|(op, _)| op)
    }

    fn index(&self, op: Op) -> Option<usize> {
        let above = op.0.checked_sub(self.base.op.0 + 1)?;
        Some(above as usize)
    }

    /// Checks the invariants at the top of this file.
    pub(crate) fn invariants(&self, durable: Lsn) {
        let count = self.slots.len() as u64;
        assert_eq!(self.base.op.0 + count, self.head.op.0, "log 1");
        let mut below = Some(self.base.id);
        let mut body_bytes = 0;
        for (op, slot) in self.from(Op(0)) {
            if let Some(header) = slot.header() {
                assert_eq!(header.op(), op, "log 1");
                assert!(below.is_none_or(|id| id.0 == header.parent), "log 2");
                if op > self.counted {
                    body_bytes += u64::from(header.body_bytes);
                }
            }
            if op <= self.durable_op {
                let held = slot.held().expect("log 4");
                assert!(held.lsn <= durable, "log 4");
            }
            below = slot.header().map(EntryHeader::id);
        }
        assert_eq!(below, Some(self.head.id), "log 3");
        assert_eq!(self.body_bytes, body_bytes, "log 5");
        assert!(self.durable_op >= self.base.op, "log 4");
        if let Some(held) = self.get(self.durable_op.next()).and_then(Slot::held) {
            assert!(held.lsn > durable, "log 4");
        }
    }
}
