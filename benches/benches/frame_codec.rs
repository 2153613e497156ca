//! Finding frames in a stream of bytes, reading a send, writing and reading answers.

mod util;

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pawl_wire::commands::messages::{SendMessages, SendReceipt, SendReply};
use pawl_wire::frame::{Decoded, FRAME_BYTES_MAX_DEFAULT, decode_frame};
use pawl_wire::headers::{HEADER_BYTES, RequestHeader};
use pawl_wire::primitives::Wire;
use pawl_wire::reply::{Answer, Reply};

/// Frames that one read may bring.
const FRAMES: usize = 64;

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame");
    let frames = util::send_frame(1).repeat(FRAMES);
    group.throughput(Throughput::Elements(FRAMES as u64));
    group.bench_function("split a read of 64 sends", |bencher| {
        bencher.iter_batched(
            || BytesMut::from(frames.as_slice()),
            |mut buffer| {
                let mut count = 0;
                while let Decoded::Frame(frame) = decode_frame(&mut buffer, FRAME_BYTES_MAX_DEFAULT)
                {
                    black_box(frame);
                    count += 1;
                }
                assert_eq!(count, FRAMES);
            },
            BatchSize::SmallInput,
        );
    });
    group.throughput(Throughput::Elements(1));
    let body = util::send_body(1000);
    group.bench_function("read the body of a send", |bencher| {
        bencher.iter(|| SendMessages::decode(black_box(&body)).expect("it is valid"));
    });
    group.finish();
}

fn answer(criterion: &mut Criterion) {
    let frame = util::send_frame(1);
    let head = frame.first_chunk::<HEADER_BYTES>();
    let request = RequestHeader::from_bytes(head.expect("a frame has a header"));
    let payload = SendReply {
        receipts: vec![SendReceipt {
            stream: 0,
            topic: 0,
            partition: 0,
            base_offset: 7,
        }],
    };
    let mut group = criterion.benchmark_group("answer");
    group.bench_function("write a receipt", |bencher| {
        bencher.iter(|| Reply::to_request(black_box(&request), 9).success(&payload));
    });
    let receipt = Reply::to_request(&request, 9).success(&payload);
    group.bench_function("read a receipt", |bencher| {
        bencher.iter(|| {
            Answer::decode(black_box(&receipt))
                .map(|_| ())
                .expect("it is valid")
        });
    });
    group.finish();
}

criterion_group!(benches, decode, answer);
criterion_main!(benches);
