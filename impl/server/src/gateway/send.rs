//! Sending messages (101).
//!
//! Cost per request on the shard: every frame's checksum once (the producer's), the body's once
//! (the entry's); no copy. The log thread is handed the header and a handle of the body.

use pawl_machine::catalog::rights::Action;
use pawl_wire::commands::messages::SendMessages;
use pawl_wire::entry::EntryKind;
use pawl_wire::entry_arguments::SendMessagesArguments;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::ids::Timestamp;
use pawl_wire::primitives::{Partitioning, Wire};

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use super::target::{Target, missing_code, permit};
use super::write::proposal;
use crate::clients::Binding;

impl Connection {
    /// Appends a batch to a partition.
    pub(super) async fn send(&self, request: &Request, binding: &Binding) -> Answered {
        let header = &request.header;
        let arguments = match self.send_arguments(request, binding) {
            Ok(arguments) => arguments,
            Err(code) => return self.denied(header, code),
        };
        let mut entry = proposal(EntryKind::SendMessages, header, binding);
        entry.arguments = arguments.encode();
        self.propose(header, entry, request.body.clone()).await
    }

    fn send_arguments(
        &self,
        request: &Request,
        binding: &Binding,
    ) -> Result<SendMessagesArguments, ErrorCode> {
        let send = SendMessages::decode(&request.body).map_err(|_| ErrorCode::InvalidCommand)?;
        let batch = send.verify().map_err(|error| error.code())?;
        let target = self.send_target(&send, binding)?;
        Ok(SendMessagesArguments {
            partition_uid: target.uid,
            message_count: batch.message_count(),
            stream: target.stream,
            topic: target.topic,
            partition: target.partition,
            batch_length: batch.batch_length(),
            batch_position: u32::try_from(send.batch_position(&request.body))
                .map_err(|_| ErrorCode::InvalidCommand)?,
            origin_timestamp: Timestamp(batch.origin_timestamp()),
        })
    }

    /// The partition that a batch goes to.
    fn send_target(&self, send: &SendMessages<'_>, binding: &Binding) -> Result<Target, ErrorCode> {
        let node = &self.shard.node;
        let catalog = node.catalog.load();
        let (stream, topic) = catalog
            .topic(send.stream, send.topic)
            .map_err(missing_code)?;
        permit(&catalog, binding.user, Action::Send(stream.id, topic.id))?;
        let count = topic.partitions.len() as u32;
        let partition = match &send.partitioning {
            Partitioning::Balanced => {
                let turn = node.balance.turn(stream.id, topic.id);
                turn.checked_rem(count)
            }
            Partitioning::Partition(partition) => Some(*partition),
            keyed @ Partitioning::Key(_) => keyed.key_partition(count),
        };
        let partition = partition.ok_or(ErrorCode::PartitionNotFound)?;
        catalog
            .partition(send.stream, send.topic, partition)
            .map_err(missing_code)
    }
}
