//! Lanes against a small server that answers by rote.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use pawl_wire::command::Payload;
use pawl_wire::commands::messages::{PollReply, SendReceipt, SendReply};
use pawl_wire::error_code::ErrorCode;
use pawl_wire::headers::RequestHeader;
use pawl_wire::primitives::Raw;
use pawl_wire::reply::Reply;

use super::*;
use crate::client::Session;
use crate::load::{Place, PollSource, SendSource, batch};
use crate::window::Limit;

const PLACE: Place = Place {
    stream: 0,
    topic: 0,
    partition: 0,
};

/// Serves `connections` and answers each request with `answer`; answers the frames it saw, one
/// list a connection.
fn serve(
    connections: usize,
    answer: fn(&RequestHeader, &[u8]) -> Vec<u8>,
) -> (SocketAddr, thread::JoinHandle<Vec<Vec<RequestHeader>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let serving = thread::spawn(move || {
        let accepted: Vec<_> = (0..connections)
            .map(|_| listener.accept().expect("a connection").0)
            .collect();
        let threads: Vec<_> = accepted
            .into_iter()
            .map(|socket| thread::spawn(move || serve_one(socket, answer)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|seen| seen.expect("no panic")).collect()
    });
    (address, serving)
}

fn serve_one(
    mut socket: TcpStream,
    answer: fn(&RequestHeader, &[u8]) -> Vec<u8>,
) -> Vec<RequestHeader> {
    let mut seen = Vec::new();
    let mut head = [0; HEADER_BYTES];
    while socket.read_exact(&mut head).is_ok() {
        let header = RequestHeader::from_bytes(&head);
        let mut body = vec![0; header.size as usize - HEADER_BYTES];
        socket.read_exact(&mut body).expect("a whole frame");
        let answered = socket.write_all(&answer(&header, &body));
        seen.push(header);
        if answered.is_err() {
            break;
        }
    }
    seen
}

fn sent(header: &RequestHeader, _: &[u8]) -> Vec<u8> {
    let receipts = vec![SendReceipt {
        stream: 0,
        topic: 0,
        partition: 0,
        base_offset: 0,
    }];
    let payload = Payload::SendMessages(SendReply { receipts }).encode();
    let reply = Reply::to_request(header, 1);
    reply
        .success_with(|out| out.extend_from_slice(&payload))
        .to_vec()
}

fn session(address: SocketAddr) -> Session {
    Session {
        socket: TcpStream::connect(address).expect("it listens"),
        client: 7,
        session: 9,
        request_next: 1,
    }
}

fn shared(limit: Limit) -> Shared {
    Shared {
        window: Window::open(Duration::ZERO, limit),
        bytes: AtomicU64::new(0),
        messages: AtomicU64::new(0),
    }
}

fn send_lane(address: SocketAddr, depth: usize) -> Lane {
    let session = session(address);
    let batch = batch(10, 1000).expect("a batch");
    let work = Work {
        messages: 10,
        bytes: 10_000,
    };
    let source = SendSource::new(&session, PLACE, batch, work, None);
    Lane::new(session.socket, Box::new(source), depth)
}

#[test]
fn one_lane_sends_its_budget_with_rising_request_numbers() {
    let (address, serving) = serve(1, sent);
    let lanes = vec![send_lane(address, 3)];
    let shared = shared(Limit::Bytes(1_000_000));
    let totals = run_threads(lanes, 1, &shared, |_| ()).expect("the load runs");
    assert_eq!((totals.requests, totals.messages), (100, 1000));
    assert_eq!(totals.bytes, 1_000_000);
    assert_eq!(totals.latencies.summary().count, 100);
    let seen = serving.join().expect("no panic");
    let requests: Vec<_> = seen[0].iter().map(|header| header.request).collect();
    assert_eq!(requests, (1..=100).collect::<Vec<_>>());
    assert!(seen[0].iter().all(|header| header.validate().is_ok()));
}

#[test]
fn many_lanes_share_a_budget_on_one_thread_and_on_two() {
    for threads in [1, 2] {
        let (address, serving) = serve(5, sent);
        let lanes = (0..5).map(|_| send_lane(address, 2)).collect();
        let shared = shared(Limit::Bytes(5_000_000));
        let totals = run_threads(lanes, threads, &shared, |_| ()).expect("the load runs");
        assert_eq!(totals.bytes, 5_000_000);
        assert_eq!(shared.bytes.load(Ordering::Relaxed), 5_000_000);
        let seen = serving.join().expect("no panic");
        assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 500);
    }
}

#[test]
fn a_request_that_is_not_accepted_does_not_count() {
    let (address, serving) = serve(1, |header, body| match header.request % 2 {
        0 => Reply::to_request(header, 1)
            .denied(ErrorCode::from_u32(58).expect("58 is listed"))
            .to_vec(),
        _ => sent(header, body),
    });
    let lanes = vec![send_lane(address, 1)];
    let totals =
        run_threads(lanes, 1, &shared(Limit::Bytes(100_000)), |_| ()).expect("the load runs");
    assert_eq!((totals.requests, totals.refused), (5, 5));
    serving.join().expect("no panic");
}

#[test]
fn a_terminal_refusal_ends_the_load() {
    let (address, serving) = serve(1, |header, _| {
        Reply::to_request(header, 1)
            .denied(ErrorCode::from_u32(20).expect("20 is listed"))
            .to_vec()
    });
    let lanes = vec![send_lane(address, 1)];
    let ended = run_threads(lanes, 1, &shared(Limit::Bytes(100_000)), |_| ());
    assert!(matches!(ended, Err(BenchError::Refused { code: 20, .. })));
    serving.join().expect("no panic");
}

#[test]
fn a_server_that_hangs_up_ends_the_load() {
    let (address, serving) = serve(1, |_, _| vec![0; HEADER_BYTES]);
    let lanes = vec![send_lane(address, 1)];
    let ended = run_threads(lanes, 1, &shared(Limit::Bytes(100_000)), |_| ());
    assert!(matches!(ended, Err(BenchError::AnswerBytes(0))));
    serving.join().expect("no panic");
}

#[test]
fn polls_walk_through_the_partition_and_begin_again() {
    // Three batches of ten are there.
    let (address, serving) = serve(1, |header, body| {
        let at = body.len() - 13;
        let offset = u64::from_le_bytes(body[at..at + 8].try_into().expect("eight bytes"));
        let count = if offset < 30 { 10 } else { 0 };
        let mut records = batch(10, 1000).expect("a batch").to_vec();
        records[8..16].copy_from_slice(&offset.to_le_bytes());
        let payload = Payload::PollMessages(PollReply {
            partition: 0,
            current_offset: 29,
            count,
            records: Raw(if count == 0 { &[] } else { &records }),
        })
        .encode();
        let reply = Reply::to_request(header, 1);
        reply
            .success_with(|out| out.extend_from_slice(&payload))
            .to_vec()
    });
    let session = session(address);
    let work = Work {
        messages: 10,
        bytes: 10_000,
    };
    let source = PollSource::new(&session, PLACE, work, None);
    let lanes = vec![Lane::new(session.socket, Box::new(source), 1)];
    let totals =
        run_threads(lanes, 1, &shared(Limit::Bytes(70_000)), |_| ()).expect("the load runs");
    assert_eq!((totals.requests, totals.messages), (7, 70));
    serving.join().expect("no panic");
}

#[test]
fn an_answer_is_put_together_from_any_pieces() {
    let header = RequestHeader::new(Operation::SendMessages, 0);
    let frames = [sent(&header, &[]), sent(&header, &[])].concat();
    for piece in [1, 7, 255, 256, 257, 400, frames.len()] {
        let mut reader = AnswerReader::default();
        let mut complete = 0;
        for mut rest in frames.chunks(piece) {
            while !rest.is_empty() {
                let (taken, done) = reader.take(rest).expect("the frames are well formed");
                rest = &rest[taken..];
                if done {
                    complete += 1;
                    let (_, body) = reader.answer();
                    assert_eq!(body, &frames[HEADER_BYTES..frames.len() / 2]);
                }
            }
        }
        assert_eq!(complete, 2, "pieces of {piece}");
    }
}
