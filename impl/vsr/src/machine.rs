//! What the replica replicates: the border between consensus and the state machine.

use std::fmt::Debug;
use std::hash::Hash;

use bytes::Bytes;
use pawl_wire::entry::EntryHeader;

/// What admission makes of a request before it may take a log entry (spec SES-6, law 6).
///
/// Only a caught-up primary asks. The answer of apply is the one that counts; this one saves log
/// entries for what is certain already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// The log decides.
    Propose,
    /// Certain without a log entry: a cached reply, applied earlier, fenced, evicted, not the
    /// owner.
    /// The bytes are a whole reply or eviction frame.
    Answer(Bytes),
}

/// Why bytes are not a snapshot of this machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("snapshot section {section:?} at byte {position}: {reason}")]
pub struct RestoreError {
    /// Tag of the section.
    pub section: String,
    /// Where in the snapshot.
    pub position: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// The replicated state machine: everything that is a function of log[1..=commit].
///
/// Equal logs give equal states, byte for byte: no clock, no randomness, no iteration over an
/// unordered container.
pub trait Machine: Clone + Eq + Hash + Debug {
    /// What an applied op orders the driver to do outside (index a batch, drop a partition).
    type Effect: Clone + Debug + PartialEq;

    /// Applies the entry at `header.op`, which is the one after the last applied. Returns the whole
    /// reply frame for the client that asked (empty for entries of our own).
    ///
    /// `body` may be empty for a `SendMessages`: apply decides by header and arguments alone.
    fn apply(
        &mut self,
        header: &EntryHeader,
        body: &Bytes,
        effects: &mut Vec<Self::Effect>,
    ) -> Bytes;

    /// Admission, a filter. `header` is the proposal with op, view, timestamp and parent zero.
    fn judge(&self, header: &EntryHeader) -> Judgement;

    /// The state as bytes: sections with tag, version, length and hash. Equal states give equal
    /// bytes.
    fn snapshot(&self) -> Vec<u8>;

    /// The state that `snapshot` wrote.
    fn restore(bytes: &[u8]) -> Result<Self, RestoreError>;

    /// A digest of the state: equal states give equal digests.
    fn digest(&self) -> u128;

    /// Both, for a checkpoint: a machine whose digest is made from its snapshot makes it once.
    fn snapshot_and_digest(&self) -> (Vec<u8>, u128) {
        (self.snapshot(), self.digest())
    }
}
