//! What stands before a snapshot of the machine, so that the log can go on from it.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 2 | version of this layout: 1 |
//! | 2 | 1 | replica that wrote it |
//! | 3 | 5 | reserved, zero |
//! | 8 | 8 | op: the snapshot is the machine after exactly the ops 1 to this one |
//! | 16 | 16 | id: identity of the entry at `op`, the parent of the next |
//! | 32 | 16 | digest of the machine |
//! | 48 | 16 | cluster |
//! | 64 | 8 | timestamp of the entry at `op` |
//! | 72 | 8 | replay_from: the first record of the log that a restart from here needs |
//! | 80 | 4 | bytes of the vote |
//! | 84 | 4 | view in which the entry at `op` was prepared |
//! | 88 | n | vote: the latest durable one, layout of `vote` |

use bytes::Bytes;
use pawl_wire::entry::EntryId;
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, Timestamp, View};

use crate::vote::{VoteDecodeError, VoteRecord};

/// Bytes before the vote.
const FIXED_BYTES: usize = 88;

/// Version of the layout above.
const VERSION: u16 = 1;

/// What stands before a snapshot of the machine. See the table at the top of this file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CheckpointHeader {
    /// Identity of the cluster.
    pub cluster: u128,
    /// The replica that wrote it.
    pub replica: ReplicaIndex,
    /// The snapshot is the machine after exactly the ops 1 to this one.
    pub op: Op,
    /// Identity of the entry at `op`.
    pub id: EntryId,
    /// Timestamp of the entry at `op`.
    pub timestamp: Timestamp,
    /// View in which the entry at `op` was prepared.
    pub view: View,
    /// Digest of the machine.
    pub digest: u128,
    /// Records below this one are not needed to restart from here; this and all later ones are.
    pub replay_from: Lsn,
    /// The latest durable vote when the checkpoint was taken. Later ones are records of the log.
    pub vote: VoteRecord,
}

/// Why bytes are not a checkpoint header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckpointDecodeError {
    /// Fewer bytes than the header claims or needs.
    #[error("{found} bytes are too short for a checkpoint header, which needs {needed}")]
    Short {
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The layout's version is not ours.
    #[error("checkpoint header version {0} is not known")]
    Version(u16),
    /// A reserved byte is not zero.
    #[error("a reserved byte of the checkpoint header is not zero")]
    Reserved,
    /// The vote in it cannot be read.
    #[error("the vote of the checkpoint header: {0}")]
    Vote(#[from] VoteDecodeError),
}

impl CheckpointHeader {
    /// The bytes of the header.
    pub fn encode(&self) -> Vec<u8> {
        let vote = self.vote.encode();
        let vote_bytes = u32::try_from(vote.len()).expect("a vote is bounded by the pipeline");
        let mut bytes = Vec::with_capacity(FIXED_BYTES + vote.len());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.push(self.replica.0);
        bytes.extend_from_slice(&[0; 5]);
        bytes.extend_from_slice(&self.op.0.to_le_bytes());
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        bytes.extend_from_slice(&self.digest.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.to_le_bytes());
        bytes.extend_from_slice(&self.timestamp.0.to_le_bytes());
        bytes.extend_from_slice(&self.replay_from.0.to_le_bytes());
        bytes.extend_from_slice(&vote_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.view.0.to_le_bytes());
        debug_assert_eq!(bytes.len(), FIXED_BYTES);
        bytes.extend_from_slice(&vote);
        bytes
    }

    /// Reads a header from the front of `bytes`; returns it and how many bytes it took. The caller
    /// has verified a checksum over them.
    pub fn decode(bytes: &[u8]) -> Result<(CheckpointHeader, usize), CheckpointDecodeError> {
        let short = |needed| CheckpointDecodeError::Short {
            found: bytes.len(),
            needed,
        };
        let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
            return Err(short(FIXED_BYTES));
        };
        let version = u16::from_le_bytes([fixed[0], fixed[1]]);
        if version != VERSION {
            return Err(CheckpointDecodeError::Version(version));
        }
        if fixed[3..8] != [0; 5] {
            return Err(CheckpointDecodeError::Reserved);
        }
        let vote_bytes = u32::from_le_bytes(array(fixed, 80)) as usize;
        let end = FIXED_BYTES + vote_bytes;
        let vote = bytes.get(FIXED_BYTES..end).ok_or_else(|| short(end))?;
        let header = CheckpointHeader {
            replica: ReplicaIndex(fixed[2]),
            op: Op(u64::from_le_bytes(array(fixed, 8))),
            id: EntryId(u128::from_le_bytes(array(fixed, 16))),
            digest: u128::from_le_bytes(array(fixed, 32)),
            cluster: u128::from_le_bytes(array(fixed, 48)),
            timestamp: Timestamp(u64::from_le_bytes(array(fixed, 64))),
            replay_from: Lsn(u64::from_le_bytes(array(fixed, 72))),
            view: View(u32::from_le_bytes(array(fixed, 84))),
            vote: VoteRecord::decode(vote)?,
        };
        Ok((header, end))
    }

    /// Header and snapshot in one piece, as a store keeps them.
    pub fn join(&self, snapshot: &[u8]) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.extend_from_slice(snapshot);
        bytes
    }

    /// The two parts of what `join` made.
    pub fn split(bytes: &Bytes) -> Result<(CheckpointHeader, Bytes), CheckpointDecodeError> {
        let (header, length) = CheckpointHeader::decode(bytes)?;
        Ok((header, bytes.slice(length..)))
    }
}

/// `N` bytes at `at`, which the caller has checked to be there.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N]
        .try_into()
        .expect("a slice of N bytes is an array of N bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vote::tests::vote_example;

    fn example() -> CheckpointHeader {
        CheckpointHeader {
            cluster: 7,
            replica: ReplicaIndex(2),
            op: Op(4096),
            id: EntryId(99),
            timestamp: Timestamp(123),
            view: View(2),
            digest: 5,
            replay_from: Lsn(77),
            vote: vote_example(),
        }
    }

    #[test]
    fn checkpoint_header_round_trips_with_bytes_behind_it() {
        let mut bytes = example().encode();
        let length = bytes.len();
        bytes.extend_from_slice(b"snapshot");
        assert_eq!(CheckpointHeader::decode(&bytes), Ok((example(), length)));
        assert_eq!(example().join(b"snapshot"), bytes);
        let parts = CheckpointHeader::split(&Bytes::from(bytes));
        assert_eq!(parts, Ok((example(), Bytes::from_static(b"snapshot"))));
    }

    #[test]
    fn every_cut_of_a_checkpoint_header_is_short() {
        let bytes = example().encode();
        for cut in 0..bytes.len() {
            let error = CheckpointHeader::decode(&bytes[..cut]).expect_err("it is cut");
            let CheckpointDecodeError::Short { found, needed } = error else {
                panic!("{error:?}");
            };
            assert_eq!(found, cut);
            assert!(needed > cut);
        }
    }

    #[test]
    fn reserved_bytes_and_versions_are_refused() {
        for at in 3..8 {
            let mut bytes = example().encode();
            bytes[at] = 1;
            let refused = CheckpointHeader::decode(&bytes);
            assert_eq!(refused, Err(CheckpointDecodeError::Reserved), "byte {at}");
        }
        let mut bytes = example().encode();
        bytes[0] = 2;
        let refused = CheckpointHeader::decode(&bytes);
        assert_eq!(refused, Err(CheckpointDecodeError::Version(2)));
    }
}
