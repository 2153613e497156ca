//! A node: what its threads share, and the order in which they start and stop.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pawl_machine::Catalog;
use pawl_machine::genesis::ClusterSecret;
use pawl_store::{IndexSet, Reader, Status};
use pawl_wire::ids::{StreamId, TopicId};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128_with_secret};

use crate::clients::Clients;
use crate::credentials::Hashers;
use crate::log::submission::LogInbox;
use crate::memory::Budget;
use crate::metrics::Metrics;
use crate::tail::TailCache;

/// What all threads of a node share.
#[derive(Debug)]
pub struct NodeShared {
    /// The way to the log thread.
    pub inbox: LogInbox,
    /// What exists and who may use it, as last published by the log thread.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// Where the batches of every partition are.
    pub index: Arc<IndexSet>,
    /// The newest bodies.
    pub tail: Arc<TailCache>,
    /// Reads the others from disk.
    pub reader: Reader,
    /// What the data directory is doing.
    pub status: Status,
    /// Who is connected.
    pub clients: Arc<Clients>,
    /// Checks passwords.
    pub hashers: Hashers,
    /// What is counted.
    pub metrics: Metrics,
    /// Bytes of large requests.
    pub budget: Budget,
    /// The largest frame.
    pub frame_bytes_max: u32,
    /// Whose turn it is in topics that are sent to without naming a partition.
    pub balance: Balance,
    /// Where this node listens.
    pub addresses: Addresses,
    /// When it started, µs since the Unix epoch.
    pub started_at: u64,
    /// A number that no other start of this node has.
    pub boot: u64,
    /// Keys the checksums of requests with secrets in them.
    pub secret: ClusterSecret,
    /// The data directory.
    pub data_dir: std::path::PathBuf,
}

/// Where a node listens, for its roster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The binary protocol.
    pub tcp: SocketAddr,
    /// HTTP, if served.
    pub http: Option<SocketAddr>,
}

/// One counter per topic. Those of deleted topics stay until the limit is reached, and then all
/// begin again.
#[derive(Debug, Default)]
pub struct Balance {
    turns: Mutex<HashMap<(StreamId, TopicId), u32>>,
}

/// Topics that [`Balance`] remembers.
const BALANCE_TOPICS_MAX: usize = 65_536;

impl Balance {
    /// The next turn in a topic.
    pub fn turn(&self, stream: StreamId, topic: TopicId) -> u32 {
        let mut turns = self.turns.lock();
        if turns.len() >= BALANCE_TOPICS_MAX {
            turns.clear();
        }
        let turn = turns.entry((stream, topic)).or_insert(0);
        let current = *turn;
        *turn = turn.wrapping_add(1);
        current
    }
}

impl NodeShared {
    /// The stamp of a sign-in: node, boot, connection, attempt (spec SES-4). The node's number is 0
    /// while nodes are alone.
    pub fn stamp(&self, connection: u32, attempt: u32) -> u128 {
        u128::from(self.boot) << 64 | u128::from(connection) << 32 | u128::from(attempt)
    }

    /// What the log keeps of the checksum of a request that holds a secret (spec DED-12). Zero says
    /// nothing and stays zero (spec DED-6).
    pub fn keyed_checksum(&self, checksum: u128) -> u128 {
        match checksum {
            0 => 0,
            checksum => keyed(&self.secret, checksum).max(1),
        }
    }
}

/// A hash of `checksum` under the secret of the cluster.
fn keyed(secret: &ClusterSecret, checksum: u128) -> u128 {
    // XXH3 wants a longer secret: it is stretched from ours.
    let mut long = [0; 192];
    for (index, block) in long.chunks_exact_mut(8).enumerate() {
        let mut hasher = Xxh3Default::new();
        hasher.update(&secret.0);
        hasher.update(&(index as u64).to_le_bytes());
        block.copy_from_slice(&hasher.digest().to_le_bytes());
    }
    xxh3_128_with_secret(&checksum.to_le_bytes(), &long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_by_topic() {
        let balance = Balance::default();
        let turn = |topic| balance.turn(StreamId(0), TopicId(topic));
        assert_eq!([turn(0), turn(0), turn(1), turn(0)], [0, 1, 0, 2]);
    }

    /// spec DED-12
    #[test]
    fn kept_checksums_depend_on_the_secret_and_the_checksum() {
        let (one, two) = (ClusterSecret([1; 32]), ClusterSecret([2; 32]));
        assert_eq!(keyed(&one, 7), keyed(&one, 7));
        assert_ne!(keyed(&one, 7), keyed(&one, 8));
        assert_ne!(keyed(&one, 7), keyed(&two, 7));
    }
}
