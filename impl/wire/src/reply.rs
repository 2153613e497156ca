//! Whole answer frames: replies, refusals, evictions.
//!
//! A refusal travels in one of two channels. Where a successful reply is result-framed, a committed
//! rejection stands in the result section with status 0; everything decided before the log, and
//! everything on reads and partitions, is a status with an empty body.

use bytemuck::Zeroable;
use bytes::Bytes;

use crate::commands::session::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN};
use crate::entry::EntryHeader;
use crate::error_code::ErrorCode;
use crate::headers::{
    COMMAND_EVICTION, COMMAND_REPLY, EvictionHeader, EvictionReason, HEADER_BYTES, ReplyHeader,
    RequestHeader,
};
use crate::operation::Operation;
use crate::primitives::{Reader, Wire, WireError};

/// Bytes of a result section that says success.
pub const RESULT_SUCCESS: [u8; 4] = [0; 4];

/// Bytes of a result section that says a rejection.
pub const RESULT_REJECTION_BYTES: usize = 12;

/// What a reply's header says besides size and status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are those of `ReplyHeader`")]
pub struct Reply {
    pub operation: Operation,
    pub client: u128,
    pub request: u64,
    pub request_checksum: u128,
    pub context: u128,
    pub op: u64,
    pub commit: u64,
    pub timestamp: u64,
    pub cluster: u128,
    pub view: u32,
    pub replica: u8,
}

impl Reply {
    // spec ANS-9, ANS-10
    /// A reply to `request` that no log entry stands behind: it echoes what the request said and
    /// carries `commit`, which must be an op that the cluster has committed.
    pub fn to_request(request: &RequestHeader, commit: u64) -> Reply {
        let operation = Operation::from_u8(request.operation);
        Reply {
            // A reply with an unknown operation would be taken for damage and lose its status.
            operation: operation.unwrap_or(Operation::NonReplicated).in_reply(),
            client: request.client,
            request: request.request,
            request_checksum: request.request_checksum,
            context: 0,
            op: request.session,
            commit,
            timestamp: request.timestamp,
            cluster: request.cluster,
            view: 0,
            replica: 0,
        }
    }

    /// The reply to a committed entry: op and commit are the entry's, and every replay is the same
    /// bytes. `None` for kinds that no client asks for.
    pub fn to_entry(entry: &EntryHeader) -> Option<Reply> {
        let operation = Operation::from_u8(entry.kind)?;
        Some(Reply {
            operation: operation.in_reply(),
            client: entry.client,
            request: entry.request,
            request_checksum: entry.request_checksum,
            context: 0,
            op: entry.op,
            commit: entry.op,
            timestamp: entry.timestamp,
            cluster: entry.cluster,
            view: entry.view,
            replica: entry.replica,
        })
    }

    /// The header of a reply with status 0 and a body of `body_bytes`, result section included.
    pub fn header(&self, body_bytes: u32) -> ReplyHeader {
        ReplyHeader {
            cluster: self.cluster,
            size: HEADER_BYTES as u32 + body_bytes,
            view: self.view,
            command: COMMAND_REPLY,
            replica: self.replica,
            request_checksum: self.request_checksum,
            context: self.context,
            client: self.client,
            op: self.op,
            commit: self.commit,
            timestamp: self.timestamp,
            request: self.request,
            operation: self.operation as u8,
            ..ReplyHeader::zeroed()
        }
    }

    /// Success without a payload: a result section where the operation has one.
    pub fn empty(&self) -> Bytes {
        self.success_with(|_| ())
    }

    /// Success with a payload, behind a result section where the operation has one.
    pub fn success<'a>(&self, payload: &impl Wire<'a>) -> Bytes {
        self.success_with(|out| payload.write(out))
    }

    /// As [`Reply::success`], with the payload appended by `fill`.
    pub fn success_with(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut out = vec![0; HEADER_BYTES];
        if self.operation.is_result_framed() {
            out.extend_from_slice(&RESULT_SUCCESS);
        }
        fill(&mut out);
        // A sign-in's body is result-framed when it is not empty.
        if self.operation == Operation::Register && out.len() > HEADER_BYTES {
            out.splice(HEADER_BYTES..HEADER_BYTES, RESULT_SUCCESS);
        }
        self.finish(out)
    }

    // spec ANS-8
    /// A rejection in the result section where the operation has one (sign-in included), else a
    /// status.
    pub fn rejected(&self, code: ErrorCode) -> Bytes {
        if !self.operation.is_result_framed() && self.operation != Operation::Register {
            return self.denied(code);
        }
        let mut out = vec![0; HEADER_BYTES];
        out.extend_from_slice(&1u32.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&code.code().to_le_bytes());
        self.finish(out)
    }

    // spec ANS-8
    /// A refusal before the log had a say (57, 58, 59): in the result section where the operation
    /// has one, with the commit position as op; else a status.
    pub fn refused(&self, code: ErrorCode) -> Bytes {
        let op = self.commit;
        Reply { op, ..*self }.rejected(code)
    }

    /// A refusal as a status with an empty body; no op stands behind it.
    pub fn denied(&self, code: ErrorCode) -> Bytes {
        let header = ReplyHeader {
            op: 0,
            status: code.code(),
            ..self.header(0)
        };
        Bytes::copy_from_slice(header.as_bytes())
    }

    fn finish(&self, mut out: Vec<u8>) -> Bytes {
        let body_bytes = u32::try_from(out.len() - HEADER_BYTES)
            .expect("a reply is assembled below the frame limit");
        out[..HEADER_BYTES].copy_from_slice(self.header(body_bytes).as_bytes());
        Bytes::from(out)
    }
}

/// An eviction frame. `client` must not be 0; pass any non-zero number where none is known.
/// Reason 14 carries the window of accepted protocol versions.
pub fn eviction(client: u128, reason: EvictionReason) -> Bytes {
    assert!(client != 0, "an eviction names a client");
    let window = match reason {
        EvictionReason::IncompatibleProtocol => (PROTOCOL_VERSION, PROTOCOL_VERSION_MIN),
        _ => (0, 0),
    };
    let header = EvictionHeader {
        size: HEADER_BYTES as u32,
        command: COMMAND_EVICTION,
        client,
        protocol_version_max: window.0,
        protocol_version_min: window.1,
        reason: reason as u8,
        ..EvictionHeader::zeroed()
    };
    Bytes::copy_from_slice(header.as_bytes())
}

/// An answer as a client reads it.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer<'a> {
    /// The payload behind header and result section.
    Payload(ReplyHeader, &'a [u8]),
    /// A refusal from the status or from the result section: its number, since a client may meet
    /// codes of a newer server.
    Refused(ReplyHeader, u32),
    /// The session ended.
    Evicted(EvictionHeader),
}

/// Why bytes are not an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AnswerError {
    /// Header or body are shorter than announced, or the size is below the header's.
    #[error("an answer of {size} bytes is announced, {at_hand} are at hand")]
    Size {
        /// Bytes announced.
        size: usize,
        /// Bytes at hand.
        at_hand: usize,
    },
    /// Neither a reply nor an eviction.
    #[error("command {0} is not an answer")]
    Command(u8),
    /// The operation is not listed.
    #[error("operation {0} is not known")]
    Operation(u8),
    /// The result section is malformed.
    #[error("result section: {0}")]
    Result(WireError),
}

impl<'a> Answer<'a> {
    /// Reads a whole answer frame in the order that published clients do.
    pub fn decode(frame: &'a [u8]) -> Result<Answer<'a>, AnswerError> {
        let at_hand = frame.len();
        let Some(head) = frame.first_chunk::<HEADER_BYTES>() else {
            let size = HEADER_BYTES;
            return Err(AnswerError::Size { size, at_hand });
        };
        let header = ReplyHeader::from_bytes(head);
        let size = header.size as usize;
        if size != at_hand {
            return Err(AnswerError::Size { size, at_hand });
        }
        match header.command {
            COMMAND_EVICTION => return Ok(Answer::Evicted(EvictionHeader::from_bytes(head))),
            COMMAND_REPLY => (),
            command => return Err(AnswerError::Command(command)),
        }
        if header.status != 0 {
            return Ok(Answer::Refused(header, header.status));
        }
        let Some(operation) = Operation::from_u8(header.operation) else {
            return Err(AnswerError::Operation(header.operation));
        };
        let body = &frame[HEADER_BYTES..];
        let framed =
            operation.is_result_framed() || (operation == Operation::Register && !body.is_empty());
        if !framed {
            return Ok(Answer::Payload(header, body));
        }
        let mut reader = Reader::new(body);
        match result_code(&mut reader).map_err(AnswerError::Result)? {
            Some(code) => Ok(Answer::Refused(header, code)),
            None => Ok(Answer::Payload(header, reader.rest())),
        }
    }
}

/// Reads a result section: `None` is success.
fn result_code(reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    if u32::read(reader)? == 0 {
        return Ok(None);
    }
    u32::read(reader)?;
    Ok(Some(u32::read(reader)?))
}

#[cfg(test)]
#[path = "reply_test.rs"]
mod tests;
