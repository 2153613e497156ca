//! An answer on its way out: one frame, or a frame with records that are sent from where they are.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::{COMMAND_EVICTION, EvictionReason, RequestHeader};
use pawl_wire::reply::eviction;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// Pieces up to this size are copied next to each other, since a piece of its own costs more.
const COPY_BYTES_MAX: usize = 4 << 10;

/// Pieces that one write takes.
const SLICES_MAX: usize = 64;

/// What a request is answered with.
#[derive(Debug)]
pub enum Answered {
    /// A whole frame that says success, or what the machine says.
    Frame(Bytes),
    /// A whole frame in pieces.
    Pieces(Pieces),
    /// A refusal made here: the frame and why.
    Refused(Bytes, ErrorCode),
    /// The session ends.
    Evicted(EvictionReason),
}

impl Answered {
    /// A frame of the machine, which may be an eviction.
    pub fn machine(frame: Bytes) -> Answered {
        if frame.get(60) == Some(&COMMAND_EVICTION)
            && let Some(reason) = frame.get(255).copied().and_then(EvictionReason::from_u8)
        {
            return Answered::Evicted(reason);
        }
        Answered::Frame(frame)
    }
}

/// A frame in pieces: small ones copied together, large ones by reference.
#[derive(Debug, Default)]
pub struct Pieces {
    done: Vec<Bytes>,
    open: Vec<u8>,
    bytes: usize,
}

impl Pieces {
    /// Appends a copy.
    pub fn copy(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.open.extend_from_slice(bytes);
    }

    /// Appends, by reference where that is cheaper.
    pub fn append(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY_BYTES_MAX {
            return self.copy(&bytes);
        }
        self.bytes += bytes.len();
        self.close();
        self.done.push(bytes);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Overwrites the first bytes, which were appended by copy.
    pub fn set_front(&mut self, front: &[u8]) {
        match self.done.first_mut() {
            Some(first) => {
                let mut owned = first.to_vec();
                owned[..front.len()].copy_from_slice(front);
                *first = owned.into();
            }
            None => self.open[..front.len()].copy_from_slice(front),
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open).into());
        }
    }

    fn into_pieces(mut self) -> Vec<Bytes> {
        self.close();
        self.done
    }
}

/// Writes an answer whole.
pub async fn write_answer(
    stream: &mut TcpStream,
    answered: Answered,
    request: &RequestHeader,
) -> io::Result<()> {
    match answered {
        Answered::Frame(frame) | Answered::Refused(frame, _) => write_all(stream, &frame).await,
        Answered::Evicted(reason) => {
            let client = request.client.max(1);
            write_all(stream, &eviction(client, reason)).await
        }
        Answered::Pieces(pieces) => write_pieces(stream, pieces.into_pieces()).await,
    }
}

async fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count..];
    }
    Ok(())
}

async fn write_pieces(stream: &mut TcpStream, pieces: Vec<Bytes>) -> io::Result<()> {
    let (mut first, mut skip) = (0, 0);
    while first < pieces.len() {
        let mut count = poll_fn(|cx| {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let rest = &pieces[first..];
            let used = rest.len().min(SLICES_MAX);
            for (slice, piece) in slices.iter_mut().zip(rest) {
                *slice = IoSlice::new(piece);
            }
            slices[0] = IoSlice::new(&rest[0][skip..]);
            match Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..used]) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while first < pieces.len() && count >= pieces[first].len() - skip {
            count -= pieces[first].len() - skip;
            (first, skip) = (first + 1, 0);
        }
        skip += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_kept() {
        let mut pieces = Pieces::default();
        pieces.copy(b"head");
        pieces.append(Bytes::from_static(b"small"));
        let large = Bytes::from(vec![7; COPY_BYTES_MAX + 1]);
        pieces.append(large.clone());
        pieces.append(Bytes::from_static(b"tail"));
        assert_eq!(pieces.bytes(), 4 + 5 + COPY_BYTES_MAX + 1 + 4);
        pieces.set_front(b"HEAD");
        let list = pieces.into_pieces();
        assert_eq!(list.len(), 3);
        assert_eq!(&list[0][..], b"HEADsmall");
        assert_eq!(list[1].as_ptr(), large.as_ptr());
        assert_eq!(&list[2][..], b"tail");
    }

    #[test]
    fn pieces_arrive_whole() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("bound");
            let address = listener.local_addr().expect("an address");
            let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (mut near, (mut far, _)) = (near.expect("connected"), far.expect("accepted"));
            let pieces: Vec<Bytes> = (0..200u32)
                .map(|i| Bytes::from(vec![i as u8; 1 + (i as usize * 997) % 60_000]))
                .collect();
            let expected: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            let mut received = vec![0; expected.len()];
            let (written, read) = tokio::join!(
                write_pieces(&mut near, pieces),
                tokio::io::AsyncReadExt::read_exact(&mut far, &mut received)
            );
            written.expect("written");
            read.expect("read");
            assert!(received == expected);
        });
    }
}
