//! From what apply orders to what polls find: partition indexes, tail cache, outcomes.
//!
//! Invariant: an op's batch is in its partition's index before the answer to its request leaves the
//! log thread (spec ANS-30).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pawl_machine::Effect;
use pawl_store::{BatchEntry, IndexSet, Outcome, Place, Placed};
use pawl_wire::ids::Op;

use crate::tail::TailCache;

/// Bodies and places of produces between their append and their apply.
#[derive(Debug)]
pub struct Indexer {
    index: Arc<IndexSet>,
    tail: Arc<TailCache>,
    /// Handed to the writer, place not yet known.
    bodies: VecDeque<(Op, Bytes)>,
    /// Written, not yet applied.
    placed: VecDeque<(Op, Place, Bytes)>,
    /// Applied since the last batch was cut.
    outcomes: Vec<Outcome>,
}

impl Indexer {
    /// An indexer over these structures.
    pub fn new(index: Arc<IndexSet>, tail: Arc<TailCache>) -> Indexer {
        Indexer {
            index,
            tail,
            bodies: VecDeque::new(),
            placed: VecDeque::new(),
            outcomes: Vec::new(),
        }
    }

    /// A produce was handed to the writer.
    pub fn on_appended(&mut self, op: Op, body: Bytes) {
        self.bodies.push_back((op, body));
    }

    /// A batch was written: now the places of its bodies are known.
    pub fn on_placed(&mut self, placed: &[Placed]) {
        for Placed { op, place } in placed {
            if self.bodies.front().is_some_and(|(front, _)| front == op)
                && let Some((op, body)) = self.bodies.pop_front()
            {
                self.placed.push_back((op, *place, body));
            }
        }
    }

    /// A produce that recovery found in the log.
    pub fn on_recovered(&mut self, op: Op, place: Place) {
        self.placed.push_back((op, place, Bytes::new()));
    }

    /// Apply orders something of partitions.
    pub fn on_effect(&mut self, op: Op, effect: &Effect) {
        match effect {
            Effect::Appended {
                partition,
                base_offset,
                timestamp,
                message_count,
                batch_position,
                batch_length,
                ..
            } => {
                let (place, body) = self.take_placed(op);
                let entry = BatchEntry {
                    base_offset: *base_offset,
                    message_count: *message_count,
                    timestamp: *timestamp,
                    op,
                    batch_position: *batch_position,
                    batch_length: u32::try_from(*batch_length)
                        .expect("a batch is below the frame limit"),
                    place,
                };
                self.index.push(*partition, entry);
                if !body.is_empty() {
                    self.tail.push(op, body);
                }
                self.outcomes.push(Outcome {
                    op,
                    base_offset: *base_offset,
                });
            }
            Effect::PartitionCreated { uid, .. } => {
                self.index.create(*uid);
            }
            Effect::PartitionDropped { uid } => self.index.drop_partition(*uid, op),
            Effect::PartitionPurged { uid, .. } => self.index.purge(*uid, op),
            Effect::Trimmed { uid, first_offset } => self.index.trim(*uid, *first_offset, op),
            Effect::CatalogChanged | Effect::ClientFenced { .. } | Effect::ClientEvicted { .. } => {
            }
        }
    }

    /// Everything up to `op` is applied. Produces that apply refused have left nothing to index.
    pub fn on_applied(&mut self, op: Op) {
        while self.placed.front().is_some_and(|(front, ..)| *front <= op) {
            self.placed.pop_front();
        }
        self.index.applied(op);
    }

    /// Moves the outcomes since the last call to `outcomes`.
    pub fn take_outcomes(&mut self, outcomes: &mut Vec<Outcome>) {
        outcomes.append(&mut self.outcomes);
    }

    fn take_placed(&mut self, op: Op) -> (Place, Bytes) {
        loop {
            let (front, place, body) = self
                .placed
                .pop_front()
                .expect("an op is applied after its record was written");
            if front == op {
                return (place, body);
            }
            assert!(front < op, "ops are applied in order");
        }
    }
}
