//! What a replica durably promises when it enters or leaves a view.
//!
//! A vote is a record of the log: everything handed to the log before it is durable when it is. The
//! latest one is in every checkpoint header too, so that cutting the log never loses it.
//!
//! Invariants of a vote:
//!
//! 1. `log_view <= view`.
//! 2. `commit <= op_head`.
//! 3. The suffix ends at `op_head`, its ops are consecutive, each header is sealed and names its
//!    predecessor's identity as parent; the last one's identity is `head`.
//! 4. An empty suffix: the log ends at `op_head` with identity `head`, and nothing above `commit`
//!    is open but what the log itself holds. A replica alone writes only such votes.
//! 5. No header of the suffix was prepared in a view above `log_view`.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 2 | version of this layout: 1 |
//! | 2 | 1 | replica that votes |
//! | 3 | 5 | reserved, zero |
//! | 8 | 4 | view |
//! | 12 | 4 | log_view |
//! | 16 | 8 | commit |
//! | 24 | 8 | op_head |
//! | 32 | 16 | head: identity of the entry at op_head; 0 when op_head is 0 |
//! | 48 | 16 | cluster |
//! | 64 | 4 | count of suffix headers |
//! | 68 | 4 | reserved, zero |
//! | 72 | 256 n | headers |
//! | … | n | state of each: 1 held, 2 nack, 3 unknown |

use std::fmt;

use pawl_wire::entry::{ENTRY_HEADER_BYTES, EntryHeader, EntryHeaderError, EntryId};
use pawl_wire::ids::{Lsn, Op, ReplicaIndex, View};

use crate::checkpoint::array;

/// Bytes before the suffix.
const FIXED_BYTES: usize = 72;

/// Bytes of one header of the suffix and its state.
const SUFFIX_ENTRY_BYTES: usize = ENTRY_HEADER_BYTES + 1;

/// Version of the layout above.
const VERSION: u16 = 1;

/// What a voter knows of an entry of its suffix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum EntryState {
    /// It holds the entry, durably once the vote is.
    Held = 1,
    /// It has never acknowledged the entry (spec CON-26).
    Nack = 2,
    /// It does not hold the entry and cannot deny that it once did.
    Unknown = 3,
}

/// What a replica durably promises when it enters or leaves a view. See the top of this file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VoteRecord {
    /// Identity of the cluster.
    pub cluster: u128,
    /// The replica that votes.
    pub replica: ReplicaIndex,
    /// It will take part in no older view.
    pub view: View,
    /// The last view in which it was normal: the view its log is from.
    pub log_view: View,
    /// The highest op that it knew to be decided.
    pub commit: Op,
    /// The newest op of its log.
    pub op_head: Op,
    /// Identity of the entry at `op_head`.
    pub head: EntryId,
    /// The headers from some op up to `op_head`, with what the voter knows of each.
    pub suffix: Vec<(EntryHeader, EntryState)>,
}

/// Why bytes are not a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VoteDecodeError {
    /// The length is not the one that the vote claims or needs.
    #[error("a vote of {needed} bytes in {found}")]
    Length {
        /// How many bytes there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The layout's version is not ours.
    #[error("vote version {0} is not known")]
    Version(u16),
    /// A reserved byte is not zero.
    #[error("a reserved byte of the vote is not zero")]
    Reserved,
    /// A header of the suffix cannot be read.
    #[error("header {index} of the vote's suffix: {error}")]
    Header {
        /// Which one, from 0.
        index: usize,
        /// Why.
        error: EntryHeaderError,
    },
    /// The state of an entry is none of ours.
    #[error("state {state} of entry {index} of the vote's suffix is not known")]
    State {
        /// Which one, from 0.
        index: usize,
        /// Its number.
        state: u8,
    },
    /// The parts contradict each other.
    #[error("the vote breaks its invariant {0}")]
    Invariant(u8),
}

impl VoteRecord {
    /// The bytes of the vote: the same every time.
    pub fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.suffix.len()).expect("a suffix is bounded by the pipeline");
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.suffix.len() * SUFFIX_ENTRY_BYTES);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.push(self.replica.0);
        bytes.extend_from_slice(&[0; 5]);
        bytes.extend_from_slice(&self.view.0.to_le_bytes());
        bytes.extend_from_slice(&self.log_view.0.to_le_bytes());
        bytes.extend_from_slice(&self.commit.0.to_le_bytes());
        bytes.extend_from_slice(&self.op_head.0.to_le_bytes());
        bytes.extend_from_slice(&self.head.0.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        debug_assert_eq!(bytes.len(), FIXED_BYTES);
        for (header, _) in &self.suffix {
            bytes.extend_from_slice(header.as_bytes());
        }
        bytes.extend(self.suffix.iter().map(|(_, state)| *state as u8));
        bytes
    }

    /// Reads a vote that fills `bytes` whole. The caller has verified a checksum over them.
    pub fn decode(bytes: &[u8]) -> Result<VoteRecord, VoteDecodeError> {
        let length = |needed| VoteDecodeError::Length {
            found: bytes.len(),
            needed,
        };
        let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
            return Err(length(FIXED_BYTES));
        };
        let version = u16::from_le_bytes([fixed[0], fixed[1]]);
        if version != VERSION {
            return Err(VoteDecodeError::Version(version));
        }
        if fixed[3..8] != [0; 5] || fixed[68..72] != [0; 4] {
            return Err(VoteDecodeError::Reserved);
        }
        let count = u32::from_le_bytes(array(fixed, 64)) as usize;
        let needed = FIXED_BYTES + count * SUFFIX_ENTRY_BYTES;
        if bytes.len() != needed {
            return Err(length(needed));
        }
        let vote = VoteRecord {
            replica: ReplicaIndex(fixed[2]),
            view: View(u32::from_le_bytes(array(fixed, 8))),
            log_view: View(u32::from_le_bytes(array(fixed, 12))),
            commit: Op(u64::from_le_bytes(array(fixed, 16))),
            op_head: Op(u64::from_le_bytes(array(fixed, 24))),
            head: EntryId(u128::from_le_bytes(array(fixed, 32))),
            cluster: u128::from_le_bytes(array(fixed, 48)),
            suffix: decode_suffix(&bytes[FIXED_BYTES..], count)?,
        };
        vote.check().map_err(VoteDecodeError::Invariant)?;
        Ok(vote)
    }

    /// Checks the invariants at the top of this file; returns the number of the first broken one.
    pub fn check(&self) -> Result<(), u8> {
        if self.log_view > self.view {
            return Err(1);
        }
        if self.commit > self.op_head {
            return Err(2);
        }
        let count = self.suffix.len() as u64;
        if count > self.op_head.0 {
            return Err(3);
        }
        let mut op = self.op_head.0 - count;
        let mut parent = self.suffix.first().map_or(0, |(header, _)| header.parent);
        for (header, _) in &self.suffix {
            op += 1;
            if header.op != op || header.parent != parent {
                return Err(3);
            }
            if header.view() > self.log_view {
                return Err(5);
            }
            parent = header.checksum;
        }
        if count > 0 && parent != self.head.0 {
            return Err(3);
        }
        if (self.op_head == Op(0)) != (self.head == EntryId(0)) {
            return Err(4);
        }
        Ok(())
    }
}

/// Reads `count` headers and their states from `bytes`, whose length the caller has checked.
fn decode_suffix(
    bytes: &[u8],
    count: usize,
) -> Result<Vec<(EntryHeader, EntryState)>, VoteDecodeError> {
    let (headers, states) = bytes.split_at(count * ENTRY_HEADER_BYTES);
    let mut suffix = Vec::with_capacity(count);
    for (index, (header, state)) in headers
        .chunks_exact(ENTRY_HEADER_BYTES)
        .zip(states)
        .enumerate()
    {
        let header = EntryHeader::decode(header)
            .map_err(|error| VoteDecodeError::Header { index, error })?;
        let state = match *state {
            1 => EntryState::Held,
            2 => EntryState::Nack,
            3 => EntryState::Unknown,
            state => return Err(VoteDecodeError::State { index, state }),
        };
        suffix.push((header, state));
    }
    Ok(suffix)
}

impl fmt::Display for VoteRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} from log of {}, commit {}, head {}",
            self.view, self.log_view, self.commit.0, self.op_head.0
        )?;
        if let Some((first, _)) = self.suffix.first() {
            write!(f, ", suffix from {}:", first.op)?;
            for (_, state) in &self.suffix {
                f.write_str(match state {
                    EntryState::Held => " held",
                    EntryState::Nack => " nack",
                    EntryState::Unknown => " unknown",
                })?;
            }
        }
        Ok(())
    }
}

/// A vote that is on stable storage: only a flush makes one, and only one can be sent (spec
/// CON-20).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DurableVote {
    lsn: Lsn,
    vote: VoteRecord,
}

impl DurableVote {
    /// The vote recorded at `lsn`, if the durable position covers it.
    pub(crate) fn new(lsn: Lsn, vote: VoteRecord, durable: Lsn) -> Option<DurableVote> {
        (lsn <= durable).then_some(DurableVote { lsn, vote })
    }

    /// Which record it is.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// What it says.
    pub fn vote(&self) -> &VoteRecord {
        &self.vote
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pawl_wire::entry::EntryKind;

    use super::*;

    fn header(op: u64, view: u32, parent: u128) -> EntryHeader {
        let mut header = EntryHeader::new(EntryKind::Noop);
        header.op = op;
        header.view = view;
        header.parent = parent;
        header.seal();
        header
    }

    pub(crate) fn vote_example() -> VoteRecord {
        let first = header(8, 2, 1);
        let second = header(9, 3, first.checksum);
        VoteRecord {
            cluster: 7,
            replica: ReplicaIndex(1),
            view: View(5),
            log_view: View(3),
            commit: Op(7),
            op_head: Op(9),
            head: second.id(),
            suffix: vec![(first, EntryState::Held), (second, EntryState::Nack)],
        }
    }

    #[test]
    fn vote_round_trips() {
        let bytes = vote_example().encode();
        assert_eq!(VoteRecord::decode(&bytes), Ok(vote_example()));
    }

    #[test]
    fn every_cut_and_every_surplus_byte_of_a_vote_is_refused() {
        let mut bytes = vote_example().encode();
        for cut in 0..bytes.len() {
            let refused = VoteRecord::decode(&bytes[..cut]);
            assert!(
                matches!(refused, Err(VoteDecodeError::Length { .. })),
                "{cut}: {refused:?}"
            );
        }
        bytes.push(0);
        let refused = VoteRecord::decode(&bytes);
        assert!(matches!(refused, Err(VoteDecodeError::Length { .. })));
    }

    #[test]
    fn reserved_bytes_versions_and_states_are_refused() {
        for at in (3..8).chain(68..72) {
            let mut bytes = vote_example().encode();
            bytes[at] = 1;
            assert_eq!(
                VoteRecord::decode(&bytes),
                Err(VoteDecodeError::Reserved),
                "byte {at}"
            );
        }
        let mut bytes = vote_example().encode();
        bytes[0] = 9;
        assert_eq!(VoteRecord::decode(&bytes), Err(VoteDecodeError::Version(9)));
        let mut bytes = vote_example().encode();
        *bytes.last_mut().expect("not empty") = 4;
        let refused = VoteRecord::decode(&bytes);
        assert_eq!(refused, Err(VoteDecodeError::State { index: 1, state: 4 }));
    }

    #[test]
    fn a_vote_that_contradicts_itself_is_refused() {
        type Change = fn(&mut VoteRecord);
        let table: [(Change, u8); 7] = [
            (|v| v.log_view = View(6), 1),
            (|v| v.commit = Op(10), 2),
            (|v| v.op_head = Op(10), 3),
            (|v| v.head = EntryId(1), 3),
            (|v| v.suffix[1].0 = header(9, 3, 4), 3),
            (|v| v.log_view = View(2), 5),
            (
                |v| {
                    v.suffix.clear();
                    v.head = EntryId(0);
                },
                4,
            ),
        ];
        for (index, (change, invariant)) in table.into_iter().enumerate() {
            let mut vote = vote_example();
            change(&mut vote);
            assert_eq!(vote.check(), Err(invariant), "row {index}");
            let refused = VoteRecord::decode(&vote.encode());
            assert_eq!(
                refused,
                Err(VoteDecodeError::Invariant(invariant)),
                "row {index}"
            );
        }
    }

    #[test]
    fn only_a_flush_makes_a_durable_vote() {
        assert!(DurableVote::new(Lsn(3), vote_example(), Lsn(2)).is_none());
        let durable = DurableVote::new(Lsn(3), vote_example(), Lsn(3)).expect("it is durable");
        assert_eq!(durable.vote(), &vote_example());
    }
}
