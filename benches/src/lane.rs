//! Connections under load, many on one thread.
//!
//! A lane is a connection with a [`Source`] of requests. Per request it costs one `writev`, one
//! share of an `epoll_wait` and one `read`, no allocation and no copy of the batch: the head of a
//! frame (header and what differs between requests) is patched in place, its tail (the batch) is
//! shared by all requests, and of an answer only the first bytes are kept. A thread with one lane
//! blocks in `writev` and `read` instead, as a plain client does.
//!
//! Invariants:
//! 1. Answers come in the order of the requests, so `in_flight` is a queue.
//! 2. At most `depth` requests of a lane are in flight.
//! 3. A frame is written whole before the next one of its lane is begun.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pawl_wire::headers::{COMMAND_EVICTION, EvictionHeader, HEADER_BYTES, ReplyHeader};
use pawl_wire::operation::Operation;
use pawl_wire::reply::RESULT_SUCCESS;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::client::{ANSWER_TIME_MAX, answer_bytes};
use crate::error::{BenchError, Doing, Result};
use crate::statistics::Latencies;
use crate::window::{Admission, Window};

/// Bytes of an answer that its source sees: the header, the head of a poll reply, and the header of
/// its first batch.
pub const ANSWER_HEAD_BYTES: usize = 2 * HEADER_BYTES + 16;

/// Bytes of a read.
const READ_BYTES: usize = 256 << 10;

/// Lanes of a thread that are told of at once.
const EVENTS_MAX: usize = 256;

/// Not primary, queue full, previous request in flight: nothing happened, the client goes on.
const TRANSIENT: [u32; 2] = [57, 58];

/// What an answer amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Messages, or operations.
    pub messages: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// Makes requests and reads answers.
pub trait Source: Send {
    /// The request's name, for errors.
    fn request(&self) -> &'static str;

    /// The work that the next request asks for; the window's budget is charged with it.
    fn cost(&self) -> Work;

    /// Writes the head of the next frame into `head`, which holds the previous one. `false`: there
    /// is nothing to ask any more.
    fn next(&mut self, head: &mut Vec<u8>, now: Instant) -> bool;

    /// The part of the frame behind its head.
    fn tail(&self) -> &Arc<[u8]>;

    /// Reads the first bytes of a successful answer, result section included; `body` lies behind
    /// the header and may be cut.
    fn answered(&mut self, header: &ReplyHeader, body: &[u8], now: Instant) -> Result<Work>;

    /// Latencies that the source measured itself, instead of those from request to answer.
    fn latencies(&self) -> Option<&Latencies> {
        None
    }
}

/// What lanes have done.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// From the first byte written to the last byte read.
    pub latencies: Latencies,
    /// Answered requests that count.
    pub requests: u64,
    /// Messages of those.
    pub messages: u64,
    /// Bytes of payload of those.
    pub bytes: u64,
    /// Requests that the server did not accept.
    pub refused: u64,
    /// When the last answer that counts came.
    pub last: Option<Instant>,
}

impl Totals {
    /// Adds what other lanes did meanwhile.
    pub fn merge(&mut self, other: &Totals) {
        self.latencies.merge(&other.latencies);
        self.requests += other.requests;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.last = self.last.max(other.last);
    }
}

/// What all lanes of a measurement share.
#[derive(Debug)]
pub struct Shared {
    /// When to count and when to stop.
    pub window: Window,
    /// Payload bytes that count so far, for a progress bar.
    pub bytes: AtomicU64,
    /// Messages that count so far, for a progress bar.
    pub messages: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    begun: Instant,
    counted: bool,
}

/// A connection under load.
pub struct Lane {
    socket: TcpStream,
    source: Box<dyn Source>,
    depth: usize,
    head: Vec<u8>,
    /// Bytes of the current frame that are written; `None` between frames.
    written: Option<usize>,
    in_flight: VecDeque<InFlight>,
    reader: AnswerReader,
    over: bool,
    /// Whether the thread is told when the socket can be written.
    watches_write: bool,
}

impl Lane {
    /// Puts load on a connection: at most `depth` requests at once.
    pub fn new(socket: TcpStream, source: Box<dyn Source>, depth: usize) -> Lane {
        assert!(depth > 0, "a lane asks something");
        Lane {
            socket,
            source,
            depth,
            head: Vec::new(),
            written: None,
            in_flight: VecDeque::with_capacity(depth),
            reader: AnswerReader::default(),
            over: false,
            watches_write: false,
        }
    }

    /// Begins and writes frames until `depth` are in flight, the window closes, or the socket is
    /// full.
    fn pump(&mut self, shared: &Shared) -> Result<()> {
        loop {
            if self.written.is_none() && !self.begin(shared) {
                return Ok(());
            }
            if !self.write()? {
                return Ok(());
            }
        }
    }

    /// Whether there is a new frame to write.
    fn begin(&mut self, shared: &Shared) -> bool {
        if self.over || self.in_flight.len() == self.depth {
            return false;
        }
        let begun = Instant::now();
        let admission = shared.window.admit(begun, self.source.cost().bytes);
        if admission == Admission::Over || !self.source.next(&mut self.head, begun) {
            self.over = true;
            return false;
        }
        let counted = admission == Admission::Counted;
        self.in_flight.push_back(InFlight { begun, counted });
        self.written = Some(0);
        true
    }

    /// Whether the frame is written whole.
    fn write(&mut self) -> Result<bool> {
        let tail = self.source.tail();
        let total = self.head.len() + tail.len();
        let mut written = self.written.expect("a frame was begun");
        while written < total {
            let head = &self.head[written.min(self.head.len())..];
            let tail = &tail[written.saturating_sub(self.head.len())..];
            let parts = [IoSlice::new(head), IoSlice::new(tail)];
            match rustix::io::writev(&self.socket, &parts) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => {
                    self.written = Some(written);
                    return Ok(false);
                }
                Err(Errno::INTR) => (),
                Err(errno) => return Err(errno).doing("send under load"),
            }
        }
        self.written = None;
        Ok(true)
    }

    /// Reads what is there and takes the answers in it. Whether there was anything.
    fn read(&mut self, scratch: &mut [u8], shared: &Shared, totals: &mut Totals) -> Result<bool> {
        let count = match rustix::io::read(&self.socket, &mut *scratch) {
            Ok(0) => return Err(BenchError::Closed),
            Ok(count) => count,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno).doing("receive under load"),
        };
        let mut rest = &scratch[..count];
        while !rest.is_empty() {
            let (taken, complete) = self.reader.take(rest)?;
            rest = &rest[taken..];
            if complete {
                self.finish(shared, totals)?;
            }
        }
        Ok(true)
    }

    /// An answer is complete.
    fn finish(&mut self, shared: &Shared, totals: &mut Totals) -> Result<()> {
        let now = Instant::now();
        let Some(asked) = self.in_flight.pop_front() else {
            let request = self.source.request();
            let what = "an answer that was not asked for".to_owned();
            return Err(BenchError::Payload { request, what });
        };
        let (header, body) = self.reader.answer();
        let request = self.source.request();
        if header.command == COMMAND_EVICTION {
            let reason = EvictionHeader::from_bytes(self.reader.header()).reason;
            return Err(BenchError::Evicted { request, reason });
        }
        match refusal(&header, body) {
            None => (),
            Some(code) if TRANSIENT.contains(&code) => {
                totals.refused += 1;
                return Ok(());
            }
            Some(code) => return Err(BenchError::Refused { request, code }),
        }
        let work = self.source.answered(&header, body, now)?;
        if asked.counted {
            totals.latencies.record(now - asked.begun);
            totals.requests += 1;
            totals.messages += work.messages;
            totals.bytes += work.bytes;
            totals.last = Some(now);
            shared.bytes.fetch_add(work.bytes, Ordering::Relaxed);
            shared.messages.fetch_add(work.messages, Ordering::Relaxed);
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.over && self.in_flight.is_empty() && self.written.is_none()
    }
}

/// The error code in an answer, from its status or from its result section.
fn refusal(header: &ReplyHeader, body: &[u8]) -> Option<u32> {
    if header.status != 0 {
        return Some(header.status);
    }
    let framed = Operation::from_u8(header.operation).is_some_and(Operation::is_result_framed);
    if !framed || body.starts_with(&RESULT_SUCCESS) {
        return None;
    }
    let code = body.get(8..12)?;
    Some(u32::from_le_bytes(
        code.try_into().expect("four bytes were taken"),
    ))
}

/// Takes answers out of a stream of bytes and keeps the first bytes of each.
struct AnswerReader {
    head: [u8; ANSWER_HEAD_BYTES],
    seen: usize,
    bytes: usize,
}

impl Default for AnswerReader {
    fn default() -> Self {
        AnswerReader {
            head: [0; ANSWER_HEAD_BYTES],
            seen: 0,
            bytes: HEADER_BYTES,
        }
    }
}

impl AnswerReader {
    /// Takes bytes of the current answer: how many, and whether it is complete. A complete answer
    /// can be looked at until the next call.
    fn take(&mut self, input: &[u8]) -> Result<(usize, bool)> {
        if self.seen == self.bytes {
            (self.seen, self.bytes) = (0, HEADER_BYTES);
        }
        let mut taken = 0;
        if self.seen < HEADER_BYTES {
            taken = self.keep(input);
            if self.seen < HEADER_BYTES {
                return Ok((taken, false));
            }
            self.bytes = answer_bytes(self.header())?;
        }
        taken += self.keep(&input[taken..]);
        Ok((taken, self.seen == self.bytes))
    }

    /// Takes up to the end that is known.
    fn keep(&mut self, input: &[u8]) -> usize {
        let count = input.len().min(self.bytes - self.seen);
        if self.seen < ANSWER_HEAD_BYTES {
            let kept = count.min(ANSWER_HEAD_BYTES - self.seen);
            self.head[self.seen..self.seen + kept].copy_from_slice(&input[..kept]);
        }
        self.seen += count;
        count
    }

    fn header(&self) -> &[u8; HEADER_BYTES] {
        self.head
            .first_chunk()
            .expect("what is kept is longer than a header")
    }

    /// The header and what is kept of the body.
    fn answer(&self) -> (ReplyHeader, &[u8]) {
        let end = self.bytes.min(ANSWER_HEAD_BYTES);
        let body = &self.head[HEADER_BYTES..end];
        (ReplyHeader::from_bytes(self.header()), body)
    }
}

/// Runs the lanes of one thread to the end of the window.
pub fn run(mut lanes: Vec<Lane>, shared: &Shared) -> Result<Totals> {
    let mut totals = Totals::default();
    match lanes.as_mut_slice() {
        [] => (),
        [lane] => run_one(lane, shared, &mut totals)?,
        many => run_many(many, shared, &mut totals)?,
    }
    // A source that measures latencies itself replaces those of its lane.
    let own: Vec<_> = lanes
        .iter()
        .filter_map(|lane| lane.source.latencies())
        .collect();
    if !own.is_empty() {
        totals.latencies = Latencies::default();
        own.iter()
            .for_each(|latencies| totals.latencies.merge(latencies));
    }
    Ok(totals)
}

fn run_one(lane: &mut Lane, shared: &Shared, totals: &mut Totals) -> Result<()> {
    lane.socket
        .set_nonblocking(false)
        .doing("set a socket option")?;
    let mut scratch = vec![0; READ_BYTES];
    loop {
        lane.pump(shared)?;
        if lane.is_done() {
            return Ok(());
        }
        if !lane.read(&mut scratch, shared, totals)? {
            return Err(BenchError::Silent(ANSWER_TIME_MAX));
        }
    }
}

fn run_many(lanes: &mut [Lane], shared: &Shared, totals: &mut Totals) -> Result<()> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC).doing("make an epoll")?;
    for (index, lane) in lanes.iter_mut().enumerate() {
        lane.socket
            .set_nonblocking(true)
            .doing("set a socket option")?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poller, &lane.socket, data, epoll::EventFlags::IN).doing("watch a socket")?;
        lane.pump(shared)?;
        watch(&poller, index, lane)?;
    }
    let mut scratch = vec![0; READ_BYTES];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let timeout = Timespec::try_from(ANSWER_TIME_MAX).expect("a minute fits");
    while !lanes.iter().all(Lane::is_done) {
        events.clear();
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&poller, room, Some(&timeout)) {
            Ok(0) => return Err(BenchError::Silent(ANSWER_TIME_MAX)),
            Ok(_) | Err(Errno::INTR) => (),
            Err(errno) => return Err(errno).doing("wait for sockets"),
        }
        for event in &events {
            let index = event.data.u64() as usize;
            let lane = &mut lanes[index];
            if !lane.in_flight.is_empty() {
                lane.read(&mut scratch, shared, totals)?;
            }
            lane.pump(shared)?;
            watch(&poller, index, lane)?;
        }
    }
    Ok(())
}

/// Has the thread told when a lane with a half-written frame can go on.
fn watch(poller: &impl std::os::fd::AsFd, index: usize, lane: &mut Lane) -> Result<()> {
    let watches_write = lane.written.is_some();
    if watches_write == lane.watches_write {
        return Ok(());
    }
    lane.watches_write = watches_write;
    let flags = match watches_write {
        true => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        false => epoll::EventFlags::IN,
    };
    let data = epoll::EventData::new_u64(index as u64);
    epoll::modify(poller, &lane.socket, data, flags).doing("watch a socket")
}

/// Deals lanes to `threads` and runs them; `watch` is called about ten times a second.
pub fn run_threads(
    lanes: Vec<Lane>,
    threads: usize,
    shared: &Shared,
    mut watch: impl FnMut(&Shared),
) -> Result<Totals> {
    const WATCH_EVERY: Duration = Duration::from_millis(100);
    let mut dealt: Vec<Vec<Lane>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, lane) in lanes.into_iter().enumerate() {
        dealt[index % threads].push(lane);
    }
    std::thread::scope(|scope| {
        let (done, ended) = std::sync::mpsc::channel::<()>();
        let running: Vec<_> = dealt
            .into_iter()
            .map(|lanes| {
                let done = done.clone();
                scope.spawn(move || {
                    let totals = run(lanes, shared);
                    drop(done);
                    totals
                })
            })
            .collect();
        drop(done);
        // Nothing is ever sent: the channel closes when the last thread ends.
        while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(WATCH_EVERY)
        {
            watch(shared);
        }
        let mut totals = Totals::default();
        for thread in running {
            totals.merge(&thread.join().expect("a load thread does not panic")?);
        }
        Ok(totals)
    })
}

#[cfg(test)]
#[path = "lane_test.rs"]
mod tests;
