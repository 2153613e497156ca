//! The header of a log entry: what the primary prepares, what the log keeps, what peers send.
//!
//! An entry's identity is the checksum of its header; the header holds the checksum of the body and
//! the identity of the entry before it, so one identity fixes the whole log up to it.
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: XXH3-128 of header bytes 16..256; the identity |
//! | 16 | 16 | checksum_body: XXH3-128 of the body |
//! | 32 | 16 | parent: identity of the entry at op − 1; of op 1: 0 |
//! | 48 | 16 | cluster |
//! | 64 | 16 | client; 0 for entries that no client asked for |
//! | 80 | 16 | request_checksum as the table keeps it (keyed where the body is secret); 0: none |
//! | 96 | 8 | op |
//! | 104 | 8 | timestamp, µs |
//! | 112 | 8 | epoch that the request carried |
//! | 120 | 8 | request number |
//! | 128 | 4 | view in which the op was first prepared |
//! | 132 | 4 | user id of the session |
//! | 136 | 4 | body bytes |
//! | 140 | 4 | release |
//! | 144 | 1 | kind |
//! | 145 | 1 | replica that prepared it |
//! | 146 | 2 | version of this layout: 1 |
//! | 148 | 4 | reserved, zero |
//! | 152 | 64 | arguments: what the gateway resolved from the body, layout by kind |
//! | 216 | 40 | reserved, zero |

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_128;

use crate::ids::{ClientId, Epoch, Op, ReplicaIndex, RequestNumber, Timestamp, UserId, View};

/// Bytes of an entry header.
pub const ENTRY_HEADER_BYTES: usize = 256;

/// Version of the layout above.
pub const ENTRY_VERSION: u16 = 1;

const _: () = assert!(size_of::<EntryHeader>() == ENTRY_HEADER_BYTES);
const _: () = assert!(
    cfg!(target_endian = "little"),
    "headers are cast from little-endian bytes"
);

/// Identity of an entry: the checksum of its header. 0 is the parent of op 1.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u128);

/// What an entry does. Numbers up to 162 are the client dialect's operations; from 200 on ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the dialect's operations")]
pub enum EntryKind {
    Register = 1,
    Logout = 3,
    CreateStream = 128,
    UpdateStream = 129,
    DeleteStream = 130,
    PurgeStream = 131,
    CreateTopic = 132,
    UpdateTopic = 133,
    DeleteTopic = 134,
    PurgeTopic = 135,
    CreatePartitions = 136,
    DeletePartitions = 137,
    DeleteSegments = 138,
    CreateConsumerGroup = 139,
    DeleteConsumerGroup = 140,
    CreateUser = 141,
    UpdateUser = 142,
    DeleteUser = 143,
    ChangePassword = 144,
    UpdatePermissions = 145,
    CreateToken = 146,
    DeleteToken = 147,
    JoinConsumerGroup = 148,
    LeaveConsumerGroup = 149,
    SendMessages = 160,
    StoreOffset = 161,
    DeleteOffset = 162,
    /// Op 1 of every log: cluster constants, root user, secret of the cluster.
    Genesis = 200,
    /// Does nothing; a primary prepares one to commit what it inherited.
    Noop = 201,
    /// A connection ended without a logout: the client's entry is released (decision 2).
    Release = 202,
}

impl EntryKind {
    /// The kind with this number.
    pub const fn from_u8(value: u8) -> Option<EntryKind> {
        use EntryKind::*;
        Some(match value {
            1 => Register,
            3 => Logout,
            128 => CreateStream,
            129 => UpdateStream,
            130 => DeleteStream,
            131 => PurgeStream,
            132 => CreateTopic,
            133 => UpdateTopic,
            134 => DeleteTopic,
            135 => PurgeTopic,
            136 => CreatePartitions,
            137 => DeletePartitions,
            138 => DeleteSegments,
            139 => CreateConsumerGroup,
            140 => DeleteConsumerGroup,
            141 => CreateUser,
            142 => UpdateUser,
            143 => DeleteUser,
            144 => ChangePassword,
            145 => UpdatePermissions,
            146 => CreateToken,
            147 => DeleteToken,
            148 => JoinConsumerGroup,
            149 => LeaveConsumerGroup,
            160 => SendMessages,
            161 => StoreOffset,
            162 => DeleteOffset,
            200 => Genesis,
            201 => Noop,
            202 => Release,
            _ => return None,
        })
    }
}

/// The header of a log entry. See the table at the top of this file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "the table at the top of the file says what each field is"
)]
pub struct EntryHeader {
    pub checksum: u128,
    pub checksum_body: u128,
    pub parent: u128,
    pub cluster: u128,
    pub client: u128,
    pub request_checksum: u128,
    pub op: u64,
    pub timestamp: u64,
    pub epoch: u64,
    pub request: u64,
    pub view: u32,
    pub user: u32,
    pub body_bytes: u32,
    pub release: u32,
    pub kind: u8,
    pub replica: u8,
    pub version: u16,
    pub reserved_tail_kind: [u8; 4],
    pub arguments: [u8; 64],
    pub reserved: [u8; 40],
}

/// Why bytes are not an entry header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EntryHeaderError {
    /// Fewer than 256 bytes.
    #[error("{0} bytes are too short for an entry header")]
    Short(usize),
    /// The checksum does not match.
    #[error("the entry header's checksum does not match")]
    Checksum,
    /// The layout's version is not ours.
    #[error("entry header version {0} is not known")]
    Version(u16),
    /// The kind is not known to this release.
    #[error("entry kind {0} is not known")]
    Kind(u8),
    /// A reserved byte is not zero.
    #[error("a reserved byte of the entry header is not zero")]
    Reserved,
}

impl EntryHeader {
    /// A header of `kind` that covers an empty body, with the current version; all other fields are
    /// zero. An entry that does not cover its body would be damage to whoever reads the log.
    pub fn new(kind: EntryKind) -> EntryHeader {
        EntryHeader {
            checksum_body: xxh3_128(&[]),
            kind: kind as u8,
            version: ENTRY_VERSION,
            ..EntryHeader::zeroed()
        }
    }

    /// Fills in `checksum`. Call after all other fields are set.
    pub fn seal(&mut self) {
        self.checksum = self.checksum_computed();
    }

    /// What `checksum` must be.
    pub fn checksum_computed(&self) -> u128 {
        xxh3_128(&bytemuck::bytes_of(self)[16..])
    }

    /// The 256 bytes.
    pub fn as_bytes(&self) -> &[u8; ENTRY_HEADER_BYTES] {
        bytemuck::cast_ref(self)
    }

    /// Reads and verifies a header from the first 256 bytes.
    pub fn decode(bytes: &[u8]) -> Result<EntryHeader, EntryHeaderError> {
        let Some(bytes) = bytes.get(..ENTRY_HEADER_BYTES) else {
            return Err(EntryHeaderError::Short(bytes.len()));
        };
        let header: EntryHeader = bytemuck::pod_read_unaligned(bytes);
        if header.checksum != header.checksum_computed() {
            return Err(EntryHeaderError::Checksum);
        }
        if header.version != ENTRY_VERSION {
            return Err(EntryHeaderError::Version(header.version));
        }
        if EntryKind::from_u8(header.kind).is_none() {
            return Err(EntryHeaderError::Kind(header.kind));
        }
        if header.reserved_tail_kind != [0; 4] || header.reserved != [0; 40] {
            return Err(EntryHeaderError::Reserved);
        }
        Ok(header)
    }

    /// Makes `body` the body of this entry. Call before sealing.
    pub fn set_body(&mut self, body: &[u8]) {
        self.checksum_body = xxh3_128(body);
        self.body_bytes = u32::try_from(body.len()).expect("bodies are bounded by the frame limit");
    }

    /// Whether `body` is the body of this entry.
    pub fn covers(&self, body: &[u8]) -> bool {
        body.len() == self.body_bytes as usize && xxh3_128(body) == self.checksum_body
    }

    /// The entry's identity.
    pub fn id(&self) -> EntryId {
        EntryId(self.checksum)
    }

    /// The kind; headers are verified when they enter, so an unknown one cannot stand here.
    pub fn entry_kind(&self) -> EntryKind {
        EntryKind::from_u8(self.kind).expect("a verified header has a known kind")
    }

    /// The position in the log.
    pub fn op(&self) -> Op {
        Op(self.op)
    }

    /// The view in which the op was first prepared.
    pub fn view(&self) -> View {
        View(self.view)
    }

    /// The replica that prepared it.
    pub fn replica(&self) -> ReplicaIndex {
        ReplicaIndex(self.replica)
    }

    /// The client that asked; 0 for entries of our own.
    pub fn client(&self) -> ClientId {
        ClientId(self.client)
    }

    /// The epoch that the request carried.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    /// The request's number.
    pub fn request(&self) -> RequestNumber {
        RequestNumber(self.request)
    }

    /// The session's user.
    pub fn user(&self) -> UserId {
        UserId(self.user)
    }

    /// When the primary prepared it.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp(self.timestamp)
    }
}

impl std::fmt::Debug for EntryHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {:?} {} {}",
            self.op(),
            EntryKind::from_u8(self.kind),
            self.view(),
            self.client()
        )
    }
}
