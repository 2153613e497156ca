//! What a node is told: sections, keys, defaults.
//!
//! The names are those of the drop-in interface, so that tools written for the server whose
//! protocol Pawl speaks configure it unchanged; `log`, `cache` and `memory` are Pawl's own. Nothing
//! here may change what apply computes: cluster constants are in the log's genesis.

mod load;
mod runtime_file;
mod values;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use load::address;
pub use load::{ConfigError, Environment, Loaded, Overrides, load};
pub use runtime_file::{BoundAddresses, write_runtime_file};
pub use values::{ByteCount, CpuAllocation, Span, parse_bytes, parse_span};

/// The effective configuration of a node.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The binary protocol over TCP.
    pub tcp: Tcp,
    /// The HTTP listener.
    pub http: Http,
    /// The binary protocol over QUIC; not served by this release.
    pub quic: Quic,
    /// The binary protocol over WebSocket; not served by this release.
    pub websocket: WebSocket,
    /// Liveness of clients.
    pub heartbeat: Heartbeat,
    /// Links and frames.
    pub message_bus: MessageBus,
    /// Where and how the node runs.
    pub system: System,
    /// The roster of a cluster.
    pub cluster: Cluster,
    /// The log on disk.
    pub log: Log,
    /// Messages kept in memory for polls.
    pub cache: Cache,
    /// Budgets of memory.
    pub memory: Memory,
}

/// `[tcp]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Tcp {
    /// Whether the listener is opened.
    pub enabled: bool,
    /// Where it listens; port 0 lets the system choose.
    pub address: String,
    /// Encryption of the connection.
    pub tls: Tls,
}

/// `[http]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// Whether the listener is opened.
    pub enabled: bool,
    /// Where it listens; port 0 lets the system choose.
    pub address: String,
    /// The largest body of a request.
    pub max_request_size: ByteCount,
    /// Prometheus metrics.
    pub metrics: HttpMetrics,
    /// Encryption of the connection.
    pub tls: Tls,
}

/// `[http.metrics]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpMetrics {
    /// Whether they are served.
    pub enabled: bool,
    /// Under which path.
    pub endpoint: String,
}

/// `[quic]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Quic {
    /// Accepted and ignored until QUIC is served.
    pub enabled: bool,
    /// Where it would listen.
    pub address: String,
}

/// `[websocket]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSocket {
    /// Accepted and ignored until WebSocket is served.
    pub enabled: bool,
    /// Where it would listen.
    pub address: String,
    /// Encryption of the connection.
    pub tls: Tls,
}

/// `[*.tls]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// Whether connections are encrypted; not served by this release.
    pub enabled: bool,
    /// Whether a throw-away certificate is made.
    pub self_signed: bool,
    /// Certificate.
    pub cert_file: String,
    /// Its key.
    pub key_file: String,
}

/// `[heartbeat]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    /// Whether silent members of consumer groups are evicted.
    pub enabled: bool,
    /// How often is looked.
    pub interval: Span,
}

/// `[message_bus]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageBus {
    /// The largest frame, header included.
    pub max_message_size: ByteCount,
}

/// `[system]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// The data directory.
    pub path: String,
    /// Files that live as long as the process.
    pub runtime: Runtime,
    /// Logs.
    pub logging: Logging,
    /// Shards and cores.
    pub sharding: Sharding,
    /// Encryption of the data directory.
    pub encryption: Encryption,
}

/// `[system.runtime]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    /// Folder under the data directory.
    pub path: String,
}

/// `[system.logging]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Logging {
    /// `error`, `warn`, `info`, `debug` or `trace`; `RUST_LOG` wins.
    pub level: String,
}

/// `[system.sharding]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Sharding {
    /// Which cores get a shard.
    pub cpu_allocation: CpuAllocation,
    /// Whether a shard stays on its core.
    pub pin_cores: bool,
}

/// `[system.encryption]`
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Encryption {
    /// Whether data is encrypted at rest; not served by this release.
    pub enabled: bool,
}

/// `[cluster]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    /// Whether this node is one of several; not served by this release.
    pub enabled: bool,
    /// The cluster's name.
    pub name: String,
    /// The roster.
    pub nodes: Vec<ClusterNode>,
}

/// `[[cluster.nodes]]`
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    pub ip: String,
    /// Its number.
    pub replica_id: u8,
}

/// `[log]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Log {
    /// When the log is larger, its oldest segment is drained into partition segments.
    pub bytes_max: ByteCount,
    /// The most that the data directory may hold; produce is refused above it. 0: the disk decides.
    pub disk_bytes_max: ByteCount,
}

/// `[cache]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// Newest message bodies that are kept in memory, over all partitions.
    pub bytes_max: ByteCount,
}

/// `[memory]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Bodies of requests that are being received or not yet answered, over all connections.
    pub request_bytes_max: ByteCount,
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            enabled: true,
            address: "127.0.0.1:8090".to_owned(),
            tls: Tls::default(),
        }
    }
}

impl Default for Http {
    fn default() -> Http {
        Http {
            enabled: true,
            address: "127.0.0.1:3000".to_owned(),
            max_request_size: ByteCount(2_000_000),
            metrics: HttpMetrics::default(),
            tls: Tls::default(),
        }
    }
}

impl Default for HttpMetrics {
    fn default() -> HttpMetrics {
        HttpMetrics {
            enabled: true,
            endpoint: "/metrics".to_owned(),
        }
    }
}

impl Default for Quic {
    fn default() -> Quic {
        Quic {
            enabled: true,
            address: "127.0.0.1:8080".to_owned(),
        }
    }
}

impl Default for WebSocket {
    fn default() -> WebSocket {
        WebSocket {
            enabled: true,
            address: "127.0.0.1:8092".to_owned(),
            tls: Tls::default(),
        }
    }
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            enabled: false,
            self_signed: true,
            cert_file: String::new(),
            key_file: String::new(),
        }
    }
}

impl Default for Heartbeat {
    fn default() -> Heartbeat {
        Heartbeat {
            enabled: true,
            interval: Span::from_secs(30),
        }
    }
}

impl Default for MessageBus {
    fn default() -> MessageBus {
        MessageBus {
            max_message_size: ByteCount(64 << 20),
        }
    }
}

impl Default for System {
    fn default() -> System {
        System {
            path: "local_data".to_owned(),
            runtime: Runtime::default(),
            logging: Logging::default(),
            sharding: Sharding::default(),
            encryption: Encryption::default(),
        }
    }
}

impl Default for Runtime {
    fn default() -> Runtime {
        Runtime {
            path: "runtime".to_owned(),
        }
    }
}

impl Default for Logging {
    fn default() -> Logging {
        Logging {
            level: "info".to_owned(),
        }
    }
}

impl Default for Sharding {
    fn default() -> Sharding {
        Sharding {
            cpu_allocation: CpuAllocation::All,
            pin_cores: true,
        }
    }
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            enabled: false,
            name: "iggy-cluster".to_owned(),
            nodes: Vec::new(),
        }
    }
}

impl Default for Log {
    fn default() -> Log {
        Log {
            bytes_max: ByteCount(16 << 30),
            disk_bytes_max: ByteCount(0),
        }
    }
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            bytes_max: ByteCount(256 << 20),
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            request_bytes_max: ByteCount(512 << 20),
        }
    }
}

impl Config {
    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        PathBuf::from(&self.system.path)
    }

    /// Where the effective configuration is written once the node serves.
    pub fn runtime_file(&self) -> PathBuf {
        self.data_dir()
            .join(&self.system.runtime.path)
            .join("current_config.toml")
    }
}
