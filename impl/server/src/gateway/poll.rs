//! Polling messages (100, 104) on a node alone.
//!
//! Cost per batch of the answer: a look-up in the index, the stamping of 256 bytes of header, and a
//! handle of the body, from the tail cache or by a verified read. The body is copied only when it
//! is small. The index's lock is held while entries are copied out, never over a read.

use bytes::Bytes;
use pawl_machine::catalog::rights::Action;
use pawl_machine::offsets::OffsetKey;
use pawl_store::{BatchEntry, ReadError};
use pawl_vsr::Outcome;
use pawl_wire::batch::{
    BATCH_HEADER_BYTES, BatchError, BatchHeader, Stamp, frame_checksums, slice_batch,
};
use pawl_wire::commands::messages::{
    PARTITION_RESYNC, POLL_HEAD_BYTES, PollMessages, poll_reply_head,
};
use pawl_wire::entry::EntryKind;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{HEADER_BYTES, RequestHeader};
use pawl_wire::ids::Timestamp;
use pawl_wire::primitives::{ConsumerKind, PollingStrategy, Wire};
use pawl_wire::reply::Answer;

use super::answer::{Answered, Pieces};
use super::connection::Connection;
use super::frames::Request;
use super::groups::{ConsumerKey, Standing};
use super::target::Target;
use super::write::{offset_arguments_of, proposal};
use crate::clients::Binding;
use crate::limits::{POLL_BATCHES_MAX, POLL_BYTES_MAX, POLL_MESSAGES_MAX};
use crate::shard::InDoubt;

/// How often a poll starts over because a batch was moved on the disk meanwhile.
const MOVED_ATTEMPTS: usize = 8;

/// Bytes in front of the records of an answer.
const FRONT_BYTES: usize = HEADER_BYTES + POLL_HEAD_BYTES;

/// Where a poll starts, and what the partition's newest offset is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Start {
    /// The first offset to return; `None`: there is nothing.
    offset: Option<u64>,
    current: u64,
}

/// Part of a batch that a poll returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    entry: BatchEntry,
    /// Messages by place in the batch, from 0.
    first: u32,
    end: u32,
}

/// Why a poll has no records.
#[derive(Debug, thiserror::Error)]
enum PollError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("a stored batch is malformed: {0}")]
    Batch(#[from] BatchError),
    #[error(transparent)]
    InDoubt(#[from] InDoubt),
}

/// Records of an answer.
struct Records {
    pieces: Pieces,
    messages: u32,
    /// Offset of the last message.
    last: Option<u64>,
}

impl Records {
    /// No records, with room for what stands in front of them.
    fn none() -> Records {
        let mut pieces = Pieces::default();
        pieces.copy(&[0; FRONT_BYTES]);
        Records {
            pieces,
            messages: 0,
            last: None,
        }
    }
}

impl Connection {
    /// Returns messages, and stores the offset of the last one when asked to.
    pub(super) async fn poll(&self, request: &Request, binding: &Binding) -> Answered {
        let header = &request.header;
        let Ok(poll) = PollMessages::decode(&request.body) else {
            return self.denied(header, ErrorCode::InvalidCommand);
        };
        let partition = poll.partition.0.unwrap_or(0);
        let target = match self.target(binding, poll.stream, poll.topic, partition, Action::Poll) {
            Ok(target) => target,
            Err(code) => return self.denied(header, code),
        };
        let consumer = match self.consumer_standing(binding, &poll.consumer, &target) {
            None => return self.denied(header, ErrorCode::ConsumerGroupIdNotFound),
            // A member picks its partition itself, from what the group gave it.
            Some(standing)
                if standing.key().kind == ConsumerKind::Group && poll.partition.0.is_none() =>
            {
                return self.denied(header, ErrorCode::InvalidIdentifier);
            }
            // The caller's assignment is stale: it reads the new one and polls again.
            Some(Standing::NotOwner(_)) => {
                return self.poll_answer(header, PARTITION_RESYNC, 0, Records::none());
            }
            Some(Standing::Entitled(key)) => key,
        };
        let stored = match poll.strategy {
            PollingStrategy::Next => match self.stored_offset(&target, consumer).await {
                Ok(stored) => stored,
                Err(in_doubt) => return self.denied(header, in_doubt.of_a_read()),
            },
            _ => None,
        };
        let (start, records) = match self.collect(&target, &poll, stored).await {
            Ok(found) => found,
            Err(PollError::InDoubt(in_doubt)) => {
                return self.denied(header, in_doubt.of_a_read());
            }
            Err(error) => {
                tracing::error!(partition = %target.uid, %error, "a poll cannot read its batches");
                return self.denied(header, ErrorCode::CannotReadMessage);
            }
        };
        if poll.auto_commit
            && let Some(last) = records.last
            && let Err(refusal) = self
                .auto_commit(header, binding, &target, consumer, last)
                .await
        {
            return refusal;
        }
        self.poll_answer(header, partition, start.current, records)
    }

    async fn stored_offset(
        &self,
        target: &Target,
        consumer: ConsumerKey,
    ) -> Result<Option<u64>, InDoubt> {
        let key = OffsetKey {
            partition: target.uid,
            kind: consumer.kind,
            consumer: consumer.key,
        };
        self.shard.ask(move |machine| machine.offset(key)).await
    }

    /// Finds and fetches the records of a poll.
    async fn collect(
        &self,
        target: &Target,
        poll: &PollMessages<'_>,
        stored: Option<u64>,
    ) -> Result<(Start, Records), PollError> {
        let mut attempt = 0;
        loop {
            let (start, parts) = self.look_up(target, poll, stored).await?;
            match self.fetch(target, &parts) {
                Ok(records) => return Ok((start, records)),
                // The batch was drained between look-up and read: its place is another one now.
                Err(PollError::Read(ReadError::Moved)) if attempt < MOVED_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn look_up(
        &self,
        target: &Target,
        poll: &PollMessages<'_>,
        stored: Option<u64>,
    ) -> Result<(Start, Vec<Part>), InDoubt> {
        let found = self.shard.node.index.get(target.uid).and_then(|handle| {
            let index = handle.read();
            let (first, last) = (index.first()?, index.last()?);
            let by_time = |t| {
                let entry = index.get(index.index_of_timestamp(Timestamp(t)))?;
                Some(entry.base_offset)
            };
            let start = start_of(poll, stored, &first, &last, by_time);
            let parts = match start
                .offset
                .and_then(|offset| index.index_of_offset(offset))
            {
                None => Vec::new(),
                Some(at) => parts_from(index.iter_from(at), start.offset, poll.count),
            };
            Some((start, parts))
        });
        match found {
            Some(found) => Ok(found),
            None => {
                let uid = target.uid;
                let counters = self
                    .shard
                    .ask(move |machine| machine.partition(uid))
                    .await?;
                let start = Start {
                    offset: None,
                    current: counters.map_or(0, |counters| counters.current_offset()),
                };
                Ok((start, Vec::new()))
            }
        }
    }

    fn fetch(&self, target: &Target, parts: &[Part]) -> Result<Records, PollError> {
        let node = &self.shard.node;
        let mut cached = Vec::with_capacity(parts.len());
        node.tail
            .get(parts.iter().map(|part| part.entry.op), &mut cached);
        let Records {
            mut pieces,
            mut messages,
            ..
        } = Records::none();
        for (part, body) in parts.iter().zip(cached) {
            let body = match body {
                Some(body) => {
                    node.metrics.poll_batches_cached.inc();
                    body
                }
                None => {
                    node.metrics.poll_batches_read.inc();
                    node.reader.read(&part.entry.place)?
                }
            };
            append_part(&mut pieces, target, part, &body)?;
            messages += part.end - part.first;
        }
        node.metrics.messages_polled.inc_by(messages.into());
        node.metrics
            .message_bytes_polled
            .inc_by((pieces.bytes() - FRONT_BYTES) as u64);
        let last = parts
            .last()
            .map(|part| part.entry.base_offset + u64::from(part.end) - 1);
        Ok(Records {
            pieces,
            messages,
            last,
        })
    }

    /// Stores the offset of the last message returned, before it is returned: a poll that is
    /// answered has its offset committed.
    async fn auto_commit(
        &self,
        request: &RequestHeader,
        binding: &Binding,
        target: &Target,
        consumer: ConsumerKey,
        last: u64,
    ) -> Result<(), Answered> {
        let mut header = proposal(EntryKind::StoreOffset, request, binding);
        // A poll's number and checksum are not those of a write: nothing is deduplicated by them.
        header.request = 0;
        header.request_checksum = 0;
        header.arguments = offset_arguments_of(target, consumer, last).encode();
        let frame = match self.shard.propose(header, Bytes::new()).await {
            Ok(Outcome::Reply { frame, .. } | Outcome::Answer { frame, .. }) => frame,
            Ok(Outcome::Refused(refusal)) => return Err(self.refused(request, &refusal)),
            Err(InDoubt) => return Err(self.in_doubt(request)),
        };
        match Answer::decode(&frame) {
            Ok(Answer::Payload(..)) => Ok(()),
            Ok(Answer::Refused(_, code)) => {
                let code = ErrorCode::from_u32(code).unwrap_or(ErrorCode::Error);
                Err(self.denied(request, code))
            }
            Ok(Answer::Evicted(_)) | Err(_) => Err(Answered::machine(frame)),
        }
    }

    fn poll_answer(
        &self,
        request: &RequestHeader,
        partition: u32,
        current: u64,
        mut records: Records,
    ) -> Answered {
        let body_bytes = records.pieces.bytes() - HEADER_BYTES;
        let body_bytes = u32::try_from(body_bytes).expect("a poll is bounded by its limits");
        let mut front = [0; FRONT_BYTES];
        let header = self.reply_to(request).header(body_bytes);
        front[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        let head = poll_reply_head(partition, current, records.messages);
        front[HEADER_BYTES..].copy_from_slice(&head);
        records.pieces.set_front(&front);
        Answered::Pieces(records.pieces)
    }
}

/// Where a poll of a partition that is not empty starts.
fn start_of(
    poll: &PollMessages<'_>,
    stored: Option<u64>,
    first: &BatchEntry,
    last: &BatchEntry,
    by_time: impl Fn(u64) -> Option<u64>,
) -> Start {
    let current = last.end_offset() - 1;
    let first = first.base_offset;
    let wanted = match poll.strategy {
        _ if poll.count == 0 => None,
        PollingStrategy::Offset(offset) => Some(offset),
        PollingStrategy::Timestamp(t) => by_time(t),
        PollingStrategy::First => Some(first),
        PollingStrategy::Last => Some((current + 1).saturating_sub(poll.count.into())),
        PollingStrategy::Next => Some(stored.map_or(0, |stored| stored.saturating_add(1))),
    };
    Start {
        offset: wanted
            .map(|offset| offset.max(first))
            .filter(|offset| *offset <= current),
        current,
    }
}

/// The parts of batches from an offset on, within the limits of an answer.
fn parts_from(
    batches: impl Iterator<Item = BatchEntry>,
    start: Option<u64>,
    count: u32,
) -> Vec<Part> {
    let mut left = count.min(POLL_MESSAGES_MAX);
    let mut bytes = 0;
    let mut parts = Vec::new();
    for entry in batches.take(POLL_BATCHES_MAX) {
        let start = start.unwrap_or(0).max(entry.base_offset);
        bytes += u64::from(entry.batch_length);
        if left == 0 || !parts.is_empty() && bytes > POLL_BYTES_MAX {
            break;
        }
        let first = (start - entry.base_offset) as u32;
        let end = entry.message_count.min(first.saturating_add(left));
        left -= end - first;
        parts.push(Part { entry, first, end });
    }
    parts
}

/// Appends a batch, or the part of it, under the header that its place in the partition gives it.
fn append_part(
    pieces: &mut Pieces,
    target: &Target,
    part: &Part,
    body: &Bytes,
) -> Result<(), PollError> {
    let entry = &part.entry;
    let begin = entry.batch_position as usize;
    let end = begin + entry.batch_length as usize;
    let cut = BatchError::Truncated {
        needed: end,
        left: body.len(),
    };
    let batch = body.get(begin..end).ok_or(cut)?;
    let stamp = Stamp {
        partition_id: target.partition.0.into(),
        base_offset: entry.base_offset,
        base_timestamp: entry.timestamp.0,
    };
    let sent = BatchHeader::decode(batch)?;
    let (header, frames) = if part.first == 0 && part.end == entry.message_count {
        let header = sent.stamped(stamp, &frame_checksums(batch)?);
        (header, BATCH_HEADER_BYTES..batch.len())
    } else {
        let slice = slice_batch(batch, &sent.stamped(stamp, &[]), part.first..part.end)?;
        (slice.header, slice.frames)
    };
    pieces.copy(header.as_bytes());
    pieces.append(body.slice(begin + frames.start..begin + frames.end));
    Ok(())
}

#[cfg(test)]
#[path = "poll_test.rs"]
mod tests;
