//! What the log thread is told.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use pawl_machine::PawlMachine;
use pawl_store::CheckpointError;
use pawl_vsr::{Request, Ticket};
use pawl_wire::ids::Op;

use super::batch::Written;
use crate::inbox::Inbox;

/// A question about the machine: a closure that runs on the log thread, between two steps.
pub type Question = Box<dyn FnOnce(&PawlMachine) -> Box<dyn Any + Send> + Send>;

/// What the log thread is told.
pub enum Submission {
    /// A request for the log.
    Propose(Box<Request>),
    /// A question about the machine as it is applied.
    Ask {
        /// Where the answer goes.
        ticket: Ticket,
        /// The question.
        question: Question,
    },
    /// The WAL thread is done with a batch.
    Written(Box<Written>),
    /// The keeper is done with a checkpoint.
    CheckpointDone {
        /// Its op.
        op: Op,
        /// Whether it is written.
        result: Result<(), CheckpointError>,
    },
    /// A thread that keeps the data directory in order met a failure that is final.
    StoreFailed(String),
    /// Room on the disk has changed, or may have.
    SpaceChanged,
    /// Finish what is in flight, then end.
    Stop,
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Submission::Propose(request) => write!(f, "propose {:?}", request.header),
            Submission::Ask { ticket, .. } => write!(f, "ask {ticket}"),
            Submission::Written(written) => write!(f, "written {:?}", written.result),
            Submission::CheckpointDone { op, result } => write!(f, "checkpoint {op} {result:?}"),
            Submission::StoreFailed(reason) => write!(f, "store failed: {reason}"),
            Submission::SpaceChanged => f.write_str("space changed"),
            Submission::Stop => f.write_str("stop"),
        }
    }
}

/// The way to the log thread.
pub type LogInbox = Arc<Inbox<Submission>>;
