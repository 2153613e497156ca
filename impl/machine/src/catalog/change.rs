//! Changes of the catalog. Each keeps the invariants of the module above; whether a change is
//! allowed is decided by apply, which is the only caller.

use std::sync::Arc;

use imbl::OrdMap;
use pawl_wire::ids::{Op, StreamId, Timestamp, TopicId, UserId};
use pawl_wire::topic_options::TopicOptions;

use super::{Catalog, Ids, PartitionSlot, Stream, Topic, User};
use crate::groups::Groups;

impl Catalog {
    /// Adds a user under the lowest free number, which it must carry.
    pub(crate) fn insert_user(&mut self, user: User) {
        let id = UserId(self.user_ids.take());
        assert!(user.id == id, "a new user has the lowest free number");
        self.users_by_name.insert(user.name.clone(), id);
        self.users.insert(id, Arc::new(user));
    }

    /// Adds a stream without topics under the lowest free number. Its name must be free.
    pub(crate) fn insert_stream(&mut self, name: &str, op: Op, now: Timestamp) -> Arc<Stream> {
        let name: Arc<str> = name.into();
        let id = StreamId(self.stream_ids.take());
        let stream = Arc::new(Stream {
            id,
            created_op: op,
            created_at: now,
            name: name.clone(),
            topics: OrdMap::new(),
            topics_by_name: OrdMap::new(),
            topic_ids: Ids::default(),
        });
        let taken = self.streams_by_name.insert(name, id);
        assert!(taken.is_none(), "the name of a new stream is free");
        self.streams.insert(id, stream.clone());
        stream
    }

    /// Renames a stream. The new name must be free, or its own.
    pub(crate) fn rename_stream(&mut self, stream: StreamId, name: &str) {
        let name: Arc<str> = name.into();
        let before = self.stream_mut(stream, |stream| {
            std::mem::replace(&mut stream.name, name.clone())
        });
        self.streams_by_name.remove(&before);
        let taken = self.streams_by_name.insert(name, stream);
        assert!(taken.is_none(), "the new name of a stream is free");
    }

    /// Removes a stream with its topics.
    pub(crate) fn remove_stream(&mut self, stream: StreamId) {
        let removed = self.streams.remove(&stream);
        let removed = removed.expect("a stream that is removed was found before");
        self.streams_by_name.remove(&removed.name);
        self.stream_ids.release(stream.0);
    }

    /// Adds a topic under the lowest free number of its stream. Its name must be free.
    pub(crate) fn insert_topic(&mut self, stream: StreamId, new: NewTopic<'_>) -> TopicId {
        self.stream_mut(stream, |stream| {
            let id = TopicId(stream.topic_ids.take());
            let name: Arc<str> = new.name.into();
            let topic = Topic {
                id,
                created_op: new.op,
                created_at: new.now,
                name: name.clone(),
                options: new.options,
                partitions: new.partitions,
                groups: Groups::default(),
            };
            let taken = stream.topics_by_name.insert(name, id);
            assert!(taken.is_none(), "the name of a new topic is free");
            stream.topics.insert(id, Arc::new(topic));
            id
        })
    }

    /// Puts a changed topic in the place of what it was. Its name must be free, or its own.
    pub(crate) fn replace_topic(&mut self, stream: StreamId, topic: Topic) {
        self.stream_mut(stream, |stream| {
            let (id, name) = (topic.id, topic.name.clone());
            let before = stream.topics.insert(id, Arc::new(topic));
            let before = before.expect("a topic that is replaced was found before");
            stream.topics_by_name.remove(&before.name);
            let taken = stream.topics_by_name.insert(name, id);
            assert!(taken.is_none(), "the new name of a topic is free");
        });
    }

    /// Removes a topic.
    pub(crate) fn remove_topic(&mut self, stream: StreamId, topic: TopicId) {
        self.stream_mut(stream, |stream| {
            let removed = stream.topics.remove(&topic);
            let removed = removed.expect("a topic that is removed was found before");
            stream.topics_by_name.remove(&removed.name);
            stream.topic_ids.release(topic.0);
        });
    }

    fn stream_mut<T>(&mut self, stream: StreamId, change: impl FnOnce(&mut Stream) -> T) -> T {
        let found = self.streams.get_mut(&stream);
        let found = found.expect("a stream that is changed was found before");
        change(Arc::make_mut(found))
    }

    /// The catalog of these users and streams, which come by rising id, as a snapshot holds them.
    /// `None` where a name stands twice.
    pub(crate) fn assemble(users: Vec<User>, streams: Vec<Stream>) -> Option<Catalog> {
        let mut catalog = Catalog {
            user_ids: Ids::of_taken(users.iter().map(|user| user.id.0)),
            stream_ids: Ids::of_taken(streams.iter().map(|stream| stream.id.0)),
            ..Catalog::default()
        };
        for user in users {
            if catalog
                .users_by_name
                .insert(user.name.clone(), user.id)
                .is_some()
            {
                return None;
            }
            catalog.users.insert(user.id, Arc::new(user));
        }
        for stream in streams {
            let name = stream.name.clone();
            if catalog.streams_by_name.insert(name, stream.id).is_some() {
                return None;
            }
            catalog.streams.insert(stream.id, Arc::new(stream));
        }
        Some(catalog)
    }
}

impl Stream {
    /// The stream of these topics, which come by rising id, as a snapshot holds them. `None` where
    /// a name stands twice.
    pub(crate) fn assemble(
        id: StreamId,
        created_op: Op,
        created_at: Timestamp,
        name: Arc<str>,
        topics: Vec<Topic>,
    ) -> Option<Stream> {
        let mut stream = Stream {
            id,
            created_op,
            created_at,
            name,
            topics: OrdMap::new(),
            topics_by_name: OrdMap::new(),
            topic_ids: Ids::of_taken(topics.iter().map(|topic| topic.id.0)),
        };
        for topic in topics {
            let name = topic.name.clone();
            if stream.topics_by_name.insert(name, topic.id).is_some() {
                return None;
            }
            stream.topics.insert(topic.id, Arc::new(topic));
        }
        Some(stream)
    }
}

/// A topic that is to be.
pub(crate) struct NewTopic<'a> {
    pub name: &'a str,
    pub op: Op,
    pub now: Timestamp,
    pub options: TopicOptions,
    pub partitions: Arc<[PartitionSlot]>,
}
