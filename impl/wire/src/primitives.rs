//! Reading and writing of the dialect's smallest parts: numbers, names, identifiers, flags.
//!
//! Invariants:
//! 1. A [`Reader`] never passes the end of its bytes, and every length is compared with what is
//!    left before anything is taken or allocated.
//! 2. A value that was read can be written again; [`Wire::write`] asserts the limits that
//!    [`Wire::read`] enforces, since only our own code can break them there.

use std::fmt;

use crate::layout::{record, wire_enum};

/// Why bytes are not what they claim to be. All of them are answered with error 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A field reaches past the end of the bytes.
    #[error("{needed} bytes are needed where {left} are left")]
    Truncated {
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A kind byte has no meaning.
    #[error("{kind} is not a kind of {field}")]
    Kind {
        /// What was read.
        field: &'static str,
        /// The byte.
        kind: u8,
    },
    /// A length is outside the bounds of its field.
    #[error("{bytes} bytes are not a length of {field}")]
    Length {
        /// What was read.
        field: &'static str,
        /// The length claimed.
        bytes: usize,
    },
    /// Text is not UTF-8.
    #[error("{0} is not UTF-8")]
    Utf8(&'static str),
    /// A count is more than the bytes at hand could hold, or above its limit.
    #[error("{count} is not a possible number of {field}")]
    Count {
        /// What is counted.
        field: &'static str,
        /// The count claimed.
        count: usize,
    },
    /// A key or an id stands twice where it must be unique.
    #[error("{0} stands twice")]
    Duplicate(&'static str),
}

/// A cursor over bytes that came from outside.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    /// Bytes before the cursor.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Bytes behind the cursor.
    pub const fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let rest = &self.bytes[self.position..];
        let Some(taken) = rest.get(..count) else {
            return Err(WireError::Truncated {
                needed: count,
                left: rest.len(),
            });
        };
        self.position += count;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("take returned exactly N bytes"))
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.position..];
        self.position = self.bytes.len();
        rest
    }

    /// The next value of type `T`.
    pub fn read<T: Wire<'a>>(&mut self) -> Result<T, WireError> {
        T::read(self)
    }

    /// Values of type `T` until the end of the bytes.
    pub fn read_to_end<T: Wire<'a>>(&mut self) -> Result<Vec<T>, WireError> {
        let mut values = Vec::new();
        while !self.is_empty() {
            let left = self.left();
            values.push(T::read(self)?);
            assert!(self.left() < left, "a value that is repeated takes bytes");
        }
        Ok(values)
    }

    /// `count` values of type `T`. The count is compared with the bytes at hand before memory
    /// follows it.
    pub fn read_counted<T: Wire<'a>>(
        &mut self,
        field: &'static str,
        count: u32,
    ) -> Result<Vec<T>, WireError> {
        const { assert!(T::BYTES_MIN > 0, "a value that is counted takes bytes") };
        let count = count as usize;
        if count > self.left() / T::BYTES_MIN {
            return Err(WireError::Count { field, count });
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(T::read(self)?);
        }
        Ok(values)
    }
}

/// A value with a byte layout.
pub trait Wire<'a>: Sized {
    /// The fewest bytes that a value takes: bounds what a count may claim.
    const BYTES_MIN: usize;

    /// Takes the value from the reader.
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError>;

    /// Appends the value's bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// The value at the start of `bytes`; trailing bytes are ignored, as the dialect asks.
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// The value's bytes.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

macro_rules! wire_number {
    ($($number:ty),*) => {$(
        impl<'a> Wire<'a> for $number {
            const BYTES_MIN: usize = size_of::<$number>();

            fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
                Ok(<$number>::from_le_bytes(reader.array()?))
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

wire_number!(u8, u16, u32, u64, u128, f32);

/// Booleans are one byte, non-zero is true.
impl<'a> Wire<'a> for bool {
    const BYTES_MIN: usize = 1;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(u8::read(reader)? != 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
}

record! {
    /// A body without content.
    #[derive(Copy, Eq, Default)]
    pub struct Empty {}
}

fn read_text8<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    bytes_min: usize,
) -> Result<&'a str, WireError> {
    let bytes = u8::read(reader)? as usize;
    if bytes < bytes_min {
        return Err(WireError::Length { field, bytes });
    }
    std::str::from_utf8(reader.take(bytes)?).map_err(|_| WireError::Utf8(field))
}

fn write_text8(text: &str, out: &mut Vec<u8>) {
    let bytes = u8::try_from(text.len()).expect("text with a one-byte length has at most 255");
    out.push(bytes);
    out.extend_from_slice(text.as_bytes());
}

/// A name: 1 to 255 bytes of UTF-8 with a one-byte length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// The name, unless it is empty or longer than 255 bytes.
    pub fn new(text: &'a str) -> Result<Name<'a>, WireError> {
        if text.is_empty() || text.len() > 255 {
            return Err(WireError::Length {
                field: "a name",
                bytes: text.len(),
            });
        }
        Ok(Name(text))
    }

    /// The text.
    pub const fn as_str(&self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

impl<'a> Wire<'a> for Name<'a> {
    const BYTES_MIN: usize = 2;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Name(read_text8(reader, "a name", 1)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        assert!(!self.0.is_empty(), "a name is not empty");
        write_text8(self.0, out);
    }
}

/// A secret: up to 255 bytes of UTF-8 with a one-byte length. It does not print itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<'a>(pub &'a str);

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl<'a> Wire<'a> for Secret<'a> {
    const BYTES_MIN: usize = 1;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Secret(read_text8(reader, "a secret", 0)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_text8(self.0, out);
    }
}

/// Text with a four-byte length; it may be empty.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Text32<'a>(pub &'a str);

impl<'a> Wire<'a> for Text32<'a> {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let bytes = u32::read(reader)? as usize;
        let text = reader.take(bytes)?;
        Ok(Text32(
            std::str::from_utf8(text).map_err(|_| WireError::Utf8("text"))?,
        ))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_block32(out, |out| out.extend_from_slice(self.0.as_bytes()));
    }
}

/// Appends a block with a four-byte length in front.
pub(crate) fn write_block32(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let bytes = u32::try_from(out.len() - start - 4).expect("a block is shorter than 4 GiB");
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
}

/// Names a stream, topic, user or group by number or by name. A name of digits is a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Identifier<'a> {
    /// The visible number; 0 is valid.
    Numeric(u32),
    /// The exact name.
    Named(Name<'a>),
}

impl<'a> Identifier<'a> {
    /// The identifier of this name.
    pub fn named(name: &'a str) -> Result<Identifier<'a>, WireError> {
        Ok(Identifier::Named(Name::new(name)?))
    }
}

impl<'a> Wire<'a> for Identifier<'a> {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        const FIELD: &str = "an identifier";
        match u8::read(reader)? {
            1 => match u8::read(reader)? {
                4 => Ok(Identifier::Numeric(u32::read(reader)?)),
                bytes => Err(WireError::Length {
                    field: FIELD,
                    bytes: bytes as usize,
                }),
            },
            2 => Ok(Identifier::Named(Name(read_text8(reader, FIELD, 1)?))),
            kind => Err(WireError::Kind { field: FIELD, kind }),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Identifier::Numeric(id) => {
                out.extend_from_slice(&[1, 4]);
                id.write(out);
            }
            Identifier::Named(name) => {
                out.push(2);
                name.write(out);
            }
        }
    }
}

/// Who reads: the key under which offsets are stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Consumer<'a> {
    /// A plain consumer.
    Plain(Identifier<'a>),
    /// A consumer group.
    Group(Identifier<'a>),
}

impl<'a> Consumer<'a> {
    /// Whether it is a plain consumer or a group.
    pub const fn kind(&self) -> ConsumerKind {
        match self {
            Consumer::Plain(_) => ConsumerKind::Plain,
            Consumer::Group(_) => ConsumerKind::Group,
        }
    }

    /// The consumer's or the group's identifier.
    pub const fn identifier(&self) -> Identifier<'a> {
        match self {
            Consumer::Plain(identifier) | Consumer::Group(identifier) => *identifier,
        }
    }

    /// The number under which a plain consumer's offsets are kept: its number, or XXH32 of its
    /// name. A group's key is its id, which only the catalog knows.
    pub fn plain_key(&self) -> Option<u32> {
        match self {
            Consumer::Plain(Identifier::Numeric(id)) => Some(*id),
            Consumer::Plain(Identifier::Named(name)) => {
                Some(xxhash_rust::xxh32::xxh32(name.as_str().as_bytes(), 0))
            }
            Consumer::Group(_) => None,
        }
    }
}

impl<'a> Wire<'a> for Consumer<'a> {
    const BYTES_MIN: usize = 1 + Identifier::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(match ConsumerKind::read(reader)? {
            ConsumerKind::Plain => Consumer::Plain(Identifier::read(reader)?),
            ConsumerKind::Group => Consumer::Group(Identifier::read(reader)?),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind() as u8);
        self.identifier().write(out);
    }
}

/// How the partition of a send is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Partitioning<'a> {
    /// The server's round robin.
    Balanced,
    /// This partition.
    Partition(u32),
    /// By the hash of a key of 1 to 255 bytes.
    Key(&'a [u8]),
}

impl Partitioning<'_> {
    /// The partition that a key selects among `partitions`; `None` for the other two, or without
    /// partitions.
    pub fn key_partition(&self, partitions: u32) -> Option<u32> {
        match self {
            Partitioning::Key(key) if partitions > 0 => {
                Some(xxhash_rust::xxh32::xxh32(key, 0) % partitions)
            }
            _ => None,
        }
    }
}

impl<'a> Wire<'a> for Partitioning<'a> {
    const BYTES_MIN: usize = 2;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let kind = u8::read(reader)?;
        let bytes = u8::read(reader)? as usize;
        match (kind, bytes) {
            (1, 0) => Ok(Partitioning::Balanced),
            (2, 4) => Ok(Partitioning::Partition(u32::read(reader)?)),
            (3, 1..) => Ok(Partitioning::Key(reader.take(bytes)?)),
            (1..=3, _) => Err(WireError::Length {
                field: "a partitioning",
                bytes,
            }),
            _ => Err(WireError::Kind {
                field: "a partitioning",
                kind,
            }),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Partitioning::Balanced => out.extend_from_slice(&[1, 0]),
            Partitioning::Partition(id) => {
                out.extend_from_slice(&[2, 4]);
                id.write(out);
            }
            Partitioning::Key(key) => {
                assert!(!key.is_empty(), "a key is not empty");
                out.push(3);
                out.push(u8::try_from(key.len()).expect("a key has at most 255 bytes"));
                out.extend_from_slice(key);
            }
        }
    }
}

/// Where a poll starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PollingStrategy {
    /// At this offset.
    Offset(u64),
    /// At the first message appended at or after this time, µs.
    Timestamp(u64),
    /// At the lowest retained message.
    First,
    /// So that the reply ends with the newest message.
    Last,
    /// After the stored offset.
    Next,
}

impl<'a> Wire<'a> for PollingStrategy {
    const BYTES_MIN: usize = 9;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let kind = u8::read(reader)?;
        let value = u64::read(reader)?;
        match kind {
            1 => Ok(PollingStrategy::Offset(value)),
            2 => Ok(PollingStrategy::Timestamp(value)),
            3 => Ok(PollingStrategy::First),
            4 => Ok(PollingStrategy::Last),
            5 => Ok(PollingStrategy::Next),
            kind => Err(WireError::Kind {
                field: "a polling strategy",
                kind,
            }),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, value) = match *self {
            PollingStrategy::Offset(offset) => (1, offset),
            PollingStrategy::Timestamp(timestamp) => (2, timestamp),
            PollingStrategy::First => (3, 0),
            PollingStrategy::Last => (4, 0),
            PollingStrategy::Next => (5, 0),
        };
        out.push(kind);
        u64::write(&value, out);
    }
}

wire_enum! {
    /// What an offset write waits for. Writes are logged either way.
    pub enum AckLevel: "an ack level" {
        /// No acknowledgement.
        None = 0,
        /// A quorum.
        Quorum = 1,
    }

    /// The kind byte of a consumer.
    pub enum ConsumerKind: "a consumer" {
        /// A plain consumer.
        Plain = 1,
        /// A consumer group.
        Group = 2,
    }
}

/// A partition that may be absent: `[flag u8][id u32]`, present only when the flag is exactly 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptionalPartition(pub Option<u32>);

impl<'a> Wire<'a> for OptionalPartition {
    const BYTES_MIN: usize = 5;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let flag = u8::read(reader)?;
        let id = u32::read(reader)?;
        Ok(OptionalPartition((flag == 1).then_some(id)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0.is_some() as u8);
        self.0.unwrap_or(0).write(out);
    }
}

/// A value that is there only when the flag in front of it is exactly 1.
impl<'a, T: Wire<'a>> Wire<'a> for Option<T> {
    const BYTES_MIN: usize = 1;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        match u8::read(reader)? {
            1 => Ok(Some(T::read(reader)?)),
            _ => Ok(None),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.is_some() as u8);
        if let Some(value) = self {
            value.write(out);
        }
    }
}

/// Values until the end of the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToEnd<T>(pub Vec<T>);

impl<'a, T: Wire<'a>> Wire<'a> for ToEnd<T> {
    const BYTES_MIN: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(ToEnd(reader.read_to_end()?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|value| value.write(out));
    }
}

/// A list with a four-byte count in front.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List<T>(pub Vec<T>);

impl<'a, T: Wire<'a>> Wire<'a> for List<T> {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = u32::read(reader)?;
        Ok(List(reader.read_counted("the entries of a list", count)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        count_u32(self.0.len()).write(out);
        self.0.iter().for_each(|value| value.write(out));
    }
}

/// The count of a list that we write.
pub(crate) fn count_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a list on the wire has less than 2^32 entries")
}

/// A value, or an empty body where there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrEmpty<T>(pub Option<T>);

impl<'a, T: Wire<'a>> Wire<'a> for OrEmpty<T> {
    const BYTES_MIN: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        match reader.is_empty() {
            true => Ok(OrEmpty(None)),
            false => Ok(OrEmpty(Some(T::read(reader)?))),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(value) = &self.0 {
            value.write(out);
        }
    }
}

/// All bytes until the end of the body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Raw<'a>(pub &'a [u8]);

impl<'a> Wire<'a> for Raw<'a> {
    const BYTES_MIN: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Raw(reader.rest()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

/// Bytes with a four-byte length in front.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bytes32<'a>(pub &'a [u8]);

impl<'a> Wire<'a> for Bytes32<'a> {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let bytes = u32::read(reader)? as usize;
        Ok(Bytes32(reader.take(bytes)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_block32(out, |out| out.extend_from_slice(self.0));
    }
}
