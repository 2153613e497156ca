//! The 64 bytes of arguments in a log entry's header: what the gateway resolved from the body, so
//! that apply decides without the body.
//!
//! Unused bytes are zero and refused when not.

use crate::entry::EntryHeader;
use crate::ids::{PartitionId, PartitionUid, StreamId, Timestamp, TopicId};
use crate::primitives::ConsumerKind;

/// Bytes of an entry's arguments.
pub const ARGUMENTS_BYTES: usize = 64;

const _: () = assert!(size_of_val(&EntryHeader::ARGUMENTS_ZERO) == ARGUMENTS_BYTES);

impl EntryHeader {
    /// The arguments of kinds that have none.
    pub const ARGUMENTS_ZERO: [u8; ARGUMENTS_BYTES] = [0; ARGUMENTS_BYTES];
}

/// Why bytes are not the arguments of their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// A byte that must be zero is not.
    #[error("a reserved byte of the entry's arguments is not zero")]
    Reserved,
    /// The consumer kind is neither 1 nor 2.
    #[error("{0} is not a consumer kind")]
    ConsumerKind(u8),
}

/// Where a value stands in the arguments.
fn put(bytes: &mut [u8; ARGUMENTS_BYTES], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn take<const N: usize>(bytes: &[u8; ARGUMENTS_BYTES], offset: usize) -> [u8; N] {
    let field = &bytes[offset..offset + N];
    field.try_into().expect("the slice has N bytes")
}

fn zero(bytes: &[u8]) -> Result<(), ArgumentsError> {
    match bytes.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(ArgumentsError::Reserved),
    }
}

/// Arguments of a send.
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 0 | 8 | partition uid |
/// | 8 | 4 | message count |
/// | 12 | 4 | stream |
/// | 16 | 4 | topic |
/// | 20 | 4 | partition |
/// | 24 | 8 | batch length |
/// | 32 | 4 | batch position: where in the body the batch header starts |
/// | 36 | 4 | reserved, zero |
/// | 40 | 8 | origin timestamp of the batch |
/// | 48 | 16 | reserved, zero |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the table above says what each field is")]
pub struct SendMessagesArguments {
    pub partition_uid: PartitionUid,
    pub message_count: u32,
    pub stream: StreamId,
    pub topic: TopicId,
    pub partition: PartitionId,
    pub batch_length: u64,
    pub batch_position: u32,
    pub origin_timestamp: Timestamp,
}

impl SendMessagesArguments {
    /// The 64 bytes.
    pub fn encode(&self) -> [u8; ARGUMENTS_BYTES] {
        let mut bytes = [0; ARGUMENTS_BYTES];
        put(&mut bytes, 0, &self.partition_uid.0.to_le_bytes());
        put(&mut bytes, 8, &self.message_count.to_le_bytes());
        put(&mut bytes, 12, &self.stream.0.to_le_bytes());
        put(&mut bytes, 16, &self.topic.0.to_le_bytes());
        put(&mut bytes, 20, &self.partition.0.to_le_bytes());
        put(&mut bytes, 24, &self.batch_length.to_le_bytes());
        put(&mut bytes, 32, &self.batch_position.to_le_bytes());
        put(&mut bytes, 40, &self.origin_timestamp.0.to_le_bytes());
        bytes
    }

    /// The arguments in these bytes.
    pub fn decode(bytes: &[u8; ARGUMENTS_BYTES]) -> Result<Self, ArgumentsError> {
        zero(&bytes[36..40])?;
        zero(&bytes[48..])?;
        Ok(SendMessagesArguments {
            partition_uid: PartitionUid(u64::from_le_bytes(take(bytes, 0))),
            message_count: u32::from_le_bytes(take(bytes, 8)),
            stream: StreamId(u32::from_le_bytes(take(bytes, 12))),
            topic: TopicId(u32::from_le_bytes(take(bytes, 16))),
            partition: PartitionId(u32::from_le_bytes(take(bytes, 20))),
            batch_length: u64::from_le_bytes(take(bytes, 24)),
            batch_position: u32::from_le_bytes(take(bytes, 32)),
            origin_timestamp: Timestamp(u64::from_le_bytes(take(bytes, 40))),
        })
    }
}

/// Arguments of storing or deleting an offset.
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 0 | 8 | partition uid |
/// | 8 | 4 | stream |
/// | 12 | 4 | topic |
/// | 16 | 4 | partition |
/// | 20 | 1 | consumer kind: 1 plain, 2 group |
/// | 21 | 3 | reserved, zero |
/// | 24 | 4 | consumer key: number, XXH32 of the name, or group id |
/// | 28 | 4 | reserved, zero |
/// | 32 | 8 | offset; 0 when deleting |
/// | 40 | 24 | reserved, zero |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the table above says what each field is")]
pub struct OffsetArguments {
    pub partition_uid: PartitionUid,
    pub stream: StreamId,
    pub topic: TopicId,
    pub partition: PartitionId,
    pub consumer_kind: ConsumerKind,
    pub consumer_key: u32,
    pub offset: u64,
}

impl OffsetArguments {
    /// The 64 bytes.
    pub fn encode(&self) -> [u8; ARGUMENTS_BYTES] {
        let mut bytes = [0; ARGUMENTS_BYTES];
        put(&mut bytes, 0, &self.partition_uid.0.to_le_bytes());
        put(&mut bytes, 8, &self.stream.0.to_le_bytes());
        put(&mut bytes, 12, &self.topic.0.to_le_bytes());
        put(&mut bytes, 16, &self.partition.0.to_le_bytes());
        bytes[20] = self.consumer_kind as u8;
        put(&mut bytes, 24, &self.consumer_key.to_le_bytes());
        put(&mut bytes, 32, &self.offset.to_le_bytes());
        bytes
    }

    /// The arguments in these bytes.
    pub fn decode(bytes: &[u8; ARGUMENTS_BYTES]) -> Result<Self, ArgumentsError> {
        zero(&bytes[21..24])?;
        zero(&bytes[28..32])?;
        zero(&bytes[40..])?;
        let kind = bytes[20];
        Ok(OffsetArguments {
            partition_uid: PartitionUid(u64::from_le_bytes(take(bytes, 0))),
            stream: StreamId(u32::from_le_bytes(take(bytes, 8))),
            topic: TopicId(u32::from_le_bytes(take(bytes, 12))),
            partition: PartitionId(u32::from_le_bytes(take(bytes, 16))),
            consumer_kind: ConsumerKind::from_u8(kind).ok_or(ArgumentsError::ConsumerKind(kind))?,
            consumer_key: u32::from_le_bytes(take(bytes, 24)),
            offset: u64::from_le_bytes(take(bytes, 32)),
        })
    }
}

/// Arguments of a sign-in.
///
/// | off | bytes | field |
/// | --- | --- | --- |
/// | 0 | 8 | credential version of the user when the password was checked |
/// | 8 | 16 | stamp: node, boot, connection, attempt; an equal stamp is the same sign-in |
/// | 24 | 40 | reserved, zero |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the table above says what each field is")]
pub struct RegisterArguments {
    pub credential_version: u64,
    pub stamp: u128,
}

impl RegisterArguments {
    /// The 64 bytes.
    pub fn encode(&self) -> [u8; ARGUMENTS_BYTES] {
        let mut bytes = [0; ARGUMENTS_BYTES];
        put(&mut bytes, 0, &self.credential_version.to_le_bytes());
        put(&mut bytes, 8, &self.stamp.to_le_bytes());
        bytes
    }

    /// The arguments in these bytes.
    pub fn decode(bytes: &[u8; ARGUMENTS_BYTES]) -> Result<Self, ArgumentsError> {
        zero(&bytes[24..])?;
        Ok(RegisterArguments {
            credential_version: u64::from_le_bytes(take(bytes, 0)),
            stamp: u128::from_le_bytes(take(bytes, 8)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send() -> SendMessagesArguments {
        SendMessagesArguments {
            partition_uid: PartitionUid(0x0102_0304_0506_0708),
            message_count: 0x1112_1314,
            stream: StreamId(0x2122_2324),
            topic: TopicId(0x3132_3334),
            partition: PartitionId(0x4142_4344),
            batch_length: 0x5152_5354_5556_5758,
            batch_position: 0x6162_6364,
            origin_timestamp: Timestamp(0x7172_7374_7576_7778),
        }
    }

    fn offset() -> OffsetArguments {
        OffsetArguments {
            partition_uid: PartitionUid(1),
            stream: StreamId(2),
            topic: TopicId(3),
            partition: PartitionId(4),
            consumer_kind: ConsumerKind::Group,
            consumer_key: 5,
            offset: 6,
        }
    }

    #[test]
    fn arguments_round_trip() {
        assert_eq!(SendMessagesArguments::decode(&send().encode()), Ok(send()));
        assert_eq!(OffsetArguments::decode(&offset().encode()), Ok(offset()));
        let register = RegisterArguments {
            credential_version: 7,
            stamp: u128::MAX - 8,
        };
        assert_eq!(RegisterArguments::decode(&register.encode()), Ok(register));
    }

    #[test]
    fn every_reserved_byte_is_refused() {
        let refused = Err(ArgumentsError::Reserved);
        for at in (36..40).chain(48..64) {
            let mut bytes = send().encode();
            bytes[at] = 1;
            assert_eq!(SendMessagesArguments::decode(&bytes).map(|_| ()), refused);
        }
        for at in (21..24).chain(28..32).chain(40..64) {
            let mut bytes = offset().encode();
            bytes[at] = 1;
            assert_eq!(OffsetArguments::decode(&bytes).map(|_| ()), refused);
        }
        for at in 24..64 {
            let mut bytes = [0; ARGUMENTS_BYTES];
            bytes[at] = 1;
            assert_eq!(RegisterArguments::decode(&bytes).map(|_| ()), refused);
        }
    }

    #[test]
    fn unknown_consumer_kinds_are_refused() {
        for kind in (0..=255).filter(|kind| !matches!(kind, 1 | 2)) {
            let mut bytes = offset().encode();
            bytes[20] = kind;
            let refused = Err(ArgumentsError::ConsumerKind(kind));
            assert_eq!(OffsetArguments::decode(&bytes), refused);
        }
    }
}
