//! Writes to the catalog and to stored offsets: judged without state first, then proposed.

use bytes::Bytes;
use pawl_machine::catalog::rights::Action;
use pawl_machine::check::check_body;
use pawl_machine::offsets::OffsetKey;
use pawl_vsr::{Outcome, Refusal, RetryClass};
use pawl_wire::command::CommandCode;
use pawl_wire::commands::offsets::{DeleteOffset, GetOffset, OffsetReply, StoreOffset};
use pawl_wire::entry::{EntryHeader, EntryKind};
use pawl_wire::entry_arguments::OffsetArguments;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::RequestHeader;
use pawl_wire::operation::Operation;
use pawl_wire::primitives::{Consumer, Identifier, Wire};

use super::answer::Answered;
use super::connection::Connection;
use super::frames::Request;
use super::groups::ConsumerKey;
use super::target::Target;
use crate::clients::Binding;
use crate::shard::InDoubt;

impl Connection {
    /// Creates, changes, deletes or purges something of the catalog.
    pub(super) async fn metadata_write(
        &self,
        request: &Request,
        command: CommandCode,
        binding: &Binding,
    ) -> Answered {
        let kind = EntryKind::from_u8(request.header.operation)
            .expect("metadata writes are kinds of entries");
        debug_assert_eq!(command.operation() as u8, kind as u8);
        // spec ANS-13
        if let Err(code) = check_body(kind, &request.body) {
            return self.denied(&request.header, code);
        }
        let header = proposal(kind, &request.header, binding);
        self.propose(&request.header, header, request.body.clone())
            .await
    }

    /// Reads, stores or deletes a stored offset.
    pub(super) async fn offsets(
        &self,
        request: &Request,
        command: CommandCode,
        binding: &Binding,
    ) -> Answered {
        match command {
            CommandCode::GetOffset => self.get_offset(request, binding).await,
            CommandCode::StoreOffset => self.store_offset(request, binding).await,
            _ => self.delete_offset(request, binding).await,
        }
    }

    async fn get_offset(&self, request: &Request, binding: &Binding) -> Answered {
        let header = &request.header;
        let Ok(get) = GetOffset::decode(&request.body) else {
            return self.denied(header, ErrorCode::InvalidCommand);
        };
        let partition = get.partition.0.unwrap_or(0);
        let target = match self.target(binding, get.stream, get.topic, partition, Action::Poll) {
            Ok(target) => target,
            Err(code) => return self.denied(header, code),
        };
        // Anybody may read a group's progress; a group that is missing has none.
        let Some(standing) = self.consumer_standing(binding, &get.consumer, &target) else {
            return self.empty(header);
        };
        let key = OffsetKey {
            partition: target.uid,
            kind: standing.key().kind,
            consumer: standing.key().key,
        };
        let found = self
            .shard
            .ask(move |machine| Some((machine.offset(key)?, machine.partition(key.partition)?)))
            .await;
        match found {
            Err(in_doubt) => self.denied(header, in_doubt.of_a_read()),
            Ok(None) => self.empty(header),
            Ok(Some((stored, counters))) => {
                let reply = OffsetReply {
                    partition,
                    current: counters.current_offset(),
                    stored,
                };
                Answered::Frame(self.reply_to(header).success(&reply))
            }
        }
    }

    async fn store_offset(&self, request: &Request, binding: &Binding) -> Answered {
        let Ok(store) = StoreOffset::decode(&request.body) else {
            return self.denied(&request.header, ErrorCode::InvalidCommand);
        };
        let place = (store.stream, store.topic, store.partition.0);
        match self.offset_arguments(binding, &store.consumer, place) {
            Err(code) => self.denied(&request.header, code),
            Ok(mut arguments) => {
                arguments.offset = store.offset;
                self.propose_offset(request, EntryKind::StoreOffset, arguments, binding)
                    .await
            }
        }
    }

    async fn delete_offset(&self, request: &Request, binding: &Binding) -> Answered {
        let Ok(delete) = DeleteOffset::decode(&request.body) else {
            return self.denied(&request.header, ErrorCode::InvalidCommand);
        };
        let place = (delete.stream, delete.topic, delete.partition.0);
        match self.offset_arguments(binding, &delete.consumer, place) {
            Err(code) => self.denied(&request.header, code),
            Ok(arguments) => {
                self.propose_offset(request, EntryKind::DeleteOffset, arguments, binding)
                    .await
            }
        }
    }

    async fn propose_offset(
        &self,
        request: &Request,
        kind: EntryKind,
        arguments: OffsetArguments,
        binding: &Binding,
    ) -> Answered {
        let mut header = proposal(kind, &request.header, binding);
        header.arguments = arguments.encode();
        self.propose(&request.header, header, request.body.clone())
            .await
    }

    /// Whose offset, in which partition. A write must name its partition.
    fn offset_arguments(
        &self,
        binding: &Binding,
        consumer: &Consumer<'_>,
        (stream, topic, partition): (Identifier<'_>, Identifier<'_>, Option<u32>),
    ) -> Result<OffsetArguments, ErrorCode> {
        let Some(partition) = partition else {
            return Err(ErrorCode::ResourceNotFound);
        };
        let target = self.target(binding, stream, topic, partition, Action::Poll)?;
        let standing = self.consumer_standing(binding, consumer, &target);
        let standing = standing.ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        Ok(offset_arguments_of(&target, standing.key(), 0))
    }

    /// Proposes an entry and turns its outcome into the answer.
    pub(super) async fn propose(
        &self,
        request: &RequestHeader,
        header: EntryHeader,
        body: Bytes,
    ) -> Answered {
        match self.shard.propose(header, body).await {
            Ok(Outcome::Reply { frame, .. }) => Answered::machine(frame),
            Ok(Outcome::Answer { frame, .. }) => {
                let answered = Answered::machine(frame);
                self.count_repeat(&answered);
                answered
            }
            Ok(Outcome::Refused(refusal)) => self.refused(request, &refusal),
            Err(InDoubt) => self.in_doubt(request),
        }
    }

    /// A refusal of the replica, by its retry class (spec ANS-4), in the channel of the operation
    /// (spec ANS-8).
    pub(super) fn refused(&self, request: &RequestHeader, refusal: &Refusal) -> Answered {
        let code = match refusal.class() {
            RetryClass::NotAccepted => ErrorCode::TransientNotAccepted,
            RetryClass::UnknownOutcome => ErrorCode::TransientNotCommitted,
            RetryClass::Terminal => ErrorCode::InvalidCommand,
        };
        self.refused_with(request, code)
    }

    /// A proposal whose outcome is not known when its wait ends (spec ANS-6).
    pub(super) fn in_doubt(&self, request: &RequestHeader) -> Answered {
        self.refused_with(request, ErrorCode::TransientNotCommitted)
    }

    fn refused_with(&self, request: &RequestHeader, code: ErrorCode) -> Answered {
        let reply = self.reply_to(request);
        let is_partition = Operation::from_u8(request.operation).is_some_and(|o| o.is_partition());
        let frame = match is_partition {
            true => reply.denied(code),
            false => reply.refused(code),
        };
        Answered::Refused(frame, code)
    }

    /// An answer without a log entry is a repeat's, unless it is an eviction (spec DED-17).
    fn count_repeat(&self, answered: &Answered) {
        use pawl_wire::reply::Answer;
        let Answered::Frame(frame) = answered else {
            return;
        };
        let reason = match Answer::decode(frame) {
            Ok(Answer::Refused(_, code)) if code == ErrorCode::RequestAlreadyApplied as u32 => {
                "applied_earlier"
            }
            Ok(Answer::Refused(header, _)) if header.status != 0 => "number_used",
            _ => "kept_reply",
        };
        self.shard.node.metrics.repeated(reason);
    }
}

/// The header of a proposal: who asks, under which number.
pub(super) fn proposal(kind: EntryKind, request: &RequestHeader, binding: &Binding) -> EntryHeader {
    let mut header = EntryHeader::new(kind);
    header.client = binding.client.0;
    header.epoch = binding.epoch.0;
    header.user = binding.user.0;
    header.request = request.request;
    header.request_checksum = request.request_checksum;
    header
}

/// The arguments of an offset write.
pub(super) fn offset_arguments_of(
    target: &Target,
    consumer: ConsumerKey,
    offset: u64,
) -> OffsetArguments {
    OffsetArguments {
        partition_uid: target.uid,
        stream: target.stream,
        topic: target.topic,
        partition: target.partition,
        consumer_kind: consumer.kind,
        consumer_key: consumer.key,
        offset,
    }
}
