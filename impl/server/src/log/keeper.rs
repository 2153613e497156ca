//! The threads that keep the data directory in order: one writes checkpoints and drains, the other
//! keeps the next log segment ready.
//!
//! They are two, since a segment must be ready within milliseconds, and draining one takes longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use pawl_store::{Checkpointer, DrainError, Drainer, Preparer, Status};
use pawl_vsr::CheckpointHeader;
use pawl_wire::ids::Op;

use super::submission::{LogInbox, Submission};
use crate::limits::KEEPER_JOBS_MAX;

/// How often draining is looked at.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// How often draining is tried again after it met damage.
const DAMAGED_INTERVAL: Duration = Duration::from_secs(10);

/// How often the next segment is looked at, if the writer does not ask earlier.
const PREPARE_INTERVAL: Duration = Duration::from_millis(20);

/// A checkpoint to write.
#[derive(Debug)]
pub struct Checkpoint {
    /// What stands before the snapshot.
    pub header: CheckpointHeader,
    /// The machine at the header's op.
    pub snapshot: Vec<u8>,
}

impl Checkpoint {
    /// Its op.
    pub fn op(&self) -> Op {
        self.header.op
    }
}

/// The way to the keeper.
#[derive(Debug)]
pub struct Keeper {
    jobs: Sender<Checkpoint>,
}

impl Keeper {
    /// Hands a checkpoint over, or gives its op back when there is no place.
    pub fn write(&self, checkpoint: Checkpoint) -> Result<(), Op> {
        match self.jobs.try_send(checkpoint) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => Err(back.op()),
        }
    }
}

/// The running threads. The keeper ends when every [`Keeper`] is dropped and gives the drainer
/// back; the preparer ends when told.
#[derive(Debug)]
pub struct KeeperThreads {
    keeper: JoinHandle<Drainer>,
    preparer: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl KeeperThreads {
    /// Starts both.
    pub fn start(
        checkpointer: Checkpointer,
        drainer: Drainer,
        preparer: Preparer,
        status: Status,
        inbox: LogInbox,
    ) -> std::io::Result<(Keeper, KeeperThreads)> {
        let (jobs, queue) = bounded(KEEPER_JOBS_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = {
            let inbox = inbox.clone();
            thread::Builder::new()
                .name("keeper".to_owned())
                .spawn(move || keep(checkpointer, drainer, &queue, &inbox))?
        };
        let preparer = {
            let stop = stop.clone();
            thread::Builder::new()
                .name("prepare".to_owned())
                .spawn(move || prepare(preparer, &status, &inbox, &stop))?
        };
        let threads = KeeperThreads {
            keeper,
            preparer,
            stop,
        };
        Ok((Keeper { jobs }, threads))
    }

    /// Ends both, after the log thread, and gives the drainer back to be closed.
    pub fn join(self) -> Option<Drainer> {
        self.stop.store(true, Ordering::Release);
        // A panic there has been reported by the thread itself.
        let _ = self.preparer.join();
        self.keeper.join().ok()
    }
}

fn keep(
    mut checkpointer: Checkpointer,
    mut drainer: Drainer,
    jobs: &Receiver<Checkpoint>,
    inbox: &LogInbox,
) -> Drainer {
    let mut wait = DRAIN_INTERVAL;
    loop {
        match jobs.recv_timeout(wait) {
            Ok(Checkpoint { header, snapshot }) => {
                let op = header.op;
                let result = checkpointer.write(&header, &snapshot);
                inbox.push_reserved(Submission::CheckpointDone { op, result });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return drainer,
        }
        wait = match drainer.tick() {
            Ok(drained) if drained.segment.is_some() => {
                tracing::debug!(
                    segment = drained.segment.map(|segment| segment.0),
                    batches = drained.batches,
                    bytes = drained.bytes,
                    "drained a log segment"
                );
                Duration::ZERO
            }
            Ok(_) => DRAIN_INTERVAL,
            Err(DrainError::NoSpace) => DRAIN_INTERVAL,
            Err(DrainError::Damaged(range)) => {
                tracing::error!(%range, "a batch of the log is damaged: its segment is kept");
                DAMAGED_INTERVAL
            }
            Err(error) => {
                inbox.push_reserved(Submission::StoreFailed(error.to_string()));
                DAMAGED_INTERVAL
            }
        };
    }
}

fn prepare(mut preparer: Preparer, status: &Status, inbox: &LogInbox, stop: &AtomicBool) {
    let mut full = false;
    while !stop.load(Ordering::Acquire) {
        let prepared = match preparer.tick() {
            Ok(prepared) => prepared,
            Err(error) => {
                inbox.push_reserved(Submission::StoreFailed(error.to_string()));
                return;
            }
        };
        let full_now = status.disk_full();
        if full_now != full || full && prepared.segments > 0 {
            full = full_now;
            inbox.push_reserved(Submission::SpaceChanged);
        }
        preparer.wait(PREPARE_INTERVAL);
    }
}
