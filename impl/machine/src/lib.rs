//! The replicated state machine: clients, users, catalog, partitions, offsets.
//!
//! [`PawlMachine`] is a function of the log: equal logs give equal states, byte for byte, on every
//! replica, whatever each one's checkpoints, restarts or configuration (law 2). It reads no clock
//! (time is the op's timestamp), draws no random number, and iterates ordered containers only.
//!
//! What the caller must do:
//!
//! 1. Apply every committed op once, in order, from the one after the snapshot's.
//! 2. Carry out the effects in order, before anything that depends on them is served.
//! 3. Verify, before proposing: the header's validity, the checksums of body and batch, that the
//!    connection is bound to the client and epoch in the header, what [`check::check_body`] checks,
//!    and, for partition writes, the right to them. The machine decides the rest.
//! 4. Put into the entry's `request_checksum` of kinds with secrets
//!    ([`check::holds_secret`]) a keyed hash, and into their body no secret; and write the client's
//!    own checksum into the reply (bytes 128..144), which the machine leaves zero.
//! 5. Ask [`judge`](pawl_vsr::machine::Machine::judge) only on a caught-up primary (spec SES-7).
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`machine`] | the machine: apply, queries |
//! | [`clients`] | the client table, tombstones, and who is evicted |
//! | [`catalog`] | users, streams, topics, partitions' identities, rights |
//! | [`groups`] | consumer groups of a topic, members and who owns what |
//! | [`partitions`], [`offsets`] | counters of partitions; stored offsets |
//! | [`query`], [`view`] | what reads ask; payloads of replies |
//! | [`check`] | what is refused before it can take an op |
//! | [`genesis`], [`context`] | the body of op 1; the context text of a login |
//! | [`limits`] | every limit |

mod apply;
pub mod catalog;
pub mod check;
pub mod clients;
pub mod context;
pub mod effect;
pub mod genesis;
pub mod groups;
pub mod limits;
pub mod machine;
pub mod offsets;
pub mod partitions;
pub mod query;
mod snapshot;
pub mod view;

#[cfg(test)]
mod tests;

pub use catalog::Catalog;
pub use effect::Effect;
pub use genesis::Genesis;
pub use limits::ClusterConstants;
pub use machine::PawlMachine;
