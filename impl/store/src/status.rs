//! What the data directory is doing: for admission, metrics and health.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pawl_wire::ids::{Lsn, Op};

use crate::log::shared::Shared;

/// A view of the store's state. Cheap to clone; may be used from any thread.
#[derive(Clone, Debug)]
pub struct Status {
    shared: Arc<Shared>,
}

impl Status {
    pub(crate) fn new(shared: Arc<Shared>) -> Status {
        Status { shared }
    }

    /// The volume is full: the log runs on its reserve. Refuse produce; reads and deletes go on.
    pub fn disk_full(&self) -> bool {
        self.shared.preparation.disk_full.load(Ordering::Acquire)
    }

    /// A write or flush failed: the process must stop.
    pub fn poisoned(&self) -> bool {
        self.shared.poisoned()
    }

    /// Bytes of the log's segments, without those that are ready but not used yet.
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes()
    }

    /// The limit above which the log is drained.
    pub fn log_bytes_max(&self) -> u64 {
        self.shared.options.log_bytes_max
    }

    /// Segments that are ready.
    pub fn segments_ready(&self) -> usize {
        self.shared.preparation.count()
    }

    /// The last durable record.
    pub fn lsn_durable(&self) -> Lsn {
        Lsn(self.shared.spans.lock().end.lsn - 1)
    }

    /// The last op up to which outcomes are flushed: a checkpoint may be at this op or below.
    pub fn outcomes_durable(&self) -> Op {
        Op(self.shared.outcomes_durable.load(Ordering::Acquire))
    }

    /// Op of the newest checkpoint.
    pub fn checkpoint(&self) -> Op {
        self.shared.anchor().newest.op()
    }

    /// The replica needs no record below this one (`Effect::Reclaim`). Until the first call the
    /// store's own rule stands alone: nothing behind the older of the two kept checkpoints is cut.
    pub fn allow_reclaim(&self, replay_from: Lsn) {
        self.shared.reclaim.store(replay_from.0, Ordering::Release);
    }
}
