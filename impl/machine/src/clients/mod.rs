//! The client table: who is registered, under which epoch, what they last asked and were told.
//!
//! | state | where |
//! | --- | --- |
//! | live, released | [`ClientTable`]'s entries |
//! | tombstone | [`tombstones::Tombstones`] |
//! | absent, forgotten | nowhere |
//!
//! Invariants:
//! 1. A client has an entry or a tombstone or neither, never both.
//! 2. There are at most as many entries and tombstones as the constants allow.
//! 3. Request numbers in a ring rise; the last one is at most the watermark.
//! 4. The orders of eviction and of release hold exactly the entries, each under its own key.
//! 5. Client 0 has neither.

pub mod entry;
pub mod table;
pub mod tombstones;
pub mod verdict;

pub use entry::{CachedReply, Entry, Registration};
pub use table::ClientTable;
pub use tombstones::{Tombstone, Tombstones};
pub use verdict::Verdict;
