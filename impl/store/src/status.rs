//! What the data directory is doing: for admission, metrics and health.

use pawl_wire::ids::Op;

/// A view of the store's state. Cheap to clone; may be used from any thread.
#[derive(Clone, Debug)]
pub struct Status {}

impl Status {
    /// The volume is full: the log runs on its reserve. Refuse produce; reads and deletes go on.
    pub fn disk_full(&self) -> bool {
        false
    }

    /// A write or flush failed: the process must stop.
    pub fn poisoned(&self) -> bool {
        false
    }

    /// Bytes of the log's segments.
    pub fn log_bytes(&self) -> u64 {
        0
    }

    /// The limit above which the log is drained.
    pub fn log_bytes_max(&self) -> u64 {
        0
    }

    /// The last op up to which outcomes are flushed: a checkpoint may be at this op or below.
    pub fn outcomes_durable(&self) -> Op {
        Op(0)
    }

    /// Op of the newest checkpoint.
    pub fn checkpoint(&self) -> Op {
        Op(0)
    }

    /// The replica no longer needs ops at or below this in the log (`Effect::Reclaim`).
    pub fn allow_reclaim(&self, _op: Op) {}
}
