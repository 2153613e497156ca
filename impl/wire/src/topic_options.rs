//! The options of topics: the catalog, what each value may be, and what a topic makes of them.
//!
//! A topic's options are a function of the entries that clients sent, its *explicit* block. What
//! they left out is filled in, the *derived* block. On creation a value is stored in the canonical
//! kind of its key, whatever kind was sent; an update stores the bytes as sent.
//!
//! Two families of clients name durability differently: `enforce_fsync` (a truth value), or
//! `durability` and `consumer_offset_durability` (text). Both are accepted and echoed as named; the
//! derived block leaves out the family that the client did not use. Whatever is asked for, messages
//! are flushed before they are acknowledged, so the defaults say `persisted`.

use std::fmt;

use crate::commands::topics::CompressionAlgorithm;
use crate::error_code::ErrorCode;
use crate::options::{OptionMap, OptionValue, Options, Tlv, kind};
use crate::topic_option_text::{parse_duration_us, parse_size_bytes};

/// Smallest size of a segment.
pub const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// Largest size of a segment, and the default.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Sizes of segments are multiples of this.
pub const SEGMENT_BYTES_UNIT: u64 = 512;
/// Most bytes that may be preallocated for all partitions of a topic.
pub const PREALLOCATED_BYTES_MAX: u64 = 64 << 30;
/// Largest `messages_required_to_save`.
pub const MESSAGES_REQUIRED_MAX: u32 = 16_777_216;
/// Largest `size_of_messages_required_to_save`.
pub const SIZE_REQUIRED_MAX: u64 = 1 << 30;
/// Never, as an expiry; unlimited, as a size.
pub const UNLIMITED: u64 = u64::MAX;

const MESSAGES_REQUIRED_DEFAULT: u32 = 1024;
const SIZE_REQUIRED_DEFAULT: u64 = 1 << 20;

const _: () = assert!(SEGMENT_BYTES_MIN.is_multiple_of(SEGMENT_BYTES_UNIT));
const _: () = assert!(SEGMENT_BYTES_MAX.is_multiple_of(SEGMENT_BYTES_UNIT));

/// A key of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the variants are the keys")]
pub enum TopicOption {
    CompressionAlgorithm,
    MessageExpiry,
    MaxTopicSize,
    SegmentSize,
    EnforceFsync,
    Durability,
    ConsumerOffsetDurability,
    MessagesRequiredToSave,
    SizeOfMessagesRequiredToSave,
    PreallocateSegments,
}

impl TopicOption {
    /// The catalog in the order in which it is described.
    pub const ALL: [TopicOption; 10] = {
        use TopicOption::*;
        [
            CompressionAlgorithm,
            MessageExpiry,
            MaxTopicSize,
            SegmentSize,
            EnforceFsync,
            Durability,
            ConsumerOffsetDurability,
            MessagesRequiredToSave,
            SizeOfMessagesRequiredToSave,
            PreallocateSegments,
        ]
    };

    /// The key as text.
    pub const fn key(self) -> &'static str {
        match self {
            TopicOption::CompressionAlgorithm => "compression_algorithm",
            TopicOption::MessageExpiry => "message_expiry",
            TopicOption::MaxTopicSize => "max_topic_size",
            TopicOption::SegmentSize => "segment_size",
            TopicOption::EnforceFsync => "enforce_fsync",
            TopicOption::Durability => "durability",
            TopicOption::ConsumerOffsetDurability => "consumer_offset_durability",
            TopicOption::MessagesRequiredToSave => "messages_required_to_save",
            TopicOption::SizeOfMessagesRequiredToSave => "size_of_messages_required_to_save",
            TopicOption::PreallocateSegments => "preallocate_segments",
        }
    }

    /// The option with this key.
    pub fn from_key(key: &str) -> Option<TopicOption> {
        TopicOption::ALL
            .into_iter()
            .find(|option| option.key() == key)
    }

    /// The kind in which the server stores it; see [`kind`].
    pub const fn canonical_kind(self) -> u8 {
        match self {
            TopicOption::CompressionAlgorithm
            | TopicOption::Durability
            | TopicOption::ConsumerOffsetDurability => kind::STRING,
            TopicOption::EnforceFsync | TopicOption::PreallocateSegments => kind::BOOL,
            TopicOption::MessagesRequiredToSave => kind::U32,
            TopicOption::MessageExpiry
            | TopicOption::MaxTopicSize
            | TopicOption::SegmentSize
            | TopicOption::SizeOfMessagesRequiredToSave => kind::U64,
        }
    }

    /// Whether it may be changed after creation.
    pub const fn is_updatable(self) -> bool {
        matches!(
            self,
            TopicOption::CompressionAlgorithm
                | TopicOption::MessageExpiry
                | TopicOption::MaxTopicSize
        )
    }

    /// What it does, in a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            TopicOption::CompressionAlgorithm => "How producers compress messages: none or gzip",
            TopicOption::MessageExpiry => "Age at which messages are removed, in microseconds",
            TopicOption::MaxTopicSize => "Size at which the oldest messages are removed, in bytes",
            TopicOption::SegmentSize => "Size of a segment of a partition, in bytes",
            TopicOption::EnforceFsync => "Flush before acknowledging; always done here",
            TopicOption::Durability => {
                "When a send is acknowledged: replicated or persisted; always persisted here"
            }
            TopicOption::ConsumerOffsetDurability => {
                "When an offset is acknowledged: replicated or persisted; always persisted here"
            }
            TopicOption::MessagesRequiredToSave => "Messages after which a partition is saved",
            TopicOption::SizeOfMessagesRequiredToSave => "Bytes after which a partition is saved",
            TopicOption::PreallocateSegments => "Reserve the disk space of segments in advance",
        }
    }

    /// The default, in the canonical kind.
    pub fn default_value(self) -> OptionValue {
        TopicOptions::default().value(self)
    }
}

/// When a write counts as done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Durability {
    /// A quorum has it.
    Replicated,
    /// It is flushed.
    Persisted,
}

impl Durability {
    /// The value as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Replicated => "replicated",
            Durability::Persisted => "persisted",
        }
    }

    fn parse(text: &str) -> Option<Durability> {
        [Durability::Replicated, Durability::Persisted]
            .into_iter()
            .find(|value| text.eq_ignore_ascii_case(value.as_str()))
    }
}

/// Why options are refused, as a status and before anything is committed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopicOptionError {
    /// The key is not in the catalog.
    #[error("{0:?} is not an option of topics")]
    Unknown(Box<str>),
    /// The key may not be changed after creation.
    #[error("{} cannot be changed", .0.key())]
    Fixed(TopicOption),
    /// The value is not one of the key's.
    #[error("{} does not take this value", .0.key())]
    Value(TopicOption),
    /// `enforce_fsync` and `durability` contradict each other.
    #[error("enforce_fsync and durability contradict each other")]
    Contradiction,
    /// The size cap is below the size of a segment.
    #[error("a topic of {max_topic_size} bytes is smaller than its segments")]
    TopicSize {
        /// The cap.
        max_topic_size: u64,
    },
    /// More would be preallocated than is allowed.
    #[error("preallocation for {partitions} partitions is above the limit")]
    Preallocation {
        /// Partitions asked for.
        partitions: u32,
    },
}

impl TopicOptionError {
    /// The status of the answer.
    pub const fn code(&self) -> ErrorCode {
        match self {
            TopicOptionError::Unknown(_) | TopicOptionError::Fixed(_) => {
                ErrorCode::UnsupportedOptionKey
            }
            TopicOptionError::Value(_)
            | TopicOptionError::Contradiction
            | TopicOptionError::Preallocation { .. } => ErrorCode::InvalidOptionValue,
            TopicOptionError::TopicSize { .. } => ErrorCode::InvalidTopicSize,
        }
    }
}

/// What a topic's options come to. Fields hold effective values: a 0 that asks for the server's
/// default has become the default.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TopicOptions {
    /// How producers compress.
    pub compression: CompressionAlgorithm,
    /// µs, or [`UNLIMITED`].
    pub message_expiry: u64,
    /// Bytes, or [`UNLIMITED`].
    pub max_topic_size: u64,
    /// Bytes.
    pub segment_size: u64,
    /// As asked for; writes are flushed either way.
    pub durability: Durability,
    /// As asked for; writes are flushed either way.
    pub consumer_offset_durability: Durability,
    /// As asked for.
    pub messages_required_to_save: u32,
    /// Bytes, as asked for.
    pub size_of_messages_required_to_save: u64,
    /// As asked for.
    pub preallocate_segments: bool,
    explicit: OptionMap,
}

impl Default for TopicOptions {
    fn default() -> TopicOptions {
        TopicOptions {
            compression: CompressionAlgorithm::None,
            message_expiry: UNLIMITED,
            max_topic_size: UNLIMITED,
            segment_size: SEGMENT_BYTES_MAX,
            durability: Durability::Persisted,
            consumer_offset_durability: Durability::Persisted,
            messages_required_to_save: MESSAGES_REQUIRED_DEFAULT,
            size_of_messages_required_to_save: SIZE_REQUIRED_DEFAULT,
            preallocate_segments: false,
            explicit: OptionMap::new(),
        }
    }
}

impl TopicOptions {
    /// The options of a topic that is created with `options` and this many partitions.
    pub fn create(options: &Options<'_>, partitions: u32) -> Result<Self, TopicOptionError> {
        let mut topic = TopicOptions::default();
        let mut fsync = None;
        for (key, sent) in options.iter() {
            let option = known(key)?;
            let canonical = topic.apply(option, sent, &mut fsync)?;
            topic.explicit.insert(key.into(), canonical);
        }
        topic.resolve_fsync(fsync)?;
        topic.check_sizes(partitions)?;
        Ok(topic)
    }

    /// The options after an update: keys that are not sent keep their value.
    pub fn updated(&self, options: &Options<'_>) -> Result<Self, TopicOptionError> {
        let mut topic = self.clone();
        for (key, sent) in options.iter() {
            let option = known(key)?;
            if !option.is_updatable() {
                return Err(TopicOptionError::Fixed(option));
            }
            topic.apply(option, sent, &mut None)?;
            topic.explicit.insert(key.into(), sent.into());
        }
        topic.check_topic_size()?;
        Ok(topic)
    }

    /// The options of a topic whose explicit block was kept. What was accepted once is accepted
    /// again; anything else is damage.
    pub fn restore(explicit: OptionMap) -> Result<Self, TopicOptionError> {
        let mut topic = TopicOptions::default();
        let mut fsync = None;
        for (key, value) in &explicit {
            topic.apply(known(key)?, value.as_tlv(), &mut fsync)?;
        }
        topic.explicit = explicit;
        topic.resolve_fsync(fsync)?;
        topic.check_topic_size()?;
        Ok(topic)
    }

    // spec ANS-31
    /// What clients sent.
    pub fn explicit(&self) -> &OptionMap {
        &self.explicit
    }

    /// What was filled in: every key that no client sent, less the durability family that the
    /// client did not use.
    pub fn derived(&self) -> OptionMap {
        let sent = |option: TopicOption| self.explicit.contains_key(option.key());
        let fsync = sent(TopicOption::EnforceFsync);
        let durability =
            sent(TopicOption::Durability) || sent(TopicOption::ConsumerOffsetDurability);
        TopicOption::ALL
            .into_iter()
            .filter(|option| !sent(*option))
            .filter(|option| match option {
                TopicOption::EnforceFsync => !durability,
                TopicOption::Durability | TopicOption::ConsumerOffsetDurability => !fsync,
                _ => true,
            })
            .map(|option| (option.key().into(), self.value(option)))
            .collect()
    }

    /// The effective value of a key, in its canonical kind.
    pub fn value(&self, option: TopicOption) -> OptionValue {
        match option {
            TopicOption::CompressionAlgorithm => {
                OptionValue::text(compression_text(self.compression))
            }
            TopicOption::MessageExpiry => OptionValue::u64(self.message_expiry),
            TopicOption::MaxTopicSize => OptionValue::u64(self.max_topic_size),
            TopicOption::SegmentSize => OptionValue::u64(self.segment_size),
            TopicOption::EnforceFsync => {
                OptionValue::bool(self.durability == Durability::Persisted)
            }
            TopicOption::Durability => OptionValue::text(self.durability.as_str()),
            TopicOption::ConsumerOffsetDurability => {
                OptionValue::text(self.consumer_offset_durability.as_str())
            }
            TopicOption::MessagesRequiredToSave => OptionValue::u32(self.messages_required_to_save),
            TopicOption::SizeOfMessagesRequiredToSave => {
                OptionValue::u64(self.size_of_messages_required_to_save)
            }
            TopicOption::PreallocateSegments => OptionValue::bool(self.preallocate_segments),
        }
    }

    /// Takes one value over and returns it in its canonical kind. `enforce_fsync` only means
    /// something together with `durability`, so it is handed back through `fsync`.
    fn apply(
        &mut self,
        option: TopicOption,
        sent: Tlv<'_>,
        fsync: &mut Option<bool>,
    ) -> Result<OptionValue, TopicOptionError> {
        let refused = TopicOptionError::Value(option);
        let canonical = self.apply_value(option, sent, fsync);
        canonical.ok_or(refused)
    }

    fn apply_value(
        &mut self,
        option: TopicOption,
        sent: Tlv<'_>,
        fsync: &mut Option<bool>,
    ) -> Option<OptionValue> {
        match option {
            TopicOption::CompressionAlgorithm => {
                self.compression = parse_compression(sent)?;
                Some(OptionValue::text(compression_text(self.compression)))
            }
            TopicOption::MessageExpiry => {
                let value = parse_u64(sent, parse_duration_us)?;
                self.message_expiry = or_default(value, UNLIMITED);
                Some(OptionValue::u64(value))
            }
            TopicOption::MaxTopicSize => {
                let value = parse_u64(sent, parse_size_bytes)?;
                self.max_topic_size = or_default(value, UNLIMITED);
                Some(OptionValue::u64(value))
            }
            TopicOption::SegmentSize => {
                let value = parse_u64(sent, parse_size_bytes)?;
                self.segment_size = or_default(value, SEGMENT_BYTES_MAX);
                is_segment_size(self.segment_size).then(|| OptionValue::u64(value))
            }
            TopicOption::EnforceFsync => {
                let value = parse_bool(sent)?;
                *fsync = Some(value);
                Some(OptionValue::bool(value))
            }
            TopicOption::Durability => {
                self.durability = Durability::parse(sent.as_text()?)?;
                Some(OptionValue::text(self.durability.as_str()))
            }
            TopicOption::ConsumerOffsetDurability => {
                self.consumer_offset_durability = Durability::parse(sent.as_text()?)?;
                Some(OptionValue::text(self.consumer_offset_durability.as_str()))
            }
            TopicOption::MessagesRequiredToSave => {
                let value = parse_u32(sent)?;
                self.messages_required_to_save = value;
                (1..=MESSAGES_REQUIRED_MAX)
                    .contains(&value)
                    .then(|| OptionValue::u32(value))
            }
            TopicOption::SizeOfMessagesRequiredToSave => {
                let value = parse_u64(sent, parse_size_bytes)?;
                self.size_of_messages_required_to_save = or_default(value, SIZE_REQUIRED_DEFAULT);
                (value <= SIZE_REQUIRED_MAX).then(|| OptionValue::u64(value))
            }
            TopicOption::PreallocateSegments => {
                self.preallocate_segments = parse_bool(sent)?;
                Some(OptionValue::bool(self.preallocate_segments))
            }
        }
    }

    /// Brings `enforce_fsync` and `durability` together, once all explicit entries are in place.
    fn resolve_fsync(&mut self, fsync: Option<bool>) -> Result<(), TopicOptionError> {
        let Some(fsync) = fsync else {
            return Ok(());
        };
        let asked = match fsync {
            true => Durability::Persisted,
            false => Durability::Replicated,
        };
        let sent = self.explicit.contains_key(TopicOption::Durability.key());
        if sent && self.durability != asked {
            return Err(TopicOptionError::Contradiction);
        }
        self.durability = asked;
        Ok(())
    }

    fn check_sizes(&self, partitions: u32) -> Result<(), TopicOptionError> {
        self.check_topic_size()?;
        let preallocated = self.segment_size.saturating_mul(partitions.into());
        if self.preallocate_segments && preallocated > PREALLOCATED_BYTES_MAX {
            return Err(TopicOptionError::Preallocation { partitions });
        }
        Ok(())
    }

    fn check_topic_size(&self) -> Result<(), TopicOptionError> {
        let max_topic_size = self.max_topic_size;
        if max_topic_size < self.segment_size {
            return Err(TopicOptionError::TopicSize { max_topic_size });
        }
        Ok(())
    }
}

impl fmt::Display for TopicOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Refuses any key: streams and users have none.
pub fn refuse_options(options: &Options<'_>) -> Result<(), TopicOptionError> {
    match options.iter().next() {
        None => Ok(()),
        Some((key, _)) => Err(TopicOptionError::Unknown(key.into())),
    }
}

fn known(key: &str) -> Result<TopicOption, TopicOptionError> {
    TopicOption::from_key(key).ok_or_else(|| TopicOptionError::Unknown(key.into()))
}

const fn or_default(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

const fn is_segment_size(bytes: u64) -> bool {
    bytes >= SEGMENT_BYTES_MIN
        && bytes <= SEGMENT_BYTES_MAX
        && bytes.is_multiple_of(SEGMENT_BYTES_UNIT)
}

const fn compression_text(compression: CompressionAlgorithm) -> &'static str {
    match compression {
        CompressionAlgorithm::None => "none",
        CompressionAlgorithm::Gzip => "gzip",
    }
}

fn parse_compression(sent: Tlv<'_>) -> Option<CompressionAlgorithm> {
    if let (kind::U8, [number]) = (sent.kind, sent.bytes) {
        return CompressionAlgorithm::from_u8(*number);
    }
    let text = sent.as_text()?;
    [CompressionAlgorithm::None, CompressionAlgorithm::Gzip]
        .into_iter()
        .find(|value| text.eq_ignore_ascii_case(compression_text(*value)))
}

fn parse_u64(sent: Tlv<'_>, parse: impl FnOnce(&str) -> Option<u64>) -> Option<u64> {
    match sent.kind {
        kind::U64 => Some(u64::from_le_bytes(sent.bytes.try_into().ok()?)),
        _ => parse(sent.as_text()?),
    }
}

fn parse_u32(sent: Tlv<'_>) -> Option<u32> {
    match sent.kind {
        kind::U32 => Some(u32::from_le_bytes(sent.bytes.try_into().ok()?)),
        _ => sent.as_text()?.trim().parse().ok(),
    }
}

fn parse_bool(sent: Tlv<'_>) -> Option<bool> {
    match (sent.kind, sent.bytes) {
        (kind::BOOL, [0]) => Some(false),
        (kind::BOOL, [1]) => Some(true),
        (kind::BOOL, _) => None,
        _ => {
            let text = sent.as_text()?.trim();
            match (
                text.eq_ignore_ascii_case("true"),
                text.eq_ignore_ascii_case("false"),
            ) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
#[path = "topic_options_test.rs"]
mod tests;
