//! What is asked under load: sends, polls, both with the time from one to the other, and the
//! creation and deletion of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pawl_wire::batch::BatchHeader;
use pawl_wire::batch_client::{Message, write_batch};
use pawl_wire::command::{Command, CommandCode};
use pawl_wire::commands::messages::{POLL_HEAD_BYTES, PollMessages, SendMessages};
use pawl_wire::commands::streams::{CreateStream, DeleteStream};
use pawl_wire::headers::{HEADER_BYTES, ReplyHeader, RequestHeader};
use pawl_wire::operation::Operation;
use pawl_wire::options::Options;
use pawl_wire::primitives::{
    Consumer, Identifier, Name, OptionalPartition, Partitioning, PollingStrategy, Wire,
};

use crate::client::Session;
use crate::error::{BenchError, Result};
use crate::lane::{Source, Work};
use crate::statistics::Latencies;
use crate::window::payload;

/// Where the request number stands in a header.
const REQUEST_OFFSET: usize = 168;

/// Where the offset stands in a poll's head: its body ends with strategy and value (9 bytes), count
/// (4) and the mark of auto-commit (1).
const POLL_OFFSET_FROM_END: usize = 8 + 4 + 1;

const _: () = assert!(std::mem::offset_of!(RequestHeader, request) == REQUEST_OFFSET);

/// A partition of a topic, by the numbers that the server gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The stream's number.
    pub stream: u32,
    /// The topic's number.
    pub topic: u32,
    /// The partition's number.
    pub partition: u32,
}

/// A batch of `count` messages of `message_bytes`, as a producer sends it. All sends of a
/// measurement share it.
pub fn batch(count: u32, message_bytes: usize) -> Result<Arc<[u8]>> {
    let payload = payload(message_bytes);
    let messages: Vec<_> = (0..count)
        .map(|_| Message {
            id: rand::random(),
            origin_timestamp: 1,
            payload: &payload,
            user_headers: &[],
        })
        .collect();
    let mut bytes = Vec::new();
    write_batch(&messages, &mut bytes).map_err(|error| BenchError::Payload {
        request: CommandCode::SendMessages.name(),
        what: error.to_string(),
    })?;
    Ok(bytes.into())
}

/// Sends one batch again and again.
#[derive(Debug)]
pub struct SendSource {
    head: Vec<u8>,
    request_next: u64,
    batch: Arc<[u8]>,
    work: Work,
    sent: Option<Arc<SentTimes>>,
    /// Stays empty: who polls measures.
    unmeasured: Latencies,
}

impl SendSource {
    /// Sends `batch`, which amounts to `work`, to `place`. With `sent` the instants are noted there
    /// and latencies are left to who polls.
    pub fn new(
        session: &Session,
        place: Place,
        batch: Arc<[u8]>,
        work: Work,
        sent: Option<Arc<SentTimes>>,
    ) -> SendSource {
        let body = SendMessages {
            stream: Identifier::Numeric(place.stream),
            topic: Identifier::Numeric(place.topic),
            partitioning: Partitioning::Partition(place.partition),
            messages_count: u32::try_from(work.messages).expect("a batch has a u32 of messages"),
            batch: &[],
        }
        .encode();
        let bytes = u32::try_from(body.len() + batch.len()).expect("a batch is below the limit");
        let header = RequestHeader {
            client: session.client,
            session: session.session,
            ..RequestHeader::new(Operation::SendMessages, bytes)
        };
        SendSource {
            head: [header.as_bytes().as_slice(), &body].concat(),
            request_next: session.request_next,
            batch,
            work,
            sent,
            unmeasured: Latencies::default(),
        }
    }
}

/// Writes `template` into `head` unless it is there, and the request number over it.
fn patch_head(head: &mut Vec<u8>, template: &[u8], request: u64) {
    if head.len() != template.len() {
        head.clear();
        head.extend_from_slice(template);
    }
    head[REQUEST_OFFSET..REQUEST_OFFSET + 8].copy_from_slice(&request.to_le_bytes());
}

impl Source for SendSource {
    fn request(&self) -> &'static str {
        CommandCode::SendMessages.name()
    }

    fn cost(&self) -> Work {
        self.work
    }

    fn next(&mut self, head: &mut Vec<u8>, now: Instant) -> bool {
        patch_head(head, &self.head, self.request_next);
        self.request_next += 1;
        if let Some(sent) = &self.sent {
            sent.note(now);
        }
        true
    }

    fn tail(&self) -> &Arc<[u8]> {
        &self.batch
    }

    fn answered(&mut self, _: &ReplyHeader, _: &[u8], _: Instant) -> Result<Work> {
        Ok(self.work)
    }

    fn latencies(&self) -> Option<&Latencies> {
        self.sent.is_some().then_some(&self.unmeasured)
    }
}

/// Polls a partition from its first offset on, and from the first again after the last.
#[derive(Debug)]
pub struct PollSource {
    head: Vec<u8>,
    request: u64,
    tail: Arc<[u8]>,
    work: Work,
    offset_next: u64,
    /// One above the last offset that the partition is known to have.
    offset_end: u64,
    arrivals: Option<Arrivals>,
}

/// What a consumer needs to time the way from producer to consumer.
#[derive(Debug)]
pub struct Arrivals {
    sent: Arc<SentTimes>,
    batch_messages: u64,
    from: Instant,
    latencies: Latencies,
}

impl Arrivals {
    /// Times the batches of `batch_messages` that were sent after `from`.
    pub fn new(sent: Arc<SentTimes>, batch_messages: u64, from: Instant) -> Arrivals {
        Arrivals {
            sent,
            batch_messages,
            from,
            latencies: Latencies::default(),
        }
    }

    /// All offsets from `begin` to below `end` have arrived.
    fn note(&mut self, begin: u64, end: u64, now: Instant) {
        let batches = begin / self.batch_messages..end / self.batch_messages;
        for index in batches {
            let sent = self.sent.at(index);
            if sent >= self.from {
                self.latencies.record(now - sent);
            }
        }
    }
}

impl PollSource {
    /// Polls `work` from `place` at once. With `arrivals` it follows a producer from offset 0 on.
    pub fn new(
        session: &Session,
        place: Place,
        work: Work,
        arrivals: Option<Arrivals>,
    ) -> PollSource {
        let body = Command::PollMessages(PollMessages {
            consumer: Consumer::Plain(Identifier::Numeric(1)),
            stream: Identifier::Numeric(place.stream),
            topic: Identifier::Numeric(place.topic),
            partition: OptionalPartition(Some(place.partition)),
            strategy: PollingStrategy::Offset(0),
            count: u32::try_from(work.messages).expect("a poll asks for a u32 of messages"),
            auto_commit: false,
        })
        .encode();
        let header = RequestHeader {
            client: session.client,
            session: session.session,
            ..RequestHeader::for_command(CommandCode::PollMessages, &body)
        };
        PollSource {
            head: [header.as_bytes().as_slice(), &body].concat(),
            request: session.request_next,
            tail: Arc::new([]),
            work,
            offset_next: 0,
            offset_end: u64::MAX,
            arrivals,
        }
    }

    fn malformed(&self, what: String) -> BenchError {
        let request = self.request();
        BenchError::Payload { request, what }
    }

    /// Checks that the answer begins where the poll did; answers the count of messages.
    fn check(&self, body: &[u8]) -> Result<u64> {
        let Some(poll) = body.first_chunk::<POLL_HEAD_BYTES>() else {
            return Err(self.malformed(format!("{} bytes are no poll's answer", body.len())));
        };
        let count = u32::from_le_bytes([poll[12], poll[13], poll[14], poll[15]]);
        if count == 0 {
            return Ok(0);
        }
        let records = &body[POLL_HEAD_BYTES..];
        let header =
            BatchHeader::decode(records).map_err(|error| self.malformed(error.to_string()))?;
        let held = header.base_offset..header.base_offset + u64::from(u32::MAX);
        // A slice keeps the base of its batch, so the base may lie before what was asked for.
        if u64::from(count) > self.work.messages || header.message_count > count || held.is_empty()
        {
            return Err(self.malformed(format!("{count} messages, {header:?}")));
        }
        Ok(count.into())
    }
}

impl Source for PollSource {
    fn request(&self) -> &'static str {
        CommandCode::PollMessages.name()
    }

    fn cost(&self) -> Work {
        self.work
    }

    fn next(&mut self, head: &mut Vec<u8>, _: Instant) -> bool {
        if self.offset_next >= self.offset_end && self.arrivals.is_none() {
            self.offset_next = 0;
        }
        patch_head(head, &self.head, self.request);
        let at = head.len() - POLL_OFFSET_FROM_END;
        head[at..at + 8].copy_from_slice(&self.offset_next.to_le_bytes());
        // Who follows a producer does not know yet how much will come.
        if self.arrivals.is_none() {
            self.offset_next += self.work.messages;
        }
        true
    }

    fn tail(&self) -> &Arc<[u8]> {
        &self.tail
    }

    fn answered(&mut self, _: &ReplyHeader, body: &[u8], now: Instant) -> Result<Work> {
        let count = self.check(body)?;
        if let Some(arrivals) = &mut self.arrivals {
            let end = self.offset_next + count;
            arrivals.note(self.offset_next, end, now);
            self.offset_next = end;
            // The producer's answers count the messages.
            return Ok(Work::default());
        }
        let current = body[4..12].try_into().expect("eight bytes are taken");
        self.offset_end = u64::from_le_bytes(current) + 1;
        let message_bytes = self.work.bytes / self.work.messages;
        Ok(Work {
            messages: count,
            bytes: count * message_bytes,
        })
    }

    fn latencies(&self) -> Option<&Latencies> {
        self.arrivals.as_ref().map(|arrivals| &arrivals.latencies)
    }
}

/// Batches whose instants are kept; who polls is never that far behind in a measurement that says
/// something.
const SENT_TIMES: usize = 1 << 20;

/// When the batches of one partition were sent, by their index from 0.
#[derive(Debug)]
pub struct SentTimes {
    origin: Instant,
    next: AtomicU64,
    nanoseconds: Box<[AtomicU64]>,
}

impl Default for SentTimes {
    fn default() -> Self {
        SentTimes {
            origin: Instant::now(),
            next: AtomicU64::new(0),
            nanoseconds: (0..SENT_TIMES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl SentTimes {
    /// The next batch is about to be sent. Only the producer of the partition calls this.
    fn note(&self, now: Instant) {
        let index = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        let since = now.saturating_duration_since(self.origin);
        self.nanoseconds[index % SENT_TIMES].store(since.as_nanos() as u64, Ordering::Release);
    }

    /// When the batch was sent.
    fn at(&self, index: u64) -> Instant {
        let nanoseconds = self.nanoseconds[index as usize % SENT_TIMES].load(Ordering::Acquire);
        self.origin + Duration::from_nanos(nanoseconds)
    }
}

/// Creates a stream and deletes it, again and again.
#[derive(Debug)]
pub struct MetadataSource {
    client: u128,
    session: u64,
    request_next: u64,
    name: String,
    deletes: bool,
    tail: Arc<[u8]>,
}

impl MetadataSource {
    /// The stream is called `name`.
    pub fn new(session: &Session, name: String) -> MetadataSource {
        MetadataSource {
            client: session.client,
            session: session.session,
            request_next: session.request_next,
            name,
            deletes: false,
            tail: Arc::new([]),
        }
    }
}

impl Source for MetadataSource {
    fn request(&self) -> &'static str {
        match self.deletes {
            true => CommandCode::CreateStream.name(),
            false => CommandCode::DeleteStream.name(),
        }
    }

    fn cost(&self) -> Work {
        Work {
            messages: 1,
            bytes: 0,
        }
    }

    fn next(&mut self, head: &mut Vec<u8>, _: Instant) -> bool {
        let name = Name::new(&self.name).expect("the names of a measurement are short");
        let command = match self.deletes {
            false => Command::CreateStream(CreateStream {
                name,
                options: Options::EMPTY,
            }),
            true => Command::DeleteStream(DeleteStream {
                stream: Identifier::Named(name),
            }),
        };
        self.deletes = !self.deletes;
        let body = command.encode();
        let header = RequestHeader {
            client: self.client,
            session: self.session,
            request: self.request_next,
            ..RequestHeader::for_command(command.code(), &body)
        };
        self.request_next += 1;
        head.clear();
        head.extend_from_slice(&header.as_bytes()[..HEADER_BYTES]);
        head.extend_from_slice(&body);
        true
    }

    fn tail(&self) -> &Arc<[u8]> {
        &self.tail
    }

    fn answered(&mut self, _: &ReplyHeader, _: &[u8], _: Instant) -> Result<Work> {
        Ok(self.cost())
    }
}
