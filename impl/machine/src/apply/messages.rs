//! Messages and stored offsets.

use bytes::Bytes;
use pawl_wire::commands::messages::SendReceipt;
use pawl_wire::entry_arguments::{OffsetArguments, SendMessagesArguments};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::HEADER_BYTES;
use pawl_wire::primitives::{ConsumerKind, Wire};

use super::request::{Executed, Execution};
use crate::effect::Effect;
use crate::machine::PawlMachine;
use crate::offsets::OffsetKey;

/// Bytes of the body of a send's reply: a count of 1 and one receipt.
const SEND_REPLY_BYTES: usize = 4 + SendReceipt::BYTES_MIN;

const _: () = assert!(SEND_REPLY_BYTES == 24);

impl PawlMachine {
    /// Gives a batch its offsets and its append time. Decides by the arguments alone.
    pub(super) fn send_messages(&mut self, execution: Execution<'_>) -> Executed {
        let Execution {
            header,
            reply,
            effects,
            ..
        } = execution;
        let arguments = SendMessagesArguments::decode(&header.arguments)
            .map_err(|_| ErrorCode::InvalidCommand)?;
        let uid = arguments.partition_uid;
        let messages = arguments.message_count;
        if messages == 0 {
            return Err(ErrorCode::InvalidCommand);
        }
        // The partition may have gone since the door resolved it.
        let appended = self
            .partitions
            .append(uid, messages, arguments.batch_length);
        let appended = appended.ok_or(ErrorCode::ResourceNotFound)?;
        effects.push(Effect::Appended {
            partition: uid,
            op: header.op(),
            base_offset: appended.base_offset,
            timestamp: header.timestamp(),
            message_count: messages,
            batch_position: arguments.batch_position,
            batch_length: arguments.batch_length,
        });
        let receipt = SendReceipt {
            stream: appended.place.stream.0,
            topic: appended.place.topic.0,
            partition: appended.place.partition.0,
            base_offset: appended.base_offset,
        };
        // Exact capacity: the frame is one allocation.
        let mut frame = Vec::with_capacity(HEADER_BYTES + SEND_REPLY_BYTES);
        frame.extend_from_slice(reply.header(SEND_REPLY_BYTES as u32).as_bytes());
        1u32.write(&mut frame);
        receipt.write(&mut frame);
        Ok(Bytes::from(frame))
    }

    /// Stores a consumer's offset: anything up to the current one, backwards too.
    pub(super) fn store_offset(&mut self, execution: Execution<'_>) -> Executed {
        let (key, arguments) = offset_key(&execution)?;
        let view = self.partitions.view(key.partition);
        let view = view.ok_or(ErrorCode::ResourceNotFound)?;
        self.may_write_offset(&execution, key)?;
        // An offset whose message is gone is as good as a stored one that was trimmed past.
        if arguments.offset >= view.next_offset {
            return Err(ErrorCode::InvalidOffset);
        }
        let full = self.offsets.count(key.partition) >= self.constants.offsets_per_partition_max;
        if full && self.offsets.get(key).is_none() {
            return Err(ErrorCode::TooManyConsumerOffsets);
        }
        self.offsets.store(key, arguments.offset);
        Ok(execution.reply.empty())
    }

    /// Deletes a consumer's offset.
    pub(super) fn delete_offset(&mut self, execution: Execution<'_>) -> Executed {
        let (key, _) = offset_key(&execution)?;
        if self.partitions.view(key.partition).is_none() {
            return Err(ErrorCode::ResourceNotFound);
        }
        self.may_write_offset(&execution, key)?;
        match self.offsets.delete(key) {
            true => Ok(execution.reply.empty()),
            false => Err(ErrorCode::ConsumerOffsetNotFound),
        }
    }
}

impl PawlMachine {
    /// A group's offset is written by the member that owns the partition, and by nobody else.
    // spec SES-35
    fn may_write_offset(&self, execution: &Execution<'_>, key: OffsetKey) -> Result<(), ErrorCode> {
        if key.kind == ConsumerKind::Plain {
            return Ok(());
        }
        let place = self.partitions.place(key.partition);
        let place = place.ok_or(ErrorCode::ResourceNotFound)?;
        let topic = (place.stream, place.topic);
        let client = execution.header.client();
        self.owns_offset(client, topic, place.partition.0, key.consumer)
    }
}

fn offset_key(execution: &Execution<'_>) -> Result<(OffsetKey, OffsetArguments), ErrorCode> {
    let arguments = OffsetArguments::decode(&execution.header.arguments)
        .map_err(|_| ErrorCode::InvalidCommand)?;
    let key = OffsetKey {
        partition: arguments.partition_uid,
        kind: arguments.consumer_kind,
        consumer: arguments.consumer_key,
    };
    Ok((key, arguments))
}
