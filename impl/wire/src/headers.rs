//! The 256-byte headers of the client link: request, reply, eviction.
//!
//! The first half is common to all:
//!
//! | off | bytes | field |
//! | --- | --- | --- |
//! | 0 | 16 | checksum: 0 on this link |
//! | 16 | 16 | checksum_body: 0 on this link |
//! | 32 | 16 | cluster |
//! | 48 | 4 | size: header and body |
//! | 52 | 4 | view |
//! | 56 | 4 | release: 0 |
//! | 60 | 1 | command: 5 request, 8 reply, 13 eviction |
//! | 61 | 1 | replica |
//! | 62 | 66 | reserved, zero |
//!
//! The second half stands at each struct. Nothing here refuses unknown bytes in reserved places of
//! a request: published clients are not checked for them.

use bytemuck::{Pod, Zeroable};

use crate::error_code::ErrorCode;
use crate::operation::Operation;

/// Bytes of every header.
pub const HEADER_BYTES: usize = 256;

/// Offset of the command code of a [`Operation::NonReplicated`] request.
pub const CODE_OFFSET: usize = 196;

/// Value of `command` in a request.
pub const COMMAND_REQUEST: u8 = 5;
/// Value of `command` in a reply.
pub const COMMAND_REPLY: u8 = 8;
/// Value of `command` in an eviction.
pub const COMMAND_EVICTION: u8 = 13;

const _: () = assert!(size_of::<RequestHeader>() == HEADER_BYTES);
const _: () = assert!(size_of::<ReplyHeader>() == HEADER_BYTES);
const _: () = assert!(size_of::<EvictionHeader>() == HEADER_BYTES);
const _: () = assert!(std::mem::offset_of!(RequestHeader, code) == CODE_OFFSET);
const _: () = assert!(std::mem::offset_of!(ReplyHeader, status) == 216);
const _: () = assert!(std::mem::offset_of!(EvictionHeader, reason) == 255);

/// What a client asks (command 5).
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 128 | 16 | client, never 0 |
/// | 144 | 16 | request_checksum: XXH3-64 of the body, or 0 |
/// | 160 | 8 | timestamp: 0 |
/// | 168 | 8 | request number |
/// | 176 | 1 | operation |
/// | 177 | 7 | padding |
/// | 184 | 8 | session |
/// | 192 | 4 | user_id: never trusted |
/// | 196 | 4 | command code, for operation 2 |
/// | 200 | 56 | reserved |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
#[allow(missing_docs, reason = "the tables above say what each field is")]
pub struct RequestHeader {
    pub checksum: u128,
    pub checksum_body: u128,
    pub cluster: u128,
    pub size: u32,
    pub view: u32,
    pub release: u32,
    pub command: u8,
    pub replica: u8,
    pub reserved_frame: [u8; 66],
    pub client: u128,
    pub request_checksum: u128,
    pub timestamp: u64,
    pub request: u64,
    pub operation: u8,
    pub padding: [u8; 7],
    pub session: u64,
    pub user_id: u32,
    pub code: u32,
    pub reserved: [u8; 56],
}

/// What the server answers (command 8).
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 128 | 16 | request_checksum: copy of the request's |
/// | 144 | 16 | context: 0 (with error 59: the watermark) |
/// | 160 | 16 | client |
/// | 176 | 8 | op |
/// | 184 | 8 | commit |
/// | 192 | 8 | timestamp |
/// | 200 | 8 | request: copy of the request's |
/// | 208 | 1 | operation |
/// | 209 | 7 | padding, zero |
/// | 216 | 4 | status: 0 or an error code; non-zero: the body is empty |
/// | 220 | 36 | reserved, zero |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
#[allow(missing_docs, reason = "the tables above say what each field is")]
pub struct ReplyHeader {
    pub checksum: u128,
    pub checksum_body: u128,
    pub cluster: u128,
    pub size: u32,
    pub view: u32,
    pub release: u32,
    pub command: u8,
    pub replica: u8,
    pub reserved_frame: [u8; 66],
    pub request_checksum: u128,
    pub context: u128,
    pub client: u128,
    pub op: u64,
    pub commit: u64,
    pub timestamp: u64,
    pub request: u64,
    pub operation: u8,
    pub padding: [u8; 7],
    pub status: u32,
    pub reserved: [u8; 36],
}

/// The end of a session on this connection (command 13). It has no body.
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 128 | 16 | client, never 0 |
/// | 144 | 4 | highest accepted protocol version (reason 14), else 0 |
/// | 148 | 4 | lowest accepted protocol version (reason 14), else 0 |
/// | 152 | 103 | reserved, zero |
/// | 255 | 1 | reason, never 0 |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
#[allow(missing_docs, reason = "the tables above say what each field is")]
pub struct EvictionHeader {
    pub checksum: u128,
    pub checksum_body: u128,
    pub cluster: u128,
    pub size: u32,
    pub view: u32,
    pub release: u32,
    pub command: u8,
    pub replica: u8,
    pub reserved_frame: [u8; 66],
    pub client: u128,
    pub protocol_version_max: u32,
    pub protocol_version_min: u32,
    pub reserved: [u8; 103],
    pub reason: u8,
}

/// Why a request's header is refused. The answer is status 3; see [`HeaderError::closes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// A command that clients may not send.
    #[error("command {0} is not a request")]
    Command(u8),
    /// The client id is 0.
    #[error("the client id is 0")]
    ClientZero,
    /// The operation is not listed.
    #[error("operation {0} is not known")]
    Operation(u8),
    /// A sign-in carries a session or a request number.
    #[error("a sign-in carries session {session} and request {request}")]
    RegisterNumbers {
        /// The session.
        session: u64,
        /// The request number.
        request: u64,
    },
    /// A write carries no session or no request number.
    #[error("a write carries session {session} and request {request}")]
    WriteNumbers {
        /// The session.
        session: u64,
        /// The request number.
        request: u64,
    },
}

impl HeaderError {
    /// Whether the connection ends after the answer: the peer does not speak this link's protocol.
    pub const fn closes(self) -> bool {
        matches!(self, HeaderError::Command(_))
    }

    /// The status of the answer.
    pub const fn code(self) -> ErrorCode {
        ErrorCode::InvalidCommand
    }
}

macro_rules! header_bytes {
    ($($header:ident),*) => {$(
        impl $header {
            /// The 256 bytes.
            pub fn as_bytes(&self) -> &[u8; HEADER_BYTES] {
                bytemuck::cast_ref(self)
            }

            /// The header in these 256 bytes; nothing is checked.
            pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> $header {
                bytemuck::pod_read_unaligned(bytes)
            }
        }
    )*};
}

header_bytes!(RequestHeader, ReplyHeader, EvictionHeader);

impl RequestHeader {
    /// A request of `operation` with a body of `body_bytes`; all other fields are zero.
    pub fn new(operation: Operation, body_bytes: u32) -> RequestHeader {
        RequestHeader {
            size: HEADER_BYTES as u32 + body_bytes,
            command: COMMAND_REQUEST,
            operation: operation as u8,
            ..RequestHeader::zeroed()
        }
    }

    // spec ANS-19, ANS-21
    /// Applies the dialect's validity rules and names the operation.
    pub fn validate(&self) -> Result<Operation, HeaderError> {
        if self.command != COMMAND_REQUEST {
            return Err(HeaderError::Command(self.command));
        }
        if self.client == 0 {
            return Err(HeaderError::ClientZero);
        }
        let Some(operation) = Operation::from_u8(self.operation) else {
            return Err(HeaderError::Operation(self.operation));
        };
        let (session, request) = (self.session, self.request);
        match operation {
            Operation::NonReplicated => Ok(operation),
            Operation::Register if session != 0 || request != 0 => {
                Err(HeaderError::RegisterNumbers { session, request })
            }
            Operation::Register => Ok(operation),
            _ if session == 0 || request == 0 => {
                Err(HeaderError::WriteNumbers { session, request })
            }
            _ => Ok(operation),
        }
    }

    // spec ANS-22
    /// Whether `body` is the one that the checksum was made of. Zero is never an error.
    pub fn covers(&self, body: &[u8]) -> bool {
        self.request_checksum == 0 || self.request_checksum == request_checksum(body)
    }
}

/// The checksum that a client puts into the header of a checksummed operation.
pub fn request_checksum(body: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_64(body) as u128
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum EvictionReason {
    /// Not signed in, or the session is not known.
    NoSession = 1,
    /// The client's release is too low.
    ReleaseTooLow = 2,
    /// The client's release is too high.
    ReleaseTooHigh = 3,
    /// An internal operation from a client.
    InvalidRequestOperation = 4,
    /// The body is not valid.
    InvalidRequestBody = 5,
    /// The body's size is not valid.
    InvalidRequestBodySize = 6,
    /// The session number is below the current one: fenced.
    SessionTooLow = 7,
    /// The session's release is another one.
    SessionReleaseMismatch = 8,
    /// The password is wrong.
    InvalidCredentials = 9,
    /// The token is wrong or expired.
    InvalidToken = 10,
    /// The user is inactive.
    UserInactive = 11,
    /// The client id belongs to another user.
    SessionError = 12,
    /// The heartbeat was missed.
    StaleClient = 13,
    /// The protocol version is outside the window.
    IncompatibleProtocol = 14,
    /// The sign-in's body is malformed.
    MalformedLogin = 15,
}

impl EvictionReason {
    /// Every reason, by number.
    pub const ALL: [EvictionReason; 15] = {
        use EvictionReason::*;
        [
            NoSession,
            ReleaseTooLow,
            ReleaseTooHigh,
            InvalidRequestOperation,
            InvalidRequestBody,
            InvalidRequestBodySize,
            SessionTooLow,
            SessionReleaseMismatch,
            InvalidCredentials,
            InvalidToken,
            UserInactive,
            SessionError,
            StaleClient,
            IncompatibleProtocol,
            MalformedLogin,
        ]
    };

    /// The reason with this number.
    pub const fn from_u8(value: u8) -> Option<EvictionReason> {
        match value {
            1..=15 => Some(EvictionReason::ALL[value as usize - 1]),
            _ => None,
        }
    }

    /// The error that a client makes of it.
    pub const fn client_error(self) -> ErrorCode {
        use EvictionReason::*;
        match self {
            NoSession | SessionTooLow | SessionReleaseMismatch | UserInactive | SessionError => {
                ErrorCode::Unauthenticated
            }
            ReleaseTooLow
            | ReleaseTooHigh
            | InvalidRequestOperation
            | InvalidRequestBody
            | InvalidRequestBodySize => ErrorCode::InvalidCommand,
            InvalidCredentials => ErrorCode::InvalidCredentials,
            InvalidToken => ErrorCode::InvalidPersonalAccessToken,
            StaleClient => ErrorCode::StaleClient,
            IncompatibleProtocol => ErrorCode::IncompatibleProtocolVersion,
            MalformedLogin => ErrorCode::InvalidFormat,
        }
    }
}

macro_rules! header_debug {
    ($($header:ident: $($field:ident)*;)*) => {$(
        impl std::fmt::Debug for $header {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($header))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    )*};
}

header_debug! {
    RequestHeader: command size client session request operation code request_checksum;
    ReplyHeader: command size client op commit timestamp request operation status;
    EvictionHeader: command size client reason protocol_version_max protocol_version_min;
}

#[cfg(test)]
#[path = "headers_test.rs"]
mod tests;
