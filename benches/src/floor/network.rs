//! Loopback TCP: round trips and one stream.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::disk::Area;
use super::{BLOCK_SMALL_BYTES, Measured};
use crate::error::{Doing, Result};
use crate::statistics::Latencies;
use crate::window::{Admission, Limit, Window, payload};

/// Bytes of a question and of its answer.
const MESSAGE_BYTES: usize = 64;

/// Bytes of a write and of a read of the stream.
const STREAM_CHUNK_BYTES: usize = 64 << 10;

/// Bytes of the file into which the answering side writes.
const AREA_BYTES: u64 = 64 << 20;

/// Question and answer, one at a time; with `directory` the answering side writes and flushes a
/// small block there before it answers.
pub fn round_trip(directory: Option<&Path>, warm_up: Duration, limit: Limit) -> Result<Measured> {
    let area = directory
        .map(|directory| Area::written(directory, AREA_BYTES))
        .transpose()?;
    let (client, server) = connected_pair()?;
    let mut latencies = Latencies::default();
    let window = Window::open(warm_up, limit);
    thread::scope(|scope| {
        let answering = scope.spawn(move || answer(server, area));
        let asked = ask(client, &window, &mut latencies);
        answering
            .join()
            .expect("the answering side does not panic")?;
        asked
    })?;
    let latency = latencies.summary();
    Ok(Measured {
        per_second: latency.count as f64 / window.seconds(),
        megabytes_per_second: 0.0,
        latency,
    })
}

fn connected_pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("listen on loopback")?;
    let address = listener.local_addr().doing("listen on loopback")?;
    let client = TcpStream::connect(address).doing("connect over loopback")?;
    let (server, _) = listener.accept().doing("accept over loopback")?;
    for socket in [&client, &server] {
        socket.set_nodelay(true).doing("set a socket option")?;
    }
    Ok((client, server))
}

/// The answering side, until the other one hangs up.
fn answer(mut socket: TcpStream, mut area: Option<Area>) -> Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    let block = payload(BLOCK_SMALL_BYTES);
    while socket.read_exact(&mut message).is_ok() {
        if let Some(area) = &mut area {
            area.write_flushed(&block)?;
        }
        socket.write_all(&message).doing("answer over loopback")?;
    }
    Ok(())
}

fn ask(mut socket: TcpStream, window: &Window, latencies: &mut Latencies) -> Result<()> {
    let mut message = [1; MESSAGE_BYTES];
    loop {
        let begun = Instant::now();
        let admission = window.admit(begun, MESSAGE_BYTES as u64);
        if admission == Admission::Over {
            return Ok(());
        }
        socket.write_all(&message).doing("ask over loopback")?;
        socket
            .read_exact(&mut message)
            .doing("read an answer over loopback")?;
        if admission == Admission::Counted {
            latencies.record(begun.elapsed());
        }
    }
}

/// One way, one connection, as fast as it goes.
pub fn stream(warm_up: Duration, limit: Limit) -> Result<Measured> {
    let (mut sending, receiving) = connected_pair()?;
    let window = Window::open(warm_up, limit);
    let bytes = thread::scope(|scope| {
        let received = scope.spawn(|| receive(receiving, window.from()));
        let chunk = payload(STREAM_CHUNK_BYTES);
        while window.admit(Instant::now(), chunk.len() as u64) != Admission::Over {
            sending.write_all(&chunk).doing("stream over loopback")?;
        }
        drop(sending);
        received.join().expect("the receiving side does not panic")
    })?;
    Ok(Measured {
        megabytes_per_second: bytes as f64 / 1e6 / window.seconds(),
        ..Measured::default()
    })
}

/// Bytes received from `from` on, until the other side hangs up.
fn receive(mut socket: TcpStream, from: Instant) -> Result<u64> {
    let mut chunk = vec![0; STREAM_CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let count = socket.read(&mut chunk).doing("read a loopback stream")?;
        if count == 0 {
            return Ok(bytes);
        }
        if Instant::now() >= from {
            bytes += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_with_and_without_a_flush() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for flushed in [None, Some(directory.path())] {
            let limit = Limit::Bytes(20 * MESSAGE_BYTES as u64);
            let measured = round_trip(flushed, Duration::ZERO, limit).expect("round trips");
            assert_eq!(measured.latency.count, 20);
        }
    }

    #[test]
    fn a_stream_carries_bytes() {
        let measured = stream(Duration::ZERO, Limit::Bytes(4 << 20)).expect("a stream");
        assert!(measured.megabytes_per_second > 0.0);
    }
}
