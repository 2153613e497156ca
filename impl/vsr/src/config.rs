//! Limits and settings of a replica, and the relations between them.

use pawl_wire::ids::{Op, ReplicaIndex};

/// Replicas of a cluster, at most.
pub const REPLICAS_MAX: u8 = 7;

/// Ops that may be prepared and not committed, at most. At the limit a request is refused as
/// "not accepted".
pub const PIPELINE_OPS_MAX: u32 = 4_096;

/// Body bytes that may be prepared and not committed, at most. At the limit a request is refused as
/// "not accepted"; one larger body travels alone.
pub const PIPELINE_BYTES_MAX: u64 = 256 << 20;

/// Body bytes of one entry, at most: the frame limit. Above it a request is refused for good.
pub const BODY_BYTES_MAX: u32 = 64 << 20;

/// A checkpoint is due after so many ops (decision 10).
pub const CHECKPOINT_OPS_INTERVAL: u64 = 4_096;

/// A checkpoint is due after so many bytes of entries (decision 10).
pub const CHECKPOINT_LOG_BYTES_INTERVAL: u64 = 64 << 20;

/// Settings of one replica. What all replicas of a cluster must share is named as such.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Shared: identity of the cluster; every entry carries it.
    pub cluster: u128,
    /// Shared: number of replicas, 1 to 7.
    pub replicas: u8,
    /// Shared: a checkpoint is due after so many ops since the last one.
    pub checkpoint_ops_interval: u64,
    /// Shared: a checkpoint is due after so many bytes of entries since the last one.
    pub checkpoint_log_bytes_interval: u64,
    /// Which replica this is.
    pub replica: ReplicaIndex,
    /// Ops prepared and not committed, at most.
    pub pipeline_ops_max: u32,
    /// Body bytes prepared and not committed, at most.
    pub pipeline_bytes_max: u64,
    /// Body bytes of one entry, at most.
    pub body_bytes_max: u32,
    /// Seed of the jitter of timers.
    pub seed: u64,
    /// Ticks between two heartbeats of a primary.
    pub heartbeat_ticks: u32,
    /// Ticks without the primary after which a backup leaves the view; up to as many again are
    /// added as jitter.
    pub view_change_ticks: u32,
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The number of replicas is out of range.
    #[error("replicas = {0}: must be 1 to {REPLICAS_MAX}")]
    Replicas(u8),
    /// The replica's own number is not one of the cluster's.
    #[error("{replica} is not one of {replicas} replicas")]
    Replica {
        /// Its number.
        replica: ReplicaIndex,
        /// How many there are.
        replicas: u8,
    },
    /// A limit or interval is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Without a heartbeat well within the silence that starts a view change, views never last.
    #[error("view_change_ticks = {view_change} must be more than heartbeat_ticks = {heartbeat}")]
    Ticks {
        /// Ticks between heartbeats.
        heartbeat: u32,
        /// Ticks of silence.
        view_change: u32,
    },
}

impl Config {
    /// A node alone, with the limits of this file.
    pub fn solo(cluster: u128) -> Config {
        Config {
            cluster,
            replicas: 1,
            checkpoint_ops_interval: CHECKPOINT_OPS_INTERVAL,
            checkpoint_log_bytes_interval: CHECKPOINT_LOG_BYTES_INTERVAL,
            replica: ReplicaIndex(0),
            pipeline_ops_max: PIPELINE_OPS_MAX,
            pipeline_bytes_max: PIPELINE_BYTES_MAX,
            body_bytes_max: BODY_BYTES_MAX,
            seed: 0,
            heartbeat_ticks: 10,
            view_change_ticks: 50,
        }
    }

    /// Whether the settings can work together.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.replicas == 0 || self.replicas > REPLICAS_MAX {
            return Err(ConfigError::Replicas(self.replicas));
        }
        if self.replica.0 >= self.replicas {
            return Err(ConfigError::Replica {
                replica: self.replica,
                replicas: self.replicas,
            });
        }
        let limits = [
            ("checkpoint_ops_interval", self.checkpoint_ops_interval),
            (
                "checkpoint_log_bytes_interval",
                self.checkpoint_log_bytes_interval,
            ),
            ("pipeline_ops_max", self.pipeline_ops_max.into()),
            ("pipeline_bytes_max", self.pipeline_bytes_max),
            ("body_bytes_max", self.body_bytes_max.into()),
            ("heartbeat_ticks", self.heartbeat_ticks.into()),
        ];
        if let Some((name, _)) = limits.into_iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::Zero(name));
        }
        if self.view_change_ticks <= self.heartbeat_ticks {
            return Err(ConfigError::Ticks {
                heartbeat: self.heartbeat_ticks,
                view_change: self.view_change_ticks,
            });
        }
        Ok(())
    }

    /// The highest op of a pipeline that starts above `commit`.
    pub(crate) fn pipeline_end(&self, commit: Op) -> Op {
        Op(commit.0 + u64::from(self.pipeline_ops_max))
    }
}
