//! The log thread and those behind it.
//!
//! The log thread drives `Replica<PawlMachine>`: it takes all that shards submitted, steps, and
//! carries out the effects. Who writes: a small batch is written and flushed by the log thread
//! itself, since two hand-overs cost more than they save; a large one goes to the WAL thread
//! together with the writer, and the log thread gathers the next batch meanwhile.
//!
//! Cost of a send of one message, alone: two wake-ups (shard to log thread and back), one write,
//! one flush. Of 64 at once: the same for all of them together. No body byte is touched here.

pub mod batch;
pub mod driver;
pub mod index;
pub mod keeper;
pub mod submission;
