//! The executable definition of client table and leases: what `spec/*.md` says, as a function.
//!
//! [`Table::apply`] takes the next op of the log and an entry and returns the response. It is
//! written to be read beside the clauses and to be believed, not to be fast: ordered maps, plain
//! copies, no I/O, no clause in more than one place. Models, audit and black-box checker use it
//! verbatim; the fast table of the machine is compared with it.
//!
//! What it leaves abstract:
//! - What a request does beyond the table. A reply is named by the op that made it, so "the same
//!   reply again" is [`Response::Repeat`] with the op of the first execution.
//! - How passwords are checked. A Register names the credential version under which that happened.
//! - Time. Entries carry log time.
//!
//! Invariants, checked by [`Table::check`] (the numbers are used there):
//! 1. A client is in the table or among the tombstones, never in both; client 0 in neither.
//! 2. No more entries and tombstones than the constants allow; no ring longer than they allow.
//! 3. Every epoch, mark and latest commit is an op that was applied; epochs are unique.
//! 4. Numbers in a ring are at most the watermark, and their ops rise with the numbers.
//! 5. The holder of a leased shard is in the table with that epoch.

mod clients;
mod entry;
mod leases;
mod table;

pub use clients::{Clients, Executed, Fence, Kept, Registration, Tombstone, User};
pub use entry::{
    Access, Act, Checkpoint, Entry, LeaseWrite, Login, Refusal, Request, Response, UserChange,
};
pub use leases::{Holder, Leases, Shard, Store};
pub use table::{Constants, Table};

/// Declares a number with a meaning.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $inner);
    };
}

number!(/// A position in the log, from 1.
    Op(u64));
number!(/// The op of a Register or a grant; 0: none.
    Epoch(u64));
number!(/// Identity of a client; 0 is nobody.
    Client(u128));
number!(/// Number of a request.
    Number(u64));
number!(/// Checksum of a request; 0 says nothing.
    Checksum(u128));
number!(/// What makes a Register recognisable when it is proposed again.
    Stamp(u128));
number!(/// Log time in microseconds.
    Time(u64));
number!(/// Visible number of a user, given again after a deletion.
    UserNumber(u32));
number!(/// Number of a leased shard.
    ShardNumber(u32));
number!(/// Position of a record in a leased shard's log, from 1.
    RecordNumber(u64));
