//! Reads the requests of one connection.
//!
//! Cost of a small request: one read into the shard's scratch buffer, one allocation for the body.
//! Of a large one: its first bytes by way of the scratch buffer, the rest straight into a pooled
//! buffer. A connection that waits for its next request owns no buffer.
//!
//! Invariants:
//! 1. Memory does not follow a claim (spec ANS-23): before sign-in at most `BODY_UNSIGNED_BYTES`
//!    are kept; after it, a large body's bytes are taken from the budget before a buffer is.
//! 2. What was read beyond a frame is kept for the next one, in order (spec ANS-2).

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pawl_wire::frame::{CloseReason, frame_bytes};
use pawl_wire::headers::{COMMAND_REQUEST, HEADER_BYTES, RequestHeader};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use xxhash_rust::xxh3::Xxh3Default;

use crate::limits::{BODY_UNSIGNED_BYTES, FRAME_SMALL_BYTES, SHARD_SCRATCH_BYTES};
use crate::memory::{Budget, Pool, Share};

/// A request as it came.
#[derive(Debug)]
pub struct Request {
    /// The header, not yet validated.
    pub header: RequestHeader,
    /// The body; empty when it was too long to be kept before sign-in.
    pub body: Bytes,
    /// Whether the body is the one that the header's checksum was made of.
    pub covered: bool,
    /// Whether `body` is all of it.
    pub whole: bool,
    /// The body's part of the budget, until the request is answered.
    pub share: Option<Share>,
}

/// Why nothing more is read from a connection.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The client closed it between two requests.
    #[error("closed by the client")]
    Closed,
    /// The client closed it within a request.
    #[error("closed by the client within a request")]
    Cut,
    /// A size that is not allowed (spec ANS-20).
    #[error(transparent)]
    Size(#[from] CloseReason),
    /// A command that is not a request (spec ANS-21).
    #[error("command {0} is not a request")]
    Command(u8),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl End {
    /// A word for the metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            End::Closed => "closed_by_client",
            End::Cut => "cut",
            End::Size(_) => "size",
            End::Command(_) => "command",
            End::Io(_) => "io",
        }
    }
}

/// What all connections of a shard read with.
#[derive(Debug)]
pub struct ReadContext {
    /// Filled by one read at a time, and emptied before the next.
    pub scratch: std::cell::RefCell<Box<[u8]>>,
    /// Buffers for large bodies.
    pub pool: Pool,
    /// Bytes of large bodies, over all connections of the node.
    pub budget: Budget,
    /// The largest frame.
    pub frame_bytes_max: u32,
}

impl ReadContext {
    /// A context with an empty scratch buffer.
    pub fn new(pool: Pool, budget: Budget, frame_bytes_max: u32) -> ReadContext {
        ReadContext {
            scratch: std::cell::RefCell::new(vec![0; SHARD_SCRATCH_BYTES].into_boxed_slice()),
            pool,
            budget,
            frame_bytes_max,
        }
    }
}

/// What a connection remembers between reads.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Bytes that were read and belong to no finished frame yet.
    pending: BytesMut,
    /// The client was seen to send a frame in pieces: acknowledge every piece at once, or its next
    /// one waits 40 ms for our acknowledgement.
    pieces: bool,
}

impl FrameReader {
    /// The next request.
    pub async fn next(
        &mut self,
        stream: &mut TcpStream,
        context: &ReadContext,
        signed_in: bool,
    ) -> Result<Request, End> {
        if self.pending.is_empty() {
            self.pending = BytesMut::new(); // Frees the buffer of a burst.
        }
        while self.pending.len() < HEADER_BYTES {
            if self.pieces || !self.pending.is_empty() {
                acknowledge_at_once(stream);
            }
            if self.fill(stream, context).await? == 0 {
                return Err(match self.pending.is_empty() {
                    true => End::Closed,
                    false => End::Cut,
                });
            }
        }
        let header = self.pending.first_chunk().expect("a header is there");
        let header = RequestHeader::from_bytes(header);
        if header.command != COMMAND_REQUEST {
            return Err(End::Command(header.command));
        }
        let size = frame_bytes(&self.pending, context.frame_bytes_max)?
            .expect("the size stands in the header");
        self.pending.advance(HEADER_BYTES);
        let body_bytes = size - HEADER_BYTES;
        if self.pending.len() < body_bytes {
            self.pieces = true;
        }
        if !signed_in && body_bytes > BODY_UNSIGNED_BYTES {
            self.discarded(stream, context, header, body_bytes).await
        } else if body_bytes <= FRAME_SMALL_BYTES {
            self.small(stream, context, header, body_bytes).await
        } else {
            self.large(stream, context, header, body_bytes).await
        }
    }

    async fn small(
        &mut self,
        stream: &mut TcpStream,
        context: &ReadContext,
        header: RequestHeader,
        body_bytes: usize,
    ) -> Result<Request, End> {
        while self.pending.len() < body_bytes {
            acknowledge_at_once(stream);
            if self.fill(stream, context).await? == 0 {
                return Err(End::Cut);
            }
        }
        // A copy of exact size: a slice would keep everything that was read with it in memory.
        let body = Bytes::copy_from_slice(&self.pending[..body_bytes]);
        self.pending.advance(body_bytes);
        Ok(whole_request(header, body, None))
    }

    async fn large(
        &mut self,
        stream: &mut TcpStream,
        context: &ReadContext,
        header: RequestHeader,
        body_bytes: usize,
    ) -> Result<Request, End> {
        acknowledge_at_once(stream);
        let share = context.budget.take(body_bytes).await;
        let mut buffer = context.pool.buffer(body_bytes);
        let bytes = buffer.bytes_mut();
        let first = self.pending.len().min(body_bytes);
        bytes.extend_from_slice(&self.pending[..first]);
        self.pending.advance(first);
        while bytes.len() < body_bytes {
            let left = body_bytes - bytes.len();
            let mut room = (&mut *bytes).limit(left);
            let count = read_some(stream, &mut room).await?;
            if count == 0 {
                return Err(End::Cut);
            }
        }
        Ok(whole_request(header, buffer.freeze(), Some(share)))
    }

    /// Reads a body without keeping it; its checksum is made on the way.
    async fn discarded(
        &mut self,
        stream: &mut TcpStream,
        context: &ReadContext,
        header: RequestHeader,
        body_bytes: usize,
    ) -> Result<Request, End> {
        let mut hasher = Xxh3Default::new();
        let mut left = body_bytes;
        loop {
            let count = self.pending.len().min(left);
            hasher.update(&self.pending[..count]);
            self.pending.advance(count);
            left -= count;
            if left == 0 {
                break;
            }
            acknowledge_at_once(stream);
            if self.fill(stream, context).await? == 0 {
                return Err(End::Cut);
            }
        }
        let checksum = u128::from(hasher.digest());
        Ok(Request {
            header,
            body: Bytes::new(),
            covered: header.request_checksum == 0 || header.request_checksum == checksum,
            whole: false,
            share: None,
        })
    }

    /// Reads once, through the shard's scratch buffer, into `pending`.
    async fn fill(&mut self, stream: &mut TcpStream, context: &ReadContext) -> io::Result<usize> {
        poll_fn(|cx| {
            let mut scratch = context.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) => {
                    self.pending.extend_from_slice(buffer.filled());
                    Poll::Ready(Ok(buffer.filled().len()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

fn whole_request(header: RequestHeader, body: Bytes, share: Option<Share>) -> Request {
    let covered = header.covers(&body);
    Request {
        header,
        body,
        covered,
        whole: true,
        share,
    }
}

async fn read_some(stream: &mut TcpStream, room: &mut impl BufMut) -> io::Result<usize> {
    tokio::io::AsyncReadExt::read_buf(stream, room).await
}

/// Published clients write header and body in two small writes and hold the second one back until
/// the first is acknowledged. The kernel forgets this setting, so that it is set again and again.
fn acknowledge_at_once(stream: &TcpStream) {
    // A failure costs time, not correctness.
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
}

#[cfg(test)]
mod tests {
    use pawl_wire::operation::Operation;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    fn context() -> ReadContext {
        ReadContext::new(Pool::default(), Budget::new(4 << 20), 1 << 20)
    }

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut header = RequestHeader::new(Operation::NonReplicated, body.len() as u32);
        header.client = 7;
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    /// Runs `client` against `server` over a loopback connection.
    fn over_loopback<C, S>(client: impl FnOnce(TcpStream) -> C, server: impl FnOnce(TcpStream) -> S)
    where
        C: Future<Output = ()>,
        S: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
            let address = listener.local_addr().expect("an address");
            let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
            tokio::join!(
                client(near.expect("connected")),
                server(far.expect("accepted").0)
            );
        });
    }

    #[test]
    fn frames_of_every_size_arrive_whole_and_in_order() {
        let sizes = [
            0,
            1,
            300,
            FRAME_SMALL_BYTES,
            FRAME_SMALL_BYTES + 1,
            300_000,
            5,
        ];
        let bodies: Vec<Vec<u8>> = sizes
            .iter()
            .map(|size| (0..*size).map(|i| (i * 7 + size) as u8).collect())
            .collect();
        let sent = bodies.clone();
        over_loopback(
            |mut stream| async move {
                let all: Vec<u8> = sent.iter().flat_map(|body| frame(body)).collect();
                for piece in all.chunks(77_777) {
                    stream.write_all(piece).await.expect("sent");
                }
            },
            |mut stream| async move {
                let context = context();
                let mut reader = FrameReader::default();
                for body in bodies {
                    let request = reader.next(&mut stream, &context, true).await;
                    let request = request.expect("a request");
                    assert_eq!(request.body, body);
                    assert!(request.covered && request.whole);
                    assert_eq!(request.share.is_some(), body.len() > FRAME_SMALL_BYTES);
                }
                let end = reader.next(&mut stream, &context, true).await;
                assert!(matches!(end, Err(End::Closed)));
            },
        );
    }

    #[test]
    fn before_sign_in_a_large_body_is_thrown_away() {
        let body = vec![3; 200_000];
        let mut bytes = frame(&body);
        let sum = pawl_wire::headers::request_checksum(&body);
        bytes[144..160].copy_from_slice(&sum.to_le_bytes());
        let mut wrong = bytes.clone();
        wrong[144] ^= 1;
        over_loopback(
            |mut stream| async move {
                stream.write_all(&bytes).await.expect("sent");
                stream.write_all(&wrong).await.expect("sent");
                stream.write_all(&frame(b"next")).await.expect("sent");
            },
            |mut stream| async move {
                let context = context();
                let mut reader = FrameReader::default();
                for covered in [true, false] {
                    let request = reader.next(&mut stream, &context, false).await;
                    let request = request.expect("a request");
                    assert!(!request.whole && request.body.is_empty());
                    assert_eq!(request.covered, covered);
                    assert_eq!(context.budget.used(), 0);
                }
                let request = reader.next(&mut stream, &context, false).await;
                assert_eq!(&request.expect("a request").body[..], b"next");
            },
        );
    }

    #[test]
    fn bad_sizes_and_commands_end_the_connection() {
        type Expected = fn(&End) -> bool;
        let cases: [(usize, u8, Expected); 4] = [
            (49, 0, |end| {
                matches!(end, End::Size(CloseReason::TooShort { .. }))
            }),
            (51, 9, |end| {
                matches!(end, End::Size(CloseReason::TooLong { .. }))
            }),
            (60, 14, |end| matches!(end, End::Command(14))),
            (60, 8, |end| matches!(end, End::Command(8))),
        ];
        for (at, value, expected) in cases {
            let mut bytes = frame(b"");
            bytes[at] = value;
            over_loopback(
                |mut stream| async move { stream.write_all(&bytes).await.expect("sent") },
                |mut stream| async move {
                    let mut reader = FrameReader::default();
                    let end = reader.next(&mut stream, &context(), true).await;
                    let end = end.expect_err("refused");
                    assert!(expected(&end), "{end}");
                },
            );
        }
    }

    #[test]
    fn a_request_cut_at_any_length_is_a_cut() {
        let bytes = frame(b"body");
        for cut in (1..bytes.len()).step_by(37).chain([255, 256, 257, 259]) {
            let part = bytes[..cut].to_vec();
            over_loopback(
                |mut stream| async move { stream.write_all(&part).await.expect("sent") },
                |mut stream| async move {
                    let mut reader = FrameReader::default();
                    let end = reader.next(&mut stream, &context(), true).await;
                    assert!(matches!(end, Err(End::Cut)), "cut at {cut}");
                },
            );
        }
    }
}
