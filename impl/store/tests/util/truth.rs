//! What was submitted and what was acknowledged: it survives every crash of the node.

use bytes::Bytes;
use pawl_wire::entry::EntryHeader;

#[derive(Clone, Debug)]
pub struct TruthEntry {
    pub header: EntryHeader,
    pub body: Bytes,
    /// Digest of the machine after it.
    pub digest: u128,
}

#[derive(Clone, Default, Debug)]
pub struct Truth {
    /// By op, from 1.
    pub entries: Vec<TruthEntry>,
    /// The last op that was told to be durable.
    pub acknowledged: u64,
    /// The last vote that was told to be durable.
    pub vote_acknowledged: u32,
}

impl Truth {
    pub fn entry(&self, op: u64) -> &TruthEntry {
        &self.entries[op as usize - 1]
    }

    pub fn head(&self) -> u64 {
        self.entries.len() as u64
    }
}
