//! The server itself (10, 11), its roster (12), options (13) and clients (20, 21, 22).

use crate::layout::{record, wire_enum};
use crate::primitives::{Bytes32, List, Name, Raw, Reader, Text32, Wire, WireError, count_u32};

/// User id of a client that is not signed in.
pub const USER_ID_NONE: u32 = u32::MAX;

wire_enum! {
    /// How a snapshot is compressed.
    pub enum SnapshotCompression: "a snapshot compression" {
        /// Not at all.
        Stored = 1,
        /// Deflate.
        Deflate = 2,
        /// Bzip2.
        Bzip2 = 3,
        /// Zstandard.
        Zstd = 4,
        /// LZMA.
        Lzma = 5,
        /// XZ.
        Xz = 6,
    }

    /// What a snapshot of the server holds.
    pub enum SnapshotType: "a snapshot type" {
        /// Overview of the file system.
        Filesystem = 1,
        /// Processes.
        Processes = 2,
        /// Resources in use.
        Resources = 3,
        /// For tests.
        Test = 4,
        /// The server's logs.
        ServerLogs = 5,
        /// The server's configuration.
        Configuration = 6,
        /// All of it.
        All = 100,
    }

    /// What options are described.
    pub enum OptionScope: "an option scope" {
        /// Options of topics.
        Topic = 1,
        /// Options of streams.
        Stream = 2,
        /// Options of users.
        User = 3,
    }

    /// How a client is connected.
    pub enum Transport: "a transport" {
        /// TCP.
        Tcp = 1,
        /// QUIC.
        Quic = 2,
        /// HTTP.
        Http = 3,
        /// WebSocket.
        WebSocket = 4,
    }

    /// What a node does in the cluster.
    pub enum NodeRole: "a node role" {
        /// The metadata primary.
        Leader = 0,
        /// Any other.
        Follower = 1,
    }

    /// How a node is.
    pub enum NodeStatus: "a node status" {
        /// It serves.
        Healthy = 0,
        /// It starts.
        Starting = 1,
        /// It stops.
        Stopping = 2,
        /// It cannot be reached.
        Unreachable = 3,
        /// It is in maintenance.
        Maintenance = 4,
    }
}

/// Asks for a snapshot of the server's surroundings (11): `[compression u8][n u8][type u8]*`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct GetSnapshot {
    pub compression: SnapshotCompression,
    pub types: Vec<SnapshotType>,
}

impl<'a> Wire<'a> for GetSnapshot {
    const BYTES_MIN: usize = 2;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let compression = reader.read()?;
        let count = u8::read(reader)?;
        Ok(GetSnapshot {
            compression,
            types: reader.read_counted("snapshot types", count.into())?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.compression.write(out);
        out.push(u8::try_from(self.types.len()).expect("there are few snapshot types"));
        self.types.iter().for_each(|value| value.write(out));
    }
}

record! {
    /// The snapshot: a ZIP file.
    #[derive(Copy, Eq)]
    pub struct SnapshotReply<'a> {
        zip: Raw<'a>,
    }

    /// Use of a partition's cache.
    #[derive(Copy)]
    pub struct CacheMetrics {
        stream: u32,
        topic: u32,
        partition: u32,
        hits: u64,
        misses: u64,
        hit_ratio: f32,
    }

    /// Figures of the server (10).
    pub struct StatsReply<'a> {
        process_id: u32,
        /// Per cent, of the process.
        cpu: f32,
        /// Per cent, of the machine.
        total_cpu: f32,
        memory: u64,
        total_memory: u64,
        available_memory: u64,
        /// µs
        run_time: u64,
        /// µs since the Unix epoch
        start_time: u64,
        read_bytes: u64,
        written_bytes: u64,
        messages_size: u64,
        streams: u32,
        topics: u32,
        partitions: u32,
        segments: u32,
        messages: u64,
        clients: u32,
        consumer_groups: u32,
        hostname: Text32<'a>,
        os_name: Text32<'a>,
        os_version: Text32<'a>,
        kernel_version: Text32<'a>,
        server_version: Text32<'a>,
        /// major × 1,000,000 + minor × 1,000 + patch; 0: absent
        server_semver: u32,
        cache_metrics: List<CacheMetrics>,
        threads: u32,
        free_disk: u64,
        total_disk: u64,
    }

    /// One node of the roster. A port of 0 is a transport that is not offered.
    #[derive(Copy, Eq)]
    pub struct Node<'a> {
        name: Text32<'a>,
        ip: Text32<'a>,
        tcp: u16,
        quic: u16,
        http: u16,
        websocket: u16,
        role: NodeRole,
        status: NodeStatus,
    }

    /// The roster (12).
    #[derive(Eq)]
    pub struct ClusterMetadataReply<'a> {
        name: Text32<'a>,
        nodes: List<Node<'a>>,
    }

    /// Asks for the options of a scope (13).
    #[derive(Copy, Eq)]
    pub struct DescribeOptions {
        scope: OptionScope,
    }

    /// One option. Default bytes are of the canonical kind; none: there is no default.
    #[derive(Copy, Eq)]
    pub struct OptionDescription<'a> {
        key: Name<'a>,
        kind: u8,
        default: Bytes32<'a>,
        description: Text32<'a>,
    }

    /// The options of a scope.
    #[derive(Eq)]
    pub struct DescribeOptionsReply<'a> {
        options: List<OptionDescription<'a>>,
    }

    /// Asks for one client (21).
    #[derive(Copy, Eq)]
    pub struct GetClient {
        client_id: u32,
    }

    /// One connection.
    #[derive(Copy, Eq)]
    pub struct ClientInfo<'a> {
        client_id: u32,
        /// [`USER_ID_NONE`]: not signed in
        user_id: u32,
        transport: Transport,
        address: Text32<'a>,
        consumer_groups_count: u32,
    }

    /// One membership of a client.
    #[derive(Copy, Eq)]
    pub struct ClientGroup {
        stream: u32,
        topic: u32,
        group: u32,
    }
}

/// A connection with its memberships (20, 21).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are named as in the dialect's tables"
)]
pub struct ClientDetails<'a> {
    pub client_id: u32,
    pub user_id: u32,
    pub transport: Transport,
    pub address: Text32<'a>,
    pub consumer_groups: Vec<ClientGroup>,
}

impl<'a> Wire<'a> for ClientDetails<'a> {
    const BYTES_MIN: usize = ClientInfo::BYTES_MIN;

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let info = ClientInfo::read(reader)?;
        Ok(ClientDetails {
            client_id: info.client_id,
            user_id: info.user_id,
            transport: info.transport,
            address: info.address,
            consumer_groups: reader.read_counted("memberships", info.consumer_groups_count)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let info = ClientInfo {
            client_id: self.client_id,
            user_id: self.user_id,
            transport: self.transport,
            address: self.address,
            consumer_groups_count: count_u32(self.consumer_groups.len()),
        };
        info.write(out);
        self.consumer_groups
            .iter()
            .for_each(|group| group.write(out));
    }
}
