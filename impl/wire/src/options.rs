//! TLV entries: option blocks of requests and replies, and the user headers of a message.
//!
//! An entry is `[kind u8][len u32][bytes]` for the key and the same for the value, lengths 1..255.
//! Kind 0 is malformed, unknown kinds are carried unchanged. In an option block keys are unique
//! text (kind 2), at most 1,024 entries in 100,000 bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::primitives::{Reader, Wire, WireError, write_block32};

/// Most entries of an option block.
pub const OPTIONS_COUNT_MAX: usize = 1024;

/// Most bytes of an option block.
pub const OPTIONS_BYTES_MAX: usize = 100_000;

/// Fewest bytes of an entry: two kinds, two lengths, a byte each.
const ENTRY_BYTES_MIN: usize = 12;

/// Kinds of a TLV key or value.
#[allow(missing_docs, reason = "the names are the types")]
pub mod kind {
    pub const RAW: u8 = 1;
    pub const STRING: u8 = 2;
    pub const BOOL: u8 = 3;
    pub const I8: u8 = 4;
    pub const I16: u8 = 5;
    pub const I32: u8 = 6;
    pub const I64: u8 = 7;
    pub const I128: u8 = 8;
    pub const U8: u8 = 9;
    pub const U16: u8 = 10;
    pub const U32: u8 = 11;
    pub const U64: u8 = 12;
    pub const U128: u8 = 13;
    pub const F32: u8 = 14;
    pub const F64: u8 = 15;
}

/// A key or a value: a kind and 1 to 255 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tlv<'a> {
    /// The type of the bytes; see [`kind`].
    pub kind: u8,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// Text.
    pub const fn text(text: &'a str) -> Tlv<'a> {
        Tlv {
            kind: kind::STRING,
            bytes: text.as_bytes(),
        }
    }

    /// The text, if the kind says so and it is UTF-8.
    pub fn as_text(&self) -> Option<&'a str> {
        match self.kind {
            kind::STRING => std::str::from_utf8(self.bytes).ok(),
            _ => None,
        }
    }
}

impl<'a> Wire<'a> for Tlv<'a> {
    const BYTES_MIN: usize = ENTRY_BYTES_MIN / 2;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        const FIELD: &str = "a header or option";
        let kind = u8::read(reader)?;
        if kind == 0 {
            return Err(WireError::Kind { field: FIELD, kind });
        }
        let bytes = u32::read(reader)? as usize;
        if !(1..=255).contains(&bytes) {
            return Err(WireError::Length {
                field: FIELD,
                bytes,
            });
        }
        Ok(Tlv {
            kind,
            bytes: reader.take(bytes)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        assert!(self.kind != 0, "kind 0 is not written");
        assert!(!self.bytes.is_empty(), "a key or value is not empty");
        assert!(
            self.bytes.len() <= 255,
            "a key or value has at most 255 bytes"
        );
        out.push(self.kind);
        (self.bytes.len() as u32).write(out);
        out.extend_from_slice(self.bytes);
    }
}

/// The user headers of a message: entries in the order of the client.
#[derive(Clone, Copy, Debug)]
pub struct UserHeaders<'a> {
    reader: Reader<'a>,
}

impl<'a> UserHeaders<'a> {
    /// Walks the headers in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> UserHeaders<'a> {
        UserHeaders {
            reader: Reader::new(bytes),
        }
    }
}

impl<'a> Iterator for UserHeaders<'a> {
    type Item = Result<(Tlv<'a>, Tlv<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let entry = self.reader.read().and_then(|key| {
            let value = self.reader.read()?;
            Ok((key, value))
        });
        if entry.is_err() {
            // What follows a malformed entry has no meaning.
            self.reader.rest();
        }
        Some(entry)
    }
}

/// A checked option block that runs to the end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Options<'a> {
    /// The block without entries.
    pub const EMPTY: Options<'static> = Options { bytes: &[] };

    /// Checks every entry of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Options<'a>, WireError> {
        const FIELD: &str = "an option block";
        if bytes.len() > OPTIONS_BYTES_MAX {
            return Err(WireError::Length {
                field: FIELD,
                bytes: bytes.len(),
            });
        }
        let mut keys = BTreeSet::new();
        for entry in UserHeaders::new(bytes) {
            let (key, _) = entry?;
            if key.kind != kind::STRING {
                return Err(WireError::Kind {
                    field: "an option's key",
                    kind: key.kind,
                });
            }
            let key = key.as_text().ok_or(WireError::Utf8("an option's key"))?;
            if !keys.insert(key) {
                return Err(WireError::Duplicate("an option's key"));
            }
            if keys.len() > OPTIONS_COUNT_MAX {
                return Err(WireError::Count {
                    field: FIELD,
                    count: keys.len(),
                });
            }
        }
        Ok(Options { bytes })
    }

    /// The entries in the order of the block.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Tlv<'a>)> + use<'a> {
        UserHeaders::new(self.bytes).map(|entry| {
            let (key, value) = entry.expect("the block was checked when it was made");
            let key = key.as_text().expect("keys were checked to be text");
            (key, value)
        })
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The block's bytes.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Wire<'a> for Options<'a> {
    const BYTES_MIN: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Options::new(reader.rest())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
    }
}

/// An option block of a reply: as [`Options`], with a four-byte length in front.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct OptionsBlock<'a>(pub Options<'a>);

impl<'a> Wire<'a> for OptionsBlock<'a> {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let bytes = u32::read(reader)? as usize;
        Ok(OptionsBlock(Options::new(reader.take(bytes)?)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_block32(out, |out| self.0.write(out));
    }
}

/// A value that is kept: kind and bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OptionValue {
    /// The type of the bytes; see [`kind`].
    pub kind: u8,
    /// 1 to 255 bytes.
    pub bytes: Box<[u8]>,
}

impl OptionValue {
    /// Text; must not be empty.
    pub fn text(text: &str) -> OptionValue {
        OptionValue {
            kind: kind::STRING,
            bytes: text.as_bytes().into(),
        }
    }

    /// A truth value.
    pub fn bool(value: bool) -> OptionValue {
        OptionValue {
            kind: kind::BOOL,
            bytes: [value as u8].into(),
        }
    }

    /// A number of four bytes.
    pub fn u32(value: u32) -> OptionValue {
        OptionValue {
            kind: kind::U32,
            bytes: value.to_le_bytes().into(),
        }
    }

    /// A number of eight bytes.
    pub fn u64(value: u64) -> OptionValue {
        OptionValue {
            kind: kind::U64,
            bytes: value.to_le_bytes().into(),
        }
    }

    /// The value as it stands on the wire.
    pub fn as_tlv(&self) -> Tlv<'_> {
        Tlv {
            kind: self.kind,
            bytes: &self.bytes,
        }
    }
}

impl From<Tlv<'_>> for OptionValue {
    fn from(tlv: Tlv<'_>) -> OptionValue {
        OptionValue {
            kind: tlv.kind,
            bytes: tlv.bytes.into(),
        }
    }
}

/// An option block that is kept: sorted by key, as the server writes it.
pub type OptionMap = BTreeMap<Box<str>, OptionValue>;

/// The bytes of a kept block, sorted by key, without a length in front.
pub fn encode_options(map: &OptionMap) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in map {
        Tlv::text(key).write(&mut out);
        value.as_tlv().write(&mut out);
    }
    out
}

/// The kept form of a checked block.
pub fn keep_options(options: &Options<'_>) -> OptionMap {
    options
        .iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

#[cfg(test)]
#[path = "options_test.rs"]
mod tests;
