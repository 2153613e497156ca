//! Who may do what: one table for every door.
//!
//! | action | any one of: global, on the stream, on the topic |
//! | --- | --- |
//! | [`Action::ReadServers`] | g.manage_servers g.read_servers |
//! | [`Action::ReadUsers`] | g.manage_users g.read_users |
//! | [`Action::ManageUsers`] | g.manage_users |
//! | [`Action::ListStreams`] | g.manage_streams g.read_streams |
//! | [`Action::ReadStream`] | as list streams, s.manage_stream s.read_stream |
//! | [`Action::CreateStream`] | g.manage_streams |
//! | [`Action::ManageStream`] | g.manage_streams, s.manage_stream |
//! | [`Action::ListTopics`] | as read stream, and manage_topics read_topics of g. and s. |
//! | [`Action::ReadTopic`] | as list topics, t.manage_topic t.read_topic |
//! | [`Action::CreateTopic`] | g.manage_streams g.manage_topics, s.manage_stream s.manage_topics |
//! | [`Action::ManageTopic`] | as create topic, t.manage_topic |
//! | [`Action::Poll`] | as read topic, poll_messages of g., s. and t. |
//! | [`Action::Send`] | as manage topic, send_messages of g., s. and t. |
//!
//! Root may do everything. What every signed-in user may do (own record, own password, own tokens,
//! ping, roster, options) is not an action here.

use pawl_wire::ids::{StreamId, TopicId};
use pawl_wire::permissions::{GlobalPermissions, StreamRights, TopicPermissions};

use super::User;

/// Something that needs a right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Statistics, clients, diagnostic snapshots.
    ReadServers,
    /// Other users' records.
    ReadUsers,
    /// Creating and changing users.
    ManageUsers,
    /// The list of streams.
    ListStreams,
    /// One stream's details.
    ReadStream(StreamId),
    /// A new stream.
    CreateStream,
    /// Renaming, purging, deleting a stream.
    ManageStream(StreamId),
    /// The list of a stream's topics.
    ListTopics(StreamId),
    /// One topic's details, and every consumer group command.
    ReadTopic(StreamId, TopicId),
    /// A new topic.
    CreateTopic(StreamId),
    /// Changing, purging, deleting a topic; its partitions and segments.
    ManageTopic(StreamId, TopicId),
    /// Polling, and reading and writing offsets.
    Poll(StreamId, TopicId),
    /// Sending.
    Send(StreamId, TopicId),
}

/// The rights of a user at the place of an action.
#[derive(Clone, Copy, Default)]
struct Held {
    global: GlobalPermissions,
    stream: StreamRights,
    topic: TopicPermissions,
}

impl User {
    /// Whether the user may do this.
    pub fn may(&self, action: Action) -> bool {
        self.is_root() || self.held(action).allows(action)
    }

    fn held(&self, action: Action) -> Held {
        let Some(permissions) = &self.permissions else {
            return Held::default();
        };
        let (stream, topic) = action.place();
        let stream = stream.and_then(|stream| permissions.streams.get(&stream.0));
        let topic = topic.and_then(|topic| stream?.topics.get(&topic.0));
        Held {
            global: permissions.global,
            stream: stream.map(|stream| stream.rights).unwrap_or_default(),
            topic: topic.copied().unwrap_or_default(),
        }
    }
}

impl Action {
    /// The stream and topic that the action is about.
    const fn place(self) -> (Option<StreamId>, Option<TopicId>) {
        use Action::*;
        match self {
            ReadServers | ReadUsers | ManageUsers | ListStreams | CreateStream => (None, None),
            ReadStream(stream) | ManageStream(stream) | ListTopics(stream)
            | CreateTopic(stream) => (Some(stream), None),
            ReadTopic(stream, topic)
            | ManageTopic(stream, topic)
            | Poll(stream, topic)
            | Send(stream, topic) => (Some(stream), Some(topic)),
        }
    }
}

impl Held {
    /// The table of the module.
    fn allows(&self, action: Action) -> bool {
        let Held {
            global: g,
            stream: s,
            topic: t,
        } = self;
        match action {
            Action::ReadServers => g.manage_servers || g.read_servers,
            Action::ReadUsers => g.manage_users || g.read_users,
            Action::ManageUsers => g.manage_users,
            Action::ListStreams => g.manage_streams || g.read_streams,
            Action::ReadStream(_) => {
                g.manage_streams || g.read_streams || s.manage_stream || s.read_stream
            }
            Action::CreateStream => g.manage_streams,
            Action::ManageStream(_) => g.manage_streams || s.manage_stream,
            Action::ListTopics(_) => self.lists_topics(),
            Action::ReadTopic(..) => self.lists_topics() || t.manage_topic || t.read_topic,
            Action::CreateTopic(_) => self.creates_topics(),
            Action::ManageTopic(..) => self.creates_topics() || t.manage_topic,
            Action::Poll(..) => {
                let reads = self.lists_topics() || t.manage_topic || t.read_topic;
                reads || g.poll_messages || s.poll_messages || t.poll_messages
            }
            Action::Send(..) => {
                let manages = self.creates_topics() || t.manage_topic;
                manages || g.send_messages || s.send_messages || t.send_messages
            }
        }
    }

    fn lists_topics(&self) -> bool {
        let Held {
            global: g,
            stream: s,
            ..
        } = self;
        g.manage_streams
            || g.read_streams
            || g.manage_topics
            || g.read_topics
            || s.manage_stream
            || s.read_stream
            || s.manage_topics
            || s.read_topics
    }

    fn creates_topics(&self) -> bool {
        let Held {
            global: g,
            stream: s,
            ..
        } = self;
        g.manage_streams || g.manage_topics || s.manage_stream || s.manage_topics
    }
}
