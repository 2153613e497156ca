//! Random values of every layout, for the property tests. Records and enums generate themselves
//! (see `layout`), so a new command is covered as soon as it is in the table.

use std::collections::BTreeMap;

use crate::batch_client::{Message, write_batch};
use crate::commands::groups::GroupDetails;
use crate::commands::messages::{SendMessages, SendReply};
use crate::commands::streams::{Stream, StreamDetails};
use crate::commands::system::{ClientDetails, GetSnapshot};
use crate::commands::topics::{TopicDetails, TopicHeader};
use crate::options::{OptionMap, OptionValue, Options, OptionsBlock, encode_options};
use crate::permissions::{Permissions, PermissionsBlock, PermissionsTail, StreamPermissions};
use crate::primitives::{
    Bytes32, Consumer, Identifier, List, Name, OptionalPartition, OrEmpty, Partitioning,
    PollingStrategy, Raw, Secret, Text32, ToEnd,
};

/// Text of one, two, three and four bytes a character.
const TEXT: &str = "pawl ratchet Zähne шум 歯車 🦷 the quick brown fox jumps over the lazy dog; \
    0123456789 and once more with feeling, since names reach 255 bytes and a generator that only \
    makes short ones would never meet the limit: abcdefghijklmnopqrstuvwxyz0123456789 done, end.";

/// What generated values borrow from.
pub(crate) struct Pool {
    blocks: Vec<Vec<u8>>,
    batches: Vec<Vec<u8>>,
    raw: Vec<u8>,
}

impl Pool {
    pub(crate) fn new(seed: u64) -> Pool {
        let mut random = Random(seed);
        Pool {
            blocks: (0..4).map(|count| random.options(count)).collect(),
            batches: (1..4).map(|count| random.batch(count)).collect(),
            raw: (0..300).map(|_| random.next() as u8).collect(),
        }
    }
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn options(&mut self, count: usize) -> Vec<u8> {
        let map: OptionMap = (0..count)
            .map(|index| {
                let value = OptionValue {
                    kind: 1 + self.below(255) as u8,
                    bytes: (0..1 + self.below(255))
                        .map(|_| self.next() as u8)
                        .collect(),
                };
                (format!("key {index}").into(), value)
            })
            .collect();
        encode_options(&map)
    }

    fn batch(&mut self, count: usize) -> Vec<u8> {
        let payloads: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                (0..1 + self.below(100))
                    .map(|_| self.next() as u8)
                    .collect()
            })
            .collect();
        let messages: Vec<Message> = payloads
            .iter()
            .map(|payload| Message {
                id: self.next().into(),
                origin_timestamp: 1 + self.next() % 1000,
                payload,
                user_headers: &[],
            })
            .collect();
        let mut out = Vec::new();
        write_batch(&messages, &mut out).expect("the messages are within the limits");
        out
    }
}

/// Draws values.
pub(crate) struct Source<'a> {
    random: Random,
    pool: &'a Pool,
}

impl<'a> Source<'a> {
    pub(crate) fn new(seed: u64, pool: &'a Pool) -> Source<'a> {
        let random = Random(seed ^ 0x5eed);
        Source { random, pool }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.random.next()
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.random.below(end)
    }

    pub(crate) fn generate<T: Generate<'a>>(&mut self) -> T {
        T::generate(self)
    }

    /// Text of `bytes_min` to 255 bytes; short ones and the longest are frequent.
    fn text(&mut self, bytes_min: usize) -> &'static str {
        let wanted = match self.below(4) {
            0 => 255,
            1 => bytes_min,
            _ => self.below(40).max(bytes_min),
        };
        let mut end = wanted.min(TEXT.len());
        while !TEXT.is_char_boundary(end) {
            end -= 1;
        }
        &TEXT[..end]
    }

    fn few<T: Generate<'a>>(&mut self) -> Vec<T> {
        (0..self.below(4)).map(|_| self.generate()).collect()
    }
}

/// A type of which there are random values.
pub(crate) trait Generate<'a> {
    fn generate(source: &mut Source<'a>) -> Self;
}

macro_rules! generate_number {
    ($($number:ty),*) => {$(
        impl<'a> Generate<'a> for $number {
            fn generate(source: &mut Source<'a>) -> Self {
                match source.below(4) {
                    0 => 0,
                    1 => <$number>::MAX,
                    _ => source.next() as $number,
                }
            }
        }
    )*};
}

generate_number!(u8, u16, u32, u64, u128);

macro_rules! generate {
    ($($type:ty: |$source:ident| $value:expr;)*) => {$(
        impl<'a> Generate<'a> for $type {
            fn generate($source: &mut Source<'a>) -> Self {
                $value
            }
        }
    )*};
}

generate! {
    bool: |source| source.below(2) == 1;
    f32: |source| source.below(1 << 20) as f32 / 8.0;
    Name<'a>: |source| Name::new(source.text(1)).expect("the text fits a name");
    Secret<'a>: |source| Secret(source.text(0));
    Text32<'a>: |source| Text32(source.text(0));
    Raw<'a>: |source| Raw(&source.pool.raw[..source.below(300)]);
    Bytes32<'a>: |source| Bytes32(&source.pool.raw[..source.below(300)]);
    OptionalPartition: |source| OptionalPartition(source.generate());
    PermissionsBlock: |source| PermissionsBlock(source.generate());
    PermissionsTail: |source| PermissionsTail(source.generate());
    OptionsBlock<'a>: |source| OptionsBlock(source.generate());
    Identifier<'a>: |source| match source.below(2) {
        0 => Identifier::Numeric(source.generate()),
        _ => Identifier::Named(source.generate()),
    };
    Consumer<'a>: |source| match source.below(2) {
        0 => Consumer::Plain(source.generate()),
        _ => Consumer::Group(source.generate()),
    };
    Partitioning<'a>: |source| match source.below(3) {
        0 => Partitioning::Balanced,
        1 => Partitioning::Partition(source.generate()),
        _ => Partitioning::Key(&source.pool.raw[..1 + source.below(255)]),
    };
    PollingStrategy: |source| match source.below(5) {
        0 => PollingStrategy::Offset(source.generate()),
        1 => PollingStrategy::Timestamp(source.generate()),
        2 => PollingStrategy::First,
        3 => PollingStrategy::Last,
        _ => PollingStrategy::Next,
    };
    Options<'a>: |source| {
        let blocks: &'a [Vec<u8>] = &source.pool.blocks;
        let block = &blocks[source.below(blocks.len())];
        Options::new(block).expect("our own block is well formed")
    };
    Permissions: |source| Permissions {
        global: source.generate(),
        streams: source.few::<(u32, StreamPermissions)>().into_iter().collect(),
    };
    (u32, StreamPermissions): |source| {
        let topics: BTreeMap<u32, _> = (0..source.below(4))
            .map(|_| (source.generate(), source.generate()))
            .collect();
        (source.generate(), StreamPermissions { rights: source.generate(), topics })
    };
    GetSnapshot: |source| GetSnapshot {
        compression: source.generate(),
        types: source.few(),
    };
    ClientDetails<'a>: |source| ClientDetails {
        client_id: source.generate(),
        user_id: source.generate(),
        transport: source.generate(),
        address: source.generate(),
        consumer_groups: source.few(),
    };
    StreamDetails<'a>: |source| {
        let topics: Vec<TopicHeader> = source.few();
        let topics_count = topics.len() as u32;
        let stream = Stream { topics_count, ..source.generate() };
        StreamDetails { stream, topics }
    };
    TopicDetails<'a>: |source| {
        let partitions = source.few();
        let partitions_count = partitions.len() as u32;
        let topic = TopicHeader { partitions_count, ..source.generate() };
        TopicDetails { topic, partitions }
    };
    GroupDetails<'a>: |source| GroupDetails {
        id: source.generate(),
        partitions_count: source.generate(),
        name: source.generate(),
        members: source.few(),
    };
    SendMessages<'a>: |source| {
        let index = source.below(source.pool.batches.len());
        SendMessages {
            stream: source.generate(),
            topic: source.generate(),
            partitioning: source.generate(),
            messages_count: index as u32 + 1,
            batch: &source.pool.batches[index],
        }
    };
    SendReply: |source| SendReply { receipts: source.few() };
}

impl<'a, T: Generate<'a>> Generate<'a> for Option<T> {
    fn generate(source: &mut Source<'a>) -> Self {
        (source.below(2) == 1).then(|| source.generate())
    }
}

impl<'a, T: Generate<'a>> Generate<'a> for OrEmpty<T> {
    fn generate(source: &mut Source<'a>) -> Self {
        OrEmpty(source.generate())
    }
}

impl<'a, T: Generate<'a>> Generate<'a> for ToEnd<T> {
    fn generate(source: &mut Source<'a>) -> Self {
        ToEnd(source.few())
    }
}

impl<'a, T: Generate<'a>> Generate<'a> for List<T> {
    fn generate(source: &mut Source<'a>) -> Self {
        List(source.few())
    }
}
