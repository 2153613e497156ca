//! The writer of the log: gathers records into a batch, writes it with one call, flushes.

use pawl_wire::ids::{Lsn, Op};

use crate::error::WriteError;
use crate::record::{Outcome, Placed, Record};

/// Writes the log. Owned by the WAL thread; nothing else appends.
#[derive(Debug)]
pub struct LogWriter {}

impl LogWriter {
    /// Writes records, in the order of their lsn, and outcomes as one batch (more than one only
    /// where segments or limits demand it). Nothing is durable before [`LogWriter::flush`] returns.
    ///
    /// `outcomes` are of produces applied since the last write; with this write they are complete up
    /// to `applied`. Places are appended to `placed` for every entry, in order.
    ///
    /// After [`WriteError::NoSpace`] nothing was written and the call may be repeated as it was.
    /// After any other error the process must stop.
    pub fn write(
        &mut self,
        _records: &[(Lsn, Record)],
        _outcomes: &[Outcome],
        _applied: Op,
        _placed: &mut Vec<Placed>,
    ) -> Result<(), WriteError> {
        Err(WriteError::Poisoned)
    }

    /// Makes everything written durable. Returns the last durable lsn.
    pub fn flush(&mut self) -> Result<Lsn, WriteError> {
        Err(WriteError::Poisoned)
    }

    /// Clean stop: writes a closing batch that vouches for everything before it, and flushes.
    pub fn close(self) -> Result<(), WriteError> {
        Err(WriteError::Poisoned)
    }
}
