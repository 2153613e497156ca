//! Streams.

use std::sync::Arc;

use imbl::OrdMap;
use pawl_wire::ids::{Op, StreamId, Timestamp, TopicId};
use pawl_wire::primitives::Identifier;

use super::{Ids, Topic};

/// A stream: a name and topics.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    /// Visible number; reused after a deletion.
    pub id: StreamId,
    /// The op that created it.
    pub created_op: Op,
    /// Log time of that op.
    pub created_at: Timestamp,
    /// Unique among streams.
    pub name: Arc<str>,
    pub(super) topics: OrdMap<TopicId, Arc<Topic>>,
    pub(super) topics_by_name: OrdMap<Arc<str>, TopicId>,
    pub(super) topic_ids: Ids,
}

impl Stream {
    /// The topic that an identifier names.
    pub fn topic(&self, topic: Identifier<'_>) -> Option<&Arc<Topic>> {
        match topic {
            Identifier::Numeric(id) => self.topics.get(&TopicId(id)),
            Identifier::Named(name) => self.topics.get(self.topics_by_name.get(name.as_str())?),
        }
    }

    /// The topic with this number.
    pub fn topic_by_id(&self, topic: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(&topic)
    }

    /// All topics, by id.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &Arc<Topic>> {
        self.topics.values()
    }
}
