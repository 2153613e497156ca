//! The sans-io replica of viewstamped replication.
//!
//! [`Replica::step`](replica::Replica::step) takes one fact that has happened and appends orders
//! for the driver. It reads no clock, draws no randomness but the seed it was given, and touches
//! neither file nor socket: equal inputs give equal effects, in the server, in the simulator and
//! under a model checker.
//!
//! # What the driver owes the core
//!
//! 1. Carry out the effects of a step in order, and all of them before those of the next step.
//! 2. `Append`: hand the records to the log in the order given; report `Input::Durable(lsn)` only
//!    when a flush that began after the write of that record has returned. Positions are
//!    cumulative.
//! 3. A write or flush that failed is reported once, as `Input::DiskFailed`, and never retried.
//! 4. `Send`: send, or lose. Messages may be lost, repeated and reordered, never altered; the link
//!    verifies header and body checksums before a message becomes an input, and names the sender it
//!    authenticated.
//! 5. `Arm` replaces an armed timer of the same name; it fires once as `Input::Timer`. Only the
//!    driver knows how long a tick is.
//! 6. `Reply`: exactly one comes for every `Request` that went in. A request's body checksum and
//!    its keyed request checksum are computed before it goes in.
//! 7. `Checkpoint`: write header and snapshot, flush, switch the anchor, then report
//!    `SnapshotWritten`. Only `Reclaim` permits to cut the log.
//! 8. `Fatal`: stop the process. The replica answers nothing from then on.
//! 9. A clean stop needs no input: send no more requests, step on `Durable` until
//!    [`Replica::requests_in_flight`] is 0, then end. No checkpoint
//!    is taken for it, since checkpoints are taken at ops that are a function of the log alone; a
//!    restart replays at most the log since the last one.

#![allow(
    clippy::large_enum_variant,
    reason = "an entry's header travels by value; a box would cost an allocation for each entry"
)]
#![allow(dead_code, reason = "the part that backups use follows")]

pub mod checkpoint;
pub mod config;
pub mod effect;
pub mod ignored;
pub mod input;
mod log;
pub mod machine;
pub mod message;
pub mod outcome;
pub mod quorum;
pub mod recovery;
mod replay;
pub mod replica;
pub mod timer;
pub mod vote;

pub use checkpoint::CheckpointHeader;
pub use config::{Config, ConfigError};
pub use effect::{Effect, Effects, Fatal, Record};
pub use ignored::{IgnoreReason, Ignored};
pub use input::{Input, LogSpace, Request, Ticket};
pub use machine::{Judgement, Machine, RestoreError};
pub use message::Message;
pub use outcome::{NotAccepted, Outcome, Refusal, RetryClass, Terminal, UnknownOutcome};
pub use recovery::{Recovered, RestartError};
pub use replica::{Replica, Status};
pub use timer::Timer;
pub use vote::{DurableVote, EntryState, VoteRecord};
