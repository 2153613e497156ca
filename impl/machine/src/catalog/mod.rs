//! Users, streams, topics and partitions: what exists, who may use it, and under which identity.
//!
//! A [`Catalog`] is a value of persistent maps: a clone costs a few counters, so the log thread
//! changes its own and publishes a clone to the shards after every `Effect::CatalogChanged`. What
//! changes with every message (offsets, counts) is not here but in [`crate::partitions`].
//!
//! Invariants:
//! 1. A name map holds exactly the names of the things beside it, each with that thing's id.
//! 2. A visible id is the lowest that was free when the thing was made;
//!    [`lowest_free::Ids`] says which are taken.
//! 3. A [`PartitionUid`] stands in at most one topic, once, and never comes back.
//! 4. Partition ids of a topic are 0 to n − 1: the place in [`Topic::partitions`].
//! 5. User 0 exists from genesis on and is root.

use std::sync::Arc;

use imbl::OrdMap;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{PartitionId, PartitionUid, StreamId, TopicId, UserId};
use pawl_wire::primitives::Identifier;

mod change;
pub mod lowest_free;
pub mod rights;
mod stream;
mod topic;
mod user;

pub(crate) use change::NewTopic;
pub use lowest_free::Ids;
pub use stream::Stream;
pub use topic::{PartitionSlot, Topic};
pub use user::{PasswordHash, User, UserIdentity};

/// Number of root, for ever.
pub const ROOT: UserId = UserId(0);

/// What exists. See the module.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Catalog {
    users: OrdMap<UserId, Arc<User>>,
    users_by_name: OrdMap<Arc<str>, UserId>,
    user_ids: Ids,
    streams: OrdMap<StreamId, Arc<Stream>>,
    streams_by_name: OrdMap<Arc<str>, StreamId>,
    stream_ids: Ids,
}

/// The first level at which a request names something that is missing (spec ANS-12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Missing {
    /// No such stream (1009).
    #[error("the stream does not exist")]
    Stream,
    /// No such topic (2010).
    #[error("the topic does not exist")]
    Topic,
    /// No such partition (3007).
    #[error("the partition does not exist")]
    Partition,
}

impl Missing {
    /// The code that names the level.
    pub const fn code(self) -> ErrorCode {
        match self {
            Missing::Stream => ErrorCode::StreamIdNotFound,
            Missing::Topic => ErrorCode::TopicIdNotFound,
            Missing::Partition => ErrorCode::PartitionNotFound,
        }
    }
}

impl From<Missing> for ErrorCode {
    fn from(missing: Missing) -> ErrorCode {
        missing.code()
    }
}

/// A partition as a request names it, found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResolvedPartition {
    /// Its internal identity.
    pub uid: PartitionUid,
    /// Its stream.
    pub stream: StreamId,
    /// Its topic.
    pub topic: TopicId,
    /// Its visible number.
    pub partition: PartitionId,
}

impl Catalog {
    /// The user that an identifier names.
    pub fn user(&self, user: Identifier<'_>) -> Option<&Arc<User>> {
        match user {
            Identifier::Numeric(id) => self.users.get(&UserId(id)),
            Identifier::Named(name) => self.user_by_name(name.as_str()),
        }
    }

    /// The user with this number.
    pub fn user_by_id(&self, user: UserId) -> Option<&Arc<User>> {
        self.users.get(&user)
    }

    /// The user with this name: where a login starts.
    pub fn user_by_name(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(self.users_by_name.get(name)?)
    }

    /// All users, by id.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.users.values()
    }

    /// The stream that an identifier names.
    pub fn stream(&self, stream: Identifier<'_>) -> Result<&Arc<Stream>, Missing> {
        let found = match stream {
            Identifier::Numeric(id) => self.streams.get(&StreamId(id)),
            Identifier::Named(name) => self
                .streams_by_name
                .get(name.as_str())
                .and_then(|id| self.streams.get(id)),
        };
        found.ok_or(Missing::Stream)
    }

    /// The stream with this number.
    pub fn stream_by_id(&self, stream: StreamId) -> Option<&Arc<Stream>> {
        self.streams.get(&stream)
    }

    /// All streams, by id.
    pub fn streams(&self) -> impl ExactSizeIterator<Item = &Arc<Stream>> {
        self.streams.values()
    }

    /// The topic that two identifiers name, with its stream.
    pub fn topic(
        &self,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
    ) -> Result<(&Arc<Stream>, &Arc<Topic>), Missing> {
        let stream = self.stream(stream)?;
        let topic = stream.topic(topic).ok_or(Missing::Topic)?;
        Ok((stream, topic))
    }

    /// The topic with these numbers.
    pub fn topic_by_id(&self, stream: StreamId, topic: TopicId) -> Option<&Arc<Topic>> {
        self.streams.get(&stream)?.topic_by_id(topic)
    }

    /// The partition that a request names.
    pub fn partition(
        &self,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
        partition: u32,
    ) -> Result<ResolvedPartition, Missing> {
        let (stream, topic) = self.topic(stream, topic)?;
        let slot = topic
            .partitions
            .get(partition as usize)
            .ok_or(Missing::Partition)?;
        Ok(ResolvedPartition {
            uid: slot.uid,
            stream: stream.id,
            topic: topic.id,
            partition: PartitionId(partition),
        })
    }

    /// Who a session's user is, beyond its number (spec SES-10).
    pub fn identity(&self, user: UserId) -> Option<UserIdentity> {
        self.users.get(&user).map(|user| user.identity())
    }
}
