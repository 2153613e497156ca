//! The machine: its state and what is asked of it.

use pawl_wire::ids::{ClientId, Op, PartitionUid, StreamId, Timestamp, TopicId};

use crate::catalog::Catalog;
use crate::clients::ClientTable;
use crate::genesis::ClusterSecret;
use crate::groups::Memberships;
use crate::limits::ClusterConstants;
use crate::offsets::{OffsetKey, OffsetTable};
use crate::partitions::PartitionTable;
use crate::query::{ClientView, MachineTotals, PartitionView, Totals};

/// Everything that is a function of log[1..=commit].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PawlMachine {
    pub(crate) constants: ClusterConstants,
    pub(crate) secret: ClusterSecret,
    /// The last op that was applied.
    pub(crate) applied: Op,
    /// Its timestamp.
    pub(crate) log_time: Timestamp,
    pub(crate) clients: ClientTable,
    pub(crate) catalog: Catalog,
    pub(crate) partitions: PartitionTable,
    pub(crate) offsets: OffsetTable,
    pub(crate) memberships: Memberships,
}

impl Default for PawlMachine {
    fn default() -> Self {
        PawlMachine::new()
    }
}

impl PawlMachine {
    /// The machine before op 1. The genesis entry makes root and sets the constants.
    pub fn new() -> PawlMachine {
        PawlMachine {
            constants: ClusterConstants::default(),
            secret: ClusterSecret([0; 32]),
            applied: Op(0),
            log_time: Timestamp(0),
            clients: ClientTable::default(),
            catalog: Catalog::default(),
            partitions: PartitionTable::default(),
            offsets: OffsetTable::default(),
            memberships: Memberships::default(),
        }
    }

    /// What the genesis entry says that all replicas share.
    pub fn constants(&self) -> &ClusterConstants {
        &self.constants
    }

    /// What keys the hashes of requests with secrets in them (spec DED-12).
    pub fn secret(&self) -> &ClusterSecret {
        &self.secret
    }

    /// The last op that was applied.
    pub fn applied(&self) -> Op {
        self.applied
    }

    /// The timestamp of the last op that was applied.
    pub fn log_time(&self) -> Timestamp {
        self.log_time
    }

    /// What exists and who may use it. A clone is cheap and does not change.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The counters of a partition.
    pub fn partition(&self, uid: PartitionUid) -> Option<PartitionView> {
        self.partitions.view(uid)
    }

    /// The sums of a topic; zero for one that does not exist.
    pub fn topic_totals(&self, stream: StreamId, topic: TopicId) -> Totals {
        self.partitions.topic(stream, topic)
    }

    /// The sums of a stream; zero for one that does not exist.
    pub fn stream_totals(&self, stream: StreamId) -> Totals {
        self.partitions.stream(stream)
    }

    /// Counts over everything.
    pub fn totals(&self) -> MachineTotals {
        let topics = self.catalog.streams().map(|stream| stream.topics().len());
        let every_topic = self.catalog.streams().flat_map(|stream| stream.topics());
        let groups = every_topic.map(|topic| topic.groups.len());
        MachineTotals {
            streams: self.catalog.streams().len() as u32,
            topics: topics.sum::<usize>() as u32,
            partitions: self.partitions.count() as u32,
            consumer_groups: groups.sum::<usize>() as u32,
            clients: self.clients.len() as u32,
            tombstones: self.clients.tombstones().len() as u32,
            data: self.partitions.all(),
        }
    }

    /// A stored offset.
    pub fn offset(&self, key: OffsetKey) -> Option<u64> {
        self.offsets.get(key)
    }

    /// The groups that clients are members of.
    pub fn memberships(&self) -> &Memberships {
        &self.memberships
    }

    /// The client table.
    pub fn clients(&self) -> &ClientTable {
        &self.clients
    }

    /// The entry of a client.
    pub fn client(&self, client: ClientId) -> Option<ClientView> {
        self.clients.get(client).map(|entry| ClientView {
            epoch: entry.epoch(),
            owner: entry.owner,
            watermark: entry.watermark,
            latest_commit: entry.latest_commit,
            released_at: entry.released_at,
        })
    }

    /// Panics where an invariant of the machine does not hold. Dear: for tests and simulations.
    pub fn assert_invariants(&self) {
        self.clients.assert_invariants(&self.constants);
        self.partitions.assert_invariants();
        assert!(
            self.memberships == Memberships::derive(&self.catalog),
            "memberships are those of the groups"
        );
        let mut slots = 0;
        for stream in self.catalog.streams() {
            for topic in stream.topics() {
                assert!(
                    topic
                        .groups
                        .iter()
                        .all(|group| group.owners().len() == topic.partitions.len()),
                    "a group deals all partitions of its topic"
                );
                for slot in topic.partitions.iter() {
                    slots += 1;
                    assert!(
                        self.partition(slot.uid).is_some(),
                        "a partition has counters"
                    );
                }
            }
        }
        assert!(
            slots == self.partitions.count(),
            "counters are of partitions"
        );
        for (key, offset) in self.offsets.iter() {
            let view = self
                .partition(key.partition)
                .expect("an offset is of a partition");
            assert!(
                offset < view.next_offset,
                "a stored offset names a message that was"
            );
        }
    }
}
