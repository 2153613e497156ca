//! Consumer groups: reads, and under which key a consumer's progress is kept.
//!
//! Groups are part of the catalog, so shards judge membership from what is published; what counts
//! for an offset write is apply's own look (spec SES-35).

use pawl_machine::catalog::rights::Action;
use pawl_machine::view::write_assignment;
use pawl_wire::command::CommandCode;
use pawl_wire::commands::groups::{GetGroup, GetGroups, SyncGroup};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{StreamId, TopicId};
use pawl_wire::primitives::{Consumer, ConsumerKind, Identifier, Wire};

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use super::target::{Target, missing_code, permit};
use crate::clients::Binding;

/// Whose progress: the key of a stored offset, but for the partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ConsumerKey {
    pub kind: ConsumerKind,
    pub key: u32,
}

/// How a consumer stands to a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It may poll: a plain consumer, or the group's member that owns the partition.
    Entitled(ConsumerKey),
    /// Another member of the group owns the partition, or the caller is no member.
    NotOwner(ConsumerKey),
}

impl Standing {
    /// The key, whatever the standing.
    pub(super) fn key(self) -> ConsumerKey {
        match self {
            Standing::Entitled(key) | Standing::NotOwner(key) => key,
        }
    }
}

impl Connection {
    /// Reads groups, or the caller's own assignment.
    pub(super) async fn group_read(
        &self,
        request: &Request,
        command: CommandCode,
        binding: &Binding,
    ) -> Answered {
        let answered = match command {
            CommandCode::GetGroup => self.get_group(request, binding).await,
            CommandCode::GetGroups => self.get_groups(request, binding).await,
            _ => self.sync_group(request, binding).await,
        };
        answered.unwrap_or_else(|code| self.denied(&request.header, code))
    }

    async fn get_group(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let get = GetGroup::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let (stream, topic) = self.readable_topic(who, get.stream, get.topic)?;
        let Some(group) = self.group_id(stream, topic, get.group) else {
            return Ok(self.empty(&request.header));
        };
        self.payload(&request.header, move |machine, out| {
            machine.write_group_details(stream, topic, group, out);
        })
        .await
    }

    async fn get_groups(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let get = GetGroups::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let (stream, topic) = self.readable_topic(who, get.stream, get.topic)?;
        self.payload(&request.header, move |machine, out| {
            if let Some(topic) = machine.catalog().topic_by_id(stream, topic) {
                machine.write_groups(topic, out);
            }
        })
        .await
    }

    /// What the session's client owns; an empty answer says that it is not a member.
    async fn sync_group(&self, request: &Request, who: &Binding) -> Result<Answered, ErrorCode> {
        let sync = SyncGroup::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let found = {
            let catalog = self.shard.node.catalog.load();
            let (stream, topic) = catalog
                .topic(sync.stream, sync.topic)
                .map_err(missing_code)?;
            (stream.id, topic.id)
        };
        let (stream, topic) = found;
        let group = self.group_id(stream, topic, sync.group);
        let group = group.ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        let client = who.client;
        self.payload(&request.header, move |machine, out| {
            let topic = machine.catalog().topic_by_id(stream, topic);
            if let Some(group) = topic.and_then(|topic| topic.groups.by_id(group)) {
                write_assignment(group, client, out);
            }
        })
        .await
    }

    fn readable_topic(
        &self,
        who: &Binding,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
    ) -> Result<(StreamId, TopicId), ErrorCode> {
        let catalog = self.shard.node.catalog.load();
        let (stream, topic) = catalog.topic(stream, topic).map_err(missing_code)?;
        permit(&catalog, who.user, Action::ReadTopic(stream.id, topic.id))?;
        Ok((stream.id, topic.id))
    }

    fn group_id(&self, stream: StreamId, topic: TopicId, group: Identifier<'_>) -> Option<u32> {
        let catalog = self.shard.node.catalog.load();
        let topic = catalog.topic_by_id(stream, topic)?;
        topic.groups.get(group).map(|group| group.id)
    }

    /// Under which key a consumer's progress in a partition is kept, and whether it may move it.
    /// `None`: the group does not exist.
    pub(super) fn consumer_standing(
        &self,
        who: &Binding,
        consumer: &Consumer<'_>,
        target: &Target,
    ) -> Option<Standing> {
        if let Some(key) = consumer.plain_key() {
            let kind = ConsumerKind::Plain;
            return Some(Standing::Entitled(ConsumerKey { kind, key }));
        }
        let catalog = self.shard.node.catalog.load();
        let topic = catalog.topic_by_id(target.stream, target.topic)?;
        let group = topic.groups.get(consumer.identifier())?;
        let key = ConsumerKey {
            kind: ConsumerKind::Group,
            key: group.id,
        };
        Some(match group.owns(who.client, target.partition.0) {
            true => Standing::Entitled(key),
            false => Standing::NotOwner(key),
        })
    }
}
