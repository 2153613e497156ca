//! From the identifiers of a request to a partition, under the rights of its user.

use pawl_machine::Catalog;
use pawl_machine::catalog::rights::Action;
use pawl_machine::catalog::{Missing, ResolvedPartition};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::{StreamId, TopicId, UserId};
use pawl_wire::primitives::Identifier;

use super::connection::Connection;
use crate::clients::Binding;

/// A partition that the user may do this to.
pub(super) type Target = ResolvedPartition;

impl Connection {
    /// Finds a partition. The first level that is missing is named (spec ANS-12).
    pub(super) fn target(
        &self,
        binding: &Binding,
        stream: Identifier<'_>,
        topic: Identifier<'_>,
        partition: u32,
        action: fn(StreamId, TopicId) -> Action,
    ) -> Result<Target, ErrorCode> {
        let catalog = self.shard.node.catalog.load();
        let (found_stream, found_topic) = catalog.topic(stream, topic).map_err(missing_code)?;
        let action = action(found_stream.id, found_topic.id);
        permit(&catalog, binding.user, action)?;
        catalog
            .partition(stream, topic, partition)
            .map_err(missing_code)
    }
}

/// Whether a user may do something; a deleted user may do nothing (spec SES-31).
pub(super) fn permit(catalog: &Catalog, user: UserId, action: Action) -> Result<(), ErrorCode> {
    match catalog.user_by_id(user) {
        Some(user) if user.may(action) => Ok(()),
        _ => Err(ErrorCode::Unauthorized),
    }
}

/// The code of what is missing.
pub(super) fn missing_code(missing: Missing) -> ErrorCode {
    match missing {
        Missing::Stream => ErrorCode::StreamIdNotFound,
        Missing::Topic => ErrorCode::TopicIdNotFound,
        Missing::Partition => ErrorCode::PartitionNotFound,
    }
}
