//! The kill test: clients with stable identities write under load while their node is killed at
//! random instants; afterwards everything they were told is compared with everything that is there.
//!
//! A round is
//!
//! 1. one to three lives of the node: start (some starts are killed as well), load, SIGKILL;
//! 2. a start, and in every second round a comparison before anybody retries: what was acknowledged
//!    is there, and of each open request all or nothing;
//! 3. every client signs in under its identity, sends its open request again (same number, same
//!    bytes) until it is answered, and repeats its last requests, whose answers must be equal byte
//!    for byte;
//! 4. an exact comparison: each message once at its confirmed offset and nothing else, each
//!    metadata write once, each stored offset;
//! 5. another restart, which must change nothing.
//!
//! What must hold is in the clauses DED-1 to DED-5, DED-11, DED-14, SES-1, SES-5, ANS-1, ANS-7 and
//! REC-1.

mod catalog;
mod ledger;
mod message;
mod observation;
mod random;
mod report;
mod run;
mod violation;
mod worker;
mod workload;

pub use report::{Counters, Report};
pub use run::{Failure, KillOptions, run};
pub use violation::Violation;

/// Name of the stream that all clients produce to.
const SHARED_STREAM: &str = "shared";

/// Name of its topic.
const SHARED_TOPIC: &str = "events";

/// Partitions of that topic.
const SHARED_PARTITIONS: u32 = 4;
