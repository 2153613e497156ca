//! Every limit of the machine, and what happens at it.
//!
//! All of them are part of what apply computes: two replicas with different limits would come to
//! different states. Those that an operator may set are in [`ClusterConstants`], which stands in
//! the log (the genesis entry) and in the fingerprint that replicas compare.

use pawl_wire::primitives::{Reader, Wire, WireError};
use xxhash_rust::xxh3::xxh3_128;

/// Users of a cluster, root included; bounds what a snapshot may claim.
pub const USERS_MAX: u32 = 1 << 20;

/// Streams of a cluster; one more is refused as too many streams (1020).
pub const STREAMS_MAX: u32 = 1 << 20;

/// Topics of a stream; one more is refused as too many topics (2021).
pub const TOPICS_PER_STREAM_MAX: u32 = 1 << 12;

/// Partitions of a topic; more are refused, since the ids are used up (3013).
pub const PARTITIONS_PER_TOPIC_MAX: u32 = 1_000_000;

/// Consumer groups of a topic; one more is refused as an invalid command (3), since the dialect
/// names no such limit.
pub const GROUPS_PER_TOPIC_MAX: usize = 1 << 16;

/// Partitions that one request may create or delete; more are refused before the log (2015).
pub const PARTITIONS_PER_REQUEST_MAX: u32 = 1_000;

/// Bytes of the `context` text of a login that are looked at; a longer one names nothing.
pub const LOGIN_CONTEXT_BYTES_MAX: usize = 1_024;

const _: () = assert!(PARTITIONS_PER_REQUEST_MAX <= u16::MAX as u32);
const _: () = assert!(PARTITIONS_PER_REQUEST_MAX <= PARTITIONS_PER_TOPIC_MAX);

/// Settings that every replica must share, because apply depends on them (spec REC-21).
///
/// They are written by the genesis entry and changed by a logged op only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClusterConstants {
    /// Replies kept per client; at the limit the one with the lowest number goes (spec DED-8).
    pub reply_ring: u32,
    /// Live and released clients; at the limit one is evicted (spec SES-17).
    pub clients_max: u32,
    /// Remembered fences; at the limit the oldest is forgotten (spec SES-21).
    pub tombstones_max: u32,
    /// Log time, µs, after which a released client becomes a tombstone (spec SES-28).
    pub release_grace_us: u64,
    /// Offset keys of a partition; one more is refused (3024), those that exist go on.
    pub offsets_per_partition_max: u32,
    /// A checkpoint is due after so many ops.
    pub checkpoint_ops_interval: u64,
    /// A checkpoint is due after so many bytes of log.
    pub checkpoint_log_bytes_interval: u64,
    /// Numbered log partitions of the lease protocol.
    pub leased_shards: u32,
}

/// A constant of the log that the configuration names otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the log was made with {setting} = {logged}, the configuration says {configured}")]
pub struct ConstantMismatch {
    /// Name of the setting.
    pub setting: &'static str,
    /// What the log says.
    pub logged: u64,
    /// What the configuration says.
    pub configured: u64,
}

/// Why constants cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{setting} = {value} is outside {min}..={max}")]
pub struct ConstantOutOfBounds {
    /// Name of the setting.
    pub setting: &'static str,
    /// Its value.
    pub value: u64,
    /// The lowest that works.
    pub min: u64,
    /// The highest that works.
    pub max: u64,
}

/// Bytes of encoded constants.
const BYTES: usize = 4 + 4 + 4 + 8 + 4 + 8 + 8 + 4;

impl Default for ClusterConstants {
    /// What a cluster has when nobody says otherwise.
    fn default() -> Self {
        ClusterConstants {
            reply_ring: 5,
            clients_max: 8_192,
            tombstones_max: 65_536,
            release_grace_us: 30_000_000,
            offsets_per_partition_max: 65_536,
            checkpoint_ops_interval: 4_096,
            checkpoint_log_bytes_interval: 64 * 1024 * 1024,
            leased_shards: 64,
        }
    }
}

impl ClusterConstants {
    /// Name, value and bounds of each constant, in the order of the encoding.
    fn settings(&self) -> [(&'static str, u64, u64, u64); 8] {
        [
            ("reply_ring", self.reply_ring as u64, 1, 64),
            ("clients_max", self.clients_max as u64, 1, 1 << 20),
            ("tombstones_max", self.tombstones_max as u64, 1, 1 << 24),
            ("release_grace_us", self.release_grace_us, 0, 1 << 50),
            (
                "offsets_per_partition_max",
                self.offsets_per_partition_max as u64,
                1,
                1 << 24,
            ),
            (
                "checkpoint_ops_interval",
                self.checkpoint_ops_interval,
                1,
                1 << 32,
            ),
            (
                "checkpoint_log_bytes_interval",
                self.checkpoint_log_bytes_interval,
                1 << 16,
                1 << 40,
            ),
            ("leased_shards", self.leased_shards as u64, 0, 1 << 16),
        ]
    }

    /// Whether every constant is one that can work.
    pub fn check(&self) -> Result<(), ConstantOutOfBounds> {
        for (setting, value, min, max) in self.settings() {
            if value < min || value > max {
                return Err(ConstantOutOfBounds {
                    setting,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }

    /// The first constant that differs from what the configuration says (spec REC-21).
    pub fn compare(&self, configured: &ClusterConstants) -> Result<(), ConstantMismatch> {
        let pairs = self.settings().into_iter().zip(configured.settings());
        for ((setting, logged, ..), (_, configured, ..)) in pairs {
            if logged != configured {
                return Err(ConstantMismatch {
                    setting,
                    logged,
                    configured,
                });
            }
        }
        Ok(())
    }

    /// What replicas compare on every link.
    pub fn fingerprint(&self) -> u128 {
        xxh3_128(&self.encode())
    }
}

/// The constants one after another, little endian, in the order of the struct.
impl<'a> Wire<'a> for ClusterConstants {
    const BYTES_MIN: usize = BYTES;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(ClusterConstants {
            reply_ring: reader.read()?,
            clients_max: reader.read()?,
            tombstones_max: reader.read()?,
            release_grace_us: reader.read()?,
            offsets_per_partition_max: reader.read()?,
            checkpoint_ops_interval: reader.read()?,
            checkpoint_log_bytes_interval: reader.read()?,
            leased_shards: reader.read()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.reply_ring.write(out);
        self.clients_max.write(out);
        self.tombstones_max.write(out);
        self.release_grace_us.write(out);
        self.offsets_per_partition_max.write(out);
        self.checkpoint_ops_interval.write(out);
        self.checkpoint_log_bytes_interval.write(out);
        self.leased_shards.write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_round_trip_and_have_the_promised_size() {
        let constants = ClusterConstants::default();
        let bytes = constants.encode();
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(ClusterConstants::decode(&bytes), Ok(constants));
        assert_eq!(constants.check(), Ok(()));
    }

    // spec REC-21
    #[test]
    fn a_differing_constant_is_named_with_both_values() {
        let logged = ClusterConstants::default();
        let configured = ClusterConstants {
            clients_max: 100,
            ..logged
        };
        let mismatch = logged.compare(&configured).expect_err("they differ");
        assert_eq!(mismatch.setting, "clients_max");
        assert_eq!((mismatch.logged, mismatch.configured), (8_192, 100));
        assert_eq!(logged.compare(&logged), Ok(()));
        assert_ne!(logged.fingerprint(), configured.fingerprint());
    }

    #[test]
    fn a_constant_that_cannot_work_is_named() {
        let constants = ClusterConstants {
            reply_ring: 0,
            ..ClusterConstants::default()
        };
        let error = constants.check().expect_err("no ring, no repeats");
        assert_eq!(error.setting, "reply_ring");
    }
}
