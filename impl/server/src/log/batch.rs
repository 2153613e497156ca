//! A batch of records on its way to the disk, and the thread that writes large ones.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use pawl_store::{LogWriter, Outcome, Placed, WriteError};
use pawl_vsr::Record;
use pawl_wire::ids::{Lsn, Op};

use super::submission::{LogInbox, Submission};

/// Records that are written and flushed together. The vectors are used again.
#[derive(Debug, Default)]
pub struct Batch {
    /// Records in the order of their numbers.
    pub records: Vec<(Lsn, Record)>,
    /// Bytes of their bodies and headers.
    pub bytes: usize,
    /// Offsets that apply gave since the last batch.
    pub outcomes: Vec<Outcome>,
    /// Up to which op the outcomes are complete with this batch.
    pub applied: Op,
    /// Where the bodies of the records are, once written.
    pub placed: Vec<Placed>,
}

/// A batch, with its writer, back from the disk.
#[derive(Debug)]
pub struct Written {
    /// The writer, for the next batch.
    pub writer: LogWriter,
    /// The batch.
    pub batch: Batch,
    /// The last durable record, or why there is none.
    pub result: Result<Lsn, WriteError>,
    /// How long write and flush took.
    pub took: Duration,
}

impl Batch {
    /// Forgets everything but the room.
    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
        self.outcomes.clear();
        self.placed.clear();
    }

    /// Writes and flushes.
    pub fn write(mut self, mut writer: LogWriter) -> Written {
        let begin = Instant::now();
        self.placed.clear();
        let result = writer
            .write(
                &self.records,
                &self.outcomes,
                self.applied,
                &mut self.placed,
            )
            .and_then(|()| writer.flush());
        Written {
            writer,
            batch: self,
            result,
            took: begin.elapsed(),
        }
    }
}

/// The WAL thread. It holds the writer only while it writes a batch.
#[derive(Debug)]
pub struct WalThread {
    jobs: Sender<(Batch, LogWriter)>,
    thread: JoinHandle<()>,
}

impl WalThread {
    /// Starts the thread; it reports to `inbox`.
    pub fn start(inbox: LogInbox) -> std::io::Result<WalThread> {
        let (jobs, queue): (_, Receiver<(Batch, LogWriter)>) = bounded(1);
        let thread = thread::Builder::new()
            .name("wal".to_owned())
            .spawn(move || {
                for (batch, writer) in queue {
                    let written = batch.write(writer);
                    inbox.push_reserved(Submission::Written(Box::new(written)));
                }
            })?;
        Ok(WalThread { jobs, thread })
    }

    /// Hands a batch over. There is one writer, and so never more than one batch.
    pub fn write(&self, batch: Batch, writer: LogWriter) {
        self.jobs
            .send((batch, writer))
            .expect("the WAL thread ends only when this handle is dropped");
    }

    /// Ends the thread.
    pub fn join(self) {
        drop(self.jobs);
        // A panic there has been reported by the thread itself.
        let _ = self.thread.join();
    }
}
